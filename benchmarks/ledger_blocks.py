"""What a charge to a range of blocks of time takes in a local ledger that has many, compared with a charge to one budget.

    python -m benchmarks.ledger_blocks                       # about three minutes
    python -m benchmarks.ledger_blocks --charges 10_000 --repeats 50

Two ledgers on the same disk have so many charges, all committed: one has blocks of time, and each charge reads a random range of them; the
other has one budget. They are filled with the functions that write a charge, in one transaction, and opened again, which checks all of it.
Then one ``reserve`` and ``commit`` on each in turn, so that both meet the same disk. Printed are the times to open, the medians, their
ratio, and, by itself, what the decision over blocks takes in memory. In the end both ledgers are verified.
"""

from __future__ import annotations

import argparse
import random  # noqa: TID251  (which blocks are read, not noise)
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.markdown import show, table

from lapwing.kernel.accounting import Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.block_balances import BlockBalances, BlockCharge, BlockTerms
from lapwing.ledger.local import rows
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.local.schema import LEDGER_FORMAT
from lapwing.ledger.local.sqlite_file import open_database
from lapwing.ledger.local.verify import verify
from lapwing.ledger.protocol import Request
from lapwing.ledger.workers import current_worker
from tests.ledger.support import FINGERPRINT, SOURCE, approximate_budget, ledger_path, new_ledger, open_ledger, request

LOSS = 10
"""Ledger units of one charge."""
TERMS = BlockTerms("day", None)


def asked(key: str, blocks: int, dice: random.Random) -> Request:
    """A request over a random range; of one budget if there are no blocks."""
    whole = request(key, loss=LOSS)
    if not blocks:
        return whole
    first, last = sorted((dice.randrange(blocks), dice.randrange(blocks)))
    return replace(whole, ranges=(BlockCost(first, last, Cost(LOSS, 0)),), person=Cost(LOSS, 0))


def fill(directory: Path, requests: Iterator[Request], *, blocks: bool) -> None:
    """Make a ledger with these charges, all committed, in one transaction."""
    with new_ledger(directory, budget=approximate_budget(1000)) as ledger:
        if blocks:
            ledger.declare_blocks(TERMS, read=None, units=1, reason="measured")
    database = open_database(ledger_path(directory), LEDGER_FORMAT)
    try:
        with database.write() as connection:
            state, worker = rows.read_state(connection), rows.add_worker(connection, current_worker())
            for one in requests:
                charge_id, state = rows.add_charge(connection, state, one, worker)
                state = rows.settle(connection, state, charge_id, payload=b"answer", detail="")
    finally:
        database.close()


def opened(directory: Path) -> tuple[LocalLedger, float]:
    """A ledger, and the seconds that it took to open."""
    begin = time.perf_counter()
    ledger = open_ledger(directory)
    return ledger, time.perf_counter() - begin


def charged(ledger: LocalLedger, one: Request) -> float:
    """The seconds of one charge with its answer."""
    begin = time.perf_counter()
    permit = ledger.reserve(one)
    assert isinstance(permit, Permit)
    ledger.commit(permit, b"answer")
    return time.perf_counter() - begin


def decided(charges: int, blocks: int, repeats: int) -> float:
    """The median seconds of admitting one charge and of counting it, in memory."""
    dice, budget = random.Random(1), approximate_budget(1000)

    def one() -> BlockCharge:
        each = asked("", blocks, dice)
        return BlockCharge.of(each.ranges, each.person, each.cost)

    balances, seconds = BlockBalances(replace(TERMS, person_cap=budget.epsilon), [one() for _ in range(charges)]), list[float]()
    for _ in range(repeats):
        charge, begin = one(), time.perf_counter()
        assert balances.can_pay(budget, charge) and balances.within_cap(budget, charge)
        balances.add(charge)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=3650)
    parser.add_argument("--charges", type=int, default=100_000, help="that the ledgers have before anything is measured")
    parser.add_argument("--repeats", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        ledgers, seconds = dict[int, LocalLedger](), dict[int, float]()
        for blocks in (0, options.blocks):
            directory, dice = Path(temporary) / str(blocks), random.Random(0)
            directory.mkdir()
            fill(directory, (asked(f"key {number}", blocks, dice) for number in range(options.charges)), blocks=blocks > 0)
            ledgers[blocks], seconds[blocks] = opened(directory)
        times: dict[int, list[float]] = {blocks: [] for blocks in ledgers}
        dice = random.Random(2)
        for number in range(options.repeats):
            for blocks, ledger in ledgers.items():
                times[blocks].append(charged(ledger, asked(f"measured {number}", blocks, dice)))
        for blocks, ledger in ledgers.items():
            ledger.disconnect()
            directory = Path(temporary) / str(blocks)
            found = verify(ledger_path(directory), source_id=SOURCE, fingerprint=FINGERPRINT, home=directory / "home")
            assert found.problems == (), found.problems
    medians = {blocks: statistics.median(times[blocks]) for blocks in times}
    names = {0: "one budget", options.blocks: f"{options.blocks:,} blocks"}
    lines = [[names[blocks], f"{1000 * medians[blocks]:.2f} ms", f"{seconds[blocks]:.1f} s"] for blocks in names]
    table(f"Ledgers with {options.charges:,} charges", ["ledger", "reserve and commit, median", "to open"], lines)
    in_memory = 1000 * decided(options.charges, options.blocks, 50)
    show("", f"Ratio of the medians: {medians[options.blocks] / medians[0]:.2f}.", f"In memory, with a cap: {in_memory:.2f} ms a charge.")


if __name__ == "__main__":
    main()
