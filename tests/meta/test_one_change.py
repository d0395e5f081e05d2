"""The lists of docs/how-to/what-one-change-touches.md agree with the code: they name every file that the change reaches, and no other."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import pytest

from lapwing.asking.options import AskOptions
from lapwing.interfaces.console.navigation import ENTRIES
from lapwing.sql.rows.variance_aggregates import ONE, TWO
from lapwing.statements import AggregateKind
from tests.meta.tree import DOCS, ROOT, SOURCE, python_files

PAGE = DOCS / "how-to" / "what-one-change-touches.md"
AGGREGATE, OPTION, ROUTE = "Add an aggregate", "Add an option of `ask()`", "Add an HTTP route with its page"
_ROW = re.compile(r"^\| `([\w./-]+)` \| `([\w.]+)` \|", re.MULTILINE)
_COUNTS = re.compile(r"\*\*(\d+) source\s+files(?:,| and) (\d+) page(?: of documentation)?(?: and (\d+) tests)?\*\*")
_SHARED = {"COUNT", "AVG"}
"""Aggregates that REGR_COUNT and its neighbours map to; many modules read them."""


def _section(title: str) -> str:
    _, found, rest = PAGE.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    assert found
    return rest.partition("\n## ")[0]


def _listed(title: str) -> list[tuple[str, str]]:
    return _ROW.findall(_section(title))


def _source_files(title: str) -> set[str]:
    return {file for file, _ in _listed(title) if file.startswith("src/")}


def _files_with(pattern: str, folder: Path, *endings: str) -> set[str]:
    files = [path for ending in endings for path in folder.rglob(f"*{ending}")]
    return {path.relative_to(ROOT).as_posix() for path in files if re.search(pattern, path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("title", [AGGREGATE, OPTION, ROUTE])
def test_listed_files_exist_and_contain_their_symbols(title: str) -> None:
    assert len(_listed(title)) >= 3
    missing = [
        file for file, symbol in _listed(title) if not re.search(rf"\b{re.escape(symbol)}\b", (ROOT / file).read_text(encoding="utf-8"))
    ]
    assert missing == []


@pytest.mark.parametrize("title", [AGGREGATE, OPTION, ROUTE])
def test_the_numbers_in_the_text_are_those_of_the_list(title: str) -> None:
    found = _COUNTS.search(_section(title))
    assert found
    kinds = [file.partition("/")[0] for file, _ in _listed(title)]
    assert [int(number or 0) for number in found.groups()] == [kinds.count(kind) for kind in ("src", "docs", "tests")]


def test_other_files_that_the_page_names_exist() -> None:
    named = re.findall(r"`((?:src|docs|tests)/[\w./-]+\.\w+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 15
    assert [file for file in named if not (ROOT / file).is_file()] == []


def test_an_aggregate_of_sums_is_in_the_listed_files_only() -> None:
    kinds = {kind.name for kind, _ in (*ONE.values(), *TWO.values())} - _SHARED
    assert AggregateKind.REGR_SLOPE.name in kinds
    suppression = "src/lapwing/answers/suppression.py"  # REGR_R2 is the square of what is measured
    for kind in kinds:
        assert _files_with(rf"\b(?:AggregateKind|_K)\.{kind}\b|^    {kind} = ", SOURCE, ".py") - {suppression} <= _source_files(AGGREGATE)
    assert _files_with(r"\bREGR_SLOPE\b", SOURCE, ".py") == _source_files(AGGREGATE)


def test_a_route_with_its_page_is_in_the_listed_files_only() -> None:
    assert "incidents" in {entry.path for entry in ENTRIES}
    reached = _files_with(
        r"\bdef incidents\(|\"incidents\"|\bincidents\.html\b|\"/incidents|'incidents", SOURCE / "interfaces", ".py", ".html"
    )
    assert reached == _source_files(ROUTE)


def _parameters(path: Path) -> set[str]:
    """Names of parameters of all functions of a module."""
    functions = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.FunctionDef)]
    return {one.arg for node in functions for one in (*node.args.args, *node.args.kwonlyargs)}


def test_every_option_is_in_the_listed_files() -> None:
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in _listed(OPTION)}
    for name in (field.name for field in dataclasses.fields(AskOptions)):
        assert [file for file, text in texts.items() if not re.search(rf"\b{name}\b", text)] == []


def test_no_interface_passes_options_by_hand() -> None:
    """Only the command line, whose flags are parameters, names an option in a signature."""
    own = {"scaled_groups", "reuse"}
    assert own <= {field.name for field in dataclasses.fields(AskOptions)}
    paths = [*python_files(SOURCE / "interfaces"), SOURCE / "data_set.py", SOURCE / "asking" / "ask.py"]
    named = {path.relative_to(ROOT).as_posix() for path in paths if own & _parameters(path)}
    assert named == {"src/lapwing/interfaces/cli/analysing.py"}
