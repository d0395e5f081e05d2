"""A table may have as many columns as the settings allow, and how the bytes of a row are put together changes none of them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet

import lapwing as lw
from lapwing.catalog import Settings
from lapwing.engines.prepare import row_bytes
from lapwing.kernel.domains import Domain, IntegerDomain, TextDomain
from lapwing.render.duckdb import DUCKDB


def test_the_bytes_of_a_row_do_not_depend_on_brackets() -> None:
    """300 columns: few enough for one plain chain of || as well."""
    names = [f"c{i}" for i in range(300)]
    domains: dict[str, Domain] = {name: TextDomain(None) if i % 3 else IntegerDomain(0, 999, True) for i, name in enumerate(names)}
    values = {name: [None, f"té:{i},"] if i % 3 else [i, None] for i, name in enumerate(names)}
    connection = duckdb.connect()
    connection.register("t", pa.table(values))
    one_by_one = [row_bytes({name: domain}, "c", DUCKDB) for name, domain in domains.items()]
    chain = " || ',' || ".join(one_by_one)
    whole = row_bytes(domains, "c", DUCKDB)
    assert whole != chain
    rows = connection.execute(f"SELECT {chain}, {whole} FROM t c").fetchall()
    assert len(rows) == 2 and all(a == b and len(a) > 600 for a, b in rows)


def test_a_table_with_as_many_columns_as_allowed_is_prepared(tmp_path: Path) -> None:
    most = Settings().columns_per_table_max
    names = [f"c{i}" for i in range(most - 1)]
    source = tmp_path / "wide.parquet"
    parquet.write_table(pa.table({"unit": [1, 2, 3], **{name: [1, 0, 1] for name in names}}), source)
    columns = {name: {"type": "integer", "min": 0, "max": 1, "null": False} for name in names}
    with lw.open(source, unit="unit", columns=columns, epsilon=1000, delta=0, home=tmp_path / "home") as wide:
        answer = wide.ask(f"SELECT SUM({names[-1]}) AS s FROM wide", epsilon=900)
        assert answer.table.to_pylist() == [{"s": 2}]
