import pytest

from buildorder import Package, UnknownPackageError, stages


def test_groups_by_depth():
    log, net = Package("log"), Package("net")
    http = Package("http", requires=("NET", "log"))
    app = Package("app", requires=("http", "log"))
    assert stages([log, net, http, app]) == [[log, net], [http], [app]]


def test_missing_requirement():
    with pytest.raises(UnknownPackageError, match="'log'"):
        stages([Package("net", requires=("log",))])
