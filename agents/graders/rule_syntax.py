"""What the rule grader measures on the syntax of changed Python files. Amounts are >= 0, and 0 is best.

Everything is counted against the base tree. Sources are parsed, never run.
"""

from __future__ import annotations

import ast
from collections import Counter

from radon.visitors import ComplexityVisitor

from gagar_env._compat import parse_python
from gagar_env.agents.graders.rule_sources import Source, definitions
from gagar_env.agents.graders.rule_work import Amount, Change, Work, changed_lines

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Block = ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.With | ast.AsyncWith | ast.Match


def complexity(work: Work) -> Amount:
    """Branches added (cyclomatic complexity), with one more for each level of nesting below the second.

    Those above 10 in one function count twice; a file that does not parse counts as 10.
    """
    total, found = 0.0, []
    for change in work.sources:
        if not change.new.parses and change.old.parses:
            total += 10
            found.append(f"{change.path} does not parse")
        else:
            before, after = _branches(change.old), _branches(change.new)
            total += after - before
            if after > before:
                found.append(change.path)
    return Amount(max(0.0, total), tuple(found))


def _branches(source: Source) -> float:
    if source.tree is None:
        return 0.0
    visitor = ComplexityVisitor.from_ast(source.tree)
    each = [block.complexity for block in visitor.functions]
    each += [method.complexity for owner in visitor.classes for method in owner.methods]
    deep = sum(_nesting(node, 0) for node in source.tree.body)
    return float(deep + sum(n - 1 + max(0, n - 10) for n in each))


def _nesting(node: ast.AST, depth: int) -> int:
    if isinstance(node, _Function | ast.ClassDef):
        depth = 0
    deeper = depth + isinstance(node, _Block)
    total = max(0, deeper - 2) if deeper > depth else 0
    for child in ast.iter_child_nodes(node):
        chained = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        total += _nesting(child, depth if chained else deeper)
    return total


def swallowed(work: Work) -> Amount:
    """Exception handlers added that hide what went wrong; half for a bare or very broad one that does something."""
    total, found = 0.0, []
    for change in work.sources:
        more = _handlers(change.new) - _handlers(change.old)
        if more > 0:
            total += more
            found.append(change.path)
    return Amount(total, tuple(found))


def _handlers(source: Source) -> float:
    total = 0.0
    for node in ast.walk(source.tree) if source.tree else ():
        if isinstance(node, ast.ExceptHandler):
            silent = all(isinstance(n, (ast.Pass, ast.Continue)) or _is_ellipsis(n) for n in node.body)
            broad = node.type is None or (
                isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
            )
            raises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
            total += 1.0 if silent else 0.5 if broad and not raises else 0.0
    return total


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


def dead_code(work: Work) -> Amount:
    """Functions, classes and imports that nobody uses: new ones, and old ones that lost their last use.

    A name that the problem statement mentions may wait for its users.
    """
    changed = {c.path for c in work.sources}
    others = Counter[str]()
    for path, file in work.base.surroundings.items():
        if path not in changed:
            others.update(file.words)
    before, after = others.copy(), others.copy()
    for change in work.sources:
        before.update(change.old.words)
        after.update(change.new.words)
    found = []
    for change in work.sources:
        was = _defined(change.old)
        for name, count in _defined(change.new).items():
            used_before = name in was and before[name] > was[name]
            if after[name] <= count and (name not in was or used_before) and name not in work.asked_for:
                found.append(name)
        found += _unused_imports(change)
    return Amount(len(found), tuple(found))


def _defined(source: Source) -> Counter[str]:
    """Names of functions and classes that somebody has to call by name."""
    names = Counter[str]()
    for _, node in definitions(source.tree) if source.tree else ():
        special = node.name.startswith("__") or node.name == "main"
        if not special and not node.decorator_list:
            names[node.name] += 1
    return names


def _unused_imports(change: Change) -> list[str]:
    if change.path.endswith("__init__.py"):
        return []
    unused = _idle_imports(change.new) - _idle_imports(change.old)
    return [f"import {name}" for name in sorted(unused)]


def _idle_imports(source: Source) -> set[str]:
    names: Counter[str] = Counter()
    for node in ast.walk(source.tree) if source.tree else ():
        if isinstance(node, (ast.Import, ast.ImportFrom)) and getattr(node, "module", "") != "__future__":
            names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    return {name for name, count in names.items() if source.words[name] <= count and name != "*"}


def churn(work: Work) -> Amount:
    """Lines changed in functions that do the same as before: other names, other layout."""
    total, found = 0, []
    for change in work.sources:
        if change.old.tree is None or change.new.tree is None:
            continue
        before = dict(definitions(change.old.tree))
        for name, node in definitions(change.new.tree):
            was = before.get(name)
            if was is None or isinstance(node, ast.ClassDef) or isinstance(was, ast.ClassDef):
                continue
            lines, now = _lines(change.old, was), _lines(change.new, node)
            if lines != now and _meaning(was) == _meaning(node):
                total += sum(changed_lines(lines, now))
                found.append(name)
    return Amount(total, tuple(found))


def _lines(source: Source, node: _Function) -> list[str]:
    end = node.end_lineno or node.lineno
    return [line for number, line in zip(source.numbers, source.lines, strict=True) if node.lineno <= number <= end]


def _meaning(node: _Function) -> str:
    """The function with its local names numbered, without docstring and annotations."""
    copy = parse_python(ast.unparse(node)).body[0]
    assert isinstance(copy, _Function)
    if ast.get_docstring(copy, clean=False) is not None:
        copy.body = copy.body[1:] or [ast.Pass()]
    copy.returns = None
    numbers: dict[str, str] = {}
    for part in ast.walk(copy):
        if isinstance(part, ast.arg):
            numbers.setdefault(part.arg, f"v{len(numbers)}")
            part.annotation = None
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            numbers.setdefault(part.id, f"v{len(numbers)}")
    for part in ast.walk(copy):
        if isinstance(part, ast.Name):
            part.id = numbers.get(part.id, part.id)
        elif isinstance(part, ast.arg):
            part.arg = numbers[part.arg]
    return ast.dump(copy)
