"""Functions of open text on Spark: over hostile texts, and over every letter that has another case, as on DuckDB."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from lapwing.kernel.expressions import Function
from lapwing.render.expressions import VisibleColumns, render_expression
from lapwing.render.letters import changed
from lapwing.render.spark import SPARK
from tests.support.open_texts import COLUMNS, EXPRESSIONS, expression, texts
from tests.support.spark_worlds import spark_session


def test_every_function_gives_what_duckdb_gives() -> None:
    letters = {letter for function in (Function.LOWER, Function.UPPER) for letter in changed(function)[0]}
    rows = [*texts(2, 700), *sorted(letters)]
    table = pa.table({"n": range(len(rows)), "s": pa.array(rows, pa.string())})
    with duckdb.connect() as bare:
        bare.register("texts", table)
        listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(EXPRESSIONS))
        expected = bare.execute(f"SELECT {listed} FROM texts ORDER BY n").fetchall()
    session, scope = spark_session(), VisibleColumns(COLUMNS, "t", SPARK)
    session.createDataFrame(list(enumerate(rows)), "n INT, s STRING").createOrReplaceTempView("open_texts")
    rendered = [render_expression(expression(text), scope) for text in EXPRESSIONS]
    found = session.sql(f"SELECT {', '.join(rendered)} FROM open_texts t ORDER BY n").collect()
    for i, text in enumerate(EXPRESSIONS):
        assert [row[i] for row in found] == [row[i] for row in expected], text
