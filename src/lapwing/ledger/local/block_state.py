"""What the state of a ledger holds of blocks of time: the owner's terms, and what all charges together may have cost a block or a person.

The balances of blocks are not part of the state: there may be thousands, and they follow from the entries. The sums are what an anchor
needs, so that a restored file can be charged at least what it has lost. They grow with each charge by the most that the charge costs any
block, and by what it costs a person. What concerns a person in every year is added up apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.ledger.amounts import cost_value, ranges_value
from lapwing.ledger.block_balances import BLOCKS_IN_YEAR, BlockCharge, BlockTerms, most_of, standing_cost
from lapwing.ledger.protocol import EntryKind


@dataclass(frozen=True, slots=True)
class Sums:
    """The amounts of many costs, added up; a cost without a pure amount is counted instead."""

    loss: int = 0
    delta: int = 0
    pure: int = 0
    unbounded: int = 0
    """How many costs had no pure amount."""

    def plus(self, cost: Cost) -> Sums:
        """The sums with one cost more."""
        return Sums(self.loss + cost.loss, self.delta + cost.delta, self.pure + (cost.pure or 0), self.unbounded + (cost.pure is None))

    def since(self, earlier: Sums) -> Cost:
        """At least what was added after ``earlier``."""
        loss, delta, pure = (max(0, amount) for amount in (self.loss - earlier.loss, self.delta - earlier.delta, self.pure - earlier.pure))
        return Cost(loss=loss, delta=delta, pure=None if self.unbounded > earlier.unbounded else pure)


@dataclass(frozen=True, slots=True)
class BlockState:
    """What the ledger row and the anchor hold of blocks of time. It follows from the entries."""

    terms: BlockTerms
    hull: tuple[int, int] | None = None
    """The first and the last block that was ever charged."""
    charged: Sums = Sums()
    """At least what any block was charged."""
    person: Sums = Sums()
    """At least what a person lost in any year by charges that read blocks of time only."""
    always: Sums = Sums()
    """What a person lost in every year by charges that read tables without time."""
    restored: bool = False
    """Whether anything was ever charged again. Only then may a block have been charged more than its budget."""

    def after(self, charge: BlockCharge, *, restored: bool) -> BlockState:
        """The state with one charge more."""
        hull = [*(self.hull or ()), *(number for each in charge.ranges for number in (each.first, each.last) if number is not None)]
        return replace(
            self,
            hull=(min(hull), max(hull)) if hull else None,
            charged=self.charged.plus(most_of(each.cost for each in charge.ranges)),
            person=self.person if charge.standing else self.person.plus(charge.person),
            always=self.always.plus(charge.person) if charge.standing else self.always,
            restored=self.restored or restored,
        )


class Tally:
    """What entries add up to, from the first one on."""

    __slots__ = ("admitted", "blocks", "restored", "spent")

    def __init__(self) -> None:
        self.spent = Cost.zero()
        self.blocks: BlockState | None = None
        self.admitted: list[BlockCharge] = []
        """The charges since blocks were declared."""
        self.restored: list[BlockCharge] = []
        """What was charged again since then."""

    @property
    def charges(self) -> list[BlockCharge]:
        """Everything that blocks and persons were charged."""
        return [*self.admitted, *self.restored]

    def copy(self) -> Tally:
        """The same, which stays as it is."""
        other = Tally()
        other.spent, other.blocks = self.spent, self.blocks
        other.admitted, other.restored = self.admitted.copy(), self.restored.copy()
        return other

    def add(self, kind: EntryKind, amounts: Sequence[Any], evidence: str, blocks: str | None) -> None:
        """Add one entry; ``ledger-damaged`` if it could not follow the ones before."""
        cost = cost_value(*amounts)
        self.spent += cost
        if kind is EntryKind.BLOCKS:
            terms = terms_value(evidence)
            self.blocks = BlockState(terms) if self.blocks is None else replace(self.blocks, terms=terms)
        if self.blocks is None:
            if blocks is not None:
                raise _damaged()
            return
        charge = charge_of(cost, blocks)
        if charge is not None:
            is_restored = kind is EntryKind.RESTORE
            (self.restored if is_restored else self.admitted).append(charge)
            self.blocks = self.blocks.after(charge, restored=is_restored)


def charge_of(cost: Cost, blocks: str | None) -> BlockCharge | None:
    """What an entry charges to blocks and persons, from its cost, which the standing block pays, and its text; None if nothing."""
    if blocks is None:
        return None if cost == Cost.zero() else BlockCharge.of((), None, cost)
    ranges, person = ranges_value(blocks)
    if standing_cost(ranges, person) != cost or not ranges:
        raise _damaged()
    return BlockCharge.of(ranges, person, person)


def ranges_of(blocks: str | None) -> tuple[BlockCost, ...]:
    """What each block pays by an entry with this text."""
    return () if blocks is None else ranges_value(blocks)[0]


def person_of(blocks: str | None) -> Cost | None:
    """What an entry with this text adds to what one person loses."""
    return None if blocks is None else ranges_value(blocks)[1]


def terms_text(terms: BlockTerms) -> str:
    """The evidence of an entry by which the owner declared blocks of time, as canonical JSON."""
    return _text({"every": terms.every, "person_cap": None if terms.person_cap is None else str(terms.person_cap)})


def terms_value(text: str) -> BlockTerms:
    """Inverse of :func:`terms_text`."""
    try:
        fields = json.loads(text)
        terms = BlockTerms(fields["every"], None if fields["person_cap"] is None else Fraction(fields["person_cap"]))
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise _damaged() from error
    if terms.every not in BLOCKS_IN_YEAR or terms_text(terms) != text:
        raise _damaged()
    return terms


def block_state_text(state: BlockState) -> str:
    """A state as canonical JSON: every amount a text of digits."""
    fields = {
        "always": _sums(state.always),
        "charged": _sums(state.charged),
        "hull": state.hull,
        "person": _sums(state.person),
        "restored": state.restored,
        "terms": terms_text(state.terms),
    }
    return _text(fields)


def block_state_value(text: str) -> BlockState:
    """Inverse of :func:`block_state_text`."""
    try:
        fields = json.loads(text)
        hull = None if fields["hull"] is None else (int(fields["hull"][0]), int(fields["hull"][1]))
        sums = {name: Sums(*map(int, fields[name])) for name in ("always", "charged", "person")}
        state = BlockState(terms_value(fields["terms"]), hull, restored=bool(fields["restored"]), **sums)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise _damaged() from error
    if block_state_text(state) != text:
        raise _damaged()
    return state


def _sums(sums: Sums) -> list[str]:
    return [str(amount) for amount in (sums.loss, sums.delta, sums.pure, sums.unbounded)]


def _text(fields: dict[str, Any]) -> str:
    return json.dumps(fields, separators=(",", ":"), sort_keys=True)


def _damaged() -> LedgerError:
    return LedgerError("ledger-damaged", "the ledger holds a charge or state of blocks that cannot be read")
