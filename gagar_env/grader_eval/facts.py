"""What the official tests say of a candidate: verified once, then kept by content in the cache."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Final

from gagar_env.cache import build_once
from gagar_env.episode import Outcome, TestReport
from gagar_env.errors import GradingError
from gagar_env.provision import kind_for, provision_base
from gagar_env.tasks.task import Task
from gagar_env.verify import Verifier

_FORMAT: Final = 1
_FOLDER: Final = "grader-eval"


class Facts:
    """Test reports by content. Thread-safe.

    Args:
        sandbox: Kind of sandbox to verify in.
    """

    def __init__(self, *, sandbox: str = "auto") -> None:
        self._sandbox = sandbox
        self._verifier = Verifier(sandbox=sandbox)

    def report(self, task: Task, patch: bytes) -> TestReport:
        """What the official tests say of a patch.

        Raises:
            GradingError: If they could not be run.
            EnvironmentBuildError: If the cache cannot be written.
        """

        def build(entry: Path) -> None:
            report = self._verifier.verify(task, patch)
            if report.outcome is Outcome.ERROR:
                raise GradingError(f"a candidate of {task.id} could not be verified: {report.reason}")
            (entry / "report.json").write_text(report.model_dump_json())

        entry = build_once(_FOLDER, self._key(task, patch), build)
        return TestReport.model_validate_json((entry / "report.json").read_bytes())

    def _key(self, task: Task, patch: bytes) -> str:
        parts = [
            f"{_FORMAT} {version('gagar-env')} {kind_for(task, self._sandbox)}",
            provision_base(task).key,
            task.tests.model_dump_json(exclude={"folder"}),
            task.environment.model_dump_json(),
            repr(task.image),
            task.limits.model_dump_json(),
        ]
        found = hashlib.sha256("\0".join(parts).encode() + b"\0" + patch)
        folder = task.tests.folder
        for path in sorted(folder.rglob("*")) if folder is not None else ():
            if path.is_file() and "__pycache__" not in path.parts:
                data = path.read_bytes()
                found.update(f"\0{path.relative_to(folder or path)}\0{len(data)}\0".encode() + data)
        return found.hexdigest()
