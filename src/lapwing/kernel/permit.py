"""Proof that a charge is durable.

Only a ledger makes permits, after the reservation is on disk; ``release`` draws no noise without one, and takes each one once.
"""

from __future__ import annotations

import secrets
from dataclasses import InitVar, dataclass
from typing import NoReturn

from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost

_SEAL = object()


@dataclass(frozen=True, slots=True)
class Permit:
    """A durable reservation of ``cost`` for the plan with this ``digest``. Made by ``issue`` only, and nothing can make a second one from
    it. The seal is asked for and not kept, so that it cannot be taken from one permit to make a second.
    """

    charge_id: int
    digest: str
    cost: Cost
    nonce: str
    """Tells one reservation from every other, of this ledger and of others."""
    seal: InitVar[object]
    ranges: tuple[BlockCost, ...] = ()
    """What each block of time was charged, and the standing block; empty for a data set without blocks."""

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("only a ledger makes permits")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a permit is not copied")


def issue(charge_id: int, digest: str, cost: Cost, *, nonce: str | None = None, ranges: tuple[BlockCost, ...] = ()) -> Permit:
    """The permit of a charge that is durable. For the ledgers, which an import contract says; ``nonce`` is theirs, or a new one."""
    return Permit(charge_id, digest, cost, new_nonce() if nonce is None else nonce, _SEAL, ranges)


def new_nonce() -> str:
    """A name that no other reservation has."""
    return secrets.token_hex(16)
