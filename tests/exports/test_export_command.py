"""`gagar runs export`."""

import json

import pytest
from typer.testing import CliRunner

from gagar_env.cli.app import app
from gagar_env.errors import GagarError


@pytest.fixture
def export(run):
    def export(*arguments):
        done = CliRunner().invoke(app, ["runs", "export", str(run.path), *map(str, arguments)])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done

    return export


def test_it_says_what_it_wrote_and_what_not(export, tmp_path):
    done = export("--format", "predictions", "--out", tmp_path / "out")
    assert done.stdout.startswith("6 episodes written to ")
    assert done.stderr.splitlines() == [
        "gagar: episode 'b/2' is left out: its patch is not valid UTF-8, and predictions are text",
        "gagar: episode 'b/3' is left out: it was never judged and has no patch",
    ]


def test_as_json(export, tmp_path):
    done = export("--format", "openai", "--only", "passed", "--out", tmp_path / "chat.jsonl", "--json")
    said = json.loads(done.stdout)
    assert said == {"format": "openai", "path": str(tmp_path / "chat.jsonl"), "episodes": 3, "left_out": []}


def test_a_system_prompt_from_a_file(export, tmp_path):
    (tmp_path / "system.txt").write_text("Be brief.")
    export("--format", "openai", "--system", tmp_path / "system.txt", "--out", tmp_path / "chat.jsonl")
    first = json.loads((tmp_path / "chat.jsonl").read_text().splitlines()[0])
    assert first["messages"][0] == {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "csv"], "there are parquet, datasets, openai, traj, predictions"),
        (["--format", "traj", "--only", "best"], "there are all, kept, passed"),
        (["--format", "traj", "--model-name", "x"], "--model-name is for --format predictions, not for --format traj"),
        (["--format", "traj", "--system", "x"], "--system is for --format openai, not for --format traj"),
    ],
)
def test_what_does_not_fit_is_said(export, tmp_path, arguments, said):
    with pytest.raises(GagarError) as caught:
        export(*arguments, "--out", tmp_path / "out")
    assert said in str(caught.value)
    assert not (tmp_path / "out").exists()
