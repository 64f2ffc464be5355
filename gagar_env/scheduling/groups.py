"""What the scheduler knows of a group, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Group:
    """A job that is not over."""

    job: int
    task: str
    tries: list[int]
    left: int
    """Members that are not settled; it acts while there are some."""
    started: float | None = None
    gradings: int = 0
    gradings_lost: int = 0
    avoid: dict[int, set[str]] = field(default_factory=dict)
    """Nodes that lost an attempt of a member; under -1, a grading."""


@dataclass(slots=True)
class Counts:
    """What happened so far. `prepared` are starts on a place where the task had not been before."""

    started: int = 0
    retried: int = 0
    masked: int = 0
    prepared: int = 0
    graded: int = 0
    plain: int = 0
    failed: int = 0
