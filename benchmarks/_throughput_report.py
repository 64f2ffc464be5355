"""How `throughput.py` prints what it found: tables, curves, and the goals."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

Row = dict[str, float]
NAMES = {
    "gagar/bwrap": "this package, local (bwrap)",
    "gagar/bwrap:cold": "this package, local (bwrap), cold pytest",
    "gagar/bwrap:script": "this package, tests that cost nothing",
    "gagar/bwrap:unverified": "this package, nothing verified",
    "gagar/rootfs": "this package, image (rootfs)",
    "gagar/rootfs:cold": "this package, image (rootfs), cold pytest",
    "gagar/docker": "this package, image (docker)",
    "gagar/docker:pool": "this package, image (docker), started ahead",
    "mini/local": "mini-swe-agent LocalEnvironment, two clones",
    "mini/docker": "mini-swe-agent DockerEnvironment, two containers",
    "rex/local": "SWE-ReX local, two clones",
    "rex/docker": "SWE-ReX docker, two containers",
    "bare/all": "bare commands and cold pytest",
    "bare/commands": "bare commands",
    "bare/script": "bare commands, tests that cost nothing",
}
LOCAL_RATE, LOCAL_RATIO, IMAGE_RATE, IMAGE_RATIO, OWN_MS = 10.0, 2.0, 8.0, 10.0, 15.0


def print_table(title: str, rows: Mapping[str, Row], baseline: str) -> dict[str, Row]:
    """Print and return it; ratios are of processor time and of episodes a second, to the baseline.

    What the processor time allows is the rate of a machine with nothing else to do; a busy one still gets too little
    there, as processor time grows on it.
    """
    base = rows.get(baseline)
    cores = len(os.sched_getaffinity(0))
    more = "   to the baseline: rate, CPU" if base else ""
    print(f"\n{title:<52} {'episodes/s':>11} {'CPU ms each':>12} {'CPU allows/s':>13}{more}")
    for leg, row in rows.items():
        ratio = f"{row['rate'] / base['rate']:6.2f} x {base['cpu_ms'] / row['cpu_ms']:6.2f} x less" if base else ""
        allowed = 1000 * cores / row["cpu_ms"]
        print(f"  {NAMES[leg]:<50} {row['rate']:11.2f} {row['cpu_ms']:12.1f} {allowed:13.1f}   {ratio}")
    return dict(rows)


def print_curve(title: str, points: Mapping[str, Mapping[str, Row]]) -> dict[str, dict[str, Row]]:
    """Print and return it."""
    print(f"\n{title}")
    for leg, row in points.items():
        print(f"  {NAMES[leg]}")
        print(f"    {'':<12}" + "".join(f"{point:>9}" for point in row))
        print(f"    {'episodes/s':<12}" + "".join(f"{values['rate']:9.2f}" for values in row.values()))
        print(f"    {'CPU ms each':<12}" + "".join(f"{values['cpu_ms']:9.1f}" for values in row.values()))
    return {leg: dict(row) for leg, row in points.items()}


PAIRS = (
    ("gagar/bwrap:unverified", "bare/commands", "the agent's part: sandbox, commands, patch, record"),
    ("gagar/bwrap:script", "bare/script", "a whole episode, with tests that cost nothing"),
    ("gagar/bwrap:cold", "bare/all", "a whole episode, with cold pytest (noisy)"),
)


def print_own(own: Mapping[str, Row]) -> dict[str, Row]:
    """Print what episodes cost beyond their commands and tests, and return the rows."""
    rows = print_table("our own, and commands and tests alone", own, "")
    for ours, bare, what in PAIRS:
        if {ours, bare} <= own.keys():
            print(f"  beyond commands and tests: {own[ours]['cpu_ms'] - own[bare]['cpu_ms']:7.1f} CPU ms   {what}")
    return rows


def own_ms(own: Mapping[str, Row]) -> float | None:
    """Processor time of an episode beyond its commands and tests; None where it was not measured.

    Measured with tests that cost nothing: of those that do, the noise is as large as what is looked for.
    """
    if not {"gagar/bwrap:script", "bare/script"} <= own.keys():
        return None
    return own["gagar/bwrap:script"]["cpu_ms"] - own["bare/script"]["cpu_ms"]


def print_goals(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Print the goals, each met or not, with what was measured; one without a measurement is neither."""
    local, image, own = found.get("local", {}), found.get("image", {}), found.get("own", {})
    ours, theirs = local.get("gagar/bwrap"), local.get("mini/local")
    boxed, contained = image.get("gagar/rootfs") or image.get("gagar/docker:pool"), image.get("mini/docker")
    goals: list[tuple[str, float | None, float, bool]] = [
        ("local, episodes a second", ours and ours["rate"], LOCAL_RATE, True),
        ("local, times mini-swe-agent", _ratio(ours, theirs), LOCAL_RATIO, True),
        ("images, episodes a second", boxed and boxed["rate"], IMAGE_RATE, True),
        ("images, times mini-swe-agent", _ratio(boxed, contained), IMAGE_RATIO, True),
        ("our own CPU ms an episode", own_ms(own), OWN_MS, False),
    ]
    print("\ngoals")
    out = []
    for name, value, bar, least in goals:
        met = None if value is None else value >= bar if least else value < bar
        said = "not measured" if met is None else f"{value:.2f}: {'met' if met else 'NOT MET'}"
        print(f"  {name:<32} {'at least' if least else 'below':>8} {bar:5.1f}   {said}")
        out.append({"goal": name, "bar": bar, "value": value, "met": met})
    return out


def _ratio(ours: Row | None, theirs: Row | None) -> float | None:
    return ours["rate"] / theirs["rate"] if ours and theirs else None
