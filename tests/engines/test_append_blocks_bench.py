"""The benchmark of appended blocks in small: every part measures something. Real figures: benchmarks/README.md."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from benchmarks.append_blocks import PLACES, measure

from lapwing.catalog import Settings
from tests.ledger.cluster import server_programs

ENGINES = ["duckdb", pytest.param("postgres", marks=pytest.mark.skipif(server_programs() is None, reason="PostgreSQL is not installed"))]


@pytest.mark.parametrize("name", ENGINES)
def test_every_figure_is_measured(name: str) -> None:
    # Not where pytest keeps its own: the server runs as another user, and its files are in here.
    with (
        tempfile.TemporaryDirectory(prefix=f"lapwing-blocks-{name}-") as directory,
        PLACES[name](Path(directory), rows=500, settings=Settings()) as place,
    ):
        rows = measure(place, blocks=3, appends=2, at_once=True)
        assert place.engine.prepared_blocks(1) == place.engine.prepared_blocks(2) is not None
    assert [row[0] for row in rows] == [name] * 9
    assert all(float(row[2]) > 0 for row in rows)
