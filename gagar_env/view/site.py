"""What the page asks for, by address. Addresses are numbers only; the server and the file for offline use share them.

runs                                       the runs there are
run/R                                      a run in numbers and curves
run/R/rows                                 one row for each group
run/R/group/G                              a group and a line for each member
run/R/group/G/member/M                     patch and tests of a member
run/R/group/G/member/M/turns/P             a page of its trajectory
run/R/group/G/member/M/turn/T/PART/N       a piece of a long action or observation
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any, cast

from gagar_env.episode import Episode
from gagar_env.store import GroupRecord
from gagar_env.view.details import group_view, member_view
from gagar_env.view.overview import overview
from gagar_env.view.plain import short
from gagar_env.view.rows import episodes_row
from gagar_env.view.runs import Run
from gagar_env.view.turns import Part, page_count, piece_view, turns_view

MAX_FAILURES = 200
_N = r"(\d{1,9})"
_MEMBER = rf"run/{_N}/group/{_N}/member/{_N}"


class Site:
    """The runs of one page.

    Args:
        runs: At least one.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)
        self._read: list[list[dict[str, Any]]] = [[] for _ in self.runs]
        self._stopped = threading.Event()
        self._routes: tuple[tuple[re.Pattern[str], Callable[..., Any]], ...] = (
            (re.compile("runs"), self._runs),
            (re.compile(f"run/{_N}"), self._overview),
            (re.compile(f"run/{_N}/rows"), self._rows),
            (re.compile(f"run/{_N}/group/{_N}"), self._group),
            (re.compile(_MEMBER), self._member),
            (re.compile(f"{_MEMBER}/turns/{_N}"), self._turns),
            (re.compile(f"{_MEMBER}/turn/{_N}/(action|observation)/{_N}"), self._piece),
        )

    def get(self, address: str) -> Any:
        """The answer to an address, of plain JSON values; None when there is no such thing."""
        for pattern, answer in self._routes:
            if (match := pattern.fullmatch(address)) is not None:
                return answer(*(int(part) if part.isdigit() else part for part in match.groups()))
        return None

    def read_episodes(self) -> None:
        """Read the episodes of all groups that were not read yet, for lengths, sizes and flags."""
        for number, run in enumerate(self.runs):
            done = self._read[number]
            total = len(run.rows())
            while len(done) < total and not self._stopped.is_set():
                line = run.group(len(done))
                ids = () if line is None else line.result.episode_ids
                done.append(episodes_row([run.episode_once(episode_id) for episode_id in ids]))

    def start_reading(self, every_s: float = 3.0) -> threading.Thread:
        """Go on doing so in a thread until `stop`: runs that are being written grow."""

        def read() -> None:
            while not self._stopped.is_set():
                self.read_episodes()
                self._stopped.wait(every_s)

        thread = threading.Thread(target=read, name="gagar-view-reader", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """End the reading."""
        self._stopped.set()

    def _rows_of(self, number: int) -> list[dict[str, Any]]:
        read = self._read[number]
        rows = self.runs[number].rows()
        return [{**row, **read[place]} if place < len(read) else row for place, row in enumerate(rows)]

    def _runs(self) -> Any:
        return {
            "version": version("gagar-env"),
            "runs": [{"name": run.name, "path": str(run.path)} for run in self.runs],
        }

    def _overview(self, number: int) -> Any:
        if number >= len(self.runs):
            return None
        run = self.runs[number]
        rows = self._rows_of(number)
        read = min(len(self._read[number]), len(rows))
        return {
            "name": run.name,
            "unreadable": run.unreadable,
            "settings": short(run.folder.settings),
            "failures": [short(asdict(failure)) for failure in run.failures()[:MAX_FAILURES]],
            **overview(rows, read, run.metrics()),
        }

    def _rows(self, number: int) -> Any:
        """As a table, for size: names once, then values; `read` says how many rows have what episodes say."""
        if number >= len(self.runs):
            return None
        rows = self._rows_of(number)
        names = ("group", "task", "kept", "reason", "size", "valid", "passed", "tiers", "fallback", "flags")
        return {
            "names": names,
            "read": min(len(self._read[number]), len(rows)),
            "rows": [[row.get(name) for name in names] for row in rows],
        }

    def _line(self, number: int, group: int) -> GroupRecord | None:
        return self.runs[number].group(group) if number < len(self.runs) else None

    def _group(self, number: int, group: int) -> Any:
        line = self._line(number, group)
        return None if line is None else group_view(self.runs[number], group, line)

    def _one(self, number: int, group: int, place: int) -> tuple[GroupRecord, Episode] | None:
        line = self._line(number, group)
        if line is None or place >= len(line.result.episode_ids):
            return None
        episode = self.runs[number].episode(line.result.episode_ids[place])
        return None if episode is None else (line, episode)

    def _member(self, number: int, group: int, place: int) -> Any:
        found = self._one(number, group, place)
        return None if found is None else member_view(found[1])

    def _turns(self, number: int, group: int, place: int, page: int) -> Any:
        found = self._one(number, group, place)
        if found is None or page >= page_count(found[1]):
            return None
        return turns_view(found[0].result, place, found[1], page)

    def _piece(self, number: int, group: int, place: int, turn: int, part: str, piece: int) -> Any:
        found = self._one(number, group, place)
        return None if found is None else piece_view(found[1], turn, cast(Part, part), piece)
