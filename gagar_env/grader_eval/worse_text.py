"""Degradations that leave what the code does as it is, and make it worse to read, to review and to keep."""

from __future__ import annotations

import ast
import random
from collections.abc import Sequence
from difflib import SequenceMatcher

from gagar_env._compat import parse_python
from gagar_env.grader_eval.pyedit import Edit, Function, Module, own_names, rewritten
from gagar_env.grader_eval.scene import Scene, Site
from gagar_env.grader_eval.variants import Variant, by_count

ALL = 10_000
UNUSED = (
    '''def normalize_options(options, defaults=None):
    """Return the options with the defaults filled in."""
    merged = dict(defaults or {})
    for name, value in options.items():
        if value is not None:
            merged[name] = value
    return merged
''',
    '''def chunked(items, size):
    """Split items into lists of at most size."""
    chunk = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
''',
    '''class ResultRegistry:
    """Keeps results by name."""

    def __init__(self):
        self.results = {}

    def register(self, name, result):
        self.results[name] = result
        return result

    def lookup(self, name):
        return self.results.get(name)
''',
    '''def describe_value(value, width=60):
    """Return a short text about a value."""
    text = f"{type(value).__name__}: {value!r}"
    if len(text) > width:
        text = text[: width - 3] + "..."
    return text
''',
    '''def retry_call(function, attempts=3):
    """Call a function until it does not raise."""
    for attempt in range(attempts):
        try:
            return function()
        except ValueError:
            if attempt == attempts - 1:
                raise
''',
    '''def is_supported(name, known=("default", "legacy")):
    """Tell whether a mode is supported."""
    if not name:
        return False
    return name.lower() in known
''',
)


def dead_code(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """Functions and classes that nobody uses, at the end of a changed file."""
    paths = list(scene.sources)
    texts = rng.sample(UNUSED, len(UNUSED))
    sites = []
    for text in texts if paths else ():
        path = rng.choice(paths)
        module = scene.sources[path]
        if _name(text) not in module.names:
            end = len(module.data)
            sites.append(Site(path, (Edit(end, end, b"\n\n" + text.encode()),)))
    return by_count(scene, sites, (1, 2, 5))


def _name(text: str) -> str:
    node = parse_python(text).body[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    return node.name


def debug_output(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """Prints left at the start of functions."""
    stderr = rng.random() < 0.5
    sites = []
    for path, module, function in scene.functions(rng):
        if function.statements and not function.has(ast.Yield, ast.YieldFrom):
            shown = ", ".join([f'"DEBUG {function.node.name}"', *(arg.arg for arg in function.parameters)])
            line = f"print({shown}, file=sys.stderr)" if stderr else f"print({shown})"
            first = function.statements[0]
            at = module.line(min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))]))
            text = module.indent(first) + line.encode() + b"\n"
            imports = module.add_import("import sys") if stderr else ()
            sites.append(Site(path, (*imports, Edit(at, at, text))))
    return by_count(scene, sites, (1, 3, 6))


def duplicated_helper(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """A copy of a function under another name, used by one of its callers."""
    sites: list[Site] = []
    for path, module, function in scene.functions(rng):
        site = _copy(path, module, function)
        if site is not None and not any(_overlap(site, other) for other in sites):
            sites.append(site)
    return by_count(scene, sites, (1, 2, 3))


def _copy(path: str, module: Module, function: Function) -> Site | None:
    name = function.node.name
    copied = f"_{name.strip('_')}_locally"
    if (
        function.node.decorator_list
        or name.startswith("__")
        or copied in module.names
        or function.text.count(b"\n") < 3
    ):
        return None
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or function.node.lineno <= node.lineno <= (function.node.end_lineno or 0):
            continue
        called: ast.expr | None = None
        if function.owner is None and isinstance(node.func, ast.Name) and node.func.id == name:
            called = node.func
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            own = function.owner is not None and function.owner.lineno <= node.lineno <= (
                function.owner.end_lineno or 0
            )
            called = node.func if own and node.func.value.id == "self" and node.func.attr == name else None
        if called is None or _in_text(module, called):
            continue
        _, end = module.span(called)
        head, found, rest = function.text.partition(f"def {name}(".encode())
        if found:
            space = b"\n" if function.indent else b"\n\n"
            copy = space + head + f"def {copied}(".encode() + rest
            copy = copy if copy.endswith(b"\n") else copy + b"\n"
            use = Edit(end - len(name.encode()), end, copied.encode())
            return Site(path, (use, Edit(function.end, function.end, copy)))
    return None


def _in_text(module: Module, node: ast.expr) -> bool:
    """Whether its place is wrong, as those in f-strings are before Python 3.12."""
    start, end = module.span(node)
    return module.data[start:end].decode(errors="replace") != ast.unparse(node)


def _overlap(one: Site, other: Site) -> bool:
    same = one.path == other.path
    return same and any(a.start < b.end and b.start < a.end for a in one.edits for b in other.edits)


def needless_rewrite(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """Functions beside the fix written anew: other local names, other layout, their comments gone."""
    sites = []
    for path, module, function in scene.functions(rng):
        if scene.before(path, function.name) == function.text and (text := _anew(module, function, rng)):
            sites.append(Site(path, (Edit(function.start, function.end, text),)))
    return by_count(scene, sites, (1, 3, ALL))


def out_of_scope(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """A function written anew in files that the task does not concern."""
    sites = []
    for path in rng.sample(sorted(scene.others), len(scene.others)):
        module = scene.others[path]
        for function in rng.sample(module.functions, len(module.functions)):
            if text := _anew(module, function, rng):
                sites.append(Site(path, (Edit(function.start, function.end, text),)))
                break
        if len(sites) >= 4:
            break
    return by_count(scene, sites, (1, 2, 4))


def _anew(module: Module, function: Function, rng: random.Random) -> bytes | None:
    if not function.statements:
        return None
    text = rewritten(function, new_names(module, function, rng))
    matcher = SequenceMatcher(None, text.splitlines(), function.text.splitlines(), autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    return text if function.text.count(b"\n") - same >= 2 else None


def new_names(module: Module, function: Function, rng: random.Random) -> dict[str, str]:
    """Another name for each local one."""
    prefix = rng.choice(("current", "found", "this"))
    names = {name: f"{prefix}_{name.strip('_')}" for name in sorted(own_names(function.node)) if name.strip("_")}
    return {old: new for old, new in names.items() if new not in module.names}


def deleted_comment(scene: Scene, rng: random.Random) -> Sequence[Variant]:
    """Comments and docstrings that were there before, gone."""
    sites = []
    for path, module in scene.sources.items():
        base = scene.base(path)
        for start, end, text in module.comments():
            if base is not None and text.encode() in base.data:
                sites.append(Site(path, (Edit(start, end, b""),)))
        for function in module.functions:
            doc = ast.get_docstring(function.node, clean=False)
            if doc and function.statements and base is not None and doc.encode() in base.data:
                first, last = module.lines(function.node.body[0], function.node.body[0])
                sites.append(Site(path, (Edit(first, last, b""),)))
    return by_count(scene, rng.sample(sites, len(sites)), (1, 3, ALL))
