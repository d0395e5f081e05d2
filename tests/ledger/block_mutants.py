"""Deliberate mistakes in the code of blocks of time, to show that the brute-force model would see them."""

from __future__ import annotations

from tests.ledger.mutants import NOT_VERIFIED, TOTAL_MAY_BE_PASSED, Mutant

_BALANCES, _LOSSES, _ACTS = "block_balances", "local/block_losses", "local/block_acts"

SEEN_BY_THE_BLOCK_MODEL = [
    Mutant(
        "a range ends one block early", ((_BALANCES, "self._split(first), self._split(last + 1)", "self._split(first), self._split(last)"),)
    ),
    Mutant(
        "the last block of a range is not checked",
        ((_BALANCES, "bisect_right(self._starts, last))", "bisect_right(self._starts, max(first, last - 1)))"), NOT_VERIFIED),
    ),
    Mutant(
        "only the first range is checked",
        (
            (
                _BALANCES,
                "each.cost) for each in charge.ranges)\n\n    def within_cap",
                "each.cost) for each in charge.ranges[:1])\n\n    def within_cap",
            ),
            NOT_VERIFIED,
        ),
    ),
    Mutant("blocks are not checked", (("local/decisions", "if not balances.can_pay(state.budget, charge):", "if False:"), NOT_VERIFIED)),
    Mutant("no cap", (("local/decisions", "if not balances.within_cap(state.budget, charge):", "if False:"), NOT_VERIFIED)),
    Mutant("a year is one block short", ((_BALANCES, "BLOCKS_IN_YEAR[every] - 1, list", "BLOCKS_IN_YEAR[every] - 2, list"),)),
    Mutant(
        "tables without time concern a person in the years of the blocks only",
        ((_BALANCES, "if self.standing:\n", "if self.standing and not self.ranges:\n"),),
    ),
    Mutant(
        "the standing block inherits no more than was spent",
        ((_ACTS, "more = lost_between(state.spent, inherited)", "more = Cost.zero()"),),
    ),
    Mutant("blocks inherit what was spent for one unit", ((_ACTS, "exchange_cost(state.spent, units,", "exchange_cost(state.spent, 1,"),)),
    Mutant("blocks inherit nothing", ((_ACTS, "[] if read is None else [", "[] if True else ["),)),
    Mutant(
        "what was inherited may be more than a budget",
        ((_ACTS, "if not admits(state.budget, spent=Cost.zero(), cost=inherited):", "if False:"), TOTAL_MAY_BE_PASSED, NOT_VERIFIED),
    ),
    Mutant("a cap below what was lost", ((_ACTS, "if not balances.fit_cap(state.budget, terms):", "if False:"), NOT_VERIFIED)),
    Mutant(
        "a budget below what a block has spent", (("local/ledger", " or not (balances is None or balances.fit(to)):", ":"), NOT_VERIFIED)
    ),
    Mutant("the cache is not caught up", (("local/block_book", "in _charges(connection, self._entries + 1, state.entries):", "in ():"),)),
    Mutant("the cache counts an entry twice", (("local/block_book", "self._entries + 1, state.entries", "self._entries, state.entries"),)),
    Mutant(
        "the standing block pays for all blocks", (("local/rows", "cost=standing_cost(request.ranges, request.cost)", "cost=request.cost"),)
    ),
    Mutant("no pure amount is a pure amount of zero", ((_BALANCES, "pure=None if unbounded else pure)", "pure=pure)"), NOT_VERIFIED)),
    Mutant(
        "a restored file is charged for one block only",
        ((_LOSSES, "balances.over(*anchored.hull)", "balances.over(anchored.hull[0], anchored.hull[0])"),),
    ),
    Mutant(
        "a restored file is charged half",
        ((_LOSSES, "anchored.charged.since(before.charged)", "Cost(anchored.charged.since(before.charged).loss // 2, 0)"),),
    ),
    Mutant("a restored file forgets persons", ((_LOSSES, "ranges_text(ranges, person)", "ranges_text(ranges, Cost.zero())"),)),
    Mutant(
        "a restored file forgets who was concerned in every year",
        ((_LOSSES, "always = anchored.always.since(before.always)", "always = Cost.zero()"),),
    ),
]
