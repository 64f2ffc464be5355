"""Which lines of a repository's code its tests run: measured once in a sandbox, to choose where to put bugs in."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gagar_env.cache import Progress
from gagar_env.provision import provision
from gagar_env.run_spec import FIXED
from gagar_env.sandbox import open_sandbox
from gagar_env.tasks.task import Task

TRACE_S = 600.0
"""Seconds that the measurement may take; what it has by then is used."""
_MOST_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TestFile:
    """What the tests of one file ran.

    Attributes:
        tests: How many there are.
        seconds: How long they took while they were watched, which is some times longer than without.
        lines: Path -> line -> number of tests that ran it.
    """

    __test__ = False
    tests: int
    seconds: float
    lines: Mapping[str, Mapping[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the tests of a repository ran.

    Attributes:
        files: By path of the test file.
        imported: Path -> lines that ran before any test did.
        output: The end of what pytest printed, for messages.
    """

    files: Mapping[str, TestFile] = field(default_factory=dict)
    imported: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    output: str = ""

    @property
    def tests(self) -> int:
        """How many tests ran."""
        return sum(file.tests for file in self.files.values())

    def codes(self) -> frozenset[str]:
        """Files of code of which something ran."""
        return frozenset(path for file in self.files.values() for path, lines in file.lines.items() if lines)

    def tests_of(self, path: str, first: int, last: int) -> dict[str, int]:
        """Test files that run lines of a part of a file, each with the number of tests that do.

        Of a part of several lines more than the first must run: that of an `if` runs where its branch does not. None
        are named where the part runs at import: a bug there fails all tests alike.
        """
        found: dict[str, int] = {}
        if any(first <= line <= last for line in self.imported.get(path, ())):
            return found
        for name, file in self.files.items():
            lines = file.lines.get(path)
            if not lines:
                continue
            ran = [count for line, count in lines.items() if first <= line <= last]
            inner = [count for line, count in lines.items() if first < line <= last]
            if ran and (first == last or inner or len(ran) > 1):
                found[name] = max(inner or ran)
        return found


def trace(
    task: Task,
    *,
    codes: Sequence[str],
    files: Sequence[str],
    sandbox: str = "auto",
    limit_s: float = TRACE_S,
    on_progress: Progress | None = None,
) -> Coverage:
    """Run test files once and watch which lines of the code run.

    Args:
        task: A task with the tree and the environment.
        codes: Files whose lines are wanted.
        files: The test files.
        sandbox: Kind of sandbox.
        limit_s: Seconds that it may take.
        on_progress: Told what takes time.

    Returns:
        The coverage; empty where nothing came out of it.

    Raises:
        TaskError: If the task's source or environment is broken.
        EnvironmentBuildError: If this machine cannot provide it.
        SandboxError: If the sandbox broke.
    """
    ready = provision(task, sandbox=sandbox, on_progress=on_progress)
    if on_progress is not None:
        on_progress(f"watching which lines {len(files)} test files of {task.id} run ...")
    spec = replace(ready.spec, env={**FIXED, **ready.spec.env}, pythonpath=())
    opened = open_sandbox(sandbox, spec)
    try:
        script = opened.write_scratch("tracer.py", Path(__file__).with_name("tracer.py").read_bytes())
        scratch = opened.scratch
        job = {
            "codes": list(codes),
            "files": list(files),
            "place": f"{scratch}/trace",
            "pythonpath": list(task.environment.pythonpath),
            "arguments": [
                *("-q", "-o", f"cache_dir={scratch}/cache", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cov"),
                *("--continue-on-collection-errors", "--maxfail=0", *task.tests.arguments),
            ],
        }
        place = opened.write_scratch("job.json", json.dumps(job).encode("ascii"))
        command = shlex.join((ready.environment.python, "-s", "-B", script, place))
        result = opened.run(f"exec {command}", timeout_s=limit_s)
        data = opened.read_scratch("trace", max_bytes=_MOST_BYTES)
    finally:
        opened.close()
    tail = result.output.decode("utf-8", "replace")[-2000:]
    found = dict(_read(data or b"", frozenset(("", *files)), frozenset(codes)))
    imported = found.pop("", None)
    return Coverage(files=found, imported=imported.lines if imported else {}, output=tail)


def _read(data: bytes, files: frozenset[str], codes: frozenset[str]) -> Iterator[tuple[str, TestFile]]:
    """What the tracer wrote. A stranger's tests ran beside it: what has another form is left out."""
    for line in data.split(b"\n"):
        try:
            record = json.loads(line)
            name, tests, seconds = record["file"], int(record["tests"]), float(record["seconds"])
            lines = {path: _counts(pairs) for path, pairs in record["lines"].items() if path in codes}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        if name in files and tests > 0:
            yield name, TestFile(tests=tests, seconds=seconds, lines=lines)


def _counts(pairs: Any) -> dict[int, int]:
    return {int(line): int(count) for line, count in pairs}
