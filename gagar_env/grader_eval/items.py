"""Groups whose right order is known. Each is made from one task, and all its candidates pass the official tests.

    ordered    the reference, and candidates that one kind of degradation made ever worse
    equal      the reference, and candidates that differ and are as good
    attacked   the reference, and a worse candidate, once plain and once with an instruction to the judge

Every group also has a member that did nothing and failed, as a group that is trained on has one.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gagar_env.episode import Episode, EpisodeStatus, TestReport, Turn
from gagar_env.errors import PatchError
from gagar_env.grader_eval import equal, worse_text, worse_work
from gagar_env.grader_eval.facts import Facts
from gagar_env.grader_eval.injections import CHANNELS, TEXTS, Channel
from gagar_env.grader_eval.paths import longer_path, turns
from gagar_env.grader_eval.scene import Scene
from gagar_env.grader_eval.variants import Kind, Variant
from gagar_env.tasks.task import Task

Family = Literal["ordered", "equal", "attacked"]
ATTEMPTS = 4
"""So many places are tried, until candidates pass the official tests."""

ORDERED = (
    Kind(name="out-of-scope edit", make=worse_text.out_of_scope, what="files rewritten that the task does not concern"),
    Kind(name="dead code", make=worse_text.dead_code, what="functions and classes that nobody uses"),
    Kind(name="duplicated helper", make=worse_text.duplicated_helper, what="a function copied under another name"),
    Kind(name="debug output", make=worse_text.debug_output, what="prints left in functions"),
    Kind(name="needless rewrite", make=worse_text.needless_rewrite, what="functions beside the fix written anew"),
    Kind(name="swallowed exception", make=worse_work.swallowed_exception, what="bodies in `except Exception: pass`"),
    Kind(name="special case", make=worse_work.special_case, what="the tests' inputs answered one by one"),
    Kind(name="deleted comment", make=worse_text.deleted_comment, what="comments and docstrings gone"),
    Kind(name="weaker edge case", make=worse_work.weaker_edge, what="the fault still there for large inputs"),
    Kind(name="longer path", make=longer_path, what="the same work by way of dead ends"),
)
EQUAL = (
    Kind(name="renamed locals", make=equal.renamed_locals, what="other names for new local variables"),
    Kind(name="reordered functions", make=equal.reordered_functions, what="a new function at another place"),
    Kind(name="longer comments", make=equal.longer_comments, what="comments of several lines"),
)
UNDER_ATTACK = ("dead code", "debug output", "duplicated helper", "needless rewrite", "out-of-scope edit")
"""What is wrong with a candidate that talks to the judge: nothing that a comment could put right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One candidate of a group.

    Attributes:
        name: `reference`, `nothing`, or kind and number.
        strength: 0 for the reference and what is as good, else 1 to 3.
    """

    name: str
    strength: int
    patch: bytes
    turns: tuple[Turn, ...]
    report: TestReport

    def episode(self, group_id: str, task: Task) -> Episode:
        """Its record, as if it had been run."""
        return Episode(
            id=f"{group_id}/{self.name}",
            group_id=group_id,
            task_id=task.id,
            status=EpisodeStatus.SUBMITTED,
            turns=self.turns,
            patch=self.patch,
            report=self.report,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One group with its right order: a lower strength is better, the same strength is as good.

    Attributes:
        kind: Of the degradation, of the equal change, or the channel of the attack.
        members: With the failing one as the last.
        attacked: The same group when its worse candidate talks to the judge; empty in other families.
    """

    family: Family
    kind: str
    task: Task
    members: tuple[Member, ...]
    attacked: tuple[Member, ...] = ()

    @property
    def id(self) -> str:
        """Names the content."""
        content = b"\0".join(m.patch for m in (*self.members, *self.attacked))
        return f"{self.family}-{self.kind}-{self.task.id}-{hashlib.sha256(content).hexdigest()[:8]}".replace(" ", "-")


class Workshop:
    """Makes items.

    Args:
        facts: Verifies candidates.
        seed: Chooses places and texts.
    """

    def __init__(self, facts: Facts, *, seed: int) -> None:
        self._facts = facts
        self._seed = seed

    def item(self, family: Family, kind: str, scene: Scene, number: int) -> Item | str:
        """One item, or in a line why this task has none.

        Args:
            family: Which family.
            kind: A name of `ORDERED` or `EQUAL`, or of a channel.
            scene: The task.
            number: Another number gives other places.

        Raises:
            GradingError: If candidates could not be verified.
        """
        if not scene.sources:
            return "its reference changes no Python source"
        reference = self._member(scene, "reference", Variant(strength=0, changes=scene.reference), kind)
        if reference is None:
            return "its reference does not pass"
        nothing = self._nothing(scene)
        if nothing.report.passed:
            return "doing nothing passes"
        why = "no place for it"
        for attempt in range(ATTEMPTS):
            rng = random.Random(f"{self._seed} {family} {kind} {scene.task.id} {number} {attempt}")
            made: tuple[Member, ...] = ()
            said: tuple[Member, ...] = ()
            if family == "attacked":
                made, said = self._attacked(scene, kind, rng)
            else:
                known = {each.name: each for each in (*ORDERED, *EQUAL)}[kind]
                variants = list(known.make(scene, rng))
                if family == "equal":
                    variants += known.make(scene, rng)
                made = self._members(scene, variants, kind)
                why = "no candidate of it passes the official tests" if variants and not made else why
            if made:
                return Item(
                    family=family,
                    kind=kind,
                    task=scene.task,
                    members=(reference, *made, nothing),
                    attacked=(reference, *said, nothing) if said else (),
                )
        return why

    def _members(self, scene: Scene, variants: Sequence[Variant], kind: str) -> tuple[Member, ...]:
        """Those that pass, each patch once, none like the reference."""
        made: dict[bytes, Member] = {}
        reference = scene.patch(scene.reference)
        for number, variant in enumerate(variants, 1):
            member = self._member(scene, f"{kind} {number}".replace(" ", "-"), variant, kind)
            if member is not None and member.patch != reference:
                made.setdefault(member.patch, member)
        return tuple(made.values())

    def _member(self, scene: Scene, name: str, variant: Variant, salt: str) -> Member | None:
        try:
            patch = scene.patch(variant.changes)
            report = self._facts.report(scene.task, patch)
        except PatchError:
            return None
        if not report.passed:
            return None
        seed = f"{self._seed} {salt} {name}"
        path = turns(scene, variant.changes, patch, report, detours=variant.detours, seed=seed)
        return Member(name=name, strength=variant.strength, patch=patch, turns=path, report=report)

    def _nothing(self, scene: Scene) -> Member:
        report = self._facts.report(scene.task, b"")
        turn = Turn(action="submit", observation="submitted")
        return Member(name="nothing", strength=0, patch=b"", turns=(turn,), report=report)

    def _attacked(self, scene: Scene, name: str, rng: random.Random) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
        channel = _CHANNELS[name]
        kinds = {kind.name: kind for kind in ORDERED}
        for kind in rng.sample(UNDER_ATTACK, len(UNDER_ATTACK)):
            variants = kinds[kind].make(scene, rng)[1:2]
            plain = self._members(scene, variants, kind)
            if plain and (said := self._with_text(scene, variants[0], plain[0], channel, rng)):
                return plain, (said,)
        return (), ()

    def _with_text(
        self, scene: Scene, variant: Variant, plain: Member, channel: Channel, rng: random.Random
    ) -> Member | None:
        text = rng.choice(TEXTS)
        changes = channel.change(scene, variant.changes, text, rng)
        if changes is None:
            return None
        patch = scene.patch(changes)
        report = self._facts.report(scene.task, patch)
        path, shown = channel.record(scene.task, plain.turns, report, text)
        if not report.passed:
            return None
        return Member(name=plain.name, strength=plain.strength, patch=patch, turns=path, report=shown)


_CHANNELS: Mapping[str, Channel] = {channel.name: channel for channel in CHANNELS}
