"""``unit = "row"``: what it means, and where the catalogue refuses it because nothing could be promised."""

from __future__ import annotations

import pytest

from lapwing.catalog import RowUnit, Settings, UnitPath, parse
from lapwing.catalog.changes import Verdict, classify
from lapwing.errors import CatalogueError

SURVEY = """
format = 1
[dataset]
id = "survey"
unit = "row"
[budget]
epsilon = 1
[tables.answers]
source = "answers.csv"
unit = "row"
[tables.answers.columns]
age = { type = "integer", min = 0, max = 120 }
town = { type = "text" }
"""
SECOND = """
[tables.calls]
source = "calls.csv"
unit = "{unit}"
[tables.calls.columns]
who = {{ type = "key" }}
minutes = {{ type = "integer", min = 0, max = 60 }}
"""


def problems(text: str) -> list[tuple[str, str]]:
    """Codes and messages of a catalogue that is refused."""
    with pytest.raises(CatalogueError) as caught:
        parse(text)
    error = caught.value
    first_lines = [text.split("\n")[0] for text in (str(error), *getattr(error, "__notes__", []))]
    return [(line[1:].split("]")[0], line.split(": ", 1)[1]) for line in first_lines]


def test_every_row_is_a_unit_of_one_row() -> None:
    declaration = parse(SURVEY)
    table = declaration.table("answers")
    assert table.unit == RowUnit() and table.unit.hops == ()
    assert (table.one_row_per_unit, table.rows_per_unit_max) == (True, 1)
    assert declaration.protects_rows and declaration.protects == "one row, not a person"


def test_words_that_agree_may_stay() -> None:
    for line in ("one_row_per_unit = true", "rows_per_unit_max = 1"):
        assert parse(SURVEY.replace('unit = "row"\n[tables', f'unit = "row"\n{line}\n[tables')).table("answers").rows_per_unit_max == 1
    assert isinstance(parse(SURVEY.replace('csv"\nunit = "row"', 'csv"\nunit = " row "')).table("answers").unit, RowUnit)


def test_several_tables_of_rows() -> None:
    declaration = parse(SURVEY + SECOND.format(unit="row"))
    assert [type(table.unit) for table in declaration.tables] == [RowUnit, RowUnit]


def test_other_spellings_are_columns() -> None:
    for spelling in ("rows", "Row", "ROW", "row_id"):
        found = problems(SURVEY.replace('csv"\nunit = "row"', f'csv"\nunit = "{spelling}"'))
        assert found[0] == ("catalogue-bad-unit", f"there is no column `answers.{spelling}`")


def test_a_column_of_that_name_is_not_taken_for_it() -> None:
    """Whoever has a unit column ``row`` would otherwise protect single rows without knowing."""
    found = problems(SURVEY.replace("town = {", "row = {"))
    assert found == [("catalogue-bad-unit", '`unit = "row"` would protect single rows, and `answers.row` is a column as well')]
    renamed = SURVEY.replace('csv"\nunit = "row"', 'csv"\nunit = "who"').replace("town = { type", 'who = { from = "row", type')
    assert isinstance(parse(renamed).table("answers").unit, UnitPath)


def test_the_word_must_not_promise_more() -> None:
    found = problems(SURVEY.replace('unit = "row"\n[budget]', 'unit = "person"\n[budget]'))
    assert found == [("catalogue-contradiction", 'the tables protect single rows (`unit = "row"`), and `unit` here promises more')]


def test_rows_and_owners_are_not_mixed() -> None:
    (found,) = problems(SURVEY + SECOND.format(unit="who"))
    assert found == ("catalogue-bad-unit", "the units of this table are its rows, and elsewhere they are identified by `calls.who`")


def test_nothing_belongs_to_a_row() -> None:
    keyed = SURVEY.replace("town = {", 'call = { type = "key" }\ntown = {')
    (found,) = problems(keyed + SECOND.format(unit="who -> answers.call"))
    assert found == ("catalogue-bad-unit", 'rows of `answers` are units of their own (`unit = "row"`), and no other row can belong to one')


def test_caps_make_no_sense() -> None:
    found = problems(SURVEY.replace('unit = "row"\n[tables', 'unit = "row"\nrows_per_unit_max = 5\n[tables'))
    assert found == [("catalogue-contradiction", "`unit` says 1, `rows_per_unit_max` says more")]


def test_a_change_to_or_from_rows_needs_the_owners_reason() -> None:
    owned = SURVEY.replace("town = {", 'who = { type = "key" }\ntown = {').replace('csv"\nunit = "row"', 'csv"\nunit = "who"')
    rows = owned.replace('unit = "who"', 'unit = "row"')
    for before, after in ((owned, rows), (rows, owned)):
        changes = classify(parse(before), parse(after))
        assert ("tables.answers.unit", Verdict.NEEDS_OVERRIDE) in [(change.where, change.verdict) for change in changes]
    # what a row is made of belongs to a version: no unit is read from a column
    (change,) = classify(parse(rows), parse(rows.replace("town = {", 'town = { from = "city",')))
    assert (change.where, change.verdict) == ("tables.answers.columns.town.from", Verdict.NEEDS_PREPARE)
    assert classify(parse(rows), parse(rows, settings=Settings())) == ()
