"""Two worlds, one with the target and one without: nothing that leaves may differ but noisy values (E1, S1, S2, S4, G2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.asking.ask import plan_of
from lapwing.audit.oracle import compare, measure
from lapwing.data_set import DataSet
from lapwing.errors import LapwingError, Refused
from lapwing.render.duckdb import DUCKDB
from lapwing.render.queries import render_plan
from tests.attacks.pair import HOSTILE, Pair, make_pair, open_world, write_world

ANSWERED = (
    "SELECT COUNT(*) AS a, COUNT(DISTINCT id) AS b, SUM(num) AS c, AVG(x) AS d FROM people",
    # division by what is 0 for the target alone
    "SELECT SUM(1 / (num - 777)) AS a FROM people",
    "SELECT COUNT(*) AS a FROM people WHERE 1 / (num - 777) > 0",
    "SELECT SUM(num // (num - 777)) AS a, SUM(num % (num - 777)) AS b FROM people",
    "SELECT AVG(FLOOR(x / (num - 777))) AS a FROM people",
    "SELECT AVG(1.0 / NULLIF(num - 777, 0)) AS a FROM people WHERE num IS NOT NULL",
    # outside the domain of a function for the target alone
    "SELECT SUM(SQRT(776 - num)) AS a, SUM(LN(777 - num)) AS b FROM people",
    "SELECT SUM(LN(ABS(num - 777))) AS a FROM people",
    "SELECT SUM(EXP(LEAST(x, 5))) AS a, SUM(EXP(num / 100)) AS b FROM people",
    "SELECT SUM(CAST(x AS INTEGER)) AS a, SUM(ROUND(x, 2)) AS b, SUM(SIGN(x)) AS c FROM people",
    "SELECT COUNT(*) AS a FROM people WHERE x = x OR x > 1e80 OR -x < 0",
    # dates at the ends of what the engine holds
    "SELECT EXTRACT(YEAR FROM d) AS y, COUNT(*) AS a FROM people GROUP BY y",
    "SELECT DATE_TRUNC('month', d) AS m, COUNT(*) AS a FROM people GROUP BY m",
    "SELECT DATE_TRUNC('week', ts) AS m, AVG(hour(ts)) AS a FROM people WHERE d > '2010-06-01' GROUP BY m",
    "SELECT EXTRACT(DOW FROM ts) AS w, SUM(minute(ts)) AS a FROM people GROUP BY w",
    # sums at the ends of their range
    "SELECT SUM(big) AS a, SUM(big * 2 - 1) AS b, SUM(-big) AS c FROM people",
    "SELECT SUM(big * num) AS a, AVG(ABS(big)) AS b FROM people",
    # text
    "SELECT word, COUNT(*) AS a, SUM(LENGTH(word)) AS b FROM people GROUP BY word",
    "SELECT SUM(TRY_CAST(word AS INTEGER)) AS a FROM people WHERE UPPER(word) LIKE '%A%' OR word = '10'",
    "SELECT COUNT(*) AS a FROM people WHERE starts_with(note, 'x-secret') OR note LIKE 'x-sec%' OR note = 'x-secret-note'",
    "SELECT note, COUNT(*) AS a FROM people GROUP BY note",
    "SELECT kind, COUNT(*) AS a, SUM(amount) AS b FROM events GROUP BY kind ORDER BY a DESC LIMIT 3",
    "SELECT p.city, AVG(e.amount) AS a FROM events e LEFT JOIN places p ON p.place = e.place WHERE e.day > '2024-03-01' GROUP BY p.city",
    "SELECT place, SUM(amount) / NULLIF(COUNT(*), 0) AS a, 1 / (COUNT(*) - COUNT(*)) AS b FROM events GROUP BY place HAVING a > 3",
)
REFUSED = {
    "SELECT SUM(CAST(note AS INTEGER)) FROM people": "cast-unsafe",
    "SELECT COUNT(*) FROM people WHERE CAST(word AS INTEGER) > 0": "cast-unsafe",
    "SELECT id, COUNT(*) FROM people GROUP BY id": "groups-by-unit",
    "SELECT STRING_AGG(note, ',') FROM people": "aggregate-unsupported",
    "SELECT * FROM people WHERE num = 777": "rows-not-aggregates",
    "SELECT COUNT(*) FROM people WHERE note = (SELECT note FROM people)": "subquery-private",
    "SELECT SUM(EXP(x)) FROM people": "range-too-wide",
    "SELECT REPLACE(note, 'a', 'b'), COUNT(*) FROM people GROUP BY 1": "text-undeclared",
    "SELECT COUNT(*) FROM duckdb_tables()": "table-unsupported",
}
"""Statement and the code it is refused with, whatever the rows."""
EPSILON = 3


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = make_pair(tmp_path_factory.mktemp("pair"))
    yield made
    made.close()


def outcome(data: DataSet, sql: str, epsilon: object = EPSILON) -> tuple[Any, ...]:
    """All that an analyst sees of asking, but for noisy values and the groups they show."""
    try:
        answer = data.ask(sql, epsilon=epsilon)  # type: ignore[arg-type]
    except LapwingError as error:
        return type(error).__name__, error.code, str(error), error.span, data.budget.to_dict()
    columns = [(field.name, str(field.type)) for field in answer.table.schema]
    return "answer", columns, sorted(answer.intervals), answer.confidence, answer.cost, answer.remaining.to_dict()


def numbers_of(answer: lw.Answer) -> list[float]:
    cells = [value for column in answer.table.columns for value in column.to_pylist() if isinstance(value, int | float)]
    return [*cells, *(end for found in answer.intervals.values() for i in found if i is not None for end in (i.lo, i.hi))]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_no_row_makes_a_statement_fail(tmp_path: Path, number: int, pair: Pair) -> None:
    """E1, S2: every statement is answered on hostile rows, for the same price, and every number in the answer is finite."""
    write_world(tmp_path / "w1", hostile=HOSTILE[number])
    with open_world(tmp_path / "w1") as data:
        for sql in ANSWERED:
            answer = data.ask(sql, epsilon=EPSILON)
            assert all(math.isfinite(value) for value in numbers_of(answer)), sql
            # Before anything is bought: what norms released may be used to plan, and is noisy.
            assert plan_of(data.curator, sql, EPSILON)[1].certified.digest == plan_of(pair.w0.curator, sql, EPSILON)[1].certified.digest
        assert not data.curator.balance().closed


def test_the_target_moves_no_exact_figure_further_than_claimed(tmp_path: Path, pair: Pair) -> None:
    """S1: NaN, infinities and the largest integers included; the exact figures of both worlds against the certificate."""
    compared = 0
    for number, hostile in enumerate(HOSTILE):
        write_world(tmp_path / f"{number}", hostile=hostile)
        with open_world(tmp_path / f"{number}") as data:
            for sql in ANSWERED:
                _, planned = plan_of(data.curator, sql, EPSILON)
                plan = planned.certified.plan
                assert compare(measure(plan, data.curator.snapshot), measure(plan, pair.w0.curator.snapshot)) == [], sql
                compared += 1
    assert compared == len(HOSTILE) * len(ANSWERED)


def test_an_extreme_value_counts_as_the_end_of_its_range(pair: Pair) -> None:
    _, planned = plan_of(pair.w1.curator, "SELECT SUM(big) AS a FROM people", EPSILON)
    figures = [measure(planned.certified.plan, data.curator.snapshot).exact._tables[0]._vectors[0][0] for data in pair]
    assert figures[0] - figures[1] == 10**12


@pytest.mark.parametrize(
    "condition",
    [
        "LEFT(rare, 0) >= 'f'",
        "REPLACE(REPLACE(rare, 'f', 'a'), 'm', 'a') > 'b'",
        "LENGTH(rare) > 7",
        "LENGTH(rare) + num > 100000",
        "rare = 'zz' OR NULLIF(rare, 'f') = 'm'",
        "CASE WHEN rare IS NOT NULL THEN DATE '2024-01-01' END > d",
        "CASE WHEN rare IS NOT NULL THEN 1.5 END > 7",
    ],
)
def test_a_column_that_only_the_target_fills_makes_no_statement_fail(tmp_path: Path, condition: str) -> None:
    """E1: everybody else's value is NULL, so without the target the engine folds the condition away by its statistics."""
    with closing(make_pair(tmp_path)) as pair:
        seen = [outcome(data, f"SELECT COUNT(*) AS n FROM people WHERE {condition}") for data in pair]
        assert seen[0] == seen[1]


def test_sql_plan_digest_price_and_explanation_are_equal(pair: Pair) -> None:
    """S4: nothing that is decided before noise is drawn depends on rows."""
    for sql in ANSWERED:
        for epsilon in ("0.5", "3"):
            plans = [plan_of(data.curator, sql, epsilon)[1] for data in pair]
            assert plans[0].certified == plans[1].certified
            assert plans[0].parts == plans[1].parts
            texts = [[query.sql for query in render_plan(planned.certified, DUCKDB)] for planned in plans]
            assert texts[0] == texts[1]
            fresh = [data.explain(sql, epsilon=epsilon) for data in pair]
            assert fresh[0].lines == fresh[1].lines and fresh[0].values == fresh[1].values


def test_bought_statistics_are_all_that_a_plan_takes_from_the_rows(tmp_path: Path) -> None:
    """S4: the histogram of rows per unit is noisy and paid for. Given the same noisy figures, both worlds plan alike."""
    with closing(make_pair(tmp_path, statistics_share="0.1")) as pair:
        spent = [data.curator.balance().spent for data in pair]
        assert spent[0] == spent[1] and spent[0].loss > 0
        stores = [data.curator.state for data in pair]
        stores[1].save_statistics(stores[0].statistics())
        for sql in ANSWERED:
            plans = [plan_of(data.curator, sql, EPSILON)[1] for data in pair]
            assert plans[0].certified == plans[1].certified and plans[0].parts == plans[1].parts, sql


def test_refusals_are_equal_and_cost_nothing(pair: Pair) -> None:
    """G2: the same code, words and place on both worlds; the budget does not move."""
    for sql, code in REFUSED.items():
        before = [data.budget.to_dict() for data in pair]
        seen = [outcome(data, sql) for data in pair]
        assert seen[0] == seen[1] and seen[0][1] == code, sql
        assert [data.budget.to_dict() for data in pair] == before
        for data in pair:
            with pytest.raises(Refused, match=code):
                data.explain(sql, epsilon=EPSILON)


@pytest.mark.parametrize("delta", ["0", '"2^-40"'])
def test_a_whole_conversation_is_equal_but_for_noisy_values(tmp_path: Path, delta: str) -> None:
    """G2: answers, replays, refusals, exhaustion and their order, on a budget that runs out in the middle."""
    conversation: list[tuple[str, object]] = []
    for number, sql in enumerate(ANSWERED):
        conversation.append((sql, "1"))
        conversation.append((list(REFUSED)[number % len(REFUSED)], "1"))
        conversation.append((ANSWERED[number // 2], "1"))  # a replay, or again refused
        conversation.append((sql, ("100", "0", "-1", "1e9", "x")[number % 5]))
    with closing(make_pair(tmp_path, epsilon="10", delta=delta)) as pair:
        seen = [[outcome(data, sql, epsilon) for sql, epsilon in conversation] for data in pair]
        histories = [[(entry.kind, entry.analyst, entry.charge_id, entry.cost, entry.detail) for entry in data.history()] for data in pair]
    assert seen[0] == seen[1]
    codes = {entry[1] for entry in seen[0] if entry[0] != "answer"}
    assert {"budget-exceeded", "epsilon-invalid", "aggregate-unsupported"} <= codes and "incident" not in codes
    assert histories[0] == histories[1] and len(histories[0]) > 10


def test_known_groups_are_the_same_rows_in_both_worlds(pair: Pair) -> None:
    """G1 for declared keys: every group appears, with the target or without, in an order that is public too."""
    for sql, keys in (
        ("SELECT word, COUNT(*) AS a FROM people GROUP BY word", 1),
        ("SELECT flag, rare, COUNT(*) AS a FROM people GROUP BY flag, rare", 2),
        ("SELECT DATE_TRUNC('year', d) AS y, SUM(num) AS a FROM people WHERE num = 777 GROUP BY y", 1),
        ("SELECT p.city, COUNT(*) AS a FROM events e JOIN places p USING (place) WHERE e.amount = 100 GROUP BY p.city", 1),
    ):
        rows = [[tuple(row.values())[:keys] for row in data.ask(sql, epsilon="0.7").table.to_pylist()] for data in pair]
        assert rows[0] == rows[1] and len(rows[0]) >= 3
