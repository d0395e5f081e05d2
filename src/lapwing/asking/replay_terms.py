"""What a charge was asked with, so that it can be replayed: the terms that the ledger recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from lapwing.asking.older_charges import guessed_epsilons, of_line
from lapwing.asking.options import AskOptions, Terms, exact_number
from lapwing.curator.curator import Curator, Entry, EntryKind
from lapwing.ledger.purchases import AskedTerms, PurchaseKind
from lapwing.sql.text.privacy_terms import Clause, EpsilonTerm, ErrorTerm, RhoTerm, ShareTerm

PLACES_MAX = 28
"""Decimal places of a number that is written as a decimal; one with more, or with none that end, is a fraction."""
_REPLAYED = frozenset({PurchaseKind.STATEMENT, PurchaseKind.PILOT})


@dataclass(frozen=True, slots=True)
class ReplayTerms:
    """A statement that was charged, with the epsilons and the other terms it was asked with.

    Of a charge with a record there is one epsilon, exact, or none where the statement's words name a target or rho. Of an older charge
    ``terms`` is None and the epsilons are those that it may have been asked for, the likeliest first.
    """

    sql: str
    epsilons: tuple[str, ...]
    terms: AskedTerms | None = None


def asked_before(curator: Curator, entries: Sequence[Entry], charge: int) -> ReplayTerms | None:
    """The terms of a charge among these entries, newest first; None if it is not for a statement."""
    reserved = [entry for entry in entries if entry.kind is EntryKind.RESERVE]
    place = next((place for place, entry in enumerate(reserved) if entry.charge_id == charge), None)
    if place is None:
        return None
    entry, record = reserved[place], curator.ledger.purchase(charge)
    if record is None:
        is_of_norms = of_line(entry.detail).kind is PurchaseKind.NORMS
        return None if is_of_norms else ReplayTerms(entry.detail, guessed_epsilons(curator, entry, reserved[place + 1 :]))
    if record.kind not in _REPLAYED or record.terms is None:
        return None
    return ReplayTerms(entry.detail, (record.terms.epsilon,) if record.terms.epsilon else (), record.terms)


def recorded_terms(clause: Clause | None, options: AskOptions, terms: Terms, default: Fraction) -> AskedTerms:
    """The terms of a statement, from its words, the options and the default epsilon, as the ledger records them."""
    price = target = ""
    match None if clause is None else clause.asked:
        case None:
            price = exact_text(default if options.epsilon is None else exact_number(options.epsilon, "epsilon"))
        case EpsilonTerm(value):
            price = exact_text(value)
        case RhoTerm(value):
            target = f"rho {exact_text(value)}"
        case ErrorTerm(value):
            target = f"error {exact_text(value)}"
        case ShareTerm(value):
            target = f"share {exact_text(value)}"
    return AskedTerms(price, target, exact_text(terms.confidence), options.dialect, str(terms.reuse), terms.scaled_groups)


def exact_text(value: Fraction) -> str:
    """A number without loss: a decimal where it is one, else a fraction. Read back by ``exact_number``."""
    for places in range(PLACES_MAX):
        whole = value * 10**places
        if whole.denominator == 1 and len(str(whole.numerator)) <= PLACES_MAX:
            return f"{Decimal(whole.numerator).scaleb(-places):f}"
    return str(value)
