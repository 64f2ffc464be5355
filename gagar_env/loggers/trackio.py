"""Curves for trackio, a tracker on this machine; `trackio show` draws them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Any

from gagar_env.loggers.base import Numbers, known_numbers
from gagar_env.loggers.choose import need


class TrackioLogger:
    """One run of trackio. It is kept where `TRACKIO_DIR` says, and sent nowhere unless trackio is told so.

    Args:
        project: Where the run is shown.
        name: Of the run.
        settings: Shown as the run's configuration.
        resume: Go on with the run of this name, if there is one.
        init: Further arguments of `trackio.init`: `space_id`, `group`, ...

    Raises:
        MissingDependencyError: If trackio is not installed.
    """

    def __init__(
        self,
        *,
        project: str = "gagar-env",
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        resume: bool = False,
        **init: Any,
    ) -> None:
        need("trackio")
        import trackio

        with contextlib.redirect_stdout(sys.stderr):  # it greets on the output that belongs to our caller's results
            self._run: Any = trackio.init(
                project,
                name=name,
                config=dict(settings or {}),
                resume="allow" if resume else "never",
                **{"embed": False, **init},
            )

    def log(self, step: int, numbers: Numbers) -> None:
        """Keep the numbers."""
        if self._run is not None:
            self._run.log(dict(known_numbers(numbers)), step=int(step))

    def close(self) -> None:
        """Write what is still held, and end the run."""
        if self._run is not None:
            from trackio import context_vars, finish

            run, self._run = self._run, None
            with contextlib.redirect_stdout(sys.stderr):
                if context_vars.current_run.get() is run:
                    finish()  # else trackio ends it once more when the process does
                else:
                    run.finish()
