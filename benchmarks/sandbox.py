"""Reset, command and capture of the sandbox, against plain tools and two peers.

    python benchmarks/sandbox.py [--rounds N] [--kind bwrap]

The peers, mini-swe-agent's LocalEnvironment and SWE-ReX's local runtime, are measured where they are installed
(`pip install mini-swe-agent swe-rex`). Neither isolates anything.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from _common import LARGE, SMALL, make_tree, measure, report, room

from gagar_env.sandbox import SandboxSpec, choose_kind, open_sandbox


def copies(tree: Path) -> Callable[[], None]:
    """`cp -a` and `rm -rf` of the tree."""
    place, numbers = room(), itertools.count()

    def run() -> None:
        target = place / str(next(numbers))
        subprocess.run(["cp", "-a", tree, target], check=True)
        subprocess.run(["rm", "-rf", target], check=True)

    return run


def reset(tree: Path, name: str, kind: str, rounds: int) -> None:
    """Open and close a sandbox."""
    spec = SandboxSpec(tree=tree)
    variants = {f"{kind} sandbox": lambda: open_sandbox(kind, spec).close(), "cp -a + rm -rf": copies(tree)}
    goal = "at least 100 x" if name == "large" else "at most a tie"
    report(f"reset + close, {name} tree", measure(variants, rounds=rounds), f"{kind} sandbox", goal)


def commands(tree: Path, kind: str, rounds: int) -> None:
    """Run `true`."""
    sandbox = open_sandbox(kind, SandboxSpec(tree=tree))
    variants: dict[str, Callable[[], object]] = {
        f"{kind} sandbox": lambda: sandbox.run("true", timeout_s=10),
        "subprocess.run(['bash', '-c'])": lambda: subprocess.run(
            ["bash", "-c", "true"], capture_output=True, text=True, timeout=10, cwd=tree, check=False
        ),
    }
    loop = asyncio.new_event_loop()
    try:
        from minisweagent.environments.local import LocalEnvironment

        peer = LocalEnvironment(cwd=str(tree), timeout=10)
        variants["mini-swe-agent LocalEnvironment"] = lambda: peer.execute({"command": "true"})
    except ImportError:
        print("mini-swe-agent is not installed: left out")
    try:
        from swerex.runtime.abstract import Command
        from swerex.runtime.local import LocalRuntime

        runtime = LocalRuntime()
        command = Command(command="true", shell=True, timeout=10, cwd=str(tree))
        variants["SWE-ReX local execute"] = lambda: loop.run_until_complete(runtime.execute(command))
    except ImportError:
        print("SWE-ReX is not installed: left out")
    report("one command", measure(variants, rounds=rounds * 10), f"{kind} sandbox", "below all others")
    sandbox.close()
    loop.close()


def captures(tree: Path, name: str, kind: str, rounds: int) -> None:
    """Capture three edited files and a new one as a patch."""
    from gagar_env.patch import make_patch

    edit = "for n in 1 7 13; do echo '# edit' >> package_0/module_$n.py; done; echo new > new.py"
    sandbox = open_sandbox(kind, SandboxSpec(tree=tree))
    sandbox.run(edit, timeout_s=60)
    plain = room() / "copy"
    shutil.copytree(tree, plain, symlinks=True)
    subprocess.run(["bash", "-c", edit], cwd=plain, check=True)
    git = ["git", "-c", "safe.directory=*", "-C", str(plain)]

    def add_all() -> None:
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "diff", "--cached", "--binary"], check=True, capture_output=True)

    fresh = measure({"first in a fresh copy": add_all}, rounds=1)  # what an episode pays: its index fits no file
    variants: dict[str, Callable[[], object]] = {
        f"{kind} sandbox": lambda: make_patch(tree, sandbox.capture().changes),
        "git add -A && git diff --cached, again": add_all,
    }
    medians = measure(variants, rounds=rounds)
    medians["the same, first in a fresh copy (once)"] = fresh["first in a fresh copy"]
    goal = "at least 10 x" if name == "large" else "none"
    report(f"capture, {name} tree", medians, f"{kind} sandbox", goal)
    sandbox.close()


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--kind", default="auto")
    arguments = parser.parse_args()
    kind = choose_kind(arguments.kind)
    trees = {"small": make_tree(SMALL), "large": make_tree(LARGE)}
    for name, tree in trees.items():
        reset(tree, name, kind, arguments.rounds if name == "small" else max(3, arguments.rounds // 4))
    commands(trees["small"], kind, arguments.rounds)
    for name, tree in trees.items():
        captures(tree, name, kind, arguments.rounds)


if __name__ == "__main__":
    main()
    for leftover in Path("/dev/shm").glob("gagar-bench-*"):
        shutil.rmtree(leftover, ignore_errors=True)
