"""`export_run`: a run folder into one of the formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gagar_env.errors import GagarError
from gagar_env.exports.chat import write_chat
from gagar_env.exports.placing import MANIFEST, placed
from gagar_env.exports.predictions import FILE_ENDINGS, write_prediction_file, write_prediction_folder
from gagar_env.exports.records import ONLY, PICKS, Exported, Note, Only, Pick, exported_episodes
from gagar_env.exports.sweagent import write_traj
from gagar_env.exports.tables import need_arrow, write_data_set, write_parquet
from gagar_env.store import RunFolder

FORMATS: Final = ("parquet", "datasets", "openai", "traj", "predictions")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSummary:
    """What was written.

    Attributes:
        path: The file or folder.
        episodes: How many are in it.
        left_out: One line for each that is not, though it was asked for.
    """

    format: str
    path: Path
    episodes: int
    left_out: tuple[str, ...]


def export_run(
    run: RunFolder | Path | str,
    out: Path | str,
    *,
    format: str,
    only: Only = "all",
    pick: Pick = "all",
    force: bool = False,
    model_name: str = "",
    system_prompt: str = "",
    on_episode: Callable[[Exported], None] | None = None,
) -> ExportSummary:
    """Export the episodes of a run.

    Args:
        run: A run, or its folder.
        out: A file for `parquet` and `openai`, a folder for `datasets` and `traj`; `predictions` take either.
        format: One of `FORMATS`.
        only: `all`, `kept` (what a learner trains on) or `passed`.
        pick: Of the episodes of each task: `all`, the `first`, or the `best`. The last knows the tests' verdict, so
            that what is measured with it is no pass@1.
        force: Replace what is there.
        model_name: For `predictions`, in place of the policy's name.
        system_prompt: For `openai`, the first message; a record has none of its own.
        on_episode: Told of each, before it is written.

    Raises:
        GagarError: If there is no run, `out` is taken, nothing is to be exported, or it cannot be written.
        MissingDependencyError: If the format needs pyarrow and it is not installed.
    """
    for name, given, known in (("format", format, FORMATS), ("only", only, ONLY), ("pick", pick, PICKS)):
        if given not in known:
            raise GagarError(f"unknown {name} {given!r}: there are {', '.join(known)}")
    source = run if isinstance(run, RunFolder) else RunFolder.open(Path(run))
    target = Path(out)
    notes: list[str] = []
    as_folder = format in ("datasets", "traj") or (format == "predictions" and not target.name.endswith(FILE_ENDINGS))
    if format in ("parquet", "datasets"):
        need_arrow()
    with placed(target, folder=as_folder, force=force) as part:
        episodes = _told(exported_episodes(source, only=only, pick=pick, note=notes.append), on_episode)
        total = _write(format, episodes, part, target, model_name, system_prompt, notes.append)
        if not total:
            why = f": {notes[0]}" if notes else f" that is {only}" if only != "all" else ""
            raise GagarError(f"{source.path}: there is no episode to export{why}")
        if as_folder:
            manifest = {"format": format, "only": only, "pick": pick, "episodes": total, "left_out": notes}
            (part / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return ExportSummary(format=format, path=target, episodes=total, left_out=tuple(notes))


def _told(episodes: Iterator[Exported], on_episode: Callable[[Exported], None] | None) -> Iterator[Exported]:
    for item in episodes:
        if on_episode is not None:
            on_episode(item)
        yield item


def _write(
    format: str,
    episodes: Iterator[Exported],
    part: Path,
    target: Path,
    model_name: str,
    system_prompt: str,
    note: Note,
) -> int:
    writers: dict[str, Callable[[], Any]] = {
        "parquet": lambda: write_parquet(episodes, part),
        "datasets": lambda: write_data_set(episodes, part),
        "openai": lambda: write_chat(episodes, part, system_prompt=system_prompt),
        "traj": lambda: write_traj(episodes, part),
    }
    if format in writers:
        return int(writers[format]())
    if part.is_dir():
        return write_prediction_folder(episodes, part, model_name=model_name, note=note)
    return write_prediction_file(episodes, part, name=target.name, model_name=model_name, note=note)
