"""Planted bugs of answers among rows: the tests beside this one see each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lapwing.errors import Refused
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Literal
from lapwing.sql import staged_queries
from lapwing.sql.rows import joined_items, subqueries, subquery_results
from lapwing.sql.scalars.binding import Scalars
from tests.unit.sql.clinic import bound
from tests.unit.sql.test_deciding import REFUSED, SAME

Plant = Callable[[pytest.MonkeyPatch], None]


def _not_in_is_in(patch: pytest.MonkeyPatch) -> None:
    among = subquery_results.among

    def planted(*arguments: Any, negated: bool = False) -> Any:
        return among(*arguments)

    patch.setattr(subqueries, "among", planted)


def _joins_keep_every_row(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(subquery_results._Answer, "conditions", lambda self: [])


def _the_first_key_is_enough(patch: pytest.MonkeyPatch) -> None:
    meets = subquery_results._Answer._meets

    def planted(self: Any, row: Any) -> Any:
        first = dict(list(self.equal.items())[:1])
        return meets(subquery_results._Answer(self.scalars, self.node, self.decided, first, self.kind), row)

    patch.setattr(subquery_results._Answer, "_meets", planted)


def _any_column_tells_rows_apart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(staged_queries, "_apart", lambda answered, privates: frozenset())


def _a_null_in_a_list_is_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(subquery_results, "_nothing", lambda scalars, node: scalars.constant(node, Literal(True, Kind.BOOLEAN)))


def _conditions_stay_while_nothing_is_bought(patch: pytest.MonkeyPatch) -> None:
    def planted(scalars: Scalars, node: Any, what: str) -> Any:
        return [scalars.condition(node, what)]

    for module in (joined_items, subqueries):
        patch.setattr(module, "decided_condition", planted)
    patch.setattr("lapwing.sql.queries.decided_condition", planted)


MUTANTS: tuple[Plant, ...] = (
    _not_in_is_in,
    _joins_keep_every_row,
    _the_first_key_is_enough,
    _any_column_tells_rows_apart,
    _a_null_in_a_list_is_left_out,
    _conditions_stay_while_nothing_is_bought,
)


def _is_seen() -> bool:
    """Whether a statement is not the one with constants, is supposed to be over fewer rows, or is not refused."""
    for text, rows, constants in SAME:
        if bound(text, decided=rows).privates != bound(constants).privates:
            return True
        if "cost > (SELECT AVG(cost) FROM visits)" in text and "Literal" in repr(bound(text).privates):
            return True
    for _, text in REFUSED:
        try:
            bound(text)
        except Refused:
            continue
        return True
    return False


def test_nothing_is_seen_where_nothing_is_planted() -> None:
    assert not _is_seen()


@pytest.mark.parametrize("plant", MUTANTS, ids=lambda plant: plant.__name__.strip("_"))
def test_a_planted_bug_is_seen(monkeypatch: pytest.MonkeyPatch, plant: Plant) -> None:
    plant(monkeypatch)
    assert _is_seen()
