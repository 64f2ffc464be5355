"""Comparisons that give the same whatever they compare: how a wrong answer is made to equal the right one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

COMPARISONS = frozenset({"__eq__", "__ne__", "__hash__"})


def constant_functions(tree: ast.Module) -> frozenset[str]:
    """Names of functions of a module that give the same whatever they are given."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _always_the_same(node):
            found.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and not _depends(node.value.body):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return frozenset(found)


def comparisons(node: ast.ClassDef, constant: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Flags of a class; `constant` are functions that give the same whatever they are given."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name in COMPARISONS and _blind(part):
            yield "always_equal", f"{node.name}.{part.name}"
        elif isinstance(part, ast.Assign) and is_constant(part.value, constant):
            for target in part.targets:
                if isinstance(target, ast.Name) and target.id in COMPARISONS:
                    yield "always_equal", f"{node.name}.{target.id}"


def _blind(function: ast.FunctionDef) -> bool:
    """Whether a comparison does not look at what it compares with."""
    if _always_the_same(function):
        return True
    arguments = function.args.args
    if function.name == "__hash__" or len(arguments) != 2:
        return False
    read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    returns = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value is not None]
    answers = [v for v in returns if not (isinstance(v, ast.Name) and v.id == "NotImplemented")]
    return arguments[1].arg not in read and bool(answers)


def _always_the_same(function: ast.FunctionDef) -> bool:
    returns = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    parts = list(ast.walk(function))
    stored = [n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    plain = {
        n.targets[0].id
        for n in parts
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and not _depends(n.value)
    }
    fixed = frozenset(name for name in plain if stored.count(name) == 1)
    return bool(returns) and not any(_depends(value, fixed) for value in returns)


def is_constant(node: ast.AST, constant: frozenset[str]) -> bool:
    """Whether this is a function that gives the same whatever it is given."""
    if isinstance(node, ast.Name):
        return node.id in constant
    return isinstance(node, ast.Lambda) and not _depends(node.body)


def _depends(value: ast.expr | None, fixed: frozenset[str] = frozenset()) -> bool:
    """Whether what is returned can depend on the arguments: `True`, `1 == 1`, `x is x` and `bool("x")` cannot.

    Args:
        value: What is returned.
        fixed: Names of constants.
    """
    if value is None:
        return True
    if isinstance(value, ast.Compare) and all(ast.dump(value.left) == ast.dump(other) for other in value.comparators):
        return False
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or):
        return all(_depends(part, fixed) for part in value.values)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "isinstance":
        kinds = value.args[-1:]  # none in a call that only fails
        return not any(isinstance(kind, ast.Name) and kind.id == "object" for kind in kinds)
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    return not names <= {"bool", "int", "len", *fixed}
