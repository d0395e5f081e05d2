"""The table of concepts names what exists, and everything that the theory exports is named."""

from __future__ import annotations

import pydoc
import re
import subprocess
import sys

import pytest

import lapwing.theory
from tests.meta.tree import DOCS, SOURCE

PAGE = (DOCS / "reference" / "concepts.md").read_text(encoding="utf-8")
ROWS = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in PAGE.splitlines() if re.match(r"\| (?!concept)", line)]
HAVE = [row for row in ROWS if len(row) == 4]
LACK = [row for row in ROWS if len(row) == 3]


def names_in(text: str) -> list[str]:
    """The dotted names of ours in code font."""
    return re.findall(r"`(lapwing(?:\.\w+)+)`", text)


def exists(dotted: str) -> bool:
    return pydoc.locate(dotted) is not None


def test_the_table_is_read() -> None:
    assert len(HAVE) > 60 and len(LACK) >= 3
    assert not exists("lapwing.theory.verify.no_such_name") and not exists("lapwing.no_such_module")
    assert exists("lapwing.theory.databases.Universe.rows") and exists("lapwing.theory.databases.Histogram")


@pytest.mark.parametrize("row", HAVE, ids=lambda row: row[0])
def test_a_concept_has_names_that_exist_and_a_page_that_does(row: tuple[str, ...]) -> None:
    _, notes, names, page = row
    assert notes == "-" or re.fullmatch(r"[1-5][^|]*", notes)
    assert names_in(names), "no name"
    assert [name for name in names_in(names) if not exists(name)] == []
    (target,) = re.findall(r"\{doc\}`([^`]+)`", page)
    where = DOCS / target.lstrip("/") if target.startswith("/") else DOCS / "reference" / target
    assert where.with_suffix(".md").exists()


@pytest.mark.parametrize("row", LACK, ids=lambda row: row[0])
def test_what_is_not_there_is_said_not_to_be(row: tuple[str, ...]) -> None:
    assert row[2].startswith("not there yet")
    assert names_in(row[2]) == []


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
