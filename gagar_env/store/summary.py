"""What a run has come to, for listings: counted from its lines, and remembered in an index that fits or is not used."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from gagar_env.errors import GagarError
from gagar_env.group_result import SCHEMA_VERSION
from gagar_env.store.files import check_schema, read_json, read_lines, write_whole
from gagar_env.store.folder import RunFolder
from gagar_env.store.lock import is_driven

INDEX_VERSION: Final = 2
_FILES: Final = ("groups.jsonl", "failures.jsonl")

State = Literal["running", "complete", "stopped", "unknown"]


@dataclass(slots=True, kw_only=True)
class RunSummary:
    """Counts of a run.

    Attributes:
        groups: Groups with a record.
        kept: Those with a learning signal.
        reasons: Why groups are kept or dropped -> how many.
        graded: Those whose ranking was used.
        fallbacks: Those whose ranking failed, so that they have plain advantages.
        episodes: Of all groups.
        valid: Episodes with a test result.
        passed: Those that passed.
        failed_jobs: Groups that could not be run, because of their task, and are not there since.
        attempts: Different numbers of groups that are there or could not be run.
        ended_at: Of the last group.
        state: `running` while a process works on it; `complete` when all groups that its settings ask for are there;
            else `stopped`, or `unknown` where the settings do not say how many there should be.
    """

    groups: int = 0
    kept: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    graded: int = 0
    fallbacks: int = 0
    episodes: int = 0
    valid: int = 0
    passed: int = 0
    failed_jobs: int = 0
    attempts: int = 0
    ended_at: datetime | None = None
    state: State = "unknown"

    @property
    def pass_rate(self) -> float | None:
        """Passed episodes of those with a result; None without any."""
        return self.passed / self.valid if self.valid else None


def summarize(run: RunFolder) -> RunSummary:
    """Count a run. The index beside it is used if it was made from these very files, else made again.

    Raises:
        GagarError: If a newer version of this package wrote the groups.
    """
    stamp = {name: _stamp(run.path / name) for name in _FILES}
    found = _from_index(run.path / "index.json", stamp)
    if found is None:
        found = _count(run)
        content = {**asdict(found), "ended_at": None if found.ended_at is None else found.ended_at.isoformat()}
        text = json.dumps({"version": INDEX_VERSION, "files": stamp, "counts": content})
        with contextlib.suppress(OSError):  # somebody else's run, or no room: it is counted again next time
            write_whole(run.path / "index.json", text.encode())
    found.state = _state(run, found)
    return found


def _stamp(path: Path) -> list[int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return []
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def _from_index(path: Path, stamp: Mapping[str, list[int]]) -> RunSummary | None:
    try:
        content = read_json(path)
        if content.get("version") != INDEX_VERSION or content.get("files") != stamp:
            return None
        counts = dict(content["counts"])
        ended = counts.pop("ended_at")
        return RunSummary(**counts, ended_at=None if ended is None else datetime.fromisoformat(ended))
    except (OSError, GagarError, KeyError, TypeError, ValueError):
        return None


def _count(run: RunFolder) -> RunSummary:
    found = RunSummary()
    attempts: set[int] = set()
    reasons: Counter[str] = Counter()
    ended = ""
    for number, line in read_lines(run.path / "groups.jsonl", on_torn=lambda _: None):
        check_schema(f"{run.path / 'groups.jsonl'}: line {number}", line.get("schema_version"), SCHEMA_VERSION)
        passed, valid = line.get("passed"), line.get("valid")
        if not isinstance(passed, list) or not isinstance(valid, list) or "kept" not in line:
            continue  # reading the groups tells of it
        found.groups += 1
        found.kept += bool(line["kept"])
        reasons[str(line.get("reason"))] += 1
        found.graded += bool(line.get("graded"))
        found.fallbacks += bool(line.get("fallback"))
        found.episodes += len(valid)
        found.valid += sum(map(bool, valid))
        found.passed += sum(map(bool, passed))
        ended = line.get("ended_at") or ended
        if isinstance(line.get("attempt"), int):
            attempts.add(line["attempt"])
    failed = {failure.attempt for failure in run.failures()} - attempts  # a resumed run tries them again
    found.failed_jobs = len(failed)
    attempts |= failed
    found.reasons, found.attempts = dict(reasons), len(attempts)
    with contextlib.suppress(ValueError, TypeError):
        found.ended_at = datetime.fromisoformat(ended) if ended else None
    return found


def _state(run: RunFolder, found: RunSummary) -> State:
    if is_driven(run.path):
        return "running"
    wanted = run.settings.get("group_count")
    if not isinstance(wanted, int):
        return "unknown"
    return "complete" if found.attempts >= wanted else "stopped"
