"""Grades items as training would, each group under labels and under the same labels in reverse."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations

from gagar_env.episode import Episode
from gagar_env.grader_eval.items import Item, Member
from gagar_env.grading import Grader
from gagar_env.group import GroupResult, grade_group
from gagar_env.workspace import label_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """What a ranking says of two candidates whose right order is known.

    Attributes:
        said: 1: the first is better; 0: a tie; -1: the second is better.
        right: The same for what is right; the first is never the worse one.
        earlier: 1 if the first has the earlier label, else -1.
        longer: 1 if the patch of the first is longer, -1 if shorter, 0 if neither.
    """

    first: Member
    second: Member
    said: int
    right: int
    earlier: int
    longer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One grading of one group."""

    result: GroupResult
    relations: tuple[Relation, ...]
    """Empty when there was no ranking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedItem:
    """All gradings of one item."""

    item: Item
    plain: tuple[Pass, ...]
    attacked: tuple[Pass, ...] = field(default=())

    @property
    def results(self) -> Iterator[GroupResult]:
        """Every group that was graded for it."""
        yield from (each.result for each in (*self.plain, *self.attacked))


def grade_items(
    items: Sequence[Item],
    grader: Grader,
    *,
    seed: int,
    repeats: int = 2,
    deadline_s: float | None = None,
    jobs: int = 1,
    on_item: Callable[[Item], None] | None = None,
) -> list[GradedItem]:
    """Grade each item `repeats` times, `jobs` at a time; in the order of `items`.

    Of two gradings the second has the labels of the first in reverse: a grader that looks at the work says the same,
    and one that prefers a place contradicts itself.
    """

    def work(item: Item) -> GradedItem:
        plain = tuple(_pass(item, item.members, "", grader, seed, number, deadline_s) for number in range(repeats))
        attacked: tuple[Pass, ...] = ()
        if item.attacked:
            attacked = tuple(
                _pass(item, item.attacked, "attacked", grader, seed, number, deadline_s) for number in range(repeats)
            )
        if on_item is not None:
            on_item(item)
        return GradedItem(item=item, plain=plain, attacked=attacked)

    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        return list(pool.map(work, items))


def _pass(
    item: Item,
    members: Sequence[Member],
    what: str,
    grader: Grader,
    seed: int,
    number: int,
    deadline_s: float | None,
) -> Pass:
    drawn = int.from_bytes(hashlib.sha256(f"{seed} {item.id} {number // 2}".encode()).digest()[:4], "big")
    group_id = "-".join(filter(None, (item.id, what, str(number))))
    order = list(members)
    if number % 2:
        order = reverse_labels(order, drawn)
    episodes = [member.episode(group_id, item.task) for member in order]
    result = grade_group(episodes, grader, task=item.task, seed=drawn, deadline_s=deadline_s)
    return Pass(result=result, relations=tuple(_relations(order, episodes, result)) if result.graded else ())


def reverse_labels(members: Sequence[Member], seed: int) -> list[Member]:
    """The same members, so that the last label goes to the one that had the first."""
    order = label_order(seed, len(members))
    by_label = [members[number] for number in order]
    out = list(members)
    for place, number in enumerate(order):
        out[number] = by_label[len(order) - 1 - place]
    return out


def _relations(members: Iterable[Member], episodes: Sequence[Episode], result: GroupResult) -> Iterator[Relation]:
    ranked = [
        (member, rank, label)
        for member, rank, label in zip(members, result.ranks, result.labels, strict=True)
        if rank is not None and label is not None
    ]
    ranked.sort(key=lambda each: (each[0].strength, each[0].name))
    for (one, rank, label), (other, other_rank, other_label) in combinations(ranked, 2):
        yield Relation(
            first=one,
            second=other,
            said=_sign(other_rank - rank),
            right=_sign(other.strength - one.strength),
            earlier=1 if (len(label), label) < (len(other_label), other_label) else -1,
            longer=_sign(len(one.patch) - len(other.patch)),
        )


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
