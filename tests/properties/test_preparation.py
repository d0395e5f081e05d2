"""The preparation lemma, on the real engine: prepare(D without u) = prepare(D) minus the rows of u, row for row, ranks included."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lapwing.audit.runs import prepare_in_duckdb
from lapwing.audit.worlds import World, declare, random_world, without
from lapwing.engines import prepare
from lapwing.engines.duckdb import DuckDBSnapshot

TABLES = ("people", "visits", "drugs")


def _rows(world: World, directory: Path, seed: int) -> dict[str, list[tuple[object, ...]]]:
    snapshot = prepare_in_duckdb(declare(world, directory, neighbours="unbounded", delta="0", seed=seed))
    assert isinstance(snapshot, DuckDBSnapshot)
    rows = {table: snapshot._connection.execute(f'SELECT * FROM "{table}"').fetchall() for table in TABLES}
    snapshot.close()
    return rows


def _multiset(rows: list[tuple[object, ...]]) -> list[str]:
    return sorted(repr(row) for row in rows)


def _lemma_holds(tmp_path: Path, worlds: int, seed: int) -> int:
    rng, checked = random.Random(seed), 0
    for number in range(worlds):
        world = random_world(rng, units=4)
        whole = _rows(world, tmp_path / f"{number}", 0)
        for unit in world.units():
            rest = _rows(without(world, unit, rng), tmp_path / f"{number}-{unit}", unit)
            for table in TABLES:
                expected = [row for row in whole[table] if row[0] != unit]
                assert _multiset(rest[table]) == _multiset(expected), f"table {table}"
                checked += 1
    return checked


def test_the_preparation_lemma(tmp_path: Path) -> None:
    assert _lemma_holds(tmp_path, worlds=12, seed=8) >= 100


@pytest.mark.parametrize(
    ("name", "mutated"),
    [
        ("rank_of", lambda window: f"ROW_NUMBER() OVER ({window})"),
        ("ranking_text", lambda columns, dialect: "CAST(COUNT(*) OVER () AS VARCHAR) || CAST(c._unit AS VARCHAR) || random()"),
        ("rows_of_unit", lambda cap: "COUNT(*) OVER ()"),
    ],
)
def test_the_lemma_fails_when_rows_of_other_units_matter(
    tmp_path: Path, name: str, mutated: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, name, mutated)
    with pytest.raises(AssertionError, match="table"):
        _lemma_holds(tmp_path, worlds=6, seed=8)


def test_prepared_rows_keep_what_the_facts_promise(tmp_path: Path) -> None:
    rng = random.Random(2)
    for number in range(5):
        rows = _rows(random_world(rng), tmp_path / f"{number}", 0)
        for table, cap in (("people", 1), ("visits", 12), ("drugs", 20)):
            per_unit: dict[object, list[int]] = {}
            for row in rows[table]:
                assert row[0] is not None
                assert isinstance(row[1], int)
                per_unit.setdefault(row[0], []).append(row[1])
                assert 1 <= row[1] <= cap
            for ranks in per_unit.values():
                assert sorted(ranks) == list(range(1, len(ranks) + 1)), "ranks are 1..n without ties"
        for row in rows["visits"]:
            clinic, cost, change = row[5], row[7], row[8]
            assert clinic is None or 0 <= clinic <= 3  # type: ignore[operator]
            assert cost is None or 0 <= cost <= 50_000  # type: ignore[operator]
            assert change is None or -200 <= change <= 200  # type: ignore[operator]
