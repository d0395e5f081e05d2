"""What an account is charged for an event, and what it cannot be charged for."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import DELTA_UNITS, LOSS_UNITS, Account, Cost
from lapwing.kernel.event import Event


def test_an_event_is_charged_in_what_its_account_counts() -> None:
    event = Event(epsilon=Fraction(1, 2), rho=Fraction(1, 8), delta=Fraction(1, 10**6))
    assert event.cost(Account.APPROXIMATE) == Cost(loss=LOSS_UNITS // 8, delta=DELTA_UNITS // 10**6)
    assert Event.pure(Fraction(1, 2)).cost(Account.PURE) == Cost(loss=LOSS_UNITS // 2, delta=0)
    assert Event.pure(Fraction(1, 2)).cost(Account.APPROXIMATE) == Cost(loss=LOSS_UNITS // 8, delta=0)


@pytest.mark.parametrize(
    ("event", "account", "code"),
    [
        (Event(epsilon=None, rho=Fraction(1)), Account.PURE, "event-needs-delta"),
        (Event(epsilon=Fraction(1), rho=None, delta=Fraction(1, 2)), Account.PURE, "event-needs-delta"),
        (Event(epsilon=Fraction(1), rho=None), Account.APPROXIMATE, "event-not-concentrated"),
    ],
)
def test_an_account_is_not_charged_for_what_it_cannot_express(event: Event, account: Account, code: str) -> None:
    with pytest.raises(Refused) as refusal:
        event.loss(account)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("epsilon", "rho", "delta"), [(Fraction(-1), None, Fraction(0)), (None, Fraction(-1), Fraction(0)), (None, None, Fraction(1))]
)
def test_what_is_no_event_is_refused(epsilon: Fraction | None, rho: Fraction | None, delta: Fraction) -> None:
    with pytest.raises(LapwingError) as error:
        Event(epsilon=epsilon, rho=rho, delta=delta)
    assert error.value.code == "cost-invalid"
