"""A kept data set with one budget becomes one with blocks of time: what was spent is inherited, and the old charges stay as they are."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import CatalogueError
from lapwing.kernel.accounting import Account, budget_for
from lapwing.kernel.blocks import exchange_cost
from lapwing.owner.ledger_admin import verified_of
from tests.kept.kept import LOCAL, REASON, Kept, change_catalogue, unpacked
from tests.kept.with_blocks import assert_becomes_blocks, declare_blocks

LARGER = Fraction(10_000)
"""An epsilon of which four times what was spent leaves much."""


def accepted(name: str, directory: Path) -> Kept:
    """A kept data set in another place, which its owner accepts."""
    kept = unpacked(name, directory / name)
    kept.accept()
    return kept


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
    raise_budget(kept)
    assert_becomes_blocks(kept, analyst="local")
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
