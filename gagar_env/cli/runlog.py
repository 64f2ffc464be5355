"""Where `gagar run` sends its numbers while it goes on: loggers, and an endpoint for Prometheus."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from gagar_env.cli.output import errors
from gagar_env.errors import UnknownNameError
from gagar_env.jobs import GroupBatch
from gagar_env.loggers import LOGGERS, get_logger, metrics_of
from gagar_env.loggers.choose import need
from gagar_env.prometheus import PrometheusEndpoint
from gagar_env.store import RunFolder
from gagar_env.wrappers.batches import GroupMetrics

_WITH_PACKAGES = ("wandb", "trackio")


class RunLog:
    """The numbers of a run. Nothing that goes wrong with a logger ends the run; what is wrong from the start does.

    Args:
        names: Of loggers, by commas; None is TensorBoard's files where there is a folder for them.
        port: Of an endpoint for Prometheus; None for none.
        with_folder: Whether the run has a folder.

    Raises:
        GagarError: If a name is none, its package is missing, or the port is in use.
    """

    def __init__(self, names: str | None, port: int | None, *, with_folder: bool) -> None:
        self._names = ("tensorboard" if with_folder else "none") if names is None else names
        wanted = [name for name in map(str.strip, self._names.lower().split(",")) if name not in ("", "none")]
        if strange := [name for name in wanted if name not in LOGGERS]:
            raise UnknownNameError(f"--log {strange[0]}: there are {', '.join(LOGGERS)} and none")
        for name in wanted:
            if name in _WITH_PACKAGES:
                need(name)
        self._endpoint = None if port is None else PrometheusEndpoint(port)
        if self._endpoint is not None:
            errors.print(f"numbers for Prometheus: {self._endpoint.address}", markup=False, highlight=False)
        self.counts = GroupMetrics()
        self._logger: Any = None

    def begin(self, folder: RunFolder | None) -> None:
        """Start the loggers; `counts` has what the run has already.

        Raises:
            GagarError: If one cannot be started.
        """
        settings = {} if folder is None else folder.settings
        self._logger = get_logger(self._names, run=folder, settings=settings, first_step=self.counts.groups)

    def watch(self, pipeline: Any) -> None:
        """Serve what a pipeline is at."""
        if self._endpoint is not None:
            self._endpoint.watch(pipeline)

    def log(self, batch: GroupBatch) -> None:
        """Log one more group."""
        step = self.counts.groups
        self.counts.count(batch.result, batch.episodes)
        self._logger.log(step, metrics_of([batch], self.counts))
        if self._endpoint is not None:
            self._endpoint.count(batch)

    def failed(self) -> None:
        """Count a group that could not be run."""
        if self._endpoint is not None:
            self._endpoint.count_failed()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._logger is not None:
            self._logger.close()
        if self._endpoint is not None:
            self._endpoint.close()
