"""Identifiers of PostgreSQL's own types: kept apart by their bytes and digits, whatever the column's type or collation calls equal."""

from __future__ import annotations

import pytest

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import parse
from lapwing.engines.postgres import PostgresSnapshot
from lapwing.engines.postgres.prepare import prepare_version
from lapwing.engines.postgres.session import ask
from lapwing.errors import PreparationError
from tests.support.postgres_worlds import PostgresWorlds

CATALOGUE = """
format = 1
[dataset]
id = "ids"
engine = "postgres"
connection = "{connection}"
unit = "person"
[budget]
epsilon = 1
statistics_share = 0
[tables.t]
source = "{schema}.t"
unit = "id"
[tables.t.columns]
id = {{ type = "key"{of} }}
x = {{ type = "integer", min = 0, max = 100 }}
"""


def units(worlds: PostgresWorlds, kind: str, values: list[str], *, of: str = ', of = "text"') -> list[object]:
    """The unit of each row, in the order of the values; None for a row that has none."""
    schema, version = worlds._new_schema(), worlds._new_schema()
    ask(worlds.connection, f"CREATE SCHEMA {schema}")
    ask(worlds.connection, f"CREATE TABLE {schema}.t (id {kind.format(schema=schema)}, x bigint)")
    for number, value in enumerate(values):
        ask(worlds.connection, f"INSERT INTO {schema}.t VALUES (CAST(CAST($1 AS text) AS {kind.split(' ')[0]}), {number})", [value])
    text = CATALOGUE.format(connection=worlds.conninfo, schema=schema, of=of)
    declaration = parse(text, settings=worlds.settings)
    reader = str(ask(worlds.connection, "SELECT current_user")[0][0])
    prepare_version(
        worlds.connection, declaration, text, schema=version, version=1, ranking_key=RANKING_KEY, reader=reader, settings=worlds.settings
    )
    PostgresSnapshot(worlds.conninfo, version, ranking_key=RANKING_KEY, settings=worlds.settings).close()
    found = dict(ask(worlds.connection, f"SELECT x, _unit FROM {version}.t"))
    return [found.get(number) for number in range(len(values))]


@pytest.fixture
def loose(worlds: PostgresWorlds) -> str:
    """A collation for which letters of either case, with or without accents, are equal."""
    ask(
        worlds.connection, "CREATE COLLATION IF NOT EXISTS public.loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    )
    return "text COLLATE public.loose"


def test_a_collation_makes_nobody_another(worlds: PostgresWorlds, loose: str) -> None:
    assert ask(worlds.connection, "SELECT CAST('Ann' AS text) COLLATE public.loose = 'ánn'")[0][0] is True
    names = ["ann", "Ann", "ánn", "a\u0301nn", "ann "]
    assert units(worlds, loose, names) == names


def test_citext_is_text(worlds: PostgresWorlds) -> None:
    ask(worlds.connection, "CREATE EXTENSION IF NOT EXISTS citext SCHEMA public")
    assert units(worlds, "public.citext", ["ann", "Ann", "ANN"]) == ["ann", "Ann", "ANN"]


def test_the_padding_of_char_is_no_part_of_a_value(worlds: PostgresWorlds) -> None:
    assert units(worlds, "char(5)", ["a", " a", "a ", "ab"]) == ["a", " a", "a", "ab"]


def test_numeric_is_read_digit_by_digit(worlds: PostgresWorlds) -> None:
    values = ["1", "1.0", "1.00000000000000000000000000000000000001", "9007199254740993", "9223372036854775807.000", "9223372036854775808"]
    expected = [1, 1, None, 9007199254740993, 9223372036854775807, None]
    assert units(worlds, "numeric", [*values, "NaN", "Infinity", "-0.0"], of="") == [*expected, None, None, 0]


def test_what_has_no_text_of_its_own_is_refused(worlds: PostgresWorlds) -> None:
    for kind, value in (("bytea", "a"), ("timestamptz", "2024-01-01"), ("numeric", "1"), ("interval", "1 day"), ("inet", "::1")):
        with pytest.raises(PreparationError) as caught:
            units(worlds, kind, [value])
        assert caught.value.code == "source-type", kind
