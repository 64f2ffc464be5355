"""The shared workspace: all episodes of one group in one folder, under neutral labels.

    <root>/task.md                       the problem statement
    <root>/base/                         the base tree
    <root>/candidates/<label>/patch.diff
                              trajectory.jsonl   one turn a line
                              tests.json         the test report
                              tree/              the base with the patch, made when first asked for

Labels say nothing about order, policy or result. What is in it was copied: a grader that writes here
harms no episode. Only `base` is a link to the cached base tree, unless a copy is asked for.

What candidates wrote is data. Nothing of it is run here, and no link in it is followed.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

from gagar_env.changes import FileState
from gagar_env.episode import Episode, TestReport, Turn
from gagar_env.errors import GradingError
from gagar_env.patch import read_patch
from gagar_env.sandbox._files import write_state
from gagar_env.sandbox.base import sandbox_owner
from gagar_env.tasks.task import Task

_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""What JSON allows inside a string, but some readers take for the end of a line."""


class Candidate:
    """One valid episode as a grader sees it.

    Attributes:
        label: Its name in the workspace.
        passed: Whether the official tests passed: only then it is ranked.
        patch: The patch against the base tree, as bytes.
        turns: Every action with its observation.
        report: What the official tests said.
        folder: Where its files are.
    """

    def __init__(self, *, label: str, episode: Episode, base: Path, folder: Path) -> None:
        assert episode.report is not None, "only valid episodes have a place"
        self.label = label
        self.passed: bool = episode.passed
        self.patch: bytes = episode.patch
        self.turns: tuple[Turn, ...] = episode.turns
        self.report: TestReport = episode.report
        self.folder = folder
        self._base = base
        self._changes: Mapping[str, FileState | None] | None = None
        self._tree: Path | None = None
        self._closed = False
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Candidate({self.label!r}, {'passed' if self.passed else 'failed'})"

    @property
    def changes(self) -> Mapping[str, FileState | None]:
        """New state of each path that differs from the base tree; read when first asked for.

        Raises:
            PatchError: If the patch does not apply to the base tree, or would leave it.
        """
        with self._lock:
            return self._read_changes()

    def tree(self) -> Path:
        """The base tree with the patch, a copy of its own; made when first asked for. Thread-safe.

        It belongs to the user of sandboxes, so that it can be the tree of a `SandboxSpec`.

        Raises:
            PatchError: If the patch does not apply to the base tree, or would leave it.
            GradingError: If the workspace is closed.
        """
        with self._lock:
            if self._closed:
                raise GradingError(f"the workspace of candidate {self.label} is closed")
            if self._tree is None:
                self._tree = self._make_tree(self._read_changes())
            return self._tree

    def close(self) -> None:
        """Make no tree from now on; waits for one that is being made."""
        with self._lock:
            self._closed = True

    def _read_changes(self) -> Mapping[str, FileState | None]:
        if self._changes is None:
            self._changes = MappingProxyType(read_patch(self._base, self.patch))
        return self._changes

    def _make_tree(self, changes: Mapping[str, FileState | None]) -> Path:
        tree, unfinished = self.folder / "tree", self.folder / "tree.unfinished"
        owner = sandbox_owner() if os.geteuid() == 0 else None
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(self._base, unfinished, symlinks=True)
        if owner is not None:
            for folder, folders, files in os.walk(unfinished):
                for name in (".", *folders, *files):
                    os.chown(os.path.join(folder, name), *owner, follow_symlinks=False)
        root = os.open(unfinished, os.O_RDONLY | os.O_DIRECTORY)
        try:
            deleted_first = sorted(changes.items(), key=lambda item: item[1] is not None)
            for path, state in deleted_first:
                write_state(root, path, None if state is None else (state.mode, state.data), owner)
        finally:
            os.close(root)
        unfinished.rename(tree)
        return tree


class Workspace:
    """The valid episodes of one group in one folder. Make it with `create`; a context manager.

    Attributes:
        task: What the episodes were about, secrets included: graders are trusted code. A model is
            shown the files only.
        root: The folder.
        base: The base tree.
        seed: What the labels were drawn with.
        candidates: Label -> candidate, in the order of labels. Failing ones can be read, never ranked.
        passing: Labels that are to be ranked, in order.
        episode_ids: Label -> id of the episode. Not written into the folder.
        policies: Names of the policies that acted, each once; for a grader that shall not judge its own work.
    """

    def __init__(
        self, *, task: Task, root: Path, base: Path, episodes: Mapping[str, Episode], seed: int, temporary: bool
    ) -> None:
        self.task = task
        self.root = root
        self.base = base
        self.seed = seed
        self.episode_ids: Mapping[str, str] = MappingProxyType({label: e.id for label, e in episodes.items()})
        self.policies: tuple[str, ...] = tuple(sorted({e.policy for e in episodes.values() if e.policy}))
        self.candidates: Mapping[str, Candidate] = MappingProxyType(
            {
                label: Candidate(label=label, episode=episode, base=base, folder=root / "candidates" / label)
                for label, episode in episodes.items()
            }
        )
        self.passing: tuple[str, ...] = tuple(label for label, c in self.candidates.items() if c.passed)
        self._temporary = temporary

    @classmethod
    def create(
        cls,
        task: Task,
        base_tree: Path,
        episodes: Sequence[Episode],
        *,
        seed: int,
        root: Path | None = None,
        copy_base: bool = False,
    ) -> Workspace:
        """Write the workspace of a group.

        Args:
            task: The task of the group.
            base_tree: Its base tree; only read.
            episodes: The group. Episodes that are not valid are left out.
            seed: The same seed, with as many valid episodes in the same order, gives the same labels.
            root: A folder that is new or empty, and kept; by default a temporary one, removed by `close`.
            copy_base: Copy the base tree into it; by default it is linked.

        Raises:
            FileExistsError: If `root` holds something already.
            OSError: If it cannot be written.
        """
        valid = [episode for episode in episodes if episode.valid]
        members = [valid[number] for number in label_order(seed, len(valid))]
        named = {_label(number): episode for number, episode in enumerate(members)}
        temporary = root is None
        place = Path(tempfile.mkdtemp(prefix="gagar-workspace-")) if root is None else root.absolute()
        try:
            place.mkdir(parents=True, exist_ok=True)
            if any(place.iterdir()):
                raise FileExistsError(f"workspace {place} is not empty: name a new folder")
            base = base_tree.absolute()
            if copy_base:
                base = Path(shutil.copytree(base, place / "base", symlinks=True))
            else:
                (place / "base").symlink_to(base, target_is_directory=True)
            workspace = cls(task=task, root=place, base=base, episodes=named, seed=seed, temporary=temporary)
            workspace._write()
        except BaseException:
            if temporary:
                shutil.rmtree(place, ignore_errors=True)
            raise
        return workspace

    def close(self) -> None:
        """Remove the folder if it is a temporary one. May be called twice."""
        for candidate in self.candidates.values():
            candidate.close()
        if self._temporary:
            shutil.rmtree(self.root, ignore_errors=True)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self) -> None:
        _write(self.root / "task.md", _text(self.task.problem_statement))
        for candidate in self.candidates.values():
            candidate.folder.mkdir(parents=True)
            turns = (_json({"turn": n, **_turn(turn)}) for n, turn in enumerate(candidate.turns, 1))
            report = candidate.report.model_dump(exclude={"schema_version", "attempts", "seconds"})
            _write(candidate.folder / "patch.diff", candidate.patch)
            _write(candidate.folder / "trajectory.jsonl", b"".join(line + b"\n" for line in turns))
            _write(candidate.folder / "tests.json", _json(report) + b"\n")


def label_order(seed: int, count: int) -> list[int]:
    """Which of `count` valid episodes gets the first label, the second, and so on."""
    order = list(range(count))
    random.Random(f"workspace labels {seed}").shuffle(order)
    return order


def _label(number: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _turn(turn: Turn) -> dict[str, Any]:
    return turn.model_dump(exclude={"prompt_tokens", "completion_tokens", "tokens"})


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    path.chmod(0o444)


def _text(text: str) -> bytes:
    """UTF-8, with U+FFFD for lone surrogates."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


def _json(value: object) -> bytes:
    """One line of JSON that a strict parser reads: numbers that are not finite become null."""
    return _text(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False).translate(_LINE_ENDS))


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
