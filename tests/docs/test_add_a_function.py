"""The guide to adding a function names places that exist, and says of them what is so."""

from __future__ import annotations

import re

from lapwing.kernel.expressions import Function
from lapwing.kernel.functions import RULES
from lapwing.render.duckdb import DUCKDB
from lapwing.sql.scalars import calendar_functions, handlers, list_functions, text_patterns
from lapwing.sql.scalars import date_functions as date_entries
from lapwing.sql.scalars import number_functions as numbers
from lapwing.sql.scalars import text_functions as texts
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "how-to" / "add-a-function.md").read_text(encoding="utf-8")


def test_the_places_it_names_exist() -> None:
    named = re.findall(r"`((?:src|tests|docs)/[\w/.-]+)`", PAGE)
    assert len(named) >= 12
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_the_tables_it_names_are_all_there_is() -> None:
    tables = (numbers, date_entries, calendar_functions, list_functions, texts, text_patterns)
    assert tuple(entry for table in tables for entry in table.NAMED) == handlers.NAMED
    assert set(handlers.BY_NAME) == {name for entry in handlers.NAMED for name in entry.meaning.names}


def test_what_it_calls_an_entry_is_no_primitive() -> None:
    """And the other way round: what the page calls a primitive has a rule and is emitted by the dialect."""
    entries = ("TAN", "LAST_DAY", "DATE_DIFF", "WIDTH_BUCKET", "POWER")
    assert [name for name in entries if f"`{name}`" not in PAGE or name not in handlers.BY_NAME] == []
    assert not {name.lower() for name in entries} & {function.value for function in Function}
    assert Function.SIN in RULES and Function.SIN in DUCKDB.functions


def test_the_example_leaves_nothing_behind() -> None:
    assert "SIGMOID" not in handlers.BY_NAME
