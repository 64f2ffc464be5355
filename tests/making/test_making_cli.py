import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gagar_env.cli.app import app
from gagar_env.cli.making import Wanted, settings
from gagar_env.errors import GagarError

pytestmark = pytest.mark.usefixtures("wide")


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_one_source_must_be_named(tmp_path: Path) -> None:
    for arguments in ([], ["--inject", "a", "--from-history", "b"]):
        done = CliRunner().invoke(app, ["tasks", "make", "--out", str(tmp_path / "o"), *arguments])
        assert done.exit_code != 0
        assert isinstance(done.exception, GagarError)
        assert "one of --from-releases, --from-history, --inject, --recipe" in str(done.exception)
        assert not (tmp_path / "o").exists()
    with pytest.raises(GagarError, match="name the model with --model"):
        settings("auto", 1, 60, model_url="http://x.invalid")
    assert Wanted().releases is None


@pytest.mark.slow
@pytest.mark.network
def test_two_real_releases_become_a_task(tmp_path: Path) -> None:
    out = tmp_path / "made"
    arguments = ["tasks", "make", "--from-releases", "itsdangerous", "2.1.0", "2.1.1", "--out", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--runs", "1", "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["tasks"] == ["itsdangerous-2.1.1"]
    assert said["libraries"] == {"itsdangerous": 1}
    checked = CliRunner().invoke(app, ["check", "--task-file", str(out), "--json"])
    assert checked.exit_code == 0, checked.output
    issue = (out / "itsdangerous-2.1.1/issue.md").read_text()
    assert "date overflow" in issue
    assert "raise" not in issue
    again = CliRunner().invoke(app, arguments)
    assert "1 task in" in again.output


@pytest.mark.slow
@pytest.mark.network
def test_what_cannot_be_made_is_explained_and_fails(tmp_path: Path) -> None:
    arguments = ["tasks", "make", "--from-releases", "sortedcontainers", "2.3.0", "2.4.0", "--out", str(tmp_path / "o")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert "the source distribution has no tests" in done.output
    assert "refused: 1 no_tests" in done.output


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(
    ("name", "old", "new"), [("cachetools", "8.0.0", "8.0.1"), ("python-slugify", "9.1.0", "9.1.1")]
)
def test_a_handful_of_real_ones(tmp_path: Path, name: str, old: str, new: str) -> None:
    out = tmp_path / "made.jsonl"
    arguments = ["tasks", "make", "--from-releases", name, old, new, "--out", str(out), "--runs", "2", "--limit", "1"]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["tasks"]) == 1
    assert len(out.read_text().splitlines()) == 1
