"""How often a resolver calls the functions that it was given."""

import pytest

from buildorder import CycleError, Package, Resolver, UnknownPackageError, canonical_name


class Budget:
    """Wrap a function, note its arguments, and stop when it is called too often."""

    def __init__(self, func, limit):
        self.func = func
        self.limit = limit
        self.calls = []

    def __call__(self, name):
        self.calls.append(name)
        assert len(self.calls) <= self.limit, f"more than {self.limit} calls"
        return self.func(name)


def graph(**requires):
    return {name: Package(name, "1", tuple(names.split())) for name, names in requires.items()}


def ladder(layers):
    """Two packages in each layer, both requiring both in the layer below."""
    packages = {"l0": Package("l0"), "r0": Package("r0")}
    for layer in range(1, layers):
        below = (f"l{layer - 1}", f"r{layer - 1}")
        for side in "lr":
            packages[f"{side}{layer}"] = Package(f"{side}{layer}", "1", below)
    return packages


def chain(length):
    packages = {"n0": Package("n0")}
    for number in range(1, length):
        packages[f"n{number}"] = Package(f"n{number}", "1", (f"n{number - 1}",))
    return packages


def star(leaves):
    names = tuple(f"leaf{number}" for number in range(leaves))
    return {"hub": Package("hub", "1", names)} | {name: Package(name) for name in names}


def key_limit(packages):
    return 5 * (len(packages) + sum(len(package.requires) for package in packages.values()))


def test_fetch_once_for_each_package_of_a_ladder():
    packages = ladder(16)
    fetch = Budget(packages.__getitem__, limit=len(packages))
    result = Resolver(fetch).resolve(["l15", "r15"])
    expected = [f"{side}{layer}" for layer in range(16) for side in "lr"]
    assert [package.name for package in result] == expected
    assert sorted(fetch.calls) == sorted(packages)


def test_fetch_once_across_roots():
    packages = graph(a="base", b="base a", base="")
    fetch = Budget(packages.__getitem__, limit=100)
    result = Resolver(fetch).resolve(["a", "b", "a", "base"])
    assert [package.name for package in result] == ["base", "a", "b"]
    assert fetch.calls == ["a", "base", "b"]


def test_fetch_once_for_all_spellings_of_a_name():
    packages = graph(app="Log_Utils net log-utils", net="LOG.UTILS")
    packages["log-utils"] = Package("log-utils")
    fetch = Budget(lambda name: packages[canonical_name(name)], limit=100)
    result = Resolver(fetch).resolve(["app", "APP"])
    assert [package.name for package in result] == ["log-utils", "net", "app"]
    assert fetch.calls == ["app", "Log_Utils", "net"]


def test_fetch_once_with_own_key():
    packages = graph(app="ab ac", ab="", ac="")
    fetch = Budget(packages.__getitem__, limit=100)
    result = Resolver(fetch, key=lambda name: name[:2]).resolve(["app", "ab!", "acdc"])
    assert [package.name for package in result] == ["ab", "ac", "app"]
    assert fetch.calls == ["app", "ab", "ac"]


@pytest.mark.parametrize(
    "packages, root",
    [(ladder(14), "l13"), (chain(150), "n149"), (star(300), "hub")],
    ids=["ladder", "chain", "star"],
)
def test_key_calls_grow_with_the_graph(packages, root):
    key = Budget(canonical_name, limit=key_limit(packages))
    result = Resolver(packages.__getitem__, key=key).resolve([root])
    assert result[-1].name == root


def test_chain_order():
    result = Resolver(chain(50).__getitem__).resolve(["n49"])
    assert [package.name for package in result] == [f"n{number}" for number in range(50)]


def test_cycle_behind_a_shared_package():
    packages = graph(app="ok a", ok="", a="ok b", b="ok c", c="a")
    with pytest.raises(CycleError) as caught:
        Resolver(packages.__getitem__).resolve(["ok", "app"])
    assert caught.value.path == ("app", "a", "b", "c", "a")


def test_package_that_requires_itself():
    with pytest.raises(CycleError) as caught:
        Resolver(graph(a="A").__getitem__).resolve(["a"])
    assert caught.value.path == ("a", "A")


def test_diamond_is_not_a_cycle():
    packages = graph(app="left right", left="base", right="base", base="")
    result = Resolver(packages.__getitem__).resolve(["app"])
    assert [package.name for package in result] == ["base", "left", "right", "app"]


def test_aliases_deep_down_are_listed_once():
    packages = graph(app="x y", x="old", y="new", new="core", core="")
    packages["old"] = packages["new"]
    result = Resolver(packages.__getitem__).resolve(["app", "new"])
    assert [package.name for package in result] == ["core", "new", "x", "y", "app"]


def test_unknown_package_below_a_second_parent():
    packages = graph(app="a b", a="", b="a ghost")

    def fetch(name):
        if name not in packages:
            raise UnknownPackageError(name)
        return packages[name]

    with pytest.raises(UnknownPackageError) as caught:
        Resolver(fetch).resolve(["app"])
    assert caught.value.required_by == ("app", "b")


def test_nothing_is_remembered_after_success():
    packages = graph(app="a", a="")
    resolver = Resolver(packages.__getitem__)
    assert len(resolver.resolve(["app"])) == 2
    packages.update(graph(a="b", b=""))
    assert [package.name for package in resolver.resolve(["app"])] == ["b", "a", "app"]


def test_nothing_is_remembered_after_a_cycle():
    packages = graph(app="ok a", ok="", a="app")
    resolver = Resolver(packages.__getitem__)
    for _ in range(2):
        with pytest.raises(CycleError):
            resolver.resolve(["app"])
    packages.update(graph(a=""))
    assert [package.name for package in resolver.resolve(["app"])] == ["ok", "a", "app"]
