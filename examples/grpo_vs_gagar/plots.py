"""The plots, as SVG: readable on light and dark pages, and with each arm told by colour, dash and marker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from claims import relative_step_variance
from rundata import Experiment, Run, known
from spread import estimate

NAMES = {"grpo": "GRPO", "gagar": "GAGAR", "penalty": "quality penalty"}
_LOOKS: dict[str, dict[str, Any]] = {  # colours of Okabe and Ito, which stay apart for colour-blind readers
    "grpo": {"color": "#0072B2", "linestyle": "--", "marker": "s"},
    "gagar": {"color": "#D55E00", "linestyle": "-", "marker": "o"},
    "penalty": {"color": "#009E73", "linestyle": ":", "marker": "^"},
}
_GREY = "#7d8590"
"""Of text and axes, on a transparent ground: as readable on white as on black."""
_MAX_POINTS = 40
"""Of one curve; more steps are put together."""


def draw_all(experiment: Experiment, folder: Path) -> dict[str, Path]:
    """Draw what the runs have data for.

    Args:
        experiment: The runs.
        folder: Where the files go.

    Returns:
        Path by name of the plot.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for name, draw in (
        ("curves", _learning_curves),
        ("length", _length),
        ("quality-pass", _quality_against_pass),
        ("stability", _stability),
        *((f"sweep-{name}", _sweep(name)) for name in experiment.sweeps),
    ):
        if figure := draw(experiment):
            made[name] = folder / f"{name}.svg"
            _save(figure, made[name])
    return made


def _learning_curves(experiment: Experiment) -> Any:
    return _panels(
        experiment,
        (
            ("pass_rate", "pass rate"),
            ("distance", "distance to a clean solution"),
            ("out_of_scope_lines", "lines out of scope"),
            ("regressions", "hidden regression tests passed"),
        ),
        evals=all(len(run.evals) > 3 for runs in experiment.arms.values() for run in runs.values()),
    )


def _length(experiment: Experiment) -> Any:
    what = (("turns", "turns"), ("tokens", "tokens of an episode"), ("patch_lines", "lines of a patch"))
    return _panels(experiment, what, evals=False)


def _quality_against_pass(experiment: Experiment) -> Any:
    figure, (axes,) = _figure(1, width=5.2)
    drawn = False
    for arm, runs in experiment.arms.items():
        pairs = [(run.end("pass_rate"), run.end("distance")) for run in runs.values()]
        points = [(x, y) for x, y in pairs if x is not None and y is not None]
        if not points:
            continue
        drawn = True
        look = {key: value for key, value in _LOOKS[arm].items() if key != "linestyle"}
        x, y = estimate([p[0] for p in points]), estimate([p[1] for p in points])
        assert x is not None
        assert y is not None
        axes.plot(*zip(*points, strict=True), linestyle="", markersize=4, alpha=0.5, **look)
        axes.errorbar(
            x.mean, y.mean, xerr=x.half, yerr=y.half, label=NAMES[arm], markersize=9, capsize=3, linestyle="", **look
        )
    axes.set_xlabel("pass rate at the end")
    axes.set_ylabel("distance to a clean solution at the end")
    _legend(axes)
    return figure if drawn else None


def _stability(experiment: Experiment) -> Any:
    if not any(known(run.column("grad_norm")) for runs in experiment.arms.values() for run in runs.values()):
        return None
    figure, (norms, steps, seeds) = _figure(3)
    _curves(norms, experiment, "grad_norm", evals=False)
    norms.set_ylabel("gradient norm")
    for place, (arm, runs) in enumerate(experiment.arms.items()):
        values = known(relative_step_variance(run, "grad_norm") for run in runs.values())
        look = {key: value for key, value in _LOOKS[arm].items() if key != "linestyle"}
        steps.plot([place] * len(values), values, linestyle="", markersize=5, **look)
    steps.set_xticks(range(len(experiment.arms)), [NAMES[arm] for arm in experiment.arms])
    steps.set_xlim(-0.5, len(experiment.arms) - 0.5)
    steps.set_ylabel("gradient norm: variance from\nstep to step over mean square")
    for arm, runs in experiment.arms.items():
        curve = [(step, _deviation(found)) for step, found in _by_step(runs, "pass_rate", evals=False)]
        points = [(step, value) for step, value in curve if value is not None]
        if points:
            seeds.plot(*zip(*points, strict=True), **_line(arm))
    seeds.set_xlabel("step")
    seeds.set_ylabel("pass rate: deviation between seeds")
    _legend(norms)
    return figure


def _sweep(name: str) -> Callable[[Experiment], Any]:
    def draw(experiment: Experiment) -> Any:
        figure, panels = _figure(2)
        for axes, (what, label) in zip(
            panels, (("distance", "distance to a clean solution"), ("pass_rate", "pass rate")), strict=True
        ):
            points = [
                (value, found)
                for value, runs in experiment.sweeps[name].items()
                if (found := estimate([run.end(what) for run in runs.values()]))
            ]
            if points:
                axes.errorbar(
                    [value for value, _ in points],
                    [found.mean for _, found in points],
                    yerr=[found.half or 0.0 for _, found in points],
                    capsize=3,
                    label=NAMES["gagar"],
                    **_LOOKS["gagar"],
                )
            plain = estimate(list(experiment.by_seed("grpo", what).values()))
            if plain:
                axes.axhline(plain.mean, color=_LOOKS["grpo"]["color"], linestyle="--", label=NAMES["grpo"])
                if plain.low is not None and plain.high is not None:
                    axes.axhspan(plain.low, plain.high, color=_LOOKS["grpo"]["color"], alpha=0.12, linewidth=0)
            axes.set_xlabel(name.replace("_", " "))
            axes.set_ylabel(label)
        _legend(panels[0])
        return figure

    return draw


def _panels(experiment: Experiment, what: Sequence[tuple[str, str]], *, evals: bool) -> Any:
    shown = [pair for pair in what if _has(experiment, pair[0], evals=evals)]
    if not shown:
        return None
    figure, panels = _figure(len(shown))
    for axes, (name, label) in zip(panels, shown, strict=True):
        _curves(axes, experiment, name, evals=evals)
        axes.set_ylabel(label)
    _legend(panels[0])
    return figure


def _has(experiment: Experiment, name: str, *, evals: bool) -> bool:
    runs = (run for runs in experiment.arms.values() for run in runs.values())
    return any(known(run.column(name, evals=evals)) for run in runs)


def _curves(axes: Any, experiment: Experiment, name: str, *, evals: bool) -> None:
    """Mean over seeds with its interval, for each arm."""
    for arm, runs in experiment.arms.items():
        points = [(step, found) for step, values in _by_step(runs, name, evals=evals) if (found := estimate(values))]
        if not points:
            continue
        steps = [step for step, _ in points]
        axes.plot(steps, [found.mean for _, found in points], label=NAMES[arm], **_line(arm))
        if any(found.half is not None for _, found in points):
            low = [found.mean if found.low is None else found.low for _, found in points]
            high = [found.mean if found.high is None else found.high for _, found in points]
            axes.fill_between(steps, low, high, color=_LOOKS[arm]["color"], alpha=0.15, linewidth=0)
    axes.set_xlabel("step")


def _by_step(runs: Mapping[int, Run], name: str, *, evals: bool) -> Iterable[tuple[float, list[float | None]]]:
    """For each step, or few steps in a row, the value of each seed (its mean over these steps)."""
    found: dict[float, dict[int, float]] = {}
    for seed, run in runs.items():
        for row, value in zip(run.evals if evals else run.steps, run.column(name, evals=evals), strict=True):
            if value is not None:
                found.setdefault(float(row["step"]), {})[seed] = value
    steps = sorted(found)
    width = max(1, -(-len(steps) // _MAX_POINTS))
    for start in range(0, len(steps), width):
        some = steps[start : start + width]
        by_seed: dict[int, list[float]] = {}
        for step in some:
            for seed, value in found[step].items():
                by_seed.setdefault(seed, []).append(value)
        yield sum(some) / len(some), [sum(values) / len(values) for values in by_seed.values()]


def _deviation(values: Sequence[float | None]) -> float | None:
    numbers = known(values)
    if len(numbers) < 2:
        return None
    mean = sum(numbers) / len(numbers)
    return float((sum((value - mean) ** 2 for value in numbers) / (len(numbers) - 1)) ** 0.5)


def _line(arm: str) -> dict[str, Any]:
    return {**_LOOKS[arm], "markersize": 3.5, "linewidth": 1.6}


def _figure(panels: int, *, width: float = 4.0) -> tuple[Any, list[Any]]:
    from matplotlib.figure import Figure  # only reports need it

    columns = 2 if panels == 4 else panels
    rows = -(-panels // columns)
    figure = Figure(figsize=(width * columns, 3.2 * rows), layout="constrained")
    figure.patch.set_alpha(0)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for one in axes:
        one.patch.set_alpha(0)
        one.tick_params(colors=_GREY, labelsize=8)
        one.grid(color=_GREY, alpha=0.25, linewidth=0.6)
        for side, spine in one.spines.items():
            spine.set_color(_GREY)
            spine.set_visible(side in ("left", "bottom"))
        for label in (one.xaxis.label, one.yaxis.label):
            label.set_color(_GREY)
            label.set_size(9)
    return figure, axes


def _legend(axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles, labels, fontsize=8, frameon=False, labelcolor=_GREY)


def _save(figure: Any, path: Path) -> None:
    """The same figure gives the same bytes: no date, and ids from a fixed salt."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gagar"}):
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
