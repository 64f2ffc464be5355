import pytest

from buildorder import ManifestError, ManifestIndex, Package, UnknownPackageError


def test_parse_reads_versions_and_requirements():
    index = ManifestIndex.parse("app 1.0: lib-a, lib-b  # main\n\nlib-a\nlib-b 2\n")
    assert len(index) == 3
    assert index.fetch("app") == Package("app", "1.0", ("lib-a", "lib-b"))
    assert index.fetch("LIB_A") == Package("lib-a")


def test_parse_names_the_bad_line():
    with pytest.raises(ManifestError, match="line 2: expected 'name version'"):
        ManifestIndex.parse("app\nfoo 1 2: bar\n")


def test_fetch_of_unknown_name():
    with pytest.raises(UnknownPackageError, match="unknown package 'nope'"):
        ManifestIndex().fetch("nope")


def test_merge_keeps_the_earlier_package():
    merged = ManifestIndex.parse("log_utils 1").merge(ManifestIndex.parse("Log-Utils 2\nnet 3"))
    assert [str(package) for package in merged] == ["log_utils 1", "net 3"]
