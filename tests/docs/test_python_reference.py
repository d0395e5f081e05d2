"""The page on the Python interface names everything there is, with the parameters it has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import lapwing
from lapwing.answers.answer import CostView
from lapwing.answers.display.budget import BudgetView
from lapwing.demo import write_demo
from lapwing.errors import LapwingError
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
CLASSES: tuple[type, ...] = (
    lapwing.DataSet,
    lapwing.RemoteDataSet,
    lapwing.AsyncDataSet,
    lapwing.Answer,
    CostView,
    lapwing.Explanation,
    BudgetView,
    lapwing.ReleasePlan,
    lapwing.Release,
    lapwing.WeightsSession,
    lapwing.WeighedCount,
)
# What a class sets in __init__ is no attribute of the class; these are found on an instance of it.
INSTANCE_MEMBERS = {
    lapwing.DataSet: inspect.signature(lapwing.DataSet.__init__).parameters,
    lapwing.RemoteDataSet: {"name"},
    lapwing.AsyncDataSet: {"name"},
    lapwing.Answer: inspect.signature(lapwing.Answer.__init__).parameters,
    lapwing.Release: {"terms"},
    lapwing.WeightsSession: {"planned"},
}


def _section(name: str) -> str:
    """The page below the heading of a class, up to the next one."""
    found = re.search(rf"^##+ `{name}`\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found, f"no section on {name}"
    return found.group(1)


def _rows(section: str, heading: str = "") -> dict[str, str]:
    """Names in the first column of the tables (of the one with this heading), without arguments, to the whole piece in code font."""
    tables = [block for block in re.split(r"\n\n+", section) if block.lstrip().startswith(f"| {heading}")]
    rows = [line for table in tables for line in table.splitlines() if line.startswith("| `")]
    pieces = [piece for line in rows for piece in re.findall(r"`([^`]+)`", line.split(" | ")[0])]
    return {re.split(r"\W", piece.removeprefix("lapwing."))[0]: piece for piece in pieces}


def _public(of: type) -> set[str]:
    members = {name for name in dir(of) if not name.startswith("_")}
    return members | (set(INSTANCE_MEMBERS.get(of, ())) - {"self"})


def test_every_exported_name_has_its_place() -> None:
    assert {name for name in lapwing.__all__ if f"`lapwing.{name}`" not in TEXT} == set()


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.__name__)
def test_every_member_is_on_the_page_and_nothing_else(of: type) -> None:
    assert set(_rows(_section(of.__name__), "member")) == _public(of)


@pytest.mark.parametrize("of", CLASSES, ids=lambda of: of.__name__)
def test_every_parameter_is_on_the_page(of: type) -> None:
    shown = _rows(_section(of.__name__), "member")
    for name in _public(of):
        method = getattr(of, name, None)
        if inspect.isfunction(method) or inspect.ismethod(method):
            wanted = [parameter for parameter in inspect.signature(method).parameters if parameter not in ("self", "cls")]
            written = re.findall(r"\w+", shown[name].partition(" ->")[0])[1:]
            assert [parameter for parameter in wanted if parameter not in written] == [], name


def test_opening_has_the_parameters_it_shows() -> None:
    shown = _section("lapwing.open")
    signature = re.search(r"`open\((.*?)\) -> DataSet`", shown)
    assert signature
    parameters = inspect.signature(lapwing.open).parameters
    written = [part.partition("=") for part in signature.group(1).split(", ") if part != "*"]
    assert [name for name, _, _ in written] == list(parameters)
    for name, _, default in written[1:]:
        assert default.replace('"', "'") == repr(parameters[name].default)
    assert set(parameters) <= set(_rows(shown))


def test_errors_have_the_members_shown() -> None:
    section = TEXT.partition("## Errors")[2]
    error = LapwingError("a-code", "a message")
    assert set(_rows(section, "member")) == {name for name in dir(error) if not name.startswith("_")} - {
        "add_note",
        "args",
        "with_traceback",
    }


@pytest.mark.parametrize("of", [lapwing.Explanation, BudgetView], ids=lambda of: of.__name__)
def test_dictionaries_have_the_keys_shown(of: type, tmp_path: Path) -> None:
    write_demo(tmp_path / "clinic", patients=50)
    with lapwing.open(tmp_path / "clinic", home=tmp_path / "home") as clinic:
        clinic.prepare()
        made = clinic.budget if of is BudgetView else clinic.explain("SELECT COUNT(*) AS n FROM patients")
        assert set(_rows(_section(of.__name__), "key")) == set(made.to_dict())
