"""Giving a kept data set blocks of time, as its owner would, and what is true of it then."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.curator.statistics import SHARE_OF_A_BLOCK
from lapwing.errors import LapwingError
from lapwing.kernel.blocks import exchange_cost
from lapwing.ledger.protocol import EntryKind
from tests.kept.kept import REASON, Kept, change_catalogue, seen_history

BLOCKS = """[blocks]
every = "day"
person_cap = "none"

[tables.patients]"""
AFTER = "SELECT COUNT(*) AS n FROM visits WHERE day BETWEEN DATE '2025-02-01' AND DATE '2025-02-07'"


def declare_blocks(kept: Kept) -> None:
    """Visits hold their own unit column, and no table reaches its unit through them any more."""
    change_catalogue(kept, 'unit = "patient_id -> patients.patient_id"', 'unit = "patient_id"\nblocks = "day"')
    change_catalogue(kept, "[tables.patients]", BLOCKS)
    catalogue = kept.directory / "lapwing.toml"
    text = catalogue.read_text(encoding="utf-8")
    begin, end = text.index("[tables.prescriptions]"), text.index("# -- Public tables")
    catalogue.write_text(text[:begin] + text[end:], encoding="utf-8")
    if 'appended_by = "visit_id"' in text:
        change_catalogue(kept, 'appended_by = "visit_id"\n', "")


def assert_becomes_blocks(kept: Kept, *, analyst: str) -> None:
    """Its owner's word is needed; what was spent is inherited by whatever was read, old entries stay, and it is asked by blocks.

    Pre: its budget holds what blocks inherit.
    """
    with kept.curator() as curator:
        before, spent, account = seen_history(curator), curator.balance().spent, curator.balance().budget.account
    declare_blocks(kept)
    with kept.curator() as curator:
        with pytest.raises(LapwingError) as refusal:
            curator.prepare()
        assert refusal.value.code == "override-needed"
    with kept.curator() as curator:
        version = curator.prepare(override=REASON)
        assert version > 2
        inherited = exchange_cost(spent, 2, account)
        statistics = curator.balance().spent.loss - inherited.loss  # bought anew of the tables without time, by nobody else
        assert statistics >= 0 and curator.balance().spent.delta == inherited.delta
        spending = curator.ledger.blocks()
        assert spending is not None
        first = curator.facts.table("visits").blocks
        assert first is not None
        oldest, newest = (spending.most(block, block) for block in first)
        assert oldest == inherited, "every block that could hold rows"
        budget, share = curator.declaration.budget(), curator.declaration.declared_budget.statistics_share * SHARE_OF_A_BLOCK
        assert newest.loss > inherited.loss and newest.delta == inherited.delta, "and profiles of the newest ones"
        most = (
            budget.loss_total * share * (1 if budget.order is None else Fraction(101, 100))
        )  # Laplace noise costs a little more at an order
        assert newest.loss - inherited.loss <= most + 1
        history = seen_history(curator)
        assert history[: len(before)] == before, "not one entry of the old history differs"
        kinds = [entry.kind for entry in curator.history(limit=1_000)]
        assert EntryKind.OVERRIDE in kinds and EntryKind.BLOCKS in kinds
    with kept.opened(analyst=analyst) as data_set:
        answer = data_set.ask(AFTER, epsilon=1)
        assert not answer.cost.free and data_set.ask(AFTER, epsilon=1).table == answer.table
