"""What the README, the docstrings and the issue of buildorder say beyond the issue's own tests."""

import pytest
from buildorder import (
    CycleError,
    ManifestError,
    ManifestIndex,
    Package,
    Resolver,
    UnknownPackageError,
    canonical_name,
    stages,
    unique,
)


class CountedKey:
    """A hashable key that counts its comparisons."""

    compared = 0

    def __init__(self, text):
        self.text = text

    def __hash__(self):
        return hash(self.text)

    def __eq__(self, other):
        CountedKey.compared += 1
        return self.text == other.text


def comparisons(packages, roots):
    """Comparisons of keys in one `resolve`."""
    index = {package.name: package for package in packages}
    CountedKey.compared = 0
    resolver = Resolver(index.__getitem__, key=CountedKey)
    resolver.resolve(roots)
    return CountedKey.compared


def chain(length):
    return [Package(f"p{n}", "1", (f"p{n + 1}",) if n + 1 < length else ()) for n in range(length)]


def test_comparisons_grow_in_line_with_a_chain():
    """The issue: too many key calls on a plain chain, and "the same goes for comparisons of the keys"."""
    assert comparisons(chain(200), ["p0"]) <= 10 * 200


def test_comparisons_grow_in_line_with_a_flat_list():
    packages = [Package(f"p{n}") for n in range(300)]
    packages.append(Package("app", "1", tuple(package.name for package in packages)))
    assert comparisons(packages, ["app"]) <= 10 * 601


def test_chain_of_some_depth():
    index = {package.name: package for package in chain(400)}
    assert [p.name for p in Resolver(index.__getitem__).resolve(["p0"])] == [f"p{n}" for n in reversed(range(400))]


def test_readme_example():
    index = ManifestIndex.parse("app 1.0: http-client, log-utils\nhttp-client 2.1: log-utils\nlog-utils 0.3\n")
    packages = Resolver(index.fetch).resolve(["app"])
    assert [str(package) for package in packages] == ["log-utils 0.3", "http-client 2.1", "app 1.0"]
    assert [[p.name for p in stage] for stage in stages(packages)] == [["log-utils"], ["http-client"], ["app"]]


def test_stages_of_an_incomplete_list():
    with pytest.raises(UnknownPackageError) as caught:
        stages([Package("app", "1", ("lib",))])
    assert caught.value.name == "lib"
    assert caught.value.required_by == ("app",)
    assert caught.value.__cause__ is None


def test_merge_prefers_the_earlier_index():
    merged = ManifestIndex.parse("Log_Utils 2").merge(ManifestIndex.parse("log-utils 1\napp 1"))
    assert len(merged) == 2
    assert merged.fetch("LOG.utils").version == "2"


def test_manifest_errors_name_their_line():
    with pytest.raises(ManifestError) as caught:
        ManifestIndex.parse("# comment\n\none two three: four\n")
    assert caught.value.line_number == 3


def test_unknown_root_has_no_trail():
    with pytest.raises(UnknownPackageError) as caught:
        Resolver(ManifestIndex().fetch).resolve(["nope"])
    assert caught.value.required_by == ()
    assert isinstance(caught.value.__cause__, UnknownPackageError)


def test_cycle_path_has_the_spellings_that_were_met():
    index = ManifestIndex.parse("a: B_1\nb-1: A\n")
    with pytest.raises(CycleError) as caught:
        Resolver(index.fetch).resolve(["a"])
    assert caught.value.path == ("a", "B_1", "A")


def test_roots_may_be_any_iterable():
    index = ManifestIndex.parse("a: c\nb: c\nc\n")
    packages = Resolver(index.fetch).resolve(name for name in ("b", "a"))
    assert [package.name for package in packages] == ["c", "b", "a"]


def test_unique_takes_keys_of_mixed_types():
    assert unique([1, "1", 1.0, None, "1"]) == [1, "1", None]
    assert unique([[2], [1], [2]], key=tuple) == [[2], [1]]
    assert canonical_name("  A.b__C ") == "a-b-c"
