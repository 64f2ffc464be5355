"""Public sets of tasks by name: which dataset each is, and how to have its rows."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from gagar_env.errors import MissingDependencyError, TaskError
from gagar_env.tasks.file import BadRow, OnBad, load_task_file
from gagar_env.tasks.task import Task

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PublicSet:
    """A dataset that holds tasks.

    Attributes:
        dataset: Its name on the Hugging Face hub.
        split: The split that the name alone stands for; `NAME:SPLIT` names another.
        about: One line.
    """

    dataset: str
    split: str
    about: str


PUBLIC: dict[str, PublicSet] = {
    "gagar/swe-bench": PublicSet("SWE-bench/SWE-bench", "test", "issues of 12 Python repositories; test, dev, train"),
    "gagar/swe-bench-lite": PublicSet("SWE-bench/SWE-bench_Lite", "test", "300 simpler ones of SWE-bench; test, dev"),
    "gagar/swe-bench-verified": PublicSet("SWE-bench/SWE-bench_Verified", "test", "500 that people have checked"),
    "gagar/swe-bench-multilingual": PublicSet("SWE-bench/SWE-bench_Multilingual", "test", "300 in nine languages"),
    "gagar/swe-gym": PublicSet("SWE-Gym/SWE-Gym", "train", "issues of 11 Python repositories, for training"),
    "gagar/swe-gym-lite": PublicSet("SWE-Gym/SWE-Gym-Lite", "train", "230 simpler ones of SWE-Gym"),
    "gagar/swe-smith": PublicSet("SWE-bench/SWE-smith", "train", "bugs put into 128 Python repositories"),
    "gagar/r2e-gym": PublicSet("R2E-Gym/R2E-Gym-Subset", "train", "commits of 10 Python repositories"),
    "gagar/r2e-gym-lite": PublicSet("R2E-Gym/R2E-Gym-Lite", "train", "a part of R2E-Gym"),
    "gagar/swe-bench-extra": PublicSet("nebius/SWE-bench-extra", "train", "issues of 1,900 Python repositories"),
    "gagar/swe-rebench": PublicSet("nebius/SWE-rebench", "test", "issues of 3,400 Python repositories; test, filtered"),
    "gagar/swe-rebench-v2": PublicSet("nebius/SWE-rebench-V2", "train", "issues in 20 languages"),
}


def find_public(name: str) -> tuple[PublicSet, str] | None:
    """The public set of a name, and the split: its own, or the one after a colon."""
    head, _, split = name.partition(":")
    found = PUBLIC.get(head)
    return None if found is None else (found, split or found.split)


def load_public(name: str, *, on_bad: OnBad | None = None) -> list[Task]:
    """Tasks of a public set, from its dataset. Rows that make no task are left out.

    Args:
        name: As in `PUBLIC`; `NAME:SPLIT` for another split.
        on_bad: Told of each bad row; without it, one warning says how many there are, and why the first is.

    Raises:
        TaskError: One line, if there is no such set or split, the network is missing, or every row is broken.
        MissingDependencyError: If the library `datasets` is not installed; names the extra.
    """
    found = find_public(name)
    if found is None:
        raise TaskError(f"no public set {name!r}: there are {', '.join(PUBLIC)}")
    public, split = found
    local = "or give its rows, from a local file, with --task-file"
    bad: list[BadRow] = []
    try:
        tasks = load_task_file(f"{public.dataset}:{split}", on_bad=on_bad or bad.append)
    except ImportError:
        raise MissingDependencyError(
            f"{name} is the data set {public.dataset}, which needs the library datasets: install gagar-env[datasets], "
            f"{local}"
        ) from None
    except TaskError as error:
        _, missing, reason = str(error).rpartition("cannot be had: ")
        advice = f": try again with a network, {local}" if missing else ""
        raise TaskError(f"{name} is the data set {public.dataset}: {reason}{advice}") from None
    if bad and not tasks:
        raise TaskError(f"{name}: {bad[0].reason}")
    if bad:
        logger.warning("%s: %d of %d rows are left out; %s", name, len(bad), len(tasks) + len(bad), bad[0].reason)
    return tasks
