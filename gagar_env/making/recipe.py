"""Recipes: TOML files that say what tasks are made from. Names, versions and commits only, no code.

- `[[releases]]`: `name` and `versions`, each of which is taken with the next one.
- `[[history]]`: `repo`, `limit`, `seed`, `commit`, `since`, `merged`, as `--from-history` takes them.
- `[[inject]]`: `repo`, `limit`, `seed`, `commit`, `kinds`, as `--inject` takes them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from gagar_env._compat import tomllib
from gagar_env.cache import Progress
from gagar_env.errors import TaskError
from gagar_env.making.candidate import Candidate, Statement
from gagar_env.making.feed import Source
from gagar_env.making.observe import LONGEST_S, RUNS
from gagar_env.verify import Verifier

MAKERS = ("releases", "history", "inject")
_FIELDS: dict[str, dict[str, type]] = {
    "releases": {"name": str, "versions": list},
    "history": {"repo": str, "limit": int, "seed": int, "commit": str, "since": str, "merged": bool},
    "inject": {"repo": str, "limit": int, "seed": int, "commit": str, "kinds": list},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What every maker is given.

    Attributes:
        sandbox: Kind of sandbox.
        runs: Runs of each side.
        longest_s: Seconds that one run of the tests may take.
        statement: Writes the problem statements, in the place of a maker's own way.
        on_progress: Told what takes time.
    """

    sandbox: str = "auto"
    runs: int = RUNS
    longest_s: float = LONGEST_S
    statement: Statement | None = None
    on_progress: Progress | None = None


def release_source(name: str, old: str, new: str, settings: Settings) -> Source:
    """The source of `--from-releases`."""
    from gagar_env.making import releases

    return Source(id=f"releases {name} {old} {new}", propose=_call(releases.propose, (name, old, new), {}, settings))


def repo_source(maker: str, repo: str, given: Mapping[str, Any], settings: Settings) -> Source:
    """The source of `--from-history` and `--inject`.

    Args:
        maker: `history` or `inject`.
        repo: What that maker takes.
        given: Its settings, such as `seed`; `limit` ends it.
        settings: Of all makers.
    """
    module = import_module(f"gagar_env.making.{maker}")
    described = " ".join(f"{key}={given[key]}" for key in sorted(given) if key != "limit")
    return Source(id=f"{maker} {repo} {described}".rstrip(), propose=_call(module.propose, (repo,), given, settings))


def _call(
    propose: Callable[..., Iterable[Candidate]],
    arguments: tuple[str, ...],
    given: Mapping[str, Any],
    settings: Settings,
) -> Callable[[], Iterable[Candidate]]:
    """A maker's call with those of the settings that it takes."""
    offered = {name: getattr(settings, name) for name in Settings.__dataclass_fields__}
    offered |= {"verifier": Verifier(sandbox=settings.sandbox, warm=False), **given}
    takes = inspect.signature(propose).parameters
    return partial(propose, *arguments, **{key: value for key, value in offered.items() if key in takes})


def read_recipe(path: Path | str, settings: Settings) -> list[Source]:
    """The sources of a recipe, in an order that takes from each in turn.

    Raises:
        TaskError: One line that names the file, the entry and the field.
    """
    file = Path(path).expanduser()
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise TaskError(f"recipe {path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TaskError(f"recipe {path}: not valid TOML: {error}") from None
    if unknown := sorted(set(content) - set(MAKERS)):
        raise TaskError(f"recipe {path}: {unknown[0]}: unknown; there are [[{']], [['.join(MAKERS)}]]")
    found: list[list[Source]] = []
    for maker in MAKERS:
        entries = content.get(maker, [])
        if not isinstance(entries, list):
            raise TaskError(f"recipe {path}: {maker}: must be [[{maker}]], with two brackets")
        for number, entry in enumerate(entries, 1):
            _check(entry, maker, f"recipe {path}: {maker} {number}")
            found.append(list(_sources(maker, dict(entry), file.parent, settings)))
    if not any(found):
        raise TaskError(f"recipe {path}: there is nothing in it")
    longest = max(map(len, found))
    return [sources[turn] for turn in range(longest) for sources in found if turn < len(sources)]


def _sources(maker: str, entry: dict[str, Any], beside: Path, settings: Settings) -> Iterator[Source]:
    if maker == "releases":
        for old, new in pairwise(entry["versions"]):
            yield release_source(entry["name"], old, new, settings)
        return
    repo = str(entry.pop("repo"))
    local = beside / os.path.expanduser(repo)
    limit = entry.get("limit")
    source = repo_source(maker, str(local) if local.exists() else repo, entry, settings)
    if limit is None:
        yield source
    else:  # another limit is another source: what it leaves is looked for when it is raised
        yield Source(id=f"{source.id} limit={limit}", propose=partial(_first, source.propose, 3 * limit))


def _first(propose: Callable[[], Iterable[Candidate]], count: int) -> Iterator[Candidate]:
    """The first candidates: a third of them or more become tasks, as makers go."""
    return islice(propose(), count)


def _check(entry: object, maker: str, where: str) -> None:
    fields = _FIELDS[maker]
    if not isinstance(entry, dict):
        raise TaskError(f"{where}: must be a table")
    first = next(iter(fields))
    if first not in entry:
        raise TaskError(f"{where}: {first}: is missing")
    for key, value in entry.items():
        if key not in fields:
            raise TaskError(f"{where}: {key}: unknown field; there are {', '.join(fields)}")
        if type(value) is not fields[key]:
            raise TaskError(f"{where}: {key}: must be a {fields[key].__name__}, not {value!r}")
        if key == "limit" and isinstance(value, int) and value < 1:
            raise TaskError(f"{where}: limit: must be at least 1, not {value}")
    if maker == "releases":
        versions = entry.get("versions", [])
        if len(versions) < 2 or not all(isinstance(version, str) for version in versions):
            raise TaskError(f"{where}: versions: must be two texts or more, the oldest first")
