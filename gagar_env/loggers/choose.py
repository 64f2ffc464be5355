"""Loggers by name: `tensorboard,wandb`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gagar_env.errors import GagarError, MissingDependencyError, UnknownNameError
from gagar_env.loggers.base import Logger, MultiLogger, tell
from gagar_env.loggers.files import JsonlLogger, RunLogger

if TYPE_CHECKING:
    from gagar_env.store import RunFolder

LOGGERS = ("tensorboard", "wandb", "trackio", "jsonl")
"""Names that `get_logger` knows."""


def get_logger(
    names: str | Iterable[str],
    *,
    folder: str | Path | None = None,
    run: RunFolder | None = None,
    project: str = "gagar-env",
    name: str | None = None,
    settings: Mapping[str, Any] | None = None,
    first_step: int = 0,
) -> MultiLogger:
    """Make the loggers of a run.

    Wrong names, missing packages and a missing folder are told here, before the run has cost anything. A service that
    cannot be reached is a warning, and the run goes on without it.

    Args:
        names: Such as `"tensorboard,wandb"`; empty or `"none"` for none.
        folder: For event files and `metrics.jsonl`; by default that of `run`.
        run: A run folder; the numbers are then among its metrics too, whatever `names` says.
        project: For services.
        name: Of the run, for services; by default that of the folder.
        settings: Shown beside the curves, where a service has a place for them.
        first_step: Where a run that is resumed goes on.

    Raises:
        UnknownNameError: If a name is none of `LOGGERS`.
        MissingDependencyError: If its package is not installed.
        GagarError: If it needs a folder and there is none, or the folder cannot be written.
    """
    listed = names.split(",") if isinstance(names, str) else list(names)
    wanted = dict.fromkeys(one for one in (each.strip().lower() for each in listed) if one not in ("", "none"))
    if strange := [one for one in wanted if one not in LOGGERS]:
        raise UnknownNameError(f"no logger is called {strange[0]!r}; there are {', '.join(LOGGERS)} and none")
    place = Path(folder) if folder is not None else run.path if run is not None else None
    title = name or (place.resolve().name if place is not None else None)
    loggers: dict[str, Logger] = {} if run is None else {"metrics.jsonl": RunLogger(run)}
    makers: dict[str, Callable[[], Logger]] = {
        "tensorboard": lambda: _tensorboard(_needed(place, "tensorboard"), first_step),
        "wandb": lambda: _wandb(place, project, title, settings, first_step),
        "trackio": lambda: _trackio(project, title, settings, first_step),
        "jsonl": lambda: JsonlLogger(_needed(place, "jsonl") / "metrics.jsonl"),
    }
    try:
        for one in wanted:
            if one == "jsonl" and run is not None:
                continue
            try:
                loggers[one] = makers[one]()
            except GagarError:
                raise
            except OSError as error:
                raise GagarError(f"logger {one}: {place} cannot be written: {error.strerror or error}") from error
            except Exception as error:
                tell(one, error)
    except GagarError:
        MultiLogger(loggers).close()
        raise
    return MultiLogger(loggers)


def need(package: str) -> None:
    """Say which extra has a package, where it is missing.

    Raises:
        MissingDependencyError: Naming the extra, which is called like the package.
    """
    import importlib.util

    if importlib.util.find_spec(package) is None:
        raise MissingDependencyError(f"logger {package} needs {package}: pip install 'gagar-env[{package}]'")


def _needed(place: Path | None, name: str) -> Path:
    if place is None:
        raise GagarError(f"logger {name} writes files and has no folder: give the run one (--out)")
    return place


def _tensorboard(place: Path, first_step: int) -> Logger:
    from gagar_env.loggers.tensorboard import TensorBoardLogger

    return TensorBoardLogger(place, first_step=first_step)


def _wandb(
    place: Path | None, project: str, name: str | None, settings: Mapping[str, Any] | None, first_step: int
) -> Logger:
    need("wandb")
    from gagar_env.loggers.wandb import WandbLogger

    return WandbLogger(project=project, name=name, folder=place, settings=settings, resume=first_step > 0)


def _trackio(project: str, name: str | None, settings: Mapping[str, Any] | None, first_step: int) -> Logger:
    need("trackio")
    from gagar_env.loggers.trackio import TrackioLogger

    return TrackioLogger(project=project, name=name, settings=settings, resume=first_step > 0)
