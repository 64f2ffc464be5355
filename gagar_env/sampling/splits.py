"""Splits by repository: no repository has tasks on both sides, and a task never changes sides as others are added."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gagar_env.sampling.strata import uniform
from gagar_env.tasks.task import Task

logger = logging.getLogger(__name__)

REPOSITORY_COLUMNS = ("repo", "repository", "repo_name", "repo_url", "library")
"""Columns of a source row that name the repository, the first that is filled counts."""

_INSTANCE = re.compile(r"^[a-z0-9][a-z0-9-]*__[a-z0-9]")
_OWNER_NAME = re.compile(r"^[a-z0-9][\w.-]*/[\w.-]+$", re.ASCII | re.IGNORECASE)
_ADDRESS = re.compile(
    r"^(?:[a-z][a-z0-9+.-]*://(?:[^/@]*@)?[^/]*/|[\w.-]+@[\w.-]+:|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}/(?=.+/))"
)
_INSIDE = re.compile(r"(?<=\w)/(?:-/)?(?:archive|tree|commit|releases|tarball|zipball)/")
_ARCHIVE = re.compile(r"(?:\.tar\.\w+|\.tgz|\.tar|\.zip|\.whl|\.bundle)$")
_VERSION = re.compile(r"[-_]v?\d[\w.+]*$")
_COMMIT = re.compile(r"\.[0-9a-f]{7,40}(?=$|\.)")
_PLAIN = {"", ".", "..", "repo", "repository", "tree", "base", "src", "source", "testbed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Two sets of tasks without a repository in common, each in the order of the tasks that were given."""

    train: tuple[Task, ...]
    test: tuple[Task, ...]

    @property
    def test_share(self) -> float:
        """Share of the tasks that are held out; it is near the wanted fraction where there are many repositories."""
        whole = len(self.train) + len(self.test)
        return len(self.test) / whole if whole else 0.0


def repository_of(task: Task) -> str:
    """Name of a task's repository, in lower case: `owner/name`, or `name` where no owner is known.

    Read from the first of these that says it: the columns of the source row in `task.extra`, the URL of the
    repository, an id such as `owner__name-123`, a tag such as `owner/name`, the file name of its archive or folder. A
    mirror has the name of what it mirrors: `owner__name`, `name.git`, SWE-smith's `owner__name.1a2b3c4d`. A task that
    says nothing is a repository of its own, with the id as its name.
    """
    columns = {str(key).lower(): value for key, value in task.extra.items()}
    for name in REPOSITORY_COLUMNS:
        if isinstance(value := columns.get(name), str) and (found := _normal(value)):
            return found
    if found := _normal(task.repo.url):
        return found
    last = task.id.rpartition("/")[2].lower()
    if _INSTANCE.match(last):
        return _normal(re.sub(r"-\d+$", "", _COMMIT.split(last)[0]))
    for tag in task.tags:
        if _OWNER_NAME.match(tag):
            return _normal(tag)
    return _normal(task.repo.path.name) or task.id.lower()


def held_out(
    tasks: Iterable[Task], *, fraction: float = 0.1, seed: int = 0, same: Mapping[str, str] | None = None
) -> Split:
    """Hold out all tasks of a fraction of the repositories.

    Whether one is held out depends on its name and the seed alone. Owners are not looked at: forks, mirrors and
    moved repositories are on the side of the original. With few repositories the share of tasks can be far from
    `fraction`.

    Args:
        tasks: Any number of them.
        fraction: Of the repositories, in [0, 1].
        seed: Another one, another split.
        same: For repositories that were renamed: old name -> new one, as `repository_of` gives them.

    Raises:
        ValueError: If `fraction` is out of range.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must be in [0, 1], got {fraction}")
    given = list(tasks)
    out = [_position(task, seed, same) < fraction for task in given]
    split = _parts(given, out)
    if given and 0 < fraction < 1 and not (split.train and split.test):
        count = len({repository_of(task) for task in given})
        side = "training" if not split.train else "held-out"
        logger.warning("the %s side is empty: %d repositories are few for a fraction of %g", side, count, fraction)
    return split


def folds(tasks: Iterable[Task], k: int = 5, *, seed: int = 0, same: Mapping[str, str] | None = None) -> list[Split]:
    """K-fold splits: each repository is held out in exactly one. Otherwise as `held_out`.

    Raises:
        ValueError: If `k` is below 2.
    """
    if k < 2:
        raise ValueError(f"k must be 2 or more, got {k}")
    given = list(tasks)
    places = [int(_position(task, seed, same) * k) for task in given]
    return [_parts(given, [place == fold for place in places]) for fold in range(k)]


def _parts(tasks: list[Task], out: list[bool]) -> Split:
    pairs = list(zip(tasks, out, strict=True))
    return Split(train=tuple(t for t, held in pairs if not held), test=tuple(t for t, held in pairs if held))


def _position(task: Task, seed: int, same: Mapping[str, str] | None) -> float:
    """Where in [0, 1) the repository of a task stands."""
    name = repository_of(task)
    name = (same or {}).get(name, name).rpartition("/")[2]
    return uniform(f"split {seed}", re.sub(r"[-_.]+", "-", name))


def _normal(text: str) -> str:
    """`owner/name` of a URL, a path or a name; empty if it says nothing."""
    plain = text.strip().lower().split("#")[0].split("?")[0].rstrip("/")
    plain = _INSIDE.split(_ADDRESS.sub("", plain))[0].removesuffix(".git").rstrip("/")
    parts = [part for part in plain.split("/") if part not in ("", ".", "..")]
    if not parts:
        return ""
    owner, name = parts[-2] if len(parts) > 1 else "", parts[-1]
    if "__" in name.strip("_"):
        owner, name = _COMMIT.split(name)[0].split("__", 1)
    elif not owner or _ARCHIVE.search(name):
        owner, name = "", _VERSION.sub("", _ARCHIVE.sub("", name))
    if name in _PLAIN:
        return ""
    return f"{owner}/{name}" if owner else name
