"""A table of which a part lies elsewhere is no source: a file or server behind it could fail, or change, with one row."""

from __future__ import annotations

import pytest

from lapwing.engines.postgres.session import ask
from lapwing.engines.postgres.sources import source_kinds
from lapwing.errors import PreparationError
from tests.support.postgres_worlds import PostgresWorlds


def test_a_foreign_partition_is_refused(worlds: PostgresWorlds) -> None:
    schema = worlds._new_schema()
    for statement in (
        f"CREATE SCHEMA {schema}",
        f"CREATE TABLE {schema}.t (id bigint, day date) PARTITION BY RANGE (day)",
        f"CREATE TABLE {schema}.y24 PARTITION OF {schema}.t FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY RANGE (day)",
    ):
        ask(worlds.connection, statement)
    assert list(source_kinds(worlds.connection, f"{schema}.t")) == ["id", "day"]
    for statement in (
        f"CREATE FOREIGN DATA WRAPPER {schema}_w",
        f"CREATE SERVER {schema}_s FOREIGN DATA WRAPPER {schema}_w",
        f"CREATE FOREIGN TABLE {schema}.h1 PARTITION OF {schema}.y24 FOR VALUES FROM ('2024-01-01') TO ('2024-07-01') SERVER {schema}_s",
    ):
        ask(worlds.connection, statement)
    with pytest.raises(PreparationError) as caught:
        source_kinds(worlds.connection, f"{schema}.t")
    assert caught.value.code == "source-not-a-table"
    ask(worlds.connection, f"DROP FOREIGN DATA WRAPPER {schema}_w CASCADE")
