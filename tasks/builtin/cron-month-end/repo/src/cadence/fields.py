"""Parsing of single fields of a cron expression."""

from __future__ import annotations

from collections.abc import Mapping

from cadence.errors import CronError

MONTH_NAMES = {
    name: number
    for number, name in enumerate(
        "jan feb mar apr may jun jul aug sep oct nov dec".split(), start=1
    )
}
#: Cron counts weekdays from Sunday.
WEEKDAY_NAMES = {
    name: number for number, name in enumerate("sun mon tue wed thu fri sat".split())
}


def parse_field(
    spec: str,
    low: int,
    high: int,
    names: Mapping[str, int] | None = None,
) -> frozenset[int]:
    """Expand a field such as ``1-5,20/10`` to the set of values it matches.

    A range whose end is before its start wraps round, so that ``fri-mon``
    and ``22-2`` mean what they say.
    """
    values: set[int] = set()
    for part in spec.lower().split(","):
        values.update(_expand(part, low, high, names or {}))
    return frozenset(values)


def _expand(part: str, low: int, high: int, names: Mapping[str, int]) -> list[int]:
    body, slash, step_text = part.partition("/")
    step = _number(step_text, {}, 1, high) if slash else 1
    first_text, dash, last_text = body.partition("-")
    if body == "*":
        first, last = low, high
    else:
        first = _number(first_text, names, low, high)
        last = first
        if dash:
            last = _number(last_text, names, low, high)
        elif slash:
            last = high
    if last < first:
        span = [*range(first, high + 1), *range(low, last + 1)]
    else:
        span = list(range(first, last + 1))
    return span[::step]


def _number(text: str, names: Mapping[str, int], low: int, high: int) -> int:
    if text in names:
        return names[text]
    if not text.isdecimal() or not low <= int(text) <= high:
        raise CronError(f"bad value {text!r}, expected {low} to {high}")
    return int(text)
