"""Candidates that differ from the reference and are as good: a grader should tie them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gagar_env.grader_eval.pyedit import Edit, Function, Module, own_names, renamings
from gagar_env.grader_eval.scene import Scene, Site
from gagar_env.grader_eval.variants import Variant
from gagar_env.grader_eval.worse_text import new_names

REMARKS = (
    ("The case that the problem statement describes comes through here.", "Other callers see what they saw before."),
    (
        "This is the part that the problem statement is about: without it,",
        "the case described there ends as it did before.",
    ),
    ("Part of the change that the problem statement asks for. The rest", "of the file only uses what comes out of it."),
    (
        "What the problem statement describes is decided here, and",
        "in one place only, so that callers need not know about it.",
    ),
)


def renamed_locals(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """Other names for local variables that the fix itself introduced."""
    sites = []
    for path, module, function in _changed(scene, rng):
        found = scene.base_function(path, function.name)
        new = own_names(function.node) - (own_names(found[1].node) if found else frozenset())
        names = {old: text for old, text in new_names(module, function, rng).items() if old in new}
        edits = renamings(module, function, names) if names else None
        if edits:
            sites.append(Site(path, edits))
    return _one(scene, sites)


def reordered_functions(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """A function that the fix adds, at another place of its module or class."""
    for path, module, function in _changed(scene, rng):
        if scene.before(path, function.name) is None and (site := _moved(path, module, function, rng)):
            return _one(scene, [site])
    return []


def _moved(path: str, module: Module, function: Function, rng: random.Random) -> Site | None:
    beside = [f for f in module.functions if f.owner is function.owner]
    at = beside.index(function)
    targets = [f for n, f in enumerate(beside) if n not in (at, at + 1)]
    gap = b"\n" if function.indent else b"\n\n"
    cut = function.start - len(gap)
    if not targets or module.data[cut : function.start] != gap:
        return None
    target = rng.choice(targets)  # the function goes in front of it
    return Site(path, (Edit(cut, function.end, b""), Edit(target.start, target.start, function.text + gap)))


def longer_comments(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """A comment of several lines in what the fix changed."""
    site = remarked(scene, rng)
    return _one(scene, [site] if site else [])


def remark(path: str, module: Module, function: Function, rng: random.Random, text: Sequence[str] = ()) -> Site:
    """A comment at the start of a function."""
    first = function.statements[0]
    at = module.line(min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))]))
    indent = module.indent(first)
    lines = text or rng.choice(REMARKS)
    return Site(path, (Edit(at, at, b"".join(indent + b"# " + line.encode() + b"\n" for line in lines)),))


def remarked(scene: Scene, rng: random.Random, text: Sequence[str] = ()) -> Site | None:
    """A comment in one of the changed functions; None where there is no place for one."""
    places = [place for place in _changed(scene, rng) if place[2].statements]
    return remark(*places[0], rng, text) if places else None


def _changed(scene: Scene, rng: random.Random) -> list[tuple[str, Module, Function]]:
    own = [(path, scene.sources[path], function) for path, some in scene.changed.items() for function in some]
    return rng.sample(own, len(own))


def _one(scene: Scene, sites: Sequence[Site]) -> list[Variant]:
    return [Variant(strength=0, changes=scene.with_sites(sites))] if sites else []
