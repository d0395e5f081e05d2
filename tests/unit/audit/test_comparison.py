"""Rows are compared with a bare engine's by rules that can fail."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lapwing.audit.lists.comparison import AnswerColumns, comparable, difference, discovered, rows_of, slack_of, sorted_alike, without_limit

KEYED, WHOLE = AnswerColumns(frozenset({0})), AnswerColumns()


@pytest.mark.parametrize(
    ("ours", "theirs", "columns", "wrong"),
    [
        ([("a", 1.0), ("b", 0.0)], [("a", 1.0)], KEYED, ""),
        ([("a", 1.0), ("b", None)], [("a", 1.0)], KEYED, ""),
        ([("b", 2.0), ("a", 1.0)], [("a", 1.00001), ("b", 2.0)], KEYED, ""),
        ([("a", 1.0)], [("a", 1.0), ("b", 2.0)], KEYED, "1 of 2"),
        ([("a", 1.0), ("b", 3.0)], [("a", 1.0), ("b", 2.0)], KEYED, "1 of 2"),
        ([("a", 1.0), ("b", 7.0)], [("a", 1.0)], KEYED, "groups without rows hold something"),
        ([(1.0,), (2.0,)], [(1.0,)], WHOLE, "1 rows too many"),
        ([(None,)], [(0.0,)], WHOLE, "1 of 1"),
        ([("1",)], [(1.0,)], WHOLE, "1 of 1"),
        ([(1.0,)], [(1.0,), (1.0,)], WHOLE, "1 of 2"),
        # What is computed may be anything in a group without rows, where something else shows that it has none.
        ([("a", 1.0, True), ("b", 0.0, True)], [("a", 1.0, True)], AnswerColumns(frozenset({0}), frozenset({2})), ""),
        ([("a", 1.0, True), ("b", 2.0, True)], [("a", 1.0, True)], AnswerColumns(frozenset({0}), frozenset({2})), "groups without rows"),
        ([("a", 1.0), ("b", 0.0)], [("a", 1.0)], AnswerColumns(computed=frozenset({0, 1})), ""),
        ([("a", 1.0), ("b", 4.0)], [("a", 1.0)], AnswerColumns(computed=frozenset({0, 1})), "groups without rows"),
        # The order of numbers is compared, without groups that hold nothing; that of texts is the server's.
        ([("b", 2.0), ("c", 0.0), ("a", 1.0)], [("b", 2.0), ("a", 1.0)], AnswerColumns(frozenset({0}), sorted_by=1), ""),
        ([("a", 1.0), ("b", 2.0)], [("b", 2.0), ("a", 1.0)], AnswerColumns(frozenset({0}), sorted_by=1), "rows are in another order"),
        ([("a", 1.0), ("b", 2.0)], [("b", 2.0), ("a", 1.0)], AnswerColumns(frozenset({0}), sorted_by=0), ""),
    ],
)
def test_rows_are_compared(ours: Sequence[tuple[Any, ...]], theirs: Sequence[tuple[Any, ...]], columns: AnswerColumns, wrong: str) -> None:
    found = difference(ours, theirs, columns=columns)
    assert found.startswith(wrong) and bool(found) == bool(wrong)


def test_slack_is_for_what_is_no_count() -> None:
    theirs = [("a", 10.0, 99.5), ("b", 20.0, 1.5)]
    slack = slack_of(theirs)
    assert not difference([("a", 10.0, 99.2), ("b", 20.0, 1.1)], theirs, columns=KEYED, slack=slack)
    assert difference([("a", 10.2, 99.5), ("b", 20.0, 1.5)], theirs, columns=KEYED, slack=slack)
    assert difference([("a", 10.0, 99.5), ("b", 20.0, 0.9)], theirs, columns=KEYED, slack=slack)


def test_ties_are_rows_that_are_sorted_alike() -> None:
    by = AnswerColumns(frozenset({0}), sorted_by=1)
    assert sorted_alike([("a", 2.0), ("b", 1.0)], [("a", 2.0), ("c", 1.0)], columns=by)
    assert not sorted_alike([("a", 2.0), ("b", 1.0)], [("a", 2.0), ("c", 1.5)], columns=by)
    assert not sorted_alike([("a", 2.0)], [("a", 2.0), ("c", 1.0)], columns=by)
    assert without_limit("SELECT 1 ORDER BY 1 LIMIT 3 OFFSET 2") == without_limit("SELECT 1 ORDER BY 1 fetch first 1 rows only")
    assert without_limit("SELECT (SELECT 1 LIMIT 1)") == "SELECT (SELECT 1 LIMIT 1)"


def test_of_groups_that_are_not_declared_those_that_are_shown_count_without_what_is_selected() -> None:
    columns = AnswerColumns(frozenset({0}), selected=frozenset({2}))
    ours, theirs = discovered([("b", 2.0, "y")], [("a", 1.0, "x"), ("b", 2.0, "x")], columns=columns)
    assert ours == theirs == [("b", 2.0, None)]


def test_values_are_brought_to_one_form() -> None:
    assert comparable(3) == comparable(Decimal("3.0")) == 3.0
    assert comparable(datetime.date(2025, 1, 1)) == comparable(datetime.datetime(2025, 1, 1)) != comparable(datetime.date(2025, 1, 2))
    assert comparable(True) is True and comparable(None) is None and comparable("x") == "x"
    assert comparable(datetime.timedelta(days=1)) == "1 day, 0:00:00"
    assert rows_of(pa.table([[1, 2], ["a", None]], names=["x", "x"])) == [(1.0, "a"), (2.0, None)]
