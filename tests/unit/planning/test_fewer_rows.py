"""Joins that only tell units or values apart become conditions; the exact answer is the same, on the real engine."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.audit.runs import RANKING_KEY
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.errors import Refused
from lapwing.kernel.certify import Certified
from lapwing.kernel.expressions import Value
from lapwing.kernel.ir import UnitJoin
from lapwing.kernel.workload import parts_of
from lapwing.planning import drafts
from lapwing.statements import PrivateQuery
from tests.support.clinic_worlds import REFERENCES, UNIT_COLUMNS, Caps, Clinic, declare, strangers, unit_rows
from tests.support.sizes import size
from tests.support.sql_relations import RelationalQueries
from tests.support.sql_shapes import SqlShape

OF_VISITS = "patients p JOIN visits v ON v.patient_id = p.patient_id"
OF_PRESCRIPTIONS = "visits v JOIN prescriptions r ON r.visit_id = v.visit_id"
TWICE = "visits a JOIN visits b ON a.patient_id = b.patient_id"
JOINS = (
    f"SELECT COUNT(DISTINCT p.patient_id) FROM {OF_VISITS}",
    "SELECT COUNT(DISTINCT p.patient_id) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND v.cost > 100",
    f"SELECT region, COUNT(DISTINCT p.patient_id) FROM {OF_VISITS} GROUP BY region",
    f"SELECT v.clinic_id, COUNT(DISTINCT p.patient_id) FROM {OF_VISITS} GROUP BY v.clinic_id",
    f"SELECT v.clinic_id, COUNT(DISTINCT v.patient_id) FROM {OF_PRESCRIPTIONS} GROUP BY v.clinic_id",
    f"SELECT COUNT(DISTINCT a.patient_id) FROM {TWICE} AND a.day = b.day",
    f"SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM {TWICE} WHERE a.patient_id = p.patient_id)",
    f"SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM {OF_PRESCRIPTIONS} WHERE v.patient_id = p.patient_id)",
    f"SELECT AVG(m) FROM (SELECT v.patient_id, MAX(v.minutes) AS m FROM {OF_PRESCRIPTIONS} GROUP BY v.patient_id) AS u",
)
UNION = "SELECT COUNT(DISTINCT e.patient_id) FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM visits) AS e"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> DuckDBSnapshot:
    rng = random.Random(5)
    rows: Clinic = strangers(rng)
    for unit in range(1, 25):
        rows += unit_rows(rng, unit)
    folder: Path = tmp_path_factory.mktemp("fewer")
    declared = declare(rows, folder, neighbours="unbounded", delta='"2^-30"', seed=0, caps=Caps(visits=40, prescriptions=40))
    return DuckDBSnapshot.in_memory(declared, version=1, ranking_key=RANKING_KEY)


def planned(text: str, snapshot: DuckDBSnapshot) -> Certified | None:
    return SqlShape(text, Fraction(10**6), None, UNIT_COLUMNS, REFERENCES).planned(snapshot.facts).measured


def exact(certified: Certified, snapshot: DuckDBSnapshot) -> list[list[tuple[tuple[Value, ...], tuple[int, ...]]]]:
    tables = snapshot.run(certified)._tables
    found = [list(zip(table._groups, zip(*table._vectors, strict=True), strict=True)) for table in tables]
    return [sorted(table, key=repr) for table in found]


def as_written(query: PrivateQuery, facts: object) -> PrivateQuery:
    return query


def joins_in(certified: Certified) -> int:
    return sum(isinstance(part, UnitJoin) for query in certified.plan.queries for part in parts_of(query.source))


@pytest.mark.parametrize("text", [*JOINS, UNION])
def test_the_answer_is_the_same_with_fewer_rows(text: str, world: DuckDBSnapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    short = planned(text, world)
    monkeypatch.setattr(drafts, "without_repeats", as_written)
    whole = planned(text, world)
    assert short is not None and whole is not None
    assert exact(short, world) == exact(whole, world)
    assert joins_in(short) == 0
    assert max(query.shape.widest for query in short.queries) <= max(query.shape.widest for query in whole.queries)


@pytest.mark.slow
def test_generated_statements_have_the_same_answer(world: DuckDBSnapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, checked = RelationalQueries(world.facts, UNIT_COLUMNS, REFERENCES, seed=31), 0
    statements = size("generated statements with fewer rows")
    for _ in range(statements):
        text = queries.statement().text
        try:
            short = planned(text, world)
            with monkeypatch.context() as patched:
                patched.setattr(drafts, "without_repeats", as_written)
                whole = planned(text, world)
        except Refused:
            continue
        if short is not None and whole is not None and short.plan != whole.plan:
            assert exact(short, world) == exact(whole, world), text
            checked += 1
    assert checked >= statements // 15
