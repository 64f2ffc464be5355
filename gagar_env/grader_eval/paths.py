"""Trajectories of candidates: a short, straight one, and detours that a longer one takes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from gagar_env.changes import Changes
from gagar_env.episode import TestReport, TestStatus, Turn
from gagar_env.grader_eval.equal import remarked
from gagar_env.grader_eval.scene import Scene
from gagar_env.grader_eval.variants import Variant
from gagar_env.patch import base_state

DETOURS = (6, 18, 54)
"""Turns that led nowhere, by strength."""
_REMARKS = (
    "The case of the problem statement comes through here.",
    "This is where the problem statement's case comes through.",
    "What the problem statement describes comes through here.",
)
_SHOWN = 1200
"""Characters of a file or patch that an observation shows."""


def longer_path(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """The same work by way of dead ends. A comment sets the patches apart: equal ones count as one candidate."""
    made = []
    for strength, detours in enumerate(DETOURS, 1):
        site = remarked(scene, rng, (_REMARKS[strength - 1],))
        if site is not None:
            made.append(Variant(strength=strength, changes=scene.with_sites([site]), detours=detours))
    return made


def turns(
    scene: Scene, changes: Changes, patch: bytes, report: TestReport, *, detours: int, seed: str
) -> tuple[Turn, ...]:
    """What an agent may have done to come to a patch. Nothing was run for it; files and test report are real."""
    rng = random.Random(seed)
    paths = sorted(path for path, state in changes.items() if state is not None)
    shown = [path for path in paths if base_state(scene.tree, path) is not None] or sorted(scene.others)[:1]
    passed = sum(record.status is TestStatus.PASSED for record in report.tests.values())
    files = " ".join(scene.task.tests.files[:1])
    straight = [Turn(action="git ls-files | head -50", observation="\n".join(sorted(scene.others)[:20]), exit_code=0)]
    straight += [_look(scene, path) for path in shown[:3]]
    written = patch.decode("utf-8", "replace")
    return (
        *straight,
        *_detours(scene, shown, detours, rng),
        Turn(action=f"git apply <<'END'\n{written}END", observation="", exit_code=0),
        Turn(action="git diff --stat", observation="\n".join(f" {path} | changed" for path in paths), exit_code=0),
        Turn(action=f"python -m pytest -q {files}", observation=f"{passed or 1} passed", exit_code=0),
        Turn(action="submit", observation="submitted"),
    )


def _look(scene: Scene, path: str) -> Turn:
    state = base_state(scene.tree, path)
    text = state.data.decode("utf-8", "replace") if state else ""
    return Turn(action=f"cat {path}", observation=text[:_SHOWN], exit_code=0)


def _detours(scene: Scene, paths: Sequence[str], count: int, rng: random.Random) -> Iterator[Turn]:
    made = 0
    while made < count:
        path = rng.choice(list(paths) or ["README.md"])
        word = rng.choice(("legacy", "workaround", "compat", "override", "monkeypatch"))
        block = (
            Turn(action=f"grep -rn {word} .", observation="", exit_code=1),
            _look(scene, path),
            Turn(action=f"sed -i 's/return/return  /' {path}", observation="", exit_code=0),
            Turn(
                action=f"python -m pytest -q {' '.join(scene.task.tests.files[:1])}",
                observation="E   AssertionError\n1 failed",
                exit_code=1,
            ),
            Turn(action=f"git checkout -- {path}", observation="", exit_code=0),
            Turn(action='python -c "import this_module"', observation="ModuleNotFoundError: this_module", exit_code=1),
        )
        for turn in block[: count - made]:
            yield turn
            made += 1
