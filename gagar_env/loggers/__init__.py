"""Where the numbers of a run go: files, TensorBoard, Weights & Biases, trackio, several of them at one time.

Everything is loaded when it is first named. `metrics_of` makes the numbers, `get_logger` the logger.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gagar_env.loggers.base import Logger, MultiLogger, known_numbers
    from gagar_env.loggers.choose import LOGGERS, get_logger
    from gagar_env.loggers.files import JsonlLogger, RunLogger
    from gagar_env.loggers.measures import metrics_of
    from gagar_env.loggers.tensorboard import TensorBoardLogger
    from gagar_env.loggers.trackio import TrackioLogger
    from gagar_env.loggers.wandb import WandbLogger

_HOMES = {
    "LOGGERS": "gagar_env.loggers.choose",
    "JsonlLogger": "gagar_env.loggers.files",
    "Logger": "gagar_env.loggers.base",
    "MultiLogger": "gagar_env.loggers.base",
    "RunLogger": "gagar_env.loggers.files",
    "TensorBoardLogger": "gagar_env.loggers.tensorboard",
    "TrackioLogger": "gagar_env.loggers.trackio",
    "WandbLogger": "gagar_env.loggers.wandb",
    "get_logger": "gagar_env.loggers.choose",
    "known_numbers": "gagar_env.loggers.base",
    "metrics_of": "gagar_env.loggers.measures",
}

__all__ = [
    "LOGGERS",
    "JsonlLogger",
    "Logger",
    "MultiLogger",
    "RunLogger",
    "TensorBoardLogger",
    "TrackioLogger",
    "WandbLogger",
    "get_logger",
    "known_numbers",
    "metrics_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gagar_env.loggers' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
