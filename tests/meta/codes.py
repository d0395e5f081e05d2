"""Finds the error codes that the source raises, by reading its syntax trees.

A code is a string literal that reaches the ``code`` parameter of an error class, either directly or through a function or dataclass of
ours whose own parameter or field is called ``code``. A code that is computed in any other way cannot be found, and is reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lapwing import errors

KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

ERROR_CLASSES: Mapping[str, type[errors.LapwingError]] = {
    name: value for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.LapwingError)
}


@dataclass(slots=True)
class Found:
    """What the scan saw."""

    raised_as: dict[str, set[str]] = field(default_factory=dict)
    """Code to the names of the error classes that are called with it; empty when it only travels through helpers."""
    unreadable: list[str] = field(default_factory=list)
    """Places where an error is made with a code that is neither a literal nor handed on from a parameter or field called ``code``."""


def scan(sources: Mapping[str, str]) -> Found:
    """All codes in some modules, given as file name to text."""
    trees = {name: ast.parse(text) for name, text in sources.items()}
    takes_code = carriers(trees.values())
    found = Found()
    for name, tree in trees.items():
        for call, class_name in _error_calls(tree):
            for value in _literals(_argument(call, 0)):
                if isinstance(value, str):
                    found.raised_as.setdefault(value, set()).add(class_name)
                else:
                    found.unreadable.append(f"{name}:{call.lineno}")
        for code in carried(tree, takes_code):
            found.raised_as.setdefault(code, set())
    return found


def _error_calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """Calls of error classes, and calls of ``super().__init__`` inside them, with the class's name.

    A class that fixes its own code (it has its own ``__init__``) is read there, and calls of it are left out.
    """
    fixed = {name for name, value in ERROR_CLASSES.items() if "__init__" in vars(value) and name != "LapwingError"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in fixed:
            yield from ((call, node.name) for call in ast.walk(node) if isinstance(call, ast.Call) and _called_name(call) == "__init__")
        elif isinstance(node, ast.Call):
            name = _called_name(node)
            if name in ERROR_CLASSES and name not in fixed:
                yield node, name


def carriers(trees: Iterable[ast.Module]) -> dict[str, int]:
    """Functions, methods and dataclasses that take a ``code``: name to the position it has in a call."""
    positions: dict[str, int] = {}
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name, args=arguments):
                    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
                    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
                case ast.ClassDef(name=name, body=body):
                    names = [
                        statement.target.id
                        for statement in body
                        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
                    ]
                case _:
                    continue
            if "code" in names and name not in ERROR_CLASSES and name != "__init__":
                positions[name] = names.index("code")
    return positions


def carried(tree: ast.Module, takes_code: Mapping[str, int]) -> Iterator[str]:
    """Codes that are handed to functions, methods and dataclasses that take one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            position = takes_code.get(_called_name(node))
            named = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
            argument = named[0] if named else None if position is None else _argument(node, position)
            yield from (value for value in _literals(argument) if isinstance(value, str) and KEBAB.fullmatch(value))


def _argument(call: ast.Call, position: int) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == "code":
            return keyword.value
    return call.args[position] if position < len(call.args) else None


def _literals(expression: ast.expr | None) -> Iterator[str | None]:
    """The literals an expression may be; ``None`` stands for one that cannot be read. A ``code`` that is handed on yields nothing."""
    match expression:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from _literals(one)
            yield from _literals(other)
        case ast.Name(id="code") | ast.Attribute(attr="code"):
            return
        case _:
            yield None


def _called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""
