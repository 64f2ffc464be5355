"""From the reporter's file to a judgement: is it genuine, is it complete, did the required tests pass.

A test counts as passed only by a record that says so. What is required:

- a report with the right signature, written by a process that ended by itself with the exit code
  that the report states. That code is 1, since the sentinels fail;
- a record of every test that was collected, and no fewer failures than records say;
- a sentinel that failed in its call beside the tests of each file that holds a required test;
- of each `fail_to_pass` id, every test it means passed. Expected to fail and doing so (`xfailed`) counts
  where the reference solution gives the same; skipped never does;
- of each `pass_to_pass` id, every test it means passed, or was skipped or `xfailed` exactly as it is
  with the base or the reference solution. A test that code under test skips itself does not pass.

An unexpected pass (`xpassed`) is a pass.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gagar_env.episode import TestRecord, TestStatus
from gagar_env.tasks.task import Tests
from gagar_env.test_ids import IdIndex

_PASSED = (TestStatus.PASSED, TestStatus.XPASSED)
_ALIKE = (TestStatus.SKIPPED, TestStatus.XFAILED)
Statuses = Mapping[str, TestStatus]


class ReportRefusedError(Exception):
    """The run left no evidence that could be believed; the message says why, on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a genuine report says.

    Attributes:
        exit_code: As the reporter stated it.
        fault: Why pytest could not be run at all; else empty.
        shared: What pytest is made of that the work tree holds too: the work may be at fault then.
        config_file: The configuration that pytest used; empty when there was none.
        tests: Record of every test that ended, by node id.
        collected: Ids of all tests that were to run.
        sentinels: Phase -> outcome of each sentinel, with the `file` that it stands for.
        errors: Where and why collection, or pytest itself, failed.
        failed: How many failures pytest counted.
        seen: What happened to the test runner, and the file behind it (empty where there is none).
    """

    exit_code: int
    fault: str = ""
    shared: tuple[str, ...] = ()
    config_file: str = ""
    tests: dict[str, TestRecord]
    collected: tuple[str, ...] = ()
    sentinels: tuple[Mapping[str, str], ...] = ()
    errors: tuple[tuple[str, str], ...] = ()
    failed: int = 0
    seen: tuple[tuple[str, str], ...] = ()

    @property
    def statuses(self) -> dict[str, TestStatus]:
        """Status by node id."""
        return {node_id: record.status for node_id, record in self.tests.items()}


def read_evidence(data: bytes | None, key: bytes, exit_code: int) -> Evidence:
    """Check signature and exit code of a report.

    Args:
        data: The reporter's file; None when there is none.
        key: What it was to be signed with.
        exit_code: Of the test process.

    Raises:
        ReportRefusedError: If it is missing, not signed with the key, malformed, or states another exit code.
    """
    if data is None:
        raise ReportRefusedError(f"the tests ended without a report (exit code {exit_code})")
    signature, _, body = data.partition(b"\n")
    expected = hmac.new(key, body, hashlib.sha256).hexdigest().encode()
    if not hmac.compare_digest(signature, expected):
        raise ReportRefusedError("the test report was not written by the reporter")
    try:
        evidence = _evidence(json.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ReportRefusedError("the test report is malformed") from None
    if evidence.exit_code != exit_code:
        stated = evidence.exit_code
        raise ReportRefusedError(f"the report states exit code {stated}, but it was {exit_code}")
    return evidence


def _evidence(content: dict[str, Any]) -> Evidence:
    return Evidence(
        exit_code=content["exit"],
        fault=_line(content["fault"]),
        shared=tuple(content.get("shared", ())),
        config_file=content.get("config_file", ""),
        tests={
            node_id: TestRecord(
                status=TestStatus(record["status"]),
                seconds=round(record["seconds"], 6),
                message=record["message"],
            )
            for node_id, record in content["tests"].items()
        },
        collected=tuple(content.get("collected", ())),
        sentinels=tuple(content.get("sentinels", {}).values()),
        errors=tuple((place, message) for place, message in content.get("errors", ())),
        failed=content.get("failed", 0),
        seen=tuple((what, file) for what, file in content.get("seen", ())),
    )


def unmet_ids(tests: Tests, statuses: Statuses, trusted: Callable[[], Iterable[Statuses]]) -> tuple[str, ...]:
    """Required ids that did not pass, in the order of the task.

    Args:
        tests: The task's lists.
        statuses: Status of every test that ran.
        trusted: Statuses with the base, and with the reference solution. Asked only when a required test
            was skipped or failed as expected.
    """
    index = IdIndex(statuses)

    def holds(listed: str, alike: tuple[TestStatus, ...], runs: slice) -> bool:
        meant = index.find(listed)
        other = [node_id for node_id in meant if statuses[node_id] not in _PASSED]
        if not meant or any(statuses[node_id] not in alike for node_id in other):
            return False
        return not other or any(
            all(run.get(node_id) is statuses[node_id] for node_id in other) for run in list(trusted())[runs]
        )

    failing = [i for i in tests.fail_to_pass if not holds(i, (TestStatus.XFAILED,), slice(1, None))]
    broken = [i for i in tests.pass_to_pass if not holds(i, _ALIKE, slice(None))]
    return tuple(dict.fromkeys(failing + broken))


def distrust(evidence: Evidence, tests: Tests) -> str:
    """Why a genuine report is not to be believed, on one line; empty when it is."""
    if evidence.errors and not evidence.tests:
        place, message = evidence.errors[0]
        return f"the tests could not be collected: {place}: {_line(message)}"
    missing = [node_id for node_id in evidence.collected if node_id not in evidence.tests]
    if missing:
        return f"{len(missing)} of {len(evidence.collected)} tests did not end: {missing[0]}"
    if not evidence.tests:
        return f"no test ran (exit code {evidence.exit_code})"
    index = IdIndex(evidence.tests)
    listed = (*tests.fail_to_pass, *tests.pass_to_pass)
    required = set(evidence.tests) if tests.mode == "exact_map" else {i for x in listed for i in index.find(x)}
    fell = {s["file"] for s in evidence.sentinels if s.get("call") == "failed"}
    standing = {s["file"] for s in evidence.sentinels} - fell
    for file in sorted({node_id.partition("::")[0] for node_id in required}):
        if file in standing or not ({file, ""} & fell):
            return f"the check that must fail did not fail beside {file}: results were tampered with"
    records = sum(r.status in (TestStatus.FAILED, TestStatus.ERROR) for r in evidence.tests.values())
    if evidence.failed < records + len(fell):
        return f"pytest counted {evidence.failed} failures, the records {records + len(fell)}"
    if evidence.exit_code != 1:
        return f"pytest ended with exit code {evidence.exit_code} instead of 1"
    return ""


def _line(text: str) -> str:
    """The line of a traceback that says most: the last one."""
    lines = [line.removeprefix("E ").strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
