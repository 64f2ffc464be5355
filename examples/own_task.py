"""Make a task of your own: a folder with a repository, an issue, hidden tests and a reference patch. Check it, run it.

python examples/own_task.py
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from gagar_env import load_task, register_tasks, run_group
from gagar_env.agents.policies import NoopPolicy, ReferencePolicy
from gagar_env.check import check_task

FILES = {
    "task.toml": f"""
schema_version = 1
id = "greeting-name"
title = "Greetings ignore the name"

[tests]
files = ["tests/test_greet.py"]
fail_to_pass = ["tests/test_greet.py::test_name"]
pass_to_pass = ["tests/test_greet.py::test_default"]

[environment]
python = {sys.executable!r}     # this interpreter as it is; give exact `requirements` for one of the task's own
pythonpath = ["src"]
""",
    "issue.md": "`greet('Ada')` says `Hello, world!`. It should say `Hello, Ada!`.\n",
    "repo/README.md": "# greeting\n",
    "repo/src/greeting.py": "def greet(name='world'):\n    return 'Hello, world!'\n",
    "tests/tests/test_greet.py": (
        "from greeting import greet\n\n\n"
        "def test_name():\n    assert greet('Ada') == 'Hello, Ada!'\n\n\n"
        "def test_default():\n    assert greet() == 'Hello, world!'\n"
    ),
    "solution.patch": (
        "diff --git a/src/greeting.py b/src/greeting.py\n"
        "--- a/src/greeting.py\n"
        "+++ b/src/greeting.py\n"
        "@@ -1,2 +1,2 @@\n"
        " def greet(name='world'):\n"
        "-    return 'Hello, world!'\n"
        "+    return f'Hello, {name}!'\n"
    ),
}


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="accepted by every example; this one is small already")
    parser.parse_args()
    subprocess.run([sys.executable, "-m", "pytest", "--version"], check=True, capture_output=True)  # the task needs it

    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            path = Path(folder, "greeting-name", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        register_tasks(folder)
        task = load_task("greeting-name")
        print("check:", "good" if check_task(task).ok else "BAD")
        for policy in (ReferencePolicy(), NoopPolicy()):
            (episode,) = run_group(task, policy, group_size=1)
            print(f"{policy.name}: reward {episode.reward}")


if __name__ == "__main__":
    main()
