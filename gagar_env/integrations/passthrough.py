"""The guard: refuses a learner's configuration that would change our advantages, and names each setting."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gagar_env.errors import PassthroughError as PassthroughError
from gagar_env.errors import UnknownNameError
from gagar_env.integrations._rules import LearnerRules, Rule, all_rules
from gagar_env.integrations._rules._shape import How as How
from gagar_env.integrations._settings import ABSENT, Settings, plain_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Passthrough:
    """What was looked at in a configuration that passes.

    Attributes:
        learner: Name of the table of rules.
        version: The release that the table was read from.
        how: The hand-over it was checked for.
        values: Each setting with the value that counts; for one that is absent, the learner's default.
        notes: What a reader should know besides, one line each.
    """

    learner: str
    version: str
    how: How
    values: Mapping[str, Any]
    notes: tuple[str, ...] = ()


def learners() -> tuple[str, ...]:
    """The names that `check_passthrough` knows."""
    return tuple(all_rules())


def check_passthrough(
    config: Any, learner: str | None = None, *, how: How | None = None, allow: Collection[str] = ()
) -> Passthrough:
    """Refuse a configuration that would change the advantages of a group on their way into the loss.

    The advantages sum to zero in each group, so that a learner which only subtracts the group's mean changes nothing.
    Dividing by a standard deviation, whitening, clipping, a leave-one-out baseline, a penalty in the reward, or leaving
    rows out of the loss afterwards does. A setting that is absent or misspelled counts with the learner's own default.

    Args:
        config: The learner's own configuration or trainer; a mapping, nested or with dotted keys; an `argparse`
            namespace; or the words of its command line.
        learner: Which one, see `learners`; by default told from the class of `config` or from settings that only one
            learner has.
        how: `reward` when the advantage is handed in as the reward, `advantage` when it is put in where the learner
            keeps its advantages; by default what is usual with that learner.
        allow: Names of settings that may stay as they are, whatever they do.

    Raises:
        PassthroughError: Naming every setting that is in the way, its value, and what to set.
        UnknownNameError: If the learner is unknown, or cannot be told from `config`.
        ValueError: If the learner has no such hand-over, or `allow` names no setting of it.
    """
    rules, config = _find(config, learner)
    how = rules.hows[0] if how is None else how
    if how not in (*rules.hows, *rules.refused):
        raise ValueError(f"{rules.learner} takes {' or '.join(rules.hows)}, got how={how!r}")
    if unknown := sorted(set(allow) - {rule.setting for rule in rules.rules}):
        raise ValueError(f"allow: {rules.learner} has no rule for {', '.join(unknown)}")
    if how in rules.refused:
        raise PassthroughError(
            f"{rules.learner} (how={how!r}) cannot pass the advantages through: {rules.refused[how]}"
        )
    settings = Settings(config)
    values: dict[str, Any] = {}
    faults: list[str] = []
    wrong: list[str] = []
    for rule in rules.rules:
        if how not in rule.how or not _counts(rule, settings):
            continue
        given = settings.get(rule.setting, *rule.also)
        value = values[rule.setting] = rule.default if given is ABSENT else given
        if rule.setting in allow or _passes(rule, value):
            continue
        wrong.append(rule.setting)
        faults.append(_fault(rule, value, given is ABSENT, settings))
    if faults:
        many = "1 setting changes" if len(faults) == 1 else f"{len(faults)} settings change"
        error = PassthroughError(f"{rules.learner}: {many} the advantages (how={how!r}): {'; '.join(faults)}")
        error.settings = tuple(wrong)
        raise error
    return Passthrough(learner=rules.learner, version=rules.version, how=how, values=values, notes=rules.notes)


def _find(config: Any, learner: str | None) -> tuple[LearnerRules, Any]:
    """The table, and the object that holds the settings."""
    tables = all_rules()
    known = f"known: {', '.join(tables)}"
    if learner is not None and learner not in tables:
        raise UnknownNameError(f"no rules for the learner {learner!r} ({known})")
    for cls in type(config).__mro__:
        name = f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"
        for rules in tables.values():
            if name in rules.classes and learner in (None, rules.learner):
                attribute = rules.classes[name]
                return rules, getattr(config, attribute) if attribute else config
    if learner is not None:
        return tables[learner], config
    settings = Settings(config)
    marked = [r for r in tables.values() if any(settings.get(mark) is not ABSENT for mark in r.marks)]
    if len(marked) == 1:
        return marked[0], config
    found = f"it fits {' and '.join(r.learner for r in marked)}" if marked else f"got a {type(config).__name__}"
    raise UnknownNameError(f"which learner is this the configuration of? {found}: pass learner=... ({known})")


def _counts(rule: Rule, settings: Settings) -> bool:
    for name, default, values in rule.when:
        given = settings.get(name)
        if not _among(default if given is ABSENT else given, values):
            return False
    return True


def _passes(rule: Rule, value: Any) -> bool:
    if rule.ok is None or _among(value, rule.allowed):
        return _among(value, rule.allowed)
    try:
        return rule.ok(plain_value(value))
    except Exception:  # not of the kind that the rule is about
        return False


def _among(value: Any, allowed: Collection[Any]) -> bool:
    plain = plain_value(value)
    return any(_same(plain, plain_value(one)) for one in allowed)


def _same(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    try:
        return bool(a == b)
    except Exception:  # arrays and their kin
        return False


def _fault(rule: Rule, value: Any, absent: bool, settings: Settings) -> str:
    close = settings.near(rule.setting) if absent else ""
    state = f"{rule.setting}={value!r}" + (" (its default; it is not set)" if absent else "")
    return f"{state} {rule.why}: set {rule.setting}={rule.use}" + (f" (there is {close!r})" if close else "")
