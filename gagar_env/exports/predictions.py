"""Predictions for the evaluation harness of SWE-bench: `instance_id`, `model_name_or_path`, `model_patch`.

The harness keeps one prediction for an instance: of two in one file, the first is lost without a word. So the n-th
episode of each instance goes into the n-th file of a folder, under a model name of its own, and one file alone is
written only where each instance has one episode.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from gagar_env.envs.observation import clean_text
from gagar_env.errors import GagarError
from gagar_env.exports.records import Exported, Note, patch_text

FILE_ENDINGS: Final = (".jsonl", ".json")
"""What the harness tells its two forms apart by."""


def write_prediction_folder(episodes: Iterable[Exported], folder: Path, *, model_name: str, note: Note) -> int:
    """Write `predictions-001.jsonl`, `predictions-002.jsonl`, ...; return the number of predictions."""
    seen: Counter[str] = Counter()
    total = 0
    for item, patch in _with_text(episodes, note):
        seen[item.instance_id] += 1
        number = seen[item.instance_id]
        row = _row(item, patch, f"{model_name or _policy(item)}-{number}")
        with (folder / f"predictions-{number:03d}.jsonl").open("a", encoding="utf-8") as file:  # closed: may be many
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        total += 1
    return total


def write_prediction_file(episodes: Iterable[Exported], path: Path, *, name: str, model_name: str, note: Note) -> int:
    """Write one file, JSONL or a JSON list by the ending of `name`; return the number of predictions.

    Raises:
        GagarError: If an instance has two episodes.
    """
    as_list = not name.endswith(".jsonl")
    seen: set[str] = set()
    with path.open("w", encoding="utf-8") as file:
        file.write("[" if as_list else "")
        for item, patch in _with_text(episodes, note):
            if item.instance_id in seen:
                raise GagarError(
                    f"{item.instance_id} has several episodes, and a file of predictions takes one: add --pick first "
                    "or --pick best, or name a folder with --out"
                )
            text = json.dumps(_row(item, patch, model_name or _policy(item)), ensure_ascii=False)
            file.write((",\n" if seen else "\n") + text if as_list else text + "\n")
            seen.add(item.instance_id)
        file.write("\n]\n" if as_list else "")
    return len(seen)


def _with_text(episodes: Iterable[Exported], note: Note) -> Iterator[tuple[Exported, str]]:
    for item in episodes:
        if item.episode.report is None and not item.episode.patch:
            note(f"episode {item.episode.id!r} is left out: it was never judged and has no patch")
        elif (patch := patch_text(item.episode.patch)) is None:
            note(f"episode {item.episode.id!r} is left out: its patch is not valid UTF-8, and predictions are text")
        else:
            yield item, patch


def _row(item: Exported, patch: str, model_name: str) -> dict[str, str]:
    return {
        "instance_id": clean_text(item.instance_id),
        "model_name_or_path": clean_text(model_name),
        "model_patch": patch,
    }


def _policy(item: Exported) -> str:
    return item.episode.policy or "gagar"
