"""Permits come from ledgers: nobody else makes one, and none becomes two."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit, issue

COST = Cost(loss=5, delta=0)


def test_a_permit_says_what_was_reserved_and_has_a_name_of_its_own() -> None:
    one, two = issue(1, "plan", COST), issue(1, "plan", COST)
    assert (one.charge_id, one.digest, one.cost) == (1, "plan", COST)
    assert one.nonce != two.nonce
    assert one != two
    assert issue(1, "plan", COST, nonce="given").nonce == "given"


@pytest.mark.parametrize("seal", [None, object(), True, "seal"], ids=["nothing", "another object", "true", "a word"])
def test_nobody_makes_a_permit_without_the_seal(seal: object) -> None:
    with pytest.raises(TypeError):
        Permit(1, "plan", COST, "nonce", seal)
    with pytest.raises(TypeError):
        Permit(1, "plan", COST, "nonce")  # type: ignore[call-arg]


def test_a_permit_does_not_hold_the_seal() -> None:
    permit = issue(1, "plan", COST)
    assert [field.name for field in dataclasses.fields(permit)] == ["charge_id", "digest", "cost", "nonce", "ranges"]
    assert not hasattr(permit, "seal")


COPIES: dict[str, Callable[[Any], object]] = {
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "stored": pickle.dumps,
    "stored in the first format": lambda permit: pickle.dumps(permit, 0),
    "changed": lambda permit: dataclasses.replace(permit, digest="another plan"),
    "named anew": lambda permit: dataclasses.replace(permit, nonce="another"),
    "replaced as it is": dataclasses.replace,
}


@pytest.mark.parametrize("how", COPIES)
def test_a_permit_cannot_be(how: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        COPIES[how](issue(1, "plan", COST))


def test_a_permit_cannot_be_edited() -> None:
    permit: Any = issue(1, "plan", COST)
    with pytest.raises(dataclasses.FrozenInstanceError):
        permit.cost = Cost(loss=6, delta=0)
