"""A kept data set with one budget becomes one with blocks of time: what was spent is inherited, and the old charges stay as they are."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import CatalogueError, LapwingError
from lapwing.kernel.accounting import Account, budget_for
from lapwing.kernel.blocks import exchange_cost
from lapwing.ledger.protocol import EntryKind
from lapwing.owner.ledger_admin import verified_of
from tests.kept.kept import LOCAL, REASON, Kept, change_catalogue, seen_history, unpacked

BLOCKS = """[blocks]
every = "day"
person_cap = "none"

[tables.patients]"""
AFTER = "SELECT COUNT(*) AS n FROM visits WHERE day BETWEEN DATE '2025-02-01' AND DATE '2025-02-07'"
LARGER = Fraction(10_000)
"""An epsilon of which four times what was spent leaves much."""


def accepted(name: str, directory: Path) -> Kept:
    """A kept data set in another place, which its owner accepts."""
    kept = unpacked(name, directory / name)
    kept.accept()
    return kept


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


def raise_budget(kept: Kept) -> None:
    """What the owner does where the budget of a block would not hold what was spent."""
    with kept.curator() as curator:
        declared = curator.declaration.declared_budget
        larger = budget_for(epsilon=LARGER, delta=declared.delta, delta_keys_share=declared.delta_keys_share, order=declared.order)
        curator.ledger.raise_ceiling(larger, reason="events grow")
    change_catalogue(kept, "epsilon = 110", f"epsilon = {LARGER}")
    change_catalogue(kept, "ceiling = { epsilon = 120 }", f"ceiling = {{ epsilon = {LARGER} }}")


@pytest.fixture(params=LOCAL)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    return accepted(request.param, tmp_path)


def test_a_kept_data_set_gets_blocks_by_its_owners_word(kept: Kept) -> None:
    with kept.curator() as curator:
        before, spent, account = seen_history(curator), curator.balance().spent, curator.balance().budget.account
    raise_budget(kept)
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
        assert spending.most(first[0], first[0]) == spending.most(first[1], first[1]) == inherited, "every block that could hold rows"
        history = seen_history(curator)
        assert history[: len(before)] == before, "not one entry of the old history differs"
        kinds = [entry.kind for entry in curator.history(limit=1_000)]
        assert EntryKind.OVERRIDE in kinds and EntryKind.BLOCKS in kinds
    with kept.opened(analyst="local") as data_set:
        answer = data_set.ask(AFTER, epsilon=1)
        assert not answer.cost.free and data_set.ask(AFTER, epsilon=1).table == answer.table
    assert verified_of(kept.curator()).problems == ()


def test_a_kept_data_set_that_spent_too_much_stays_as_it_is(tmp_path: Path) -> None:
    kept = accepted("pure", tmp_path)
    with kept.curator() as curator:
        spent = curator.balance().spent
        assert exchange_cost(spent, 2, Account.PURE).loss > curator.balance().budget.loss_total, "it has spent more than half"
    declare_blocks(kept)
    with kept.curator() as curator:
        with pytest.raises(CatalogueError) as refusal:
            curator.prepare(override=REASON)
        assert refusal.value.code == "blocks-overspent"
        assert curator.balance().spent == spent and curator.ledger.blocks() is None


def test_delta_that_was_spent_on_keys_is_inherited_once(tmp_path: Path) -> None:
    """A threshold is chosen for the keys of one unit, on either side."""
    kept = accepted("approximate", tmp_path)
    with kept.curator() as curator:
        spent = curator.balance().spent
    assert spent.delta > 0
    inherited = exchange_cost(spent, 2, Account.APPROXIMATE)
    assert (inherited.loss, inherited.delta) == (4 * spent.loss, spent.delta)
