"""The doors that the blind run replaces are all doors: nothing else draws, and nothing else reads exact figures."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.noise import entropy
from lapwing.kernel.noise.entropy import random_below
from tests.blind.doors import DOORS, DrawnElsewhere, Size, blind
from tests.meta.tree import SOURCE, python_files

DRAWS = "lapwing.kernel.noise"
DRAWS_NOTHING = frozenset({"require_opendp"})
NOT_ASKED = ("audit/", "demo/", "games/", "mechanisms/", "theory/")
"""Packages that answer no statement; import contracts hold that nothing that does imports those of them that draw."""
READS_EXACT = frozenset({"kernel/release.py", "kernel/count_stream.py"})
"""Where exact figures are read, to be let out by a door."""
MAKES_NAMES = frozenset({"secrets"})
RANDOM = frozenset({"random", "secrets", "uuid", "opendp"})


@cache
def _trees(inside: Path) -> tuple[tuple[str, tuple[ast.AST, ...]], ...]:
    """Every file with the imports and the attributes in it."""
    names = [(path.relative_to(inside).as_posix(), path) for path in python_files(inside)]
    kept = [(name, path.read_text(encoding="utf-8")) for name, path in names if not name.startswith(NOT_ASKED)]
    kinds = (ast.Import, ast.ImportFrom, ast.Attribute)
    return tuple((name, tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))) for name, text in kept)


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Modules, and the names that are taken from them; a module that is imported whole has no name."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def _drawing(inside: Path = SOURCE) -> set[tuple[str, str]]:
    found = set()
    for name, nodes in _trees(inside):
        module = "lapwing." + name.removesuffix(".py").replace("/", ".")
        if not name.startswith("kernel/noise/"):
            found |= {(module, taken) for of, taken in _imports(nodes) if f"{of}.{taken}".startswith(DRAWS) and taken not in DRAWS_NOTHING}
    return found


def _reading(inside: Path = SOURCE) -> set[str]:
    """Files that read a slot of exact figures of something else than themselves."""
    slots = {*Exact.__slots__, *ExactTable.__slots__}
    return {
        name
        for name, nodes in _trees(inside)
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in slots and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    }


def test_nothing_draws_but_the_doors() -> None:
    assert _drawing() == DOORS


def test_exact_figures_are_read_at_the_doors_alone() -> None:
    assert _reading() == READS_EXACT


def test_nothing_else_is_random_but_names() -> None:
    """``secrets`` makes names of requests, ledgers and sessions; OpenDP draws inside of a door."""
    found = {of.split(".")[0] for _, nodes in _trees(SOURCE) for of, _ in _imports(nodes)} & RANDOM
    assert found == MAKES_NAMES | {"opendp"}
    read = {(name, node.attr) for name, nodes in _trees(SOURCE) for node in nodes if isinstance(node, ast.Attribute)}
    assert {(name, what) for name, what in read if what in ("urandom", "random", "getrandom")} == {("kernel/noise/entropy.py", "urandom")}


def test_another_door_is_found(tmp_path: Path) -> None:
    (tmp_path / "curator").mkdir()
    (tmp_path / "curator" / "planted.py").write_text(
        "from lapwing.kernel.noise.additive import add_noise\nfrom lapwing.kernel import noise\ndef told(exact): return exact._tables\n"
    )
    assert _drawing(tmp_path) == {("lapwing.curator.planted", "add_noise"), ("lapwing.curator.planted", "noise")}
    assert _reading(tmp_path) == {"curator/planted.py"}


def test_random_bytes_are_given_inside_of_the_doors_alone() -> None:
    before = entropy.random_bytes
    with blind(Size.SMALL), pytest.raises(DrawnElsewhere):
        random_below(2)
    assert entropy.random_bytes == before
