"""The table of concepts names what exists, and everything that the theory exports is named."""

from __future__ import annotations

import ast
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lapwing.theory
from tests.meta.tree import DOCS, ROOT, SOURCE
from tests.theory.notions import NOTIONS
from tests.theory.theorems.registry import STATEMENTS

PAGE = (DOCS / "reference" / "concepts.md").read_text(encoding="utf-8")
ROWS = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in PAGE.splitlines() if re.match(r"\| (?!concept)", line)]
HAVE = [row for row in ROWS if len(row) == 5]
REASONED = [row for row in ROWS if len(row) == 4]
NOTES = {row[0]: row[1] for row in ROWS}
STATED = {item.name for item in STATEMENTS}


def names_in(text: str) -> list[str]:
    """The dotted names of ours in code font."""
    return re.findall(r"`(lapwing(?:\.\w+)+)`", text)


def exists(dotted: str) -> bool:
    return pydoc.locate(dotted) is not None


def defined_in(path: str) -> set[str]:
    """The test functions of a file under ``tests``; none if there is no such file."""
    file = ROOT / "tests" / path
    if not file.is_file():
        return set()
    return {node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def page_of(cell: str) -> Path:
    (target,) = re.findall(r"\{doc\}`([^`]+)`", cell)
    where: Path = DOCS / target.lstrip("/") if target.startswith("/") else DOCS / "reference" / target
    return where.with_suffix(".md")


def missing_checks(cell: str) -> list[str]:
    """The checks named in a cell that do not exist; a cell without any check is missing one."""
    statements = re.findall(r"statement `([a-z0-9-]+)`", cell)
    tests = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", cell)
    if not statements and not tests:
        return ["no check"]
    absent = [name for name in statements if name not in STATED]
    absent += [f"{path}::{function}" for path, function in tests if not (names := defined_in(path)) or (function and function not in names)]
    return absent


def test_the_table_is_read() -> None:
    assert len(HAVE) > 100 and len(REASONED) == 3 and len(HAVE) + len(REASONED) == len(ROWS)
    assert len(NOTES) == len(ROWS), "a concept has one row"
    assert not exists("lapwing.theory.verify.no_such_name") and not exists("lapwing.no_such_module")
    assert exists("lapwing.theory.databases.Universe.rows") and exists("lapwing.theory.databases.Histogram")
    assert missing_checks("statement `no-such-statement`, `theory/test_concepts.py::test_no_such`, `theory/no_such.py`") == [
        "no-such-statement",
        "theory/test_concepts.py::test_no_such",
        "theory/no_such.py::",
    ]
    assert missing_checks("nothing") == ["no check"]


@pytest.mark.parametrize("row", HAVE, ids=lambda row: row[0])
def test_a_concept_has_names_a_page_and_a_check_that_exist(row: tuple[str, ...]) -> None:
    _, notes, names, page, checks = row
    assert notes == "-" or re.fullmatch(r"[1-5][^|]*", notes)
    assert names_in(names), "no name"
    assert [name for name in names_in(names) if not exists(name)] == []
    assert page_of(page).exists()
    assert missing_checks(checks) == []


@pytest.mark.parametrize("row", REASONED, ids=lambda row: row[0])
def test_what_has_no_name_has_a_reason_and_a_page(row: tuple[str, ...]) -> None:
    assert len(row[2]) > 40 and names_in(row[2]) == []
    assert page_of(row[3]).exists()


@pytest.mark.parametrize("number", NOTIONS)
def test_every_notion_of_the_notes_has_a_row(number: int) -> None:
    notions = NOTIONS[number]
    assert len({what for _, what, _ in notions}) > 10
    assert [what for _, what, row in notions if row not in NOTES] == []
    # The row says that it is in these notes.
    assert [(what, NOTES[row]) for _, what, row in notions if not re.search(rf"(?:^|, ){number}\b(?! *\.)", NOTES[row])] == []


def test_every_row_about_the_notes_comes_from_a_notion() -> None:
    rows = {row for notions in NOTIONS.values() for _, _, row in notions}
    assert sorted(concept for concept, notes in NOTES.items() if notes != "-" and concept not in rows) == []


def test_every_module_of_the_theory_has_a_concept() -> None:
    folder = SOURCE / "theory"
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {
        "__init__",
        "__pycache__",
    }
    named = {name.split(".")[2] for name in names_in(PAGE) if name.startswith("lapwing.theory.")}
    assert modules <= named | {"theory"}
    assert modules <= set(lapwing.theory.__all__)


def test_every_exported_name_exists_and_is_on_the_page() -> None:
    exported = lapwing.theory.__all__
    assert len(set(exported)) == len(exported)
    assert [name for name in exported if not hasattr(lapwing.theory, name)] == []
    shown = set(re.findall(r"`(?:lapwing\.theory\.(?:\w+\.)?)?(\w+)`", PAGE))
    assert sorted(set(exported) - shown) == []
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = lapwing.theory.no_such_name


def test_what_is_exported_is_what_the_type_checker_sees() -> None:
    text = (SOURCE / "theory" / "__init__.py").read_text(encoding="utf-8")
    seen = re.findall(r"^    from [\w.]+ import (\w+) as \1$", text, re.MULTILINE)
    assert sorted(seen) == sorted(lapwing.theory.__all__)


def test_importing_the_theory_loads_nothing_heavy() -> None:
    heavy = ("matplotlib", "scipy", "numpy", "opendp", "pandas")
    code = (
        "import sys, lapwing.theory as theory\n"
        "assert not [name for name in sys.modules if name.startswith('lapwing.theory.')]\n"
        "[getattr(theory, name) for name in theory.__all__]\n"
        f"print([name for name in {heavy!r} if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")
