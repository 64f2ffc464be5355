import pytest

from buildorder import CycleError, ManifestIndex, Package, Resolver, UnknownPackageError


def resolve(text, *roots):
    packages = Resolver(ManifestIndex.parse(text).fetch).resolve(roots)
    return [package.name for package in packages]


def test_requirements_come_first():
    assert resolve("app: net, log\nnet: log\nlog", "app") == ["log", "net", "app"]


def test_order_follows_roots_and_requirements():
    text = "a: z, y\nb: y, x\nx\ny\nz"
    assert resolve(text, "b", "a") == ["y", "x", "b", "z", "a"]


def test_spellings_are_one_package():
    text = "app: Log_Utils, net\nnet: log-utils\nlog.utils 1"
    assert resolve(text, "app", "APP") == ["log.utils", "net", "app"]


def test_alias_is_listed_once():
    log = Package("log")
    packages = {"log": log, "logging": log, "app": Package("app", "1", ("logging", "log"))}
    result = Resolver(packages.__getitem__).resolve(["app"])
    assert result == [log, packages["app"]]


def test_cycle_is_reported_with_its_path():
    with pytest.raises(CycleError) as caught:
        resolve("app: a\na: b\nb: A", "app")
    assert caught.value.path == ("app", "a", "b", "A")


def test_unknown_package_is_reported_with_its_path():
    with pytest.raises(UnknownPackageError) as caught:
        resolve("app: a\na: ghost", "app")
    assert str(caught.value) == "unknown package 'ghost' (required by app -> a)"
