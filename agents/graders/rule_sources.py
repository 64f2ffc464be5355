"""Reads changed files for the rule grader: what kind a file is, and its code without its prose.

Comments, docstrings and blank lines are kept apart from code, so that neither writing nor leaving
them out moves any measure. Sources are parsed, never run.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from gagar_env._compat import parse_python
from gagar_env.changes import FileState

WORD = re.compile(r"[^\W\d]\w*")
_DOC_SUFFIXES = frozenset({".md", ".rst", ".txt", ".adoc"})
_DOC_FOLDERS = frozenset({"doc", "docs", "changelog", "changes", "news", "newsfragments"})
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_SCRATCH = re.compile(
    r"(.*\.(orig|rej|bak|old|tmp|swp|log|patch|diff)|.*~|\.#.*"
    r"|(debug|scratch|repro|reproduce|tmp|temp|try|playground|check)(_\w*|\d*)\.\w+"
    r"|\w+_(debug|backup|old|copy|repro|scratch)\.\w+)",
    re.IGNORECASE,
)
_KNOWN_PROSE = re.compile(
    r"(readme|changelog|changes|news|history|release.?notes|whatsnew|licen[cs]e|copying|notice|contributing|authors"
    r"|contributors|maintainers|credits|security|code.of.conduct|governance|support|install|upgrading|migrati(on|ng)"
    r"|roadmap|requirements|constraints|cmakelists|robots|llms|agents|claude)\b.*",
    re.IGNORECASE,
)
_NOTE = re.compile(r"(.*[-_.])?(notes?|todos?|findings)([-_.].*)?", re.IGNORECASE)
_MAX_BYTES = 1_000_000
_MAX_DEPTH = 200
"""Of a syntax tree: walks that call themselves, ours and other people's, take several calls for each level."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def kind_of(path: str) -> str:
    """`test`, `doc` or `source`, by name and place."""
    parts = PurePosixPath(path.lower())
    folders = set(parts.parts[:-1])
    named = parts.name.startswith("test_") or parts.stem.endswith("_test") or parts.name == "conftest.py"
    if folders & _TEST_FOLDERS or (named and folders):
        return "test"
    if parts.suffix in _DOC_SUFFIXES or (not parts.suffix and parts.name in ("changelog", "readme", "news")):
        return "doc"
    return "doc" if folders & _DOC_FOLDERS and parts.suffix != ".py" else "source"


def is_scratch(path: str) -> bool:
    """Whether a new file of that name is left over from work: a backup, a trial, a lone test, a note to oneself."""
    at_root = "/" not in path
    name = path.rpartition("/")[2]
    lone_test = at_root and re.fullmatch(r"test\w*\.py|\w+_test\.py", name) is not None
    return lone_test or _SCRATCH.fullmatch(name) is not None or _is_note(path)


def _is_note(path: str) -> bool:
    """Prose that is no part of any documentation: at the root under no usual name, or named as a note elsewhere."""
    place = PurePosixPath(path.lower())
    if place.suffix not in _DOC_SUFFIXES or _KNOWN_PROSE.match(place.name):
        return False
    folders = set(place.parts[:-1])
    return not folders or (not folders & (_DOC_FOLDERS | _TEST_FOLDERS) and _NOTE.fullmatch(place.name) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One version of a file.

    Attributes:
        lines: Code lines, stripped; no blank ones, comments or docstrings.
        numbers: Where each of them stands in the text, from 1.
        comments: Text of each comment, without its mark.
        tree: The syntax tree; None when it is no Python, or does not parse.
        parses: False for Python that does not parse, or is nested too deep to be walked.
    """

    path: str
    text: str = ""
    lines: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    comments: tuple[str, ...] = ()
    tree: ast.Module | None = None
    parses: bool = True
    words: Counter[str] = field(default_factory=Counter)


def read_source(path: str, state: FileState | None) -> Source:
    """Read one version of a file. A link, a binary file, a huge one and a missing one have no lines."""
    data = b"" if state is None or state.mode == "120000" else state.data
    if not data or b"\0" in data or len(data) > _MAX_BYTES:
        return Source(path=path)
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    if not path.endswith((".py", ".pyi")):
        return _plain(path, text, parses=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes, `is` with a literal: not ours to say
            tree = parse_python(text)
        if _depth(tree) > _MAX_DEPTH:
            return _plain(path, text, parses=False)
        comments = list(_comments(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return _plain(path, text, parses=False)
    raw = text.split("\n")
    prose = {
        line
        for node in _docstrings(tree)
        if not raw[node.lineno - 1].encode()[: node.col_offset].strip()  # not behind a `def` on its line
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    for line, column, _ in comments:
        raw[line - 1] = raw[line - 1][:column]
    kept = [(n, s) for n, one in enumerate(raw, 1) if n not in prose and (s := one.strip())]
    lines = tuple(line for _, line in kept)
    return Source(
        path=path,
        text=text,
        lines=lines,
        numbers=tuple(number for number, _ in kept),
        comments=tuple(said for _, _, said in comments),
        tree=tree,
        words=_words(lines),
    )


def _depth(tree: ast.Module) -> int:
    depth, level = 0, list[ast.AST]([tree])
    while level:
        depth, level = depth + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def definitions(tree: ast.Module) -> Iterator[tuple[str, _Definition]]:
    """Every function and class with its dotted name, outer ones first."""
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, node = waiting.pop(0)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _Definition):
                yield prefix + child.name, child
                waiting.append((f"{prefix}{child.name}.", child))
            else:
                waiting.append((prefix, child))


def global_names(source: Source) -> Iterator[str]:
    """Names that other files can use: functions, classes, methods, and what a module assigns."""
    if source.tree is None:
        return
    for _, node in definitions(source.tree):
        yield node.name
    for statement in source.tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            for name in ast.walk(statement):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    yield name.id


def is_code(comment: str) -> bool:
    """Whether a comment reads as a statement that was switched off."""
    text = comment.strip()
    for whole in (text, f"{text}\n    pass") if text.endswith(":") else (text,):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = parse_python(whole).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return bool(found) and all(_does_something(node) for node in found)
    return False


def _does_something(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, (ast.Call, ast.Await, ast.Yield))
    if isinstance(node, ast.AnnAssign):  # "note: something" is prose
        return node.value is not None
    return not isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal))


def _plain(path: str, text: str, *, parses: bool) -> Source:
    stripped = [line.strip() for line in text.split("\n")]
    marks = ("#", "//")
    lines = tuple(line for line in stripped if line and not line.startswith(marks))
    comments = tuple(line.lstrip("#/ ") for line in stripped if line.startswith(marks))
    return Source(path=path, text=text, lines=lines, comments=comments, parses=parses, words=_words(lines))


def _words(lines: tuple[str, ...]) -> Counter[str]:
    return Counter(word for line in lines for word in WORD.findall(line))


def _comments(text: str) -> Iterator[tuple[int, int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.start[1], token.string.lstrip("#").strip()


def _docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | _Definition) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield first
