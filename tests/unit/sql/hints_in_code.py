"""Every hint that the front of SQL, planning and the kernel can give to an analyst, collected from the source as patterns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.meta.tree import SOURCE, python_files

FOLDERS = ("sql", "planning", "introspection")
FILES = (
    "kernel/certify.py",
    "kernel/row_ranges.py",
    "kernel/stability.py",
    "kernel/functions.py",
    "kernel/date_functions.py",
    "asking/options.py",
    "asking/accuracy_solver.py",
    "asking/staged_query.py",
    "answers/assembly.py",
    "answers/post_processing.py",
)
"""Where statements are refused."""
_NAMED = ("_EXAMPLE", "_INSTEAD", "_MOMENT_INSTEAD", "ONE_ROW", "_ONE_EACH")
"""Hints that stand in a constant of their module."""


def files() -> list[Path]:
    """The files that refuse statements."""
    package = SOURCE / "lapwing" if (SOURCE / "lapwing").is_dir() else SOURCE
    inside = [path for path in python_files(SOURCE) if any(package / folder in path.parents for folder in FOLDERS)]
    return [*inside, *(package / name for name in FILES)]


def hints(text: str) -> Iterator[str]:
    """Patterns of all hints in the text of a module."""
    for node in ast.walk(ast.parse(text)):
        for part in _parts(node):
            for leaf in _strings(part):
                if pattern := _pattern(leaf):
                    yield pattern


def _parts(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that are hints."""
    if isinstance(node, ast.Call):
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "hint")
        if isinstance(node.func, ast.Name) and node.func.id == "Reason" and len(node.args) == 3:
            yield node.args[2]
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and (target.id == "hint" or target.id in _NAMED):
                yield node.value
            if isinstance(target, ast.Attribute) and target.attr == "hint":
                yield node.value
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=True)
                yield from (value for name, value in pairs if isinstance(name, ast.Name) and name.id == "hint")


def _strings(node: ast.expr) -> Iterator[ast.expr]:
    """The texts that an expression can be."""
    match node:
        case ast.Constant() | ast.JoinedStr():
            yield node
        case ast.IfExp():
            yield from (*_strings(node.body), *_strings(node.orelse))
        case ast.Dict():
            yield from (leaf for value in node.values for leaf in _strings(value))
        case ast.Call():  # next((hint for .. in ..), default)
            yield from (leaf for argument in node.args for leaf in _strings(argument))


def _pattern(node: ast.expr) -> str:
    """A text as a pattern, anything for what is filled in; empty for no hint."""
    match node:
        case ast.Constant(str(text)):
            return re.escape(text)
        case ast.JoinedStr():
            return "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in node.values)
    return ""


def collected() -> dict[str, str]:
    """All patterns, with the file each stands in."""
    return {pattern: path.name for path in files() for pattern in hints(path.read_text(encoding="utf-8"))}
