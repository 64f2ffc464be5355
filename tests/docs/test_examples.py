"""Every example runs as a user would run it, at its smoke size."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from chat_server import text
from judging import by_size

from gagar_env.agents.policies.script import apply_command
from gagar_env.tasks.registry import load_task

ROOT = Path(__file__).parents[2]
NEEDS = {"train_grader": "trl", "train_sb3": "stable_baselines3", "train_trl": "trl"}
"""Package that an example needs and an environment of the extra `test` alone, on Python 3.10, may lack."""
EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").glob("*.py"))
    if path.stem not in NEEDS or importlib.util.find_spec(NEEDS[path.stem])
]


def model():
    """Acts and judges: two of its episodes apply known solutions, the others do nothing."""
    task = load_task("ledger-rounding")
    clean = [task.solution_patch, *(s.patch for s in task.solutions if s.kind == "clean")]
    commands = iter([apply_command(patch) for patch in clean[:2]])

    def answer(request, number):
        if "submit" in str(request.get("tools")):
            return by_size(request)
        if len(request["messages"]) > 2:
            return text("submit")
        return text(f"```bash\n{next(commands, 'true')}\n```")

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example(script, tmp_path, chat_server):
    chat_server.script = model()
    endpoint = ["--url", chat_server.url] if "--url" in script.read_text() else []
    done = subprocess.run(
        [sys.executable, str(script), "--smoke", *endpoint],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not endpoint or "ranked by agentic" in done.stdout, done.stdout


def test_examples_are_short():
    for script in (ROOT / "examples").glob("*.py"):
        limit = 800 if script.stem == "train_torch" else 150  # a whole trainer in one file, read from top to bottom
        assert len(script.read_text().splitlines()) <= limit, script
