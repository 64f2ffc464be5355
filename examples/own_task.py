"""Make a task of your own: a folder with a repository, an issue, hidden tests and a reference patch. Check it, run it.

python examples/own_task.py
"""

import argparse
import tempfile
from pathlib import Path

from gagar_env import load_task, register_tasks, run_group
from gagar_env.agents.policies import NoopPolicy, ReferencePolicy
from gagar_env.check import check_task

FILES = {
    "task.toml": """
schema_version = 1
id = "greeting-name"
title = "Greetings ignore the name"

[tests]
files = ["tests/test_greet.py"]
fail_to_pass = ["tests/test_greet.py::test_name"]
pass_to_pass = ["tests/test_greet.py::test_default"]

[environment]
requirements = [   # all that pytest needs: nothing is installed that is not named
    "pytest==9.2.0", "iniconfig==2.3.0", "packaging==26.2", "pluggy==1.6.0", "pygments==2.20.0",
    "exceptiongroup==1.3.0; python_version < '3.11'", "tomli==2.2.1; python_version < '3.11'",
    "typing_extensions==4.14.0; python_version < '3.11'",
]
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

    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            path = Path(folder, "greeting-name", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        register_tasks(folder)
        task = load_task("greeting-name")
        found = check_task(task)
        print("check:", "good" if found.ok else "; ".join(found.problems))
        for policy in (ReferencePolicy(), NoopPolicy()):
            (episode,) = run_group(task, policy, group_size=1)
            print(f"{policy.name}: reward {episode.reward}")


if __name__ == "__main__":
    main()
