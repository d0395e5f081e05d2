"""What stability claims of every relation, on rows: how many there are in all and of each unit, and what their columns hold.

The facts are made as tight as the rows allow: the declared maximum of every table is the number it has. So a claim that is too small by one
shows. Proof: docs/proofs/rows-per-unit.md.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from lapwing.audit.runs import RANKING_KEY
from lapwing.catalog import Settings
from lapwing.contribution import relations as planned_relations
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.errors import Refused
from lapwing.kernel import stability
from lapwing.kernel.domains import BooleanDomain, Domain, IntegerDomain, RealDomain, TextDomain
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import JoinKind, Relation, Scan, Union, UnitJoin, UnitWindow
from lapwing.kernel.workload import parts_of
from lapwing.render import relations
from lapwing.render.duckdb import DUCKDB
from lapwing.sql import bind
from tests.support.clinic_worlds import REFERENCES, UNIT_COLUMNS, Caps, Clinic, declare, strangers, unit_rows
from tests.support.sizes import size
from tests.support.sql_relations import RelationalQueries

WORLDS = 6
STATEMENTS = size("sizes of relations, statements")
GIVEN = (
    "SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id",
    "SELECT COUNT(*) FROM visits v LEFT JOIN prescriptions r ON r.visit_id = v.visit_id",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id JOIN visits c ON c.patient_id = a.patient_id",
    "SELECT COUNT(*) FROM visits a LEFT JOIN visits b ON a.patient_id = b.patient_id AND b.cost > 1000",
    "SELECT COUNT(*) FROM (SELECT patient_id FROM visits UNION ALL SELECT patient_id FROM patients) AS e",
    "SELECT COUNT(*) FROM (SELECT patient_id, day, started, COUNT(*) AS n FROM visits GROUP BY patient_id, day, started) AS e",
    "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, visit_id FROM visits) AS e",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits) AS e WHERE n = 1",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id, clinic_id ORDER BY day) AS n FROM visits) AS e WHERE n = 1",
    "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day) AS n FROM visits) AS e WHERE n BETWEEN 2 AND 3",
    "SELECT COUNT(*) FROM (SELECT RANK() OVER (PARTITION BY patient_id ORDER BY code) AS n FROM visits) AS e WHERE n = 1",
    "SELECT SUM(s) FROM (SELECT SUM(cost) OVER (PARTITION BY patient_id ORDER BY day) AS s FROM visits) AS e",
)


def a_world(rng: random.Random) -> Clinic:
    """A few units; in every other world most of them have no visit, so that a LEFT JOIN has lonely rows."""
    world, lonely = strangers(rng), rng.random() < 0.5
    for unit in range(1, 6):
        made = unit_rows(rng, unit)
        world += Clinic(made.patients) if lonely and unit > 1 else made
    return world


@lru_cache
def worlds() -> list[tuple[DuckDBSnapshot, Facts]]:
    """Prepared worlds, each with facts as tight as its rows allow."""
    rng = random.Random(71)
    found = []
    with TemporaryDirectory() as scratch:
        for number in range(WORLDS):
            declared = declare(a_world(rng), Path(scratch) / f"{number}", neighbours="unbounded", delta="0", seed=number, caps=Caps())
            snapshot = DuckDBSnapshot.in_memory(declared, version=1, ranking_key=RANKING_KEY)
            found.append((snapshot, _tight(snapshot)))
    return found


def _tight(snapshot: DuckDBSnapshot) -> Facts:
    tables = {}
    for name, known in snapshot.facts.tables.items():
        listed = snapshot._connection.execute(f"SELECT COUNT(*) FROM {name} GROUP BY _unit").fetchall()
        counts = [int(count) for (count,) in listed] or [1]
        tables[name] = replace(known, rows_max=max(1, sum(counts)), rows_per_unit_max=max(counts))
    return replace(snapshot.facts, tables=tables)


def sources(facts: Facts, seed: int) -> Iterator[tuple[str, Relation]]:
    """Relations that statements came down to."""
    queries = RelationalQueries(facts, UNIT_COLUMNS, REFERENCES, seed=seed)
    for text in (*GIVEN, *(queries.statement().text for _ in range(STATEMENTS))):
        try:
            statement = bind(text, facts, settings=Settings(), unit_columns=UNIT_COLUMNS, references=REFERENCES)
        except Refused:
            continue
        yield from ((text, private.source) for private in statement.privates)


def check_relation(text: str, relation: Relation, snapshot: DuckDBSnapshot, facts: Facts) -> None:
    """Claims 1, 2 and 3 of the proof on the rows of one world."""
    shape = stability.shape_of(relation, facts)
    found = snapshot._connection.execute(relations.render_relation(relation, facts, DUCKDB)).fetchall()
    per_unit = Counter(row[0] for row in found)
    assert len(found) <= shape.rows_max, f"{len(found)} rows, not {shape.rows_max}: {text}"
    assert max(per_unit.values(), default=0) <= shape.rows_per_unit, (
        f"{max(per_unit.values())} of a unit, not {shape.rows_per_unit}: {text}"
    )
    for part in parts_of(relation):
        steps = snapshot._connection.execute(relations.render_relation(part, facts, DUCKDB)).fetchall()
        most = max(Counter(row[0] for row in steps).values(), default=0)
        assert most <= shape.widest, f"{most} rows of a unit in a step, not {shape.widest}: {text}"
    for number, (name, domain) in enumerate(shape.columns.items()):
        for row in found:
            assert _inside(row[1 + number], domain), f"{name} holds {row[1 + number]!r}, outside {domain}: {text}"


def _inside(value: Any, domain: Domain) -> bool:
    if value is None:
        return domain.nullable
    match domain:
        case BooleanDomain():
            return isinstance(value, bool)
        case IntegerDomain(lo, hi):
            return bool(lo <= value <= hi)
        case RealDomain(lo, hi, steps=steps):
            half = Fraction(1, 2 * steps) if steps is not None else 0
            return bool(lo - half <= Fraction(value) / (steps or 1) <= hi + half)
        case TextDomain(values):
            return values is None or value in values
        case _:
            return True


def check_sizes() -> int:
    """All relations on all worlds; how many."""
    checked = 0
    for number, (snapshot, facts) in enumerate(worlds()):
        for text, relation in sources(facts, 700 + number):
            check_relation(text, relation, snapshot, facts)
            checked += 1
    return checked


def _windows(relation: Relation) -> list[Relation]:
    return [part for part in parts_of(relation) if isinstance(part, UnitWindow)]


def check_limits() -> int:
    """Lowering scans to so many rows of a unit does that, wherever a limit of 1 of every part of a union allows it."""
    checked = 0
    facts = replace(worlds()[0][1], tables={n: replace(t, rows_per_unit_max=k) for (n, t), k in zip(_tables(), (1, 20, 12), strict=True)})
    for text, relation in sources(facts, 800):
        if planned_relations.keeps_rows(relation):
            assert _windows(planned_relations.limited(relation, 1, facts)) == _windows(relation), "below a window nothing is lowered"
            continue
        parts = sum(len(part.sources) for part in parts_of(relation) if isinstance(part, Union))
        for rows in (1, 2, 3, 7, 30, 1_000):
            lowered = planned_relations.limited(relation, rows, facts)
            most = stability.shape_of(lowered, facts).rows_per_unit
            assert most <= max(rows, 1) * max(1, parts), f"{most} rows of a unit, not {rows}: {text}"
            assert _scans(lowered) <= _scans(relation), text
            checked += 1
    return checked


def _tables() -> list[tuple[str, Any]]:
    return [(name, worlds()[0][1].tables[name]) for name in ("patients", "visits", "prescriptions")]


def _scans(relation: Relation) -> int:
    return sum(part.rows_per_unit for part in parts_of(relation) if isinstance(part, Scan))


def test_no_relation_has_more_rows_than_claimed() -> None:
    assert check_sizes() >= 4 * STATEMENTS


def test_lowering_scans_bounds_the_rows_of_a_unit() -> None:
    assert check_limits() >= 3 * STATEMENTS


PATIENTS, VISITS = (Scan("patients", 1), Scan("visits", 3))
# Visits of each patient, the kind of join, its sides, and which side of the minimum is the smaller one.
ATTAINED = [
    ((3, 3), JoinKind.INNER, (PATIENTS, VISITS), "both"),
    ((3, 0, 0, 0, 0), JoinKind.INNER, (VISITS, PATIENTS), "left"),
    ((3, 3), JoinKind.INNER, (VISITS, VISITS), "both"),
    ((3, 0, 0, 0, 0), JoinKind.INNER, (PATIENTS, VISITS), "right"),
    ((3, 0, 0, 0, 0), JoinKind.LEFT, (VISITS, PATIENTS), "left"),
    ((1, 0, 0, 0, 0), JoinKind.LEFT, (PATIENTS, VISITS), "left"),
]


@pytest.mark.parametrize(("visits", "kind", "sides", "smaller"), ATTAINED)
def test_the_bound_on_the_rows_of_a_join_is_attained(
    tmp_path: Path, visits: tuple[int, ...], kind: JoinKind, sides: tuple[Scan, Scan], smaller: str
) -> None:
    """Either side of an inner join's minimum is the exact number of rows somewhere, and so is the left side of a left join's."""
    world = Clinic()
    for unit, count in enumerate(visits, start=1):
        listed = tuple({"visit_id": 10 * unit + i, "patient_id": unit, **_plain_visit(i)} for i in range(count))
        world += Clinic(({**_plain_patient(), "patient_id": unit},), listed)
    snapshot = DuckDBSnapshot.in_memory(
        declare(world, tmp_path, neighbours="unbounded", delta="0", seed=0, caps=Caps(visits=3)), version=1, ranking_key=RANKING_KEY
    )
    facts = _tight(snapshot)
    left, right = (replace(side, rows_per_unit=min(side.rows_per_unit, facts.table(side.table).rows_per_unit_max)) for side in sides)
    join = UnitJoin(left, right, (), (), kind)
    sql = f"SELECT COUNT(*) FROM ({relations.render_relation(join, facts, DUCKDB)})"
    ((found,),) = snapshot._connection.execute(sql).fetchall()
    n, m = facts.table(left.table).rows_max, facts.table(right.table).rows_max
    from_left = n * right.rows_per_unit
    from_right = m * left.rows_per_unit + (n if kind is JoinKind.LEFT else 0)
    assert found == stability.shape_of(join, facts).rows_max == min(from_left, from_right)
    assert smaller == ("both" if from_left == from_right else "left" if from_left < from_right else "right")
    snapshot.close()


def _plain_patient() -> dict[str, object]:
    return {"birth_year": 1970, "sex": "f", "region": None, "smoker": None, "vaccinated": True, "income": None}


def _plain_visit(number: int) -> dict[str, object]:
    day = datetime.date(2024, 1, 1 + number)
    return {"day": day, "started": None, "clinic_id": 1, "code": None, "cost": None, "minutes": number}
