"""Finds the error codes that tests provoke, by reading the tests' syntax trees.

A code counts where a test compares what it got with it: inside ``assert``, in the ``match`` of ``pytest.raises``, handed to a function or
dataclass of the tests as its ``code``, or in a table (a module's own constant, the cases of ``parametrize``) of a module in which, or in an
importer of which, something called ``code`` is asserted. A code in a docstring, in a name or in any other call does not count. Beside that
there are collections whose text is compared with what is printed, character by character.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping

from tests.meta.codes import carried, carriers


def provoked(sources: Mapping[str, str], compared: Collection[str], codes: Collection[str]) -> set[str]:
    """Those of the codes that some test provokes. Sources are test modules, by dotted name; ``compared`` are texts of collections."""
    trees = {name: ast.parse(text) for name, text in sources.items()}
    takes_code = carriers(trees.values())
    asserting = {name for name, tree in trees.items() if any(_names_a_code(node) for node in _judging(tree))}
    judged = asserting | {module for name in asserting for module in _imports(trees[name])}
    found: set[str] = set()
    for name, tree in trees.items():
        texts = [*_strings(_judging(tree)), *carried(tree, takes_code), *(_strings(_tables(tree)) if name in judged else ())]
        found.update(code for text in texts for code in _words(text))
    found.update(code for text in compared for code in re.findall(r"\[([a-z0-9-]+)\]", text))
    return found & set(codes)


def _judging(tree: ast.Module) -> Iterator[ast.AST]:
    """Assertions, and what the text of an expected error must match."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node
        elif isinstance(node, ast.keyword) and node.arg == "match":
            yield node.value


def _tables(tree: ast.Module) -> Iterator[ast.AST]:
    """What a module sets out once: its own constants, and the cases of its tests."""
    yield from (node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parametrize":
            yield node


def _names_a_code(node: ast.AST) -> bool:
    return any(
        (isinstance(inner, ast.Attribute) and inner.attr in _CODE) or (isinstance(inner, ast.Name) and inner.id in _CODE)
        for inner in ast.walk(node)
    )


_CODE = {"code", "codes"}


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _strings(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                yield inner.value


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)*", text)
