"""Curves for Weights & Biases."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gagar_env.loggers.base import Numbers, known_numbers
from gagar_env.loggers.choose import need

_ID_FILE = "wandb-id"


class WandbLogger:
    """One run of Weights & Biases, also offline (`WANDB_MODE=offline`).

    A number's step is sent beside it, so that groups that end out of order are all drawn.

    Args:
        project: Where the run is shown.
        name: Of the run.
        folder: For wandb's own files, and for the id that a resumed run needs.
        settings: Shown as the run's configuration.
        resume: Go on with the run whose id is in the folder.
        init: Further arguments of `wandb.init`: `entity`, `mode`, `tags`, ...

    Raises:
        MissingDependencyError: If wandb is not installed.
    """

    def __init__(
        self,
        *,
        project: str = "gagar-env",
        name: str | None = None,
        folder: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
        resume: bool = False,
        **init: Any,
    ) -> None:
        need("wandb")
        import wandb

        place = Path(folder) if folder is not None else None
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)
            init = {"dir": str(place), **init}
            init.setdefault("id", _id_of(place / _ID_FILE, resume))
        self._run: Any = wandb.init(
            project=project, name=name, config=dict(settings or {}), resume="allow" if resume else None, **init
        )
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, numbers: Numbers) -> None:
        """Send the numbers."""
        if self._run is not None:
            self._run.log({**known_numbers(numbers), "step": int(step)})

    def close(self) -> None:
        """Send what is still held, and end the run."""
        if self._run is not None:
            run, self._run = self._run, None
            run.finish()


def _id_of(file: Path, resume: bool) -> str:
    """The id of the run in this folder: the one that is there, when the run goes on, else a new one."""
    if resume and file.exists() and (known := file.read_text().strip()):
        return known
    new = uuid.uuid4().hex[:12]
    file.write_text(new + "\n")
    return new
