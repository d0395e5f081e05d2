"""EXPLAIN of blocks of time: which a statement reads, what each pays, and what one person loses over a year."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lapwing.answers.display.blocks import NO_CAP, PLURALS
from lapwing.answers.display.budget import epsilon_of_all
from lapwing.answers.display.number_format import figure
from lapwing.curator.curator import Curator
from lapwing.kernel.accounting import Cost
from lapwing.kernel.block_calendar import days_of_block
from lapwing.kernel.blocks import BlocksRead, merged
from lapwing.kernel.calendar import to_date
from lapwing.kernel.certify import Certified
from lapwing.ledger.amounts import lost_between


@dataclass(frozen=True, slots=True)
class BlockQuote:
    """The price of an answer by block."""

    cost: Cost
    """What each new block pays at most."""
    person: Cost
    """What one person loses at most, if it has rows in all of them."""
    reads: tuple[BlocksRead, ...]
    """The new blocks; all of them where none is new."""
    blocks: int
    missing: int
    """How many blocks there are, and how many of them are new."""
    whole_cost: Cost
    """What each block would pay if the range were measured as a whole."""
    whole_errors: Mapping[str, float]
    """The predicted errors of that."""


def block_lines(read: dict[str, Any] | None, unit: str, quote: BlockQuote | None = None) -> list[tuple[str, str]]:
    """What a statement reads of the blocks of time of a data set, as lines; none without them."""
    if read is None:
        return []
    every = read["every"]
    cap = NO_CAP if read["person_cap"] is None else f"cap {read['person_cap']:g}"
    over = f"one {unit} has lost epsilon {read['person_year_before']:.3g} at most, and {read['person_year_after']:.3g} after this; {cap}"
    person_year = ("person-year", over)
    if not read["ranges"]:
        return [("blocks", "none: it reads tables without time, whose budget is never renewed"), person_year]
    spans = [f"{each['first']} to {each['last']} ({count(each['number'], every)})" for each in read["ranges"]]
    standing = ", and the tables without time" if read["standing"] else ""
    pays = "each of these blocks pays the price" if len(spans) == 1 else "each block pays for the queries that read it"
    if quote is not None:
        known = quote.blocks - quote.missing
        pays = f"measured by {every}: all were measured before"
        if quote.missing:
            free = f"; {count(known, every)} were measured before and are free" if known else ""
            pays = f"measured by {every}: {count(quote.missing, every)} new, each pays the price once, for ever{free}"
    if read["block_local"]:
        local = f"a {unit}'s rows of one {every} decide only what that {every} adds"
    else:
        local = f"not block-local: a {unit} is one unit over all of them, so its rows of one {every} may be exchanged for others"
    lines = [("blocks", f"{' and '.join(spans)}{standing}; {pays}"), ("units", local), person_year]
    if quote is not None and quote.missing:
        errors = ", ".join(f"{name} {figure(error)}" for name, error in quote.whole_errors.items())
        as_one = f"each of {count(quote.blocks, every)} would pay" + (f"; predicted error: {errors}" if errors else "")
        lines.append(("as a whole", f"measured over the range at once, {as_one}"))
    return lines


def count(number: int, every: str) -> str:
    """So many blocks, as text."""
    return f"1 {every}" if number == 1 else f"{number:,} {PLURALS[every]}"


def blocks_read(
    curator: Curator, certified: Certified, price: Cost, *, stored: bool, quote: BlockQuote | None = None
) -> dict[str, Any] | None:
    """What a statement reads of the blocks of time of a data set, for JSON; None without them."""
    declared, spending = curator.declaration.blocks, curator.block_spending()
    if declared is None or spending is None:
        return None
    budget, every = curator.balance().budget, declared.every
    # Norms that are bought first are queries of the same statement: a person loses their cost too.
    whole = price if certified.person is None else certified.person + lost_between(certified.cost, price)
    adds = Cost.zero() if stored else whole if quote is None else quote.person
    reads = [query.reads for query in certified.queries] if quote is None else quote.reads
    read = merged(blocks for each in reads for blocks in each.blocks)
    days = [(days_of_block(first, every)[0], days_of_block(last, every)[1], last - first + 1) for first, last in read]
    return {
        "every": every.value,
        "ranges": [{"first": to_date(a).isoformat(), "last": to_date(b).isoformat(), "number": number} for a, b, number in days],
        "standing": any(each.standing for each in reads),
        "block_local": quote is not None or all(each.is_local for each in reads),
        **({} if quote is None else {"by_block": {"blocks": quote.blocks, "new": quote.missing}}),
        "person_year_before": epsilon_of_all(budget, spending.person),
        "person_year_after": epsilon_of_all(budget, spending.person + adds),
        "person_cap": None if spending.terms.person_cap is None else float(spending.terms.person_cap),
    }
