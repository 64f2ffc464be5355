"""What the scheduler decides: one record for each thing to be done."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Attempt(NamedTuple):
    """One try of one member; `number` counts from 1."""

    job: int
    member: int
    number: int


class Start(NamedTuple):
    """Run this on that place, cut after `deadline_s` seconds of acting."""

    attempt: Attempt
    place: str
    deadline_s: float | None


class Cut(NamedTuple):
    """Nobody wants this attempt any more. Its slot is free once its end is told."""

    attempt: Attempt
    place: str


class Mask(NamedTuple):
    """This member has no episode: record why."""

    job: int
    member: int
    reason: str


class Grade(NamedTuple):
    """Grade this group on that place; `number` counts from 1."""

    job: int
    number: int
    place: str


class Plain(NamedTuple):
    """This group keeps its plain advantages: no place could grade it. It is over."""

    job: int
    reason: str


class Fail(NamedTuple):
    """The task of this job cannot be run. It is over."""

    job: int
    reason: str


Decision: TypeAlias = Start | Cut | Mask | Grade | Plain | Fail
