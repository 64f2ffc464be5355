"""Many candidates become tasks, in parallel, and again from where it stopped after an interruption."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from gagar_env.checked import record_checked
from gagar_env.errors import TaskError
from gagar_env.making.candidate import Candidate, Made
from gagar_env.making.derive import derive
from gagar_env.making.feed import Feed, Source
from gagar_env.making.journal import Entry, Journal, alone
from gagar_env.making.observe import LONGEST_S, RUNS, need_isolation
from gagar_env.making.portable import Sources
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.folder import is_task_folder, load_task_folder
from gagar_env.tasks.task import Task
from gagar_env.tasks.write import write_task_file, write_task_folder
from gagar_env.verify import Verifier

JOURNAL = "journal.jsonl"
SOURCES = "sources"
_FILES = (".jsonl", ".json", ".jsonl.gz", ".json.gz", ".parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A set after a run.

    Attributes:
        tasks: Ids of all tasks of the set, in the order in which they were made.
        new: Those that this run made.
        refused: Candidates that became none, by reason.
        sources: Whole sources that were refused, by reason.
        explained: Source -> the line that says why it was refused.
        libraries: Tasks by `extra["library"]`.
        seconds: Of work for one task that was made, on average, its refused neighbours not counted.
        wall_seconds: Of this run.
        flaky: Ids left out because runs of the same tree did not agree.
        tests: Ids that ran.
    """

    tasks: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    refused: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    explained: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    wall_seconds: float = 0.0
    flaky: int = 0
    tests: int = 0

    @property
    def tried(self) -> int:
        """Candidates in all."""
        return len(self.tasks) + sum(self.refused.values())

    @property
    def flake_rate(self) -> float:
        """Share of the tests that ran which are flaky."""
        return self.flaky / self.tests if self.tests else 0.0


def make(
    sources: Iterable[Source],
    out: Path | str,
    *,
    limit: int | None = None,
    jobs: int = 1,
    sandbox: str = "auto",
    runs: int = RUNS,
    longest_s: float = LONGEST_S,
    resume: bool = True,
    on_result: Callable[[Made], None] | None = None,
) -> Summary:
    """Make tasks of the candidates of `sources`.

    A folder gets a task folder for each, `sources/` with the base trees, and a journal. Beside a file, all this lies in
    `NAME-making/`, and the file is written at the end.

    Args:
        sources: Where candidates come from.
        out: A folder, or a file that ends in .jsonl, .json (.gz may follow) or .parquet.
        limit: How many tasks the set shall have; those of an earlier run count.
        jobs: Threads. Each has its own sandboxes.
        sandbox: Kind of sandbox; a stranger's code runs nowhere else.
        runs: Runs of each side of each candidate.
        longest_s: Seconds that one run of the tests may take.
        resume: Go on where an earlier run stopped. Otherwise what is there is an error.
        on_result: Called as each candidate ends, from the thread that had it.

    Raises:
        SandboxUnavailableError: If that kind of sandbox does not work here.
        TaskError: If `out` holds something else, or cannot be written.
        ValueError: If `jobs`, `runs` or `limit` is below 1.
    """
    if min(jobs, runs, 1 if limit is None else limit) < 1:
        raise ValueError(f"jobs, runs and limit must be at least 1, actually: {jobs}, {runs}, {limit}")
    if sandbox == "auto":  # who names another kind has said that the code may run there
        need_isolation(sandbox, "tasks are made by running code of repositories")
    choose_kind(sandbox)
    target = Path(out).expanduser().absolute()
    ending = next((end for end in _FILES if target.name.endswith(end)), "")
    folder = target.with_name(f"{target.name.removesuffix(ending)}-making") if ending else target
    _prepare(folder, resume)
    with alone(folder / JOURNAL):
        _tidy(folder)
        run = _Run(folder, limit, sandbox, runs, longest_s, on_result)
        summary = run.make(list(sources), jobs)
        if ending:
            write_task_file((load_task_folder(folder / name) for name in summary.tasks), target)
    return summary


class _Run:
    def __init__(
        self,
        folder: Path,
        limit: int | None,
        sandbox: str,
        runs: int,
        longest_s: float,
        on_result: Callable[[Made], None] | None,
    ) -> None:
        self._folder = folder
        self._limit = limit
        self._sandbox = sandbox
        self._runs = runs
        self._longest_s = longest_s
        self._on_result = on_result
        self._lock = threading.Lock()
        self._journal = Journal(folder / JOURNAL)
        self._sources = Sources(folder / SOURCES)
        self._verifier = Verifier(sandbox=sandbox, warm=False)
        known = self._journal.last()
        self._made = {i for i, entry in known.items() if entry.made and is_task_folder(folder / i)}
        self._closed = self._made | {i for i, entry in known.items() if not entry.made and not entry.is_open(longest_s)}
        self._new: list[str] = []

    def make(self, sources: list[Source], jobs: int) -> Summary:
        started = time.monotonic()
        finished = self._journal.finished(self._longest_s)
        feed = Feed((s for s in sources if s.id not in finished), self._end)
        if self._full():
            feed.stop()
        with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="make") as pool:
            workers = [pool.submit(self._work, feed) for _ in range(jobs)]
            try:
                for worker in workers:
                    worker.result()
            except BaseException:  # Ctrl-C, or no room: what is under way is ended, and done again next time
                feed.stop()
                raise
        return self._summary({source.id for source in sources}, time.monotonic() - started)

    def _work(self, feed: Feed) -> None:
        for source, candidate in feed:
            with self._lock:
                known = candidate.id in self._closed
                self._closed.add(candidate.id)
            if known:
                continue
            made = derive(
                candidate,
                sandbox=self._sandbox,
                runs=self._runs,
                longest_s=self._longest_s,
                verifier=self._verifier,
            )
            if made.task is not None:
                made = replace(made, task=self._local(made.task, candidate))
            with self._lock:
                if self._full():
                    return
                self._keep(source, made)
                if self._full():
                    feed.stop()
            if self._on_result is not None:
                self._on_result(made)

    def _local(self, task: Task, candidate: Candidate) -> Task:
        name = str(candidate.extra.get("library") or task.id.partition("/")[0])
        return task.model_copy(update={"repo": self._sources.localised(task.repo, name=name)})

    def _keep(self, source: str, made: Made) -> None:
        if made.task is not None:
            write_task_folder(made.task, self._folder / made.id, overwrite=True, within=self._folder)
            record_checked(made.task, sandbox=choose_kind(self._sandbox))
            self._made.add(made.id)
            self._new.append(made.id)
        entry = Entry(source=source, result=made, made=made.task is not None, longest_s=self._longest_s)
        self._journal.add(entry)

    def _full(self) -> bool:
        return self._limit is not None and len(self._made) >= self._limit

    def _end(self, source: str, reason: str, detail: str) -> None:
        self._journal.add(Entry(source=source, reason=reason, detail=detail, longest_s=self._longest_s))

    def _summary(self, sources: set[str], wall_seconds: float) -> Summary:
        last = self._journal.last()
        results = {i: entry.result for i, entry in last.items() if entry.result is not None}
        made = [i for i, entry in last.items() if i in self._made]
        ends = {e.source: e for e in self._journal.entries if e.result is None and e.reason and e.source in sources}
        libraries = Counter(str(load_task_folder(self._folder / i).extra.get("library", "")) for i in made)
        return Summary(
            tasks=tuple(made),
            new=tuple(self._new),
            refused=dict(Counter(r.reason for i, r in results.items() if i not in self._made).most_common()),
            sources=dict(Counter(entry.reason for entry in ends.values()).most_common()),
            explained={source: entry.detail for source, entry in ends.items()},
            libraries=dict(libraries.most_common()),
            seconds=round(sum(results[i].seconds for i in made) / len(made), 2) if made else 0.0,
            wall_seconds=round(wall_seconds, 2),
            flaky=sum(len(result.flaky) for result in results.values()),
            tests=sum(result.tests for result in results.values()),
        )


def _prepare(folder: Path, resume: bool) -> None:
    """Make the folder, or see that it holds a set."""
    if folder.exists() and not folder.is_dir():
        raise TaskError(f"{folder} is a file: name a folder, or a file that ends in {', '.join(_FILES)}")
    there = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    if there and JOURNAL not in there:
        raise TaskError(f"{folder} is not empty and has no {JOURNAL}: name a new folder")
    if there and not resume:
        raise TaskError(f"{folder} holds a set already: name a new folder, or go on with it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / JOURNAL).touch()
    except OSError as error:
        raise TaskError(f"{folder} cannot be written: {error.strerror}") from None


def _tidy(folder: Path) -> None:
    """Take out what a killed run left half done."""
    for path in (*folder.glob(".*.tmp"), *folder.glob(".*.old"), *folder.glob(f"{SOURCES}/.*.tmp")):
        shutil.rmtree(path, ignore_errors=True)
