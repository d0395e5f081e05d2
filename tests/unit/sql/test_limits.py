"""Every limit of a statement, at its edge: the last value that passes and the first that does not."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import replace

import pytest

from lapwing.catalog import Settings
from lapwing.errors import Refused
from lapwing.kernel.domains import TextDomain
from lapwing.kernel.facts import Facts
from lapwing.sql import bind
from tests.unit.sql.clinic import FACTS, SETTINGS, UNIT_COLUMNS, bound


def _passes(text: str, settings: Settings) -> bool:
    try:
        bound(text, settings)
    except Refused as error:
        assert error.span is not None
        return False
    return True


def _code(text: str, settings: Settings = SETTINGS) -> str:
    with pytest.raises(Refused) as caught:
        bound(text, settings)
    return caught.value.code


def test_length_in_bytes() -> None:
    text = "SELECT COUNT(*) FROM visits WHERE code <> 'é'"
    size = len(text.encode())
    assert size == len(text) + 1
    assert _passes(text, Settings(statement_bytes_max=size))
    assert _code(text, Settings(statement_bytes_max=size - 1)) == "statement-too-long"


def test_number_of_nodes() -> None:
    text = "SELECT COUNT(*) FROM visits WHERE " + " AND ".join(["minutes > 3"] * 50)
    # Select, Count, Star, From, Table, Identifier, Where; 49 ANDs; and for each condition GT, Column, Identifier, Literal
    nodes = 7 + 49 + 4 * 50
    assert _passes(text, Settings(statement_nodes_max=nodes))
    assert _code(text, Settings(statement_nodes_max=nodes - 1)) == "statement-too-large"


def test_long_chains_are_not_deep() -> None:
    assert _passes("SELECT COUNT(*) FROM visits WHERE " + " OR ".join(["minutes > 3"] * 1_900), SETTINGS)
    assert _passes("SELECT COUNT(*) FROM visits HAVING " + " AND ".join(["COUNT(*) > 3"] * 400), SETTINGS)


@pytest.mark.parametrize(
    "nested",
    [
        lambda n: "(" * n + "minutes > 3" + ")" * n,
        lambda n: "NOT " * n + "minutes > 3",
        lambda n: "ABS(" * n + "minutes" + ")" * n + " > 3",
        lambda n: "CASE WHEN " * n + "minutes > 3" + " THEN TRUE END" * n,
    ],
    ids=["brackets", "not", "functions", "case"],
)
def test_depth(nested: object) -> None:
    assert callable(nested)

    def text(levels: int) -> str:
        return f"SELECT COUNT(*) FROM visits WHERE {nested(levels)}"

    for limit in (10, 64):
        settings = Settings(expression_depth_max=limit)
        deepest = max(levels for levels in range(limit + 1) if _passes(text(levels), settings))
        # a level of CASE is two nodes, its branch and itself; besides the levels there are SELECT, WHERE and the comparison itself
        assert deepest >= (limit - 7) // 2
        assert _code(text(deepest + 1), settings) == "expression-too-deep"


HOSTILE = [
    "(",
    "NOT ",
    "- ",
    "ABS(",
    "CASE WHEN ",
    "(SELECT ",
    "a[",
    "COUNT(*) FILTER (WHERE ",
    "{'a': ",
    "x IN (",
    "a || ",
    "a AND ",
    "a + ",
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_nesting_is_refused_quickly(piece: str) -> None:
    text = f"SELECT COUNT(*) FROM visits WHERE {piece * 100_000}"[:65_000]
    start = time.monotonic()
    assert _code(text) in ("expression-too-deep", "sql-syntax", "statement-too-large")
    assert time.monotonic() - start < 10


def test_more_depth_than_python_has_is_refused_all_the_same() -> None:
    settings = Settings(expression_depth_max=1_000_000)
    assert _code(f"SELECT COUNT(*) FROM visits WHERE {'NOT ' * 15_000}TRUE", settings) == "expression-too-deep"
    before = sys.getrecursionlimit()
    assert _code(f"SELECT COUNT(*) FROM visits WHERE {'(' * 9_000}TRUE{')' * 9_000}", settings) == "expression-too-deep"
    assert sys.getrecursionlimit() == before


def test_many_threads_may_bind_at_once() -> None:
    nested = f"SELECT COUNT(*) FROM visits WHERE {'(' * 50}minutes > 3{')' * 50}"
    found: list[str] = []
    before = sys.getrecursionlimit()
    threads = [threading.Thread(target=lambda: found.extend(bound(nested).text for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [nested] * 20
    assert sys.getrecursionlimit() == before


def test_joins() -> None:
    joins = "".join(f" JOIN clinics c{i} ON v.clinic_id = c{i}.clinic_id" for i in range(3))
    text = f"SELECT COUNT(*) FROM visits v{joins}"
    assert _passes(text, Settings(joins_max=3))
    assert _code(text, Settings(joins_max=2)) == "too-many-joins"


def test_aggregates_count_once_each_wherever_they_stand() -> None:
    text = "SELECT COUNT(*), COUNT(*) + 1, SUM(cost) FROM visits HAVING COUNT(cost) > 3 ORDER BY AVG(cost), SUM(cost)"
    assert _passes(text, Settings(aggregates_max=4))
    assert _code(text, Settings(aggregates_max=3)) == "too-many-aggregates"


def test_items_of_a_list() -> None:
    text = "SELECT COUNT(*) FROM visits WHERE minutes IN (1, 2, 3, 4)"
    assert _passes(text, Settings(list_items_max=4))
    assert _code(text, Settings(list_items_max=3)) == "list-too-long"


def _with_codes(values: tuple[str, ...]) -> Facts:
    visits = FACTS.table("visits")
    changed = replace(visits, columns={**visits.columns, "code": TextDomain(values)})
    return replace(FACTS, tables={**FACTS.tables, "visits": changed})


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("LOWER(code) = 'x'", tuple(f"{i:06}" for i in range(99_000))),
        (" OR ".join(["code LIKE '%7%'"] * 300), tuple(f"{i:04}" for i in range(9_000))),
        ("code LIKE '" + "%a" * 3_000 + "b'", tuple("a" * 1_000 + str(i) for i in range(200))),
        ("code LIKE '%" + "_a" * 3_000 + "'", tuple("a" * 1_000 + str(i) for i in range(200))),
        ("REPLACE(" * 20 + "code" + ", 'a', 'aaaaaaaaaa')" * 20 + " = 'x'", ("a", "b")),
        ("CONCAT(" * 20 + "code" + ", code, code)" * 20 + " = 'x'", ("a", "b")),
        ("LOWER(code) || code = 'x'", tuple(f"A{i:04}" for i in range(1_100))),
    ],
    ids=["many", "often", "pattern", "pattern-any", "replace", "concat", "cases"],
)
def test_functions_of_much_text_are_refused_or_done_quickly(condition: str, values: tuple[str, ...]) -> None:
    start = time.monotonic()
    try:
        bind(f"SELECT COUNT(*) FROM visits WHERE {condition}", _with_codes(values), settings=SETTINGS, unit_columns=UNIT_COLUMNS)
    except Refused as error:
        assert error.code == "statement-too-large"
    assert time.monotonic() - start < 10
