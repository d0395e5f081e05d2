"""Functions of open text on PostgreSQL: over hostile texts, and over every letter that has another case, as on DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from lapwing.engines.postgres.session import ask
from lapwing.kernel.expressions import Function
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.render.letters import changed
from lapwing.render.postgres import POSTGRES
from tests.support.open_texts import COLUMNS, EXPRESSIONS, expression, texts
from tests.support.postgres_worlds import PostgresWorlds


def test_every_function_gives_what_duckdb_gives(worlds: PostgresWorlds) -> None:
    letters = {letter for function in (Function.LOWER, Function.UPPER) for letter in changed(function)[0]}
    rows = [*texts(2, 700), *sorted(letters)]
    table = pa.table({"n": range(len(rows)), "s": pa.array(rows, pa.string())})
    with duckdb.connect() as bare:
        bare.register("texts", table)
        expected = {text: [value for (value,) in bare.execute(f"SELECT {text} FROM texts ORDER BY n").fetchall()] for text in EXPRESSIONS}
    connection = worlds.connection
    ask(connection, 'CREATE TEMPORARY TABLE open_texts (n INTEGER, s TEXT COLLATE "C")')
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO open_texts VALUES (%s, %s)", list(enumerate(rows)))
    scope = VisibleColumns(COLUMNS, "t", POSTGRES)
    for text in EXPRESSIONS:
        found = ask(connection, f"SELECT {render_expression(expression(text), scope)} FROM open_texts t ORDER BY n")
        assert [value for (value,) in found] == expected[text], text
    ask(connection, "DROP TABLE open_texts")
