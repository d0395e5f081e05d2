"""No row makes PostgreSQL raise: fuzzed expressions over hostile rows, each equal to the reference in Python.

Prepared rows are the reference's too. The server's database sorts by a dictionary, is in another time zone and writes dates in another
style than ours (see ``conftest``), so an expression that depended on one of these would be found here.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

from lapwing.catalog import Declaration
from lapwing.engines.base import Snapshot
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Column, Function, Literal, call
from lapwing.kernel.ir import GridSum, Measure, RowCount
from tests.engines.hostile_world import SCAN, HostileWorld
from tests.engines.test_expressions import QUERIES, SEEDS, VECTORS, _measures, _number, _wrong
from tests.support.expression_fuzz import ExpressionFuzz
from tests.support.postgres_worlds import PostgresWorlds
from tests.support.sizes import size

BATCH = 5
assert size("fuzzed expressions in all") <= SEEDS * QUERIES * VECTORS


@pytest.fixture(scope="module")
def world(worlds: PostgresWorlds, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileWorld]:
    def prepare(declaration: Declaration) -> Snapshot:
        return worlds.prepare(declaration, ranking_key=b"k" * 32)

    made = HostileWorld(tmp_path_factory.mktemp("world"), seed=1, prepare=prepare)
    # the server has no text with the character of code 0: the sign for it was stored instead
    made.rows = [
        {name: value.replace("\0", "\u2400") if isinstance(value, str) else value for name, value in row.items()} for row in made.rows
    ]
    assert len(made.rows) >= 60
    yield made
    made.snapshot.close()


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_random_expressions_agree_with_the_reference(world: HostileWorld, first: int) -> None:
    for seed in range(first, first + BATCH):
        fuzz = ExpressionFuzz(world.columns, seed=seed)
        for _ in range(QUERIES):
            measures = _measures(fuzz, VECTORS)
            answers = world.by_row(SCAN, measures)
            assert len(answers) == len(world.rows)
            for i, measure in enumerate(measures):
                found = [answers[_number(row)][i] for row in world.rows]
                assert _wrong(measure, world.rows, found, dict(world.columns)) == []


def _real(text: str) -> Literal:
    return Literal(Fraction(text), Kind.REAL)


def test_products_and_quotients_that_vanish_are_zero_and_no_error(world: HostileWorld) -> None:
    """Constants and columns at the edge of the doubles, where the server's own product raises."""
    ratio = call(Function.TO_REAL, Column("ratio"))
    tiny = call(Function.MULTIPLY, _real("1e-200"), ratio)
    vanishing = [
        call(Function.MULTIPLY, _real("1e-200"), _real("1e-200")),
        call(Function.MULTIPLY, tiny, tiny),
        call(Function.MULTIPLY, call(Function.MULTIPLY, tiny, _real("1e-123")), ratio),
        call(Function.DIVIDE, call(Function.MULTIPLY, tiny, _real("1e-100")), _real("1e90")),
        call(Function.DIVIDE, call(Function.MULTIPLY, tiny, tiny), call(Function.ADD, Column("count"), Literal(1, Kind.INTEGER))),
    ]
    signs: list[Measure] = [RowCount(call(Function.EQUAL, call(Function.SIGN, value), Literal(1, Kind.INTEGER))) for value in vanishing]
    sums: list[Measure] = [GridSum(value, Fraction(-1), Fraction(1), 10, 0) for value in vanishing]
    answers = world.by_row(SCAN, [*signs, *sums])
    for i, measure in enumerate([*signs, *sums]):
        found = [answers[_number(row)][i] for row in world.rows]
        assert _wrong(measure, world.rows, found, dict(world.columns)) == []
    assert any(cells[2] for cells in answers.values()), "some of these are the least doubles, not 0"


def test_text_constants_reach_the_server_unchanged(world: HostileWorld) -> None:
    texts = sorted({row["note"] for row in world.rows if isinstance(row["note"], str)})
    assert len(texts) > 20
    measures: list[Measure] = [RowCount(call(Function.EQUAL, Column("note"), Literal(text, Kind.TEXT))) for text in texts]
    measures += [RowCount(call(Function.LESS, Column("note"), Literal(text, Kind.TEXT))) for text in texts]
    answers = world.by_row(SCAN, measures)
    for row in world.rows:
        note, cells = row["note"], answers[_number(row)]
        assert cells == [*(int(note == text) for text in texts), *(int(isinstance(note, str) and note < text) for text in texts)]
