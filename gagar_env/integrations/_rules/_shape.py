"""What a rule of the pass-through guard is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

How = Literal["reward", "advantage"]
BOTH: Final[tuple[How, ...]] = ("reward", "advantage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One setting of a learner, and the values with which our numbers come through unchanged.

    Attributes:
        setting: Its dotted name in the learner's configuration: `algorithm.adv_estimator`. As the learner's program
            reads it, so `-` and `_` are the same and leading dashes do not count.
        default: The learner's own value where the setting is absent.
        allowed: Values that pass. `"none"`, `"null"` and None are one value, as are `"true"` and True, `"0"` and 0.0.
        use: What to set; shown to the reader.
        why: What another value does to the numbers, as the rest of a sentence: "divides by the group's std".
        how: The hand-overs it matters for.
        ok: Passes further values, where a list of them does not do.
        when: Other settings with the values for which this rule counts (all of them must hold), with their own
            defaults: `(("use_vllm", False, (True,)),)` counts only when `use_vllm`, by default False, is True.
        also: Other dotted names of the same setting, in the order they are looked up after `setting`.
    """

    setting: str
    default: Any
    allowed: tuple[Any, ...]
    use: str
    why: str
    how: tuple[How, ...] = BOTH
    ok: Callable[[Any], bool] | None = None
    when: tuple[tuple[str, Any, tuple[Any, ...]], ...] = ()
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerRules:
    """All rules of one learner.

    Attributes:
        learner: The name that `check_passthrough` takes.
        version: What was read: `trl 1.16.0`.
        rules: Empty when nothing can be set.
        hows: The hand-overs that the learner has, the usual one first.
        refused: Hand-over -> why no setting helps: such a configuration is always refused.
        classes: Classes of configurations that tell the learner, as `package.Class` with the first part of the module
            only, each with the attribute that holds the settings ("" for the object itself). Subclasses count too.
        marks: Dotted settings that only this learner has; a mapping with one of them is its configuration.
        notes: What a reader should know besides, one line each.
    """

    learner: str
    version: str
    rules: tuple[Rule, ...] = ()
    hows: tuple[How, ...] = ("reward",)
    refused: dict[How, str] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
