"""Nobody learns whether one person is in the data by making that person's rows too much for the engine.

A statement that turns one person's rows into very many is either refused, whoever is in the data, or answered, whoever is.
"""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import lapwing as lw
from lapwing.asking.ask import plan_of
from lapwing.audit.runs import RANKING_KEY
from lapwing.curator.cost_estimate import estimate_cost
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.errors import Refused
from lapwing.interfaces.http.release_schedule import expected_seconds
from lapwing.kernel.certify import Certified
from lapwing.kernel.workload import unit_work
from tests.attacks.bombs import LONGEST, ROWS, UNIT_COLUMNS, Bombs, declare
from tests.support.sql_shapes import MANY_ROWS, SqlShape

STATEMENTS = 250
RUN = 8
"""How many of the worst statements are run on both worlds."""

PERSON = "SELECT id FROM people WHERE zip = 54321"


def copied(name: str, source: str, times: int) -> str:
    return f"{name} AS ({' UNION ALL '.join([f'SELECT id FROM {source}'] * times)})"


def bomb(select: str, *, copies: tuple[int, ...], joins: int) -> str:
    """One person, copied and joined with itself."""
    named = [f"c0 AS ({PERSON})", *(copied(f"c{i + 1}", f"c{i}", times) for i, times in enumerate(copies))]
    last = f"c{len(copies)}"
    joined = " ".join(f"JOIN {last} t{i} ON a.id = t{i}.id" for i in range(joins))
    return f"WITH {', '.join(named)} SELECT {select} AS n FROM {last} a {joined}"


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    found = []
    for name, target in (("w0", False), ("w1", True)):
        folder = tmp_path_factory.mktemp("bombs") / name
        declare(folder, target=target)
        with lw.open(folder, home=folder / "home") as data_set:
            data_set.prepare()
        found.append(folder)
    return found[0], found[1]


def outcome(folder: Path, statement: str) -> tuple[str, bool, int]:
    """What an analyst sees of one statement: refusal or answer, whether the data set closed, and what it cost."""
    with lw.open(folder, home=folder / "home") as data_set:
        before = data_set.curator.balance()
        try:
            data_set.ask(statement, epsilon="0.000001")
            seen = "answered"
        except Refused as error:
            seen = str(error)
        after = data_set.curator.balance()
        return seen, after.closed, after.spent.loss - before.spent.loss


@pytest.mark.parametrize(
    "statement",
    [
        bomb("COUNT(DISTINCT a.id)", copies=(8, 7), joins=6),
        bomb("COUNT(*)", copies=(8,), joins=6),
        bomb("COUNT(*)", copies=(4, 4), joins=8),
        f"SELECT COUNT(*) AS n FROM people p WHERE EXISTS ({bomb('1', copies=(8,), joins=6).replace(' AS n', '')} WHERE a.id = p.id)",
        bomb("COUNT(*)", copies=(2,) * 40, joins=0),
    ],
)
def test_a_bomb_is_refused_whoever_is_there_and_costs_nothing(worlds: tuple[Path, Path], statement: str) -> None:
    w0, w1 = (outcome(folder, statement) for folder in worlds)
    assert w0 == w1
    assert w0[0] != "answered" and w0[1:] == (False, 0)


@pytest.mark.parametrize(
    "statement",
    [
        bomb("COUNT(DISTINCT a.id)", copies=(8,), joins=8),
        "SELECT COUNT(DISTINCT a.id) AS n FROM events a " + " ".join(f"JOIN events t{i} ON a.id = t{i}.id" for i in range(8)),
        "SELECT COUNT(*) AS n FROM people p WHERE EXISTS (SELECT 1 FROM events a JOIN events b ON a.id = b.id WHERE a.id = p.id)",
    ],
)
def test_a_join_that_only_counts_units_is_answered_and_makes_no_row_twice(worlds: tuple[Path, Path], statement: str) -> None:
    assert [outcome(folder, statement)[:2] for folder in worlds] == [("answered", False)] * 2
    with lw.open(worlds[0], home=worlds[0] / "home") as data_set:
        (query,) = plan_of(data_set.curator, statement, 1)[1].certified.queries
        assert query.shape.widest <= ROWS


SQRT_14 = "SQRT(" * 14 + "a.amount" + ")" * 14
WITHIN = "(SELECT id, amount, mark FROM events WHERE mark = 9) a JOIN (SELECT id FROM events WHERE mark = 9) t ON a.id = t.id"


def cases(deep: int, wide: int) -> str:
    """A CASE of so many branches in the place of the value of another, and so on."""
    value = "mark"
    for _ in range(deep):
        value = f"CASE {value} {' '.join(f'WHEN {i} THEN {i + 1}' for i in range(wide))} ELSE 0 END"
    return value


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT SUM({SQRT_14}) AS n FROM {WITHIN}",
        f"SELECT {', '.join(f'SUM({SQRT_14} + {i})' for i in range(8))} FROM events a",
        f"SELECT SUM({cases(4, 12)}) AS n FROM events",
        f"WITH l AS (SELECT id, {cases(1, 200)} AS x FROM events), u AS ({' UNION ALL '.join(['SELECT id, x FROM l'] * 40)}) "
        "SELECT COUNT(*) AS n FROM u WHERE x > 1",
    ],
)
def test_what_is_long_only_when_written_out_is_refused_before_a_charge(worlds: tuple[Path, Path], statement: str) -> None:
    w0, w1 = (outcome(folder, statement) for folder in worlds)
    assert w0 == w1 and w0[1:] == (False, 0)
    assert "too large" in w0[0] or "unit-work" in w0[0] or "once expanded" in w0[0]


def plans(snapshot: DuckDBSnapshot) -> tuple[list[Certified], int]:
    """The accepted ones of the generated statements, and how many were refused."""
    found, refused = [], 0
    for number, text in enumerate(Bombs(12).statements(STATEMENTS)):
        epsilon = Fraction(10**6) if number % 2 else Fraction(1, 100)
        try:
            certified = SqlShape(text, epsilon, MANY_ROWS, UNIT_COLUMNS).planned(snapshot.facts).measured
        except Refused:
            refused += 1
            continue
        assert certified is not None
        found.append(certified)
    return found, refused


def test_the_worst_accepted_statements_run_whoever_is_there(tmp_path: Path) -> None:
    """Of statements made to fan out, the worst by work, by rows and by text that is kept: no fault on either world, and no more time than
    the server waits."""
    w0, w1 = (
        DuckDBSnapshot.in_memory(declare(tmp_path / name, target=target), version=1, ranking_key=RANKING_KEY)
        for name, target in (("w0", False), ("w1", True))
    )
    accepted, refused = plans(w0)
    assert w0.facts == w1.facts
    assert refused >= STATEMENTS // 20 and len(accepted) >= STATEMENTS // 2
    limits = w0.facts.limits
    assert all(query.shape.widest <= limits.rows for plan in accepted for query in plan.queries)
    by_work = sorted(accepted, key=lambda plan: sum(unit_work(q.query, q.shape) for q in plan.queries))
    by_text = sorted(accepted, key=lambda plan: max(len(q.query.keys) * q.shape.rows_per_unit for q in plan.queries))
    for certified in {plan.digest: plan for plan in (*by_work[-RUN // 2 :], *by_text[-RUN // 2 :])}.values():
        allowed = expected_seconds(estimate_cost(certified, lambda _: 2_000 + ROWS))
        assert cpu_seconds(w0, certified) < allowed
        assert cpu_seconds(w1, certified) < allowed, "the server's public moment for this statement would tell that the unit is there"
    w0.close()
    w1.close()


def cpu_seconds(snapshot: DuckDBSnapshot, certified: Certified) -> float:
    """Processor time of one run, all threads together: what a busy machine does beside it does not count."""
    begun = time.process_time()
    snapshot.run(certified)
    return time.process_time() - begun


def test_text_that_is_too_long_is_prepared_as_null(tmp_path: Path) -> None:
    declaration = declare(tmp_path / "w", target=False, others=3)
    notes = ["x" * LONGEST, "x" * (LONGEST + 1), "\u20ac" * (LONGEST // 2)]
    rest = "1 AS mark, DATE '2024-05-01' AS day, 1.0 AS amount, 'north' AS place"
    rows = f"SELECT i AS id, list_value({', '.join(map(repr, notes))})[i + 1] AS note, {rest} FROM range(3) t(i)"
    duckdb.execute(f"COPY ({rows}) TO '{tmp_path / 'w' / 'events.parquet'}' (FORMAT PARQUET)")
    snapshot = DuckDBSnapshot.in_memory(declaration, version=1, ranking_key=RANKING_KEY)
    found = snapshot._connection.execute("SELECT note FROM events ORDER BY _unit").fetchall()
    assert found == [(notes[0],), (None,), (None,)]
    snapshot.close()
