"""Ledgers of accounts with an order: both sums in the file, the registry's memory of them, and files from before there were any."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from lapwing.errors import BudgetRefused, LapwingError
from lapwing.kernel.accounting import LOSS_UNITS, Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.amounts import budget_text, budget_value, lost_between
from lapwing.ledger.local import format_1
from lapwing.ledger.local.sqlite_file import statements
from tests.ledger.support import approximate_budget, ledger_path, new_ledger, open_ledger, request, union_budget

PURE = LOSS_UNITS // 4
"""A quarter of the epsilon of the least budget."""


def test_one_side_within_its_total_is_enough(tmp_path: Path) -> None:
    budget = union_budget()
    with new_ledger(tmp_path, budget=budget) as ledger:
        for key in "abcd":
            assert isinstance(ledger.reserve(request(key, loss=budget.loss_total, pure=PURE)), Permit)
        assert ledger.balance().spent == Cost(loss=4 * budget.loss_total, delta=0, pure=4 * PURE)
        assert ledger.balance().remaining == Cost(loss=0, delta=budget.delta_total, pure=0)
        for pure in (1, None):
            with pytest.raises(BudgetRefused):
                ledger.reserve(request("one unit more", loss=1, pure=pure))
    with open_ledger(tmp_path) as ledger:
        assert ledger.balance().spent.pure == 4 * PURE
        assert [entry.cost.pure for entry in ledger.history() if entry.charge_id and entry.cost.loss] == [PURE] * 4


def test_what_has_no_pure_amount_closes_the_pure_side_for_good(tmp_path: Path) -> None:
    budget = union_budget()
    with new_ledger(tmp_path, budget=budget) as ledger:
        ledger.reserve(request("gaussian", loss=budget.loss_total - 1))
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("laplace", loss=2, pure=1))
        ledger.reserve(request("the last unit", loss=1, pure=1))
        assert ledger.balance().spent.pure is None
    with open_ledger(tmp_path) as ledger:
        assert ledger.balance().spent.pure is None


def test_an_account_without_an_order_counts_no_pure_amount(tmp_path: Path) -> None:
    budget = approximate_budget()
    with new_ledger(tmp_path, budget=budget) as ledger:
        ledger.reserve(request("a", loss=budget.loss_total, pure=1))
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("b", loss=1, pure=1))


def test_the_file_itself_refuses_what_is_within_neither_total(tmp_path: Path) -> None:
    budget = union_budget()
    with new_ledger(tmp_path, budget=budget) as ledger:
        ledger.reserve(request("a", loss=1, pure=PURE))
    above = f"{budget.loss_total + 1:040d}"
    with closing(sqlite3.connect(ledger_path(tmp_path))) as connection:
        connection.execute("UPDATE ledger SET loss_spent = ?", [above])  # the pure side is within
        for change in (f"pure_spent = '{LOSS_UNITS + 1:040d}'", "pure_spent = NULL", "pure_total = NULL"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(f"UPDATE ledger SET {change}")
        for change in ("pure_spent = '" + "0" * 40 + "'", "pure_ceiling = NULL, pure_total = NULL, loss_spent = loss_total"):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(f"UPDATE ledger SET {change}")


def test_what_a_restored_file_lost_is_charged_again_on_both_sides(tmp_path: Path) -> None:
    budget = union_budget()
    with new_ledger(tmp_path, budget=budget) as ledger:
        ledger.reserve(request("a", loss=10, pure=PURE))
    kept = ledger_path(tmp_path).read_bytes()
    with open_ledger(tmp_path) as ledger:
        ledger.reserve(request("b", loss=budget.loss_total, pure=PURE))
        spent = ledger.balance().spent
    ledger_path(tmp_path).write_bytes(kept)
    with open_ledger(tmp_path, override=True, reason="restored") as ledger:
        assert ledger.balance().spent == spent
        ledger.reserve(request("c", loss=1, pure=2 * PURE))
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("d", loss=1, pure=1))


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (Cost(5, 1, 7), Cost(9, 2, 8), Cost(4, 1, 1)),
        (Cost(5, 1, 7), Cost(9, 2, None), Cost(4, 1, None)),
        (Cost(5, 1, 7), Cost(5, 1, None), Cost(1, 0, None)),
        (Cost(5, 1, None), Cost(5, 1, None), Cost(0, 0, 0)),
        (Cost(5, 1, None), Cost(6, 1, None), Cost(1, 0, None)),
    ],
)
def test_nothing_is_missing_after_what_was_lost_is_charged(before: Cost, after: Cost, lost: Cost) -> None:
    assert lost_between(before, after) == lost
    total = before + lost
    assert total.covers(after)


def as_format_1(path: Path) -> None:
    """The same ledger as a file of the first format, as an earlier version wrote it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for kind, name in connection.execute("SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL AND type <> 'table'").fetchall():
            connection.execute(f"DROP {kind} {name}")
        columns = {}
        for table in ("entry", "charge", "ledger", "worker"):
            connection.execute(f"ALTER TABLE {table} RENAME TO later_{table}")
        rules = [statement for statement in statements(format_1.SCHEMA) if statement.startswith("CREATE TRIGGER")]
        for statement in statements(format_1.SCHEMA):
            if statement not in rules:
                connection.execute(statement)
        for table in ("ledger", "worker", "charge", "entry"):
            columns[table] = ", ".join(name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})"))
            connection.execute(f"INSERT INTO {table} SELECT {columns[table]} FROM later_{table}")
        for table in ("entry", "charge", "ledger", "worker"):
            connection.execute(f"DROP TABLE later_{table}")
        for statement in rules:
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
        connection.execute("COMMIT")


def test_a_ledger_of_the_first_format_goes_on_as_it_was(tmp_path: Path) -> None:
    budget = approximate_budget()
    with new_ledger(tmp_path, budget=budget) as ledger:
        permit = ledger.reserve(request("a", loss=5, delta=1))
        assert isinstance(permit, Permit)
        ledger.commit(permit, b"answer")
        history = ledger.history()
    as_format_1(ledger_path(tmp_path))
    with open_ledger(tmp_path) as ledger:
        assert ledger.history() == history
        assert ledger.balance().spent == Cost(loss=5, delta=1)
        assert ledger.find("plan of a") is not None
        ledger.reserve(request("b", loss=budget.loss_total - 5, pure=1))
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("c", loss=1, pure=1))
    with open_ledger(tmp_path) as ledger:
        assert ledger.balance().spent == Cost(loss=budget.loss_total, delta=1)


def test_a_changed_file_of_the_first_format_is_not_upgraded(tmp_path: Path) -> None:
    new_ledger(tmp_path, budget=approximate_budget()).disconnect()
    as_format_1(ledger_path(tmp_path))
    with closing(sqlite3.connect(ledger_path(tmp_path))) as connection:
        connection.execute("DROP TRIGGER ledger_only_grows")
    with pytest.raises(LapwingError) as refused:
        open_ledger(tmp_path)
    assert refused.value.code == "ledger-damaged"
    with closing(sqlite3.connect(ledger_path(tmp_path))) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_budget_with_an_order_reads_back_and_one_without_is_written_as_before() -> None:
    assert budget_value(budget_text(union_budget())) == union_budget()
    assert "order" not in budget_text(approximate_budget())
