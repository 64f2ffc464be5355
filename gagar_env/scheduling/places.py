"""Where episodes and gradings can run: places, what is free on them, and which one is taken next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from gagar_env.scheduling.decisions import Attempt


@dataclass(slots=True)
class Place:
    """One worker process of a node.

    Attributes:
        name: Its own; one that is started again has a new name.
        node: Whose failure takes it along.
        slots: Episodes at one time.
        gradings: Groups that are graded there at one time.
        running: Episodes at work there.
        grading: Groups that are being graded there.
        warm: Tasks that were prepared there: their tree, environment or image is on that node.
    """

    name: str
    node: str
    slots: int
    gradings: int
    running: set[Attempt] = field(default_factory=set)
    grading: set[int] = field(default_factory=set)
    warm: set[str] = field(default_factory=set)

    @property
    def free(self) -> int:
        """Slots that nobody has."""
        return self.slots - len(self.running)

    @property
    def free_gradings(self) -> int:
        """Gradings that could begin."""
        return self.gradings - len(self.grading)


class Places:
    """All places that are up, and those with something free at hand: a cluster that works has few of them.

    Attributes:
        slots: Of all places.
        gradings: Of all places.
        running: Episodes at work on them.
    """

    def __init__(self) -> None:
        self._by_name: dict[str, Place] = {}
        self._with_slots: dict[str, Place] = {}
        self._with_gradings: dict[str, Place] = {}
        self.slots = self.gradings = self.running = 0

    def __len__(self) -> int:
        return len(self._by_name)

    def add(self, place: Place) -> None:
        """A place is up.

        Raises:
            ValueError: If its name is taken, or it has no slot, or a number is negative.
        """
        if place.name in self._by_name or place.slots < 1 or place.gradings < 0:
            raise ValueError(f"no such place, or there already: {place.name} with {place.slots} slots")
        self._by_name[place.name] = place
        self.slots += place.slots
        self.gradings += place.gradings
        self._note(place)

    def remove(self, name: str) -> Place | None:
        """A place is down; None if it was. What ran there is given back afterwards, one by one."""
        place = self._by_name.pop(name, None)
        if place is not None:
            self.slots -= place.slots
            self.gradings -= place.gradings
            self.running -= len(place.running)
            self._note(place)
        return place

    def take(self, place: Place, attempt: Attempt) -> None:
        """An episode begins there."""
        place.running.add(attempt)
        self.running += 1
        self._note(place)

    def give_back(self, place: Place, attempt: Attempt) -> None:
        """An episode is over there."""
        place.running.discard(attempt)
        self.running -= place.name in self._by_name
        self._note(place)

    def take_grading(self, place: Place, job: int) -> None:
        """A grading begins there."""
        place.grading.add(job)
        self._note(place)

    def give_back_grading(self, place: Place, job: int) -> None:
        """A grading is over there."""
        place.grading.discard(job)
        self._note(place)

    @property
    def free(self) -> int:
        """Slots that nobody has, on all places."""
        return self.slots - self.running

    def for_episode(self, task: str, avoid: Collection[str]) -> Place | None:
        """The place for the next episode of a task; None when all are full.

        First one of a node that is not to be avoided; then one that is not a quarter fuller than another; then one
        where the task is prepared, so that a cluster does not build each environment on each node; then the emptiest.
        """
        return max(
            self._with_slots.values(),
            key=lambda p: (p.node not in avoid, -(-4 * p.free // p.slots), task in p.warm, p.free),
            default=None,
        )

    def for_grading(self, avoid: Collection[str]) -> Place | None:
        """The place for the next group to be graded; None when all are full."""
        return max(
            self._with_gradings.values(),
            key=lambda p: (p.node not in avoid, p.free_gradings, p.free),
            default=None,
        )

    def _note(self, place: Place) -> None:
        up = place.name in self._by_name
        for free, those in ((place.free, self._with_slots), (place.free_gradings, self._with_gradings)):
            if up and free > 0:
                those[place.name] = place
            else:
                those.pop(place.name, None)
