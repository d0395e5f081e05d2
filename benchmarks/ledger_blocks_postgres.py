"""How fast the ledger on PostgreSQL charges blocks of time, against a single budget, in the same run.

    python -m benchmarks.ledger_blocks_postgres                        # about five minutes
    python -m benchmarks.ledger_blocks_postgres --past 20_000 --asks 300

A temporary server on the disk, with fsync on. Two data sets have the same number of past charges: those of one are over random ranges of
ten years of days. They are inserted in bulk, and ``verify`` accepts them. Then reservations and commits of both are measured in turn, one
by one, each with its anchor: a shared machine is never the same for long, so only the ratio says something.
"""

from __future__ import annotations

import argparse
import os
import random  # noqa: TID251  (which ranges are asked for, not noise)
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from lapwing.kernel.accounting import Budget, Cost
from lapwing.kernel.blocks import BlockCost
from lapwing.kernel.permit import Permit
from lapwing.ledger.amounts import ranges_text
from lapwing.ledger.block_balances import BlockCharge, BlockTerms, Steps, most_of
from lapwing.ledger.postgres import rows
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import Request
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import approximate_budget, request

FIRST, BLOCKS = 20_000, 3650
LEVELS, PARTS = 6, 8
AT = "2026-01-01T00:00:00.000+00:00"
AMOUNTS = ("loss", "delta", "pure")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--past", type=int, default=100_000, help="past charges of each data set")
    parser.add_argument("--asks", type=int, default=600, help="reservations of each data set that are measured")
    chosen = parser.parse_args()
    os.environ["LAPWING_TEST_DISK"] = "1"
    cluster = Cluster(["shared_buffers=256MB", "max_wal_size=4GB"])
    try:
        with tempfile.TemporaryDirectory() as directory:
            measure(cluster, Path(directory), past=chosen.past, asks=chosen.asks)
    finally:
        cluster.close()


def measure(cluster: Cluster, directory: Path, *, past: int, asks: int) -> None:
    rng, budget = random.Random(3650), approximate_budget(1000)
    database = cluster.new_database()
    single, blocks = (new_place(cluster, database, directory) for _ in range(2))
    for place in (single, blocks):
        with place.create(budget) as ledger:
            if place is blocks:
                ledger.declare_blocks(BlockTerms("day", Fraction(900)), read=None, units=1, reason="measured")
            charges = [one_charge(rng, f"past {number}", of_blocks=place is blocks) for number in range(past)]
            insert(place, ledger, charges)
    with reopened(single) as one, reopened(blocks) as other:
        for place, ledger in ((single, one), (blocks, other)):
            begun = time.perf_counter()
            report = verify(ledger.connection, place.source_id, anchors=place.anchors)
            print(f"verify of {report.charges:,} charges took {time.perf_counter() - begun:.1f} s, problems: {report.problems}", flush=True)
        reserving: dict[Place, list[float]] = {single: [], blocks: []}
        both: dict[Place, list[float]] = {single: [], blocks: []}
        for number in range(asks):
            for place, ledger in ((single, one), (blocks, other)):
                asked = one_charge(rng, f"asked {number}", of_blocks=place is blocks)
                begun = time.perf_counter()
                permit = ledger.reserve(asked)
                assert isinstance(permit, Permit)
                reserved = time.perf_counter()
                ledger.commit(permit, b"a" * 2000)
                reserving[place].append(reserved - begun)
                both[place].append(time.perf_counter() - begun)
        begun = time.perf_counter()
        found = other.blocks()
        reading = time.perf_counter() - begun
        begun = time.perf_counter()
        for number in range(asks):
            asked = one_charge(rng, f"{number}", of_blocks=True)
            other.require_payable(asked.analyst, asked.cost, asked.ranges, asked.person)
        asking = (time.perf_counter() - begun) / asks
    assert found is not None
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; {past:,} past charges, {BLOCKS:,} blocks")
    for name, of in (("reserve", reserving), ("reserve and commit", both)):
        first, second = (1000 * statistics.median(of[place]) for place in (single, blocks))
        print(f"{name:20} {first:7.2f} ms with a single budget, {second:7.2f} ms with blocks: {second / first:.2f} times")
    print(f"{len(found.ranges):,} ranges with a balance of their own read in {1000 * reading:.0f} ms; a question {1000 * asking:.2f} ms")


def reopened(place: Place) -> PostgresLedger:
    """What was inserted is ahead of the anchor, which is no problem: the anchor's entry is there."""
    return place.open()


def one_charge(rng: random.Random, key: str, *, of_blocks: bool) -> Request:
    """Over a random range, for a price of which every budget holds many."""
    cost = Cost(loss=10**9 + rng.randrange(10**6), delta=rng.randrange(10**8))
    if not of_blocks:
        return request(key, loss=cost.loss, delta=cost.delta)
    first, last = sorted(FIRST + rng.randrange(BLOCKS) for _ in range(2))
    plain = request(key, loss=cost.loss, delta=cost.delta)
    return replace(plain, ranges=(BlockCost(first, last, cost),), person=Cost(loss=2 * cost.loss, delta=cost.delta))


def insert(place: Place, ledger: PostgresLedger, charges: list[Request]) -> None:
    """Past charges, all forfeited, with the entries, sums and trees that charging them one by one would have left."""
    state, epoch = ledger.state(), ledger.epoch
    head, entry_id = state.head, state.entries
    spent = most = persons = Cost.zero()
    charge_rows: list[tuple[object, ...]] = []
    entry_rows: list[tuple[object, ...]] = []
    for number, one in enumerate(charges, 1):
        nonce = rows.digest_of(str(number))
        fields = [str(number), one.analyst, None, one.request_id, one.digest, "1", "", one.summary, str(one.cost.loss), str(one.cost.delta)]
        evidence = rows.digest_of(*fields, epoch, nonce)
        standing, text = one.cost, None
        if one.ranges and one.person is not None:
            standing, text = Cost.zero(), ranges_text(one.ranges, one.person)
            most, persons = most + most_of(each.cost for each in one.ranges), persons + one.person
        spent += standing
        for kind, cost, detail, of_blocks, proof in (
            ("reserve", standing, one.summary, text, evidence),
            ("forfeit", Cost.zero(), "no answer", None, ""),
        ):
            entry_id += 1
            amounts = [str(cost.loss), str(cost.delta)]
            hashed = [head, str(entry_id), AT, kind, one.analyst, str(number), *amounts, detail, proof]
            head = rows.digest_of(*rows.with_later(hashed, *rows.later_of_entry(None, of_blocks)))
            entry_rows.append((state.ledger_id, entry_id, AT, kind, one.analyst, number, *amounts, detail, proof, head, of_blocks))
        amounts = [str(one.cost.loss), str(one.cost.delta)]
        key = (one.analyst, one.request_id, one.digest, 1, one.summary)
        charge_rows.append((state.ledger_id, number, *key, *amounts, epoch, nonce, "forfeited"))
    whole = sum((one.cost for one in charges), Cost.zero())
    with place.cluster.superuser(place.database) as superuser, superuser.transaction():
        superuser.execute("SET LOCAL session_replication_role = replica")
        columns = "ledger_id, charge_id, analyst, request_id, digest, version, summary, loss, delta, epoch, nonce, state"
        with superuser.cursor().copy(f"COPY lapwing.charge ({columns}) FROM STDIN".encode()) as copy:
            for row in charge_rows:
                copy.write_row(row)
        columns = "ledger_id, entry_id, at, kind, analyst, charge_id, loss, delta, detail, evidence, chained, blocks"
        with superuser.cursor().copy(f"COPY lapwing.entry ({columns}) FROM STDIN".encode()) as copy:
            for row in entry_rows:
                copy.write_row(row)
        amounts = [str(whole.loss), str(whole.delta)]
        superuser.execute(
            "UPDATE lapwing.analyst SET loss_spent = %s, delta_spent = %s, pure_spent = NULL, day = %s, day_loss = %s, day_pure = NULL"
            " WHERE ledger_id = %s AND analyst = 'ana'",
            [*amounts, AT[:10], amounts[0], state.ledger_id],
        )
        superuser.execute(
            "UPDATE lapwing.data_set SET loss_spent = %s, delta_spent = %s, pure_spent = %s, entries = %s, charges = %s, head = %s,"
            " day = %s, day_loss = %s, day_pure = NULL WHERE ledger_id = %s",
            [spent.loss, spent.delta, spent.pure, entry_id, len(charges), head, AT[:10], amounts[0], state.ledger_id],
        )
        if state.blocks is not None:
            insert_trees(superuser, state.ledger_id, state.budget, charges)
            hull = [number for one in charges for each in one.ranges for number in (each.first, each.last) if number is not None]
            superuser.execute(
                "UPDATE lapwing.data_set SET blocks_first = %s, blocks_last = %s, blocks_loss = %s, blocks_delta = %s, blocks_pure = NULL,"
                " persons_loss = %s, persons_delta = %s, persons_pure = NULL WHERE ledger_id = %s",
                [min(hull), max(hull), most.loss, most.delta, persons.loss, persons.delta, state.ledger_id],
            )
    with place.cluster.superuser(place.database) as superuser:
        superuser.execute("VACUUM ANALYZE")


def insert_trees(superuser: object, ledger_id: str, budget: Budget, charges: list[Request]) -> None:
    listed = [BlockCharge.of(one.ranges, one.person, one.cost) for one in charges]
    of_blocks = Steps((each.first or 0, each.last or 0, each.cost) for one in listed for each in one.ranges)
    of_years = Steps((first, last, one.person) for one in listed for first, last in one.years("day"))
    for tree, steps in ((1, of_blocks), (2, of_years)):
        most = most_of(each.cost for each in steps.ranges())
        superuser.execute(  # type: ignore[attr-defined]
            "UPDATE lapwing.block_tree SET loss_most = %s, delta_most = %s, pure_most = NULL WHERE ledger_id = %s AND tree = %s",
            [most.loss, most.delta, ledger_id, tree],
        )
        for level, place, own, mosts in nodes(steps):
            columns = [[getattr(cost, name) for cost in costs] for costs in (own, mosts) for name in AMOUNTS]
            superuser.execute(  # type: ignore[attr-defined]
                "INSERT INTO lapwing.block_node VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", [ledger_id, tree, level, place, *columns]
            )


def nodes(steps: Steps) -> Iterator[tuple[int, int, list[Cost], list[Cost]]]:
    """Nodes whose single blocks own everything: one of the shapes that charges can leave."""
    below = {number + 2**16: each.cost for each in steps.ranges() for number in range(each.first or 0, (each.last or 0) + 1)}
    for level in range(1, LEVELS + 1):
        above: dict[int, Cost] = {}
        for place in sorted({number // PARTS for number in below}):
            most = [below.get(PARTS * place + part, Cost.zero()) for part in range(PARTS)]
            own = most if level == 1 else [Cost.zero()] * PARTS
            yield level, place, own, most
            above[place] = most_of(most)
        below = above


if __name__ == "__main__":
    main()
