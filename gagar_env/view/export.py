"""One file that shows runs without a server: the same page, with the answers inside, packed."""

from __future__ import annotations

import base64
import contextlib
import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gagar_env.errors import GagarError
from gagar_env.exports.placing import is_of_a_run
from gagar_env.view.pages import single_page
from gagar_env.view.plain import to_json
from gagar_env.view.site import Site
from gagar_env.view.turns import PIECE, SHOWN, page_count

MAX_PIECES = 8
"""Pieces of one long text that the file holds; of a longer one it has the head and the tail."""

Block = dict[str, Any]


class _Writer:
    """Collects packed blocks up to a size, and counts what did not fit."""

    def __init__(self, most: int) -> None:
        self.parts: list[str] = []
        self.left: dict[str, int] = {}
        self._room = most

    def add(self, key: str, block: Block, what: str = "") -> bool:
        """Put in a block; one with `what` may be left out, and is counted under this name then."""
        data = base64.b64encode(gzip.compress(to_json(block), 6, mtime=0)).decode()
        text = f'<script type="text/plain" data-key="{key}">{data}</script>\n'
        if what and len(text) > self._room:
            self.count(what)
            return False
        self._room -= len(text)
        self.parts.append(text)
        return True

    def count(self, what: str, number: int = 1) -> None:
        """Count what is left out."""
        self.left[what] = self.left.get(what, 0) + number


def export_page(site: Site, out: Path, *, most_mb: float = 20.0) -> dict[str, int]:
    """Write one HTML file that needs nothing else. A file that is there is replaced, whole or not at all.

    Groups come first, then trajectories, then the rest of long texts, as far as they fit; the page says what is not.

    Args:
        site: What it shows.
        out: The file.
        most_mb: Megabytes for the data, packed.

    Returns:
        What is left out: `groups`, `trajectories`, `long texts` -> how many; empty when all is in.

    Raises:
        GagarError: If the file cannot be written, or is a part of a run.
    """
    if is_of_a_run(out):
        raise GagarError(f"--static {out} is a part of a run: name another file")
    site.read_episodes()
    writer = _Writer(int(most_mb * 1_000_000))
    counts = [len(run.rows()) for run in site.runs]
    places = [(number, group) for number, count in enumerate(counts) for group in range(count)]
    for number in range(len(site.runs)):
        writer.add(f"{number}", {a: site.get(a) for a in (f"run/{number}", f"run/{number}/rows")})
    shown = [place for place in places if writer.add(_key(place, "g"), _group_block(site, *place), "groups")]
    whole = [p for p in shown if (b := _turns_block(site, *p)) and writer.add(_key(p, "t"), b, "trajectories")]
    for place in whole:
        block, left = _pieces_block(site, *place)
        if left:
            writer.count("long texts", left)
        if block:
            writer.add(_key(place, "c"), block, "long texts")
    runs = {**site.get("runs"), "left_out": writer.left, "most_mb": most_mb}
    writer.add("runs", {"runs": runs})
    _write_whole(out, single_page("".join(writer.parts)))
    return writer.left


def _key(place: tuple[int, int], kind: str) -> str:
    return f"{place[0]}/{place[1]}/{kind}"


def _group_block(site: Site, run: int, group: int) -> Block:
    at = f"run/{run}/group/{group}"
    found = site.get(at)
    members = [f"{at}/member/{place}" for place in range(len(found["members"]))]
    return {at: found, **{address: site.get(address) for address in members}}


def _turns_block(site: Site, run: int, group: int) -> Block:
    block: Block = {}
    for place, episode in _episodes(site, run, group):
        at = f"run/{run}/group/{group}/member/{place}/turns"
        block |= {f"{at}/{page}": site.get(f"{at}/{page}") for page in range(page_count(episode))}
    return block


def _pieces_block(site: Site, run: int, group: int) -> tuple[Block, int]:
    """Texts that a page of a trajectory cuts, and how many are too long even for this."""
    block: Block = {}
    left = 0
    for place, episode in _episodes(site, run, group):
        at = f"run/{run}/group/{group}/member/{place}/turn"
        texts = [(0, "observation", episode.first_observation)]
        for turn, one in enumerate(episode.turns, 1):
            texts += [(turn, "action", one.action), (turn, "observation", one.observation)]
        for number, part, text in texts:
            pieces = -(-len(text) // PIECE)
            if pieces > MAX_PIECES:
                left += 1
            elif len(text) > SHOWN:
                block |= {a: site.get(a) for a in (f"{at}/{number}/{part}/{piece}" for piece in range(pieces))}
    return block, left


def _episodes(site: Site, run: int, group: int) -> Iterator[tuple[int, Any]]:
    line = site.runs[run].group(group)
    for place, episode_id in enumerate(() if line is None else line.result.episode_ids):
        if (episode := site.runs[run].episode(episode_id)) is not None:
            yield place, episode


def _write_whole(out: Path, data: bytes) -> None:
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(out)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise GagarError(f"--static {out}: cannot be written: {error.strerror}") from error
