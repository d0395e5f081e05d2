"""The benchmark of engines in small: both sides mean the same, and every part measures something. Real figures: benchmarks/README.md.

Spark is left out here: the benchmark starts a Spark of its own, and the one of the suite lives in this process.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from benchmarks.engines import PARTS, Run
from benchmarks.engines_data import TIERS, Appended, World, write_world
from benchmarks.engines_norms import STATEMENTS
from benchmarks.engines_places import PLACES, Place
from benchmarks.engines_questions import FOUR, PLANS
from benchmarks.visits import AMOUNT_MAX, REGIONS

from lapwing.catalog import Settings
from lapwing.kernel.certify import certify
from tests.ledger.cluster import server_programs

ROWS = 20_000
ENGINES = ["duckdb", pytest.param("postgres", marks=pytest.mark.skipif(server_programs() is None, reason="PostgreSQL is not installed"))]


@pytest.fixture(scope="module", params=ENGINES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    # Not where pytest keeps its own: the server runs as another user, and its files are in here.
    with tempfile.TemporaryDirectory(prefix=f"lapwing-bench-{request.param}-") as directory:
        world = World(Path(directory))
        write_world(world, rows=ROWS)
        with PLACES[request.param](world, rows=ROWS, settings=Settings()) as made:
            made.prepare(1)
            yield made


def _cents() -> str:
    return f"SUM(CAST(round(CAST(least(amount, {AMOUNT_MAX}) * 100 AS numeric)) AS bigint))"


def _bare(place: Place, sql: str) -> dict[str, tuple[int, ...]]:
    found: Any = place.bare(sql.replace("SUM(amount)", _cents()).replace("SUM(v.amount)", _cents()))
    rows = found if isinstance(found, list) else list(zip(*(column.to_pylist() for column in found.columns), strict=True))
    return {row[0]: tuple(int(value) for value in row[1:]) for row in rows}


@pytest.mark.parametrize("number", [0, 1, 3], ids=lambda number: FOUR[number].name)
def test_where_no_bound_binds_plan_and_bare_sql_count_the_same(place: Place, number: int) -> None:
    asked = FOUR[number]
    with place.opened(1) as snapshot:
        (table,) = snapshot.run(certify(asked.plan(), snapshot.facts))._tables
    ours = {str(group[0]): tuple(int(vector[i]) for vector in table._vectors) for i, group in enumerate(table._groups)}
    bare = _bare(place, asked.bare)
    assert set(ours) == set(bare) and set(ours) <= {*REGIONS, *TIERS}
    # counts exactly; a sum of doubles that were rounded to cents by the engine may differ by a cent for a value between two
    assert {key: values[0] for key, values in ours.items()} == {key: values[0] for key, values in bare.items()}
    for key, values in ours.items():
        assert all(abs(a - b) <= ROWS for a, b in zip(values[1:], bare[key][1:], strict=True))


def test_every_part_but_the_millions_measures_something(place: Place, tmp_path: Path) -> None:
    figures = tmp_path / "figures.jsonl"
    run = Run(place, repetitions=1, json_path=figures)
    for part in PARTS:
        if part not in ("prepare", "groups", "plans"):
            getattr(run, part)()
    lines = [json.loads(line) for line in figures.read_text(encoding="utf-8").splitlines()]
    found = {line["what"]: line for line in lines}
    assert {f"ratio: {asked.name}" for asked in FOUR} <= set(found)
    assert {f"{what}: {name}" for what in ("ratio", "norms") for name in STATEMENTS} <= set(found)
    assert {f"appended {how.value}" for how in Appended} <= set(found)
    assert all(line["rows"] == ROWS and line["wall_seconds"] > 0 for line in lines)
    assert found["virtual: ranked scan"]["ratio"] > 1


def test_every_kind_of_plan_is_certified_and_runs(place: Place) -> None:
    with closing(place.engine("stored")) as engine:
        newest = max(engine.versions())
    with place.opened(newest) as snapshot:
        for asked in PLANS:
            (table,) = snapshot.run(certify(asked.plan(), snapshot.facts))._tables
            assert table._groups or table._quantiles


def test_reading_in_place_goes_to_disk_where_memory_ends(tmp_path: Path) -> None:
    world = World(tmp_path)
    write_world(world, rows=100_000)
    settings = Settings(memory_limit_bytes=60_000_000)
    with PLACES["duckdb"](world, rows=100_000, settings=settings) as place:
        place.prepare(1, preparation="virtual")
        with place.opened(1, preparation="virtual") as snapshot:
            (table,) = snapshot.run(certify(FOUR[0].plan(), snapshot.facts))._tables
    assert sum(table._vectors[0]) == 100_000
