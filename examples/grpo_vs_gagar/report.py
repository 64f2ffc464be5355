"""Turns the folder of an experiment into a page with plots, a table of claims and `summary.json`.

    python examples/grpo_vs_gagar/report.py OUT [--docs docs]

Text between `<!-- notes -->` and `<!-- /notes -->` on the page is yours: it stays when the page is written again.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from claims import check_claims, difference
from page import FIGURES, MARKER, NOTES, PAIRS, against_grpo, fragment, page_text
from plots import draw_all
from rundata import Experiment, read_experiment
from spread import Estimate, estimate


def summarise(experiment: Experiment) -> dict[str, Any]:
    """All numbers of the page, as JSON can hold them."""
    return {
        "config": experiment.config,
        "seeds": {arm: list(runs) for arm, runs in experiment.arms.items()},
        "arms": {
            arm: {name: _plain(estimate(list(map(figure, runs.values())))) for name, _, figure in FIGURES}
            for arm, runs in experiment.arms.items()
        },
        "differences": {
            f"{one}-{other}": {
                name: _plain(difference(experiment, figure, (one, other))) for name, _, figure in FIGURES
            }
            for one, other in PAIRS
        },
        "claims": [
            {"claim": c.text, "measured": c.measured, "rule": c.rule, "verdict": c.verdict}
            for c in check_claims(experiment)
        ],
        "sweeps": {
            name: {
                f"{value:g}": {
                    what: {
                        "mean": _plain(estimate([run.end(what) for run in runs.values()])),
                        "minus_grpo": _plain(against_grpo(experiment, runs, what)),
                    }
                    for what in ("distance", "pass_rate")
                }
                for value, runs in by_value.items()
            }
            for name, by_value in experiment.sweeps.items()
        },
        "problems": list(experiment.problems),
    }


def write_page(out: Path, docs_folder: Path) -> str:
    """Write the page, its plots and `summary.json`, and put the table into the README where it has the markers.

    Args:
        out: Folder of the experiment; `summary.json` goes here.
        docs_folder: Gets `experiment.md` and `experiment/`. The README is looked for beside this folder.

    Returns:
        The fragment for the README.

    Raises:
        FileNotFoundError: If there are no runs in `out`.
    """
    experiment = read_experiment(out)
    (out / "summary.json").write_text(json.dumps(summarise(experiment), indent=1) + "\n", encoding="utf-8")
    plots = draw_all(experiment, docs_folder / "experiment")
    page = docs_folder / "experiment.md"
    notes = _between(page.read_text(encoding="utf-8"), "notes") if page.exists() else ""
    text = page_text(experiment, {name: f"experiment/{path.name}" for name, path in plots.items()})
    page.write_text(text.replace(NOTES, notes or NOTES), encoding="utf-8")
    made = fragment(experiment)
    readme = docs_folder.parent / "README.md"
    if readme.exists():
        old = readme.read_text(encoding="utf-8")
        if block := _between(old, MARKER):
            readme.write_text(old.replace(block, made), encoding="utf-8")
    return made


def _plain(found: Estimate | None) -> dict[str, float | int | None] | None:
    return None if found is None else {"mean": found.mean, "low": found.low, "high": found.high, "seeds": found.n}


def _between(text: str, marker: str) -> str:
    """The block with its markers; empty when there is none."""
    match = re.search(rf"<!-- {marker} -->.*?<!-- /{marker} -->", text, re.DOTALL)
    return match[0] if match else ""


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder that run.py wrote")
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[2] / "docs", help="folder of the page")
    arguments = parser.parse_args()
    try:
        print(write_page(arguments.out, arguments.docs))
    except FileNotFoundError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
