"""What the server carries: many analysts on two replicas whose workers are killed, with a ledger and identities in PostgreSQL.

    python -m benchmarks.server_load                                # ten minutes, 64 analysts
    python -m benchmarks.server_load --seconds 60 --analysts 16

All on loopback and on one machine, the asking processes included. A temporary PostgreSQL server on the disk, with fsync on; two replicas of
`lapwing serve` with two workers each; two data sets of the demonstration, one roomy and one whose budget is used up on the way. Analysts
are threads; each asks one thing after the other: new questions (some of them the same as others ask at that moment), questions that were
asked before, requests sent again, replays, explanations; each ask with an Idempotency-Key, sent again to any replica until it is decided.
At moments by chance workers are killed (SIGKILL); once all of a replica is killed and started again; once the database is restarted.

Afterwards, from the tables of the ledger: the sums of all charges are what is spent, and within every budget and share; every answer that
was received has a committed charge with these very bytes; every committed charge is had again with its key, and is these bytes. Memory is
that of the workers (resident), once a second; the first minute of each does not count. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from tests.ledger.cluster import Cluster
from tests.server.campaign import Harm, Plan, Result, campaign
from tests.server.crowd import Kind


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--analysts", type=int, default=64)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2, help="of each replica")
    parser.add_argument("--worker-kills", type=int, default=20)
    parser.add_argument("--immediate", action="store_true", help="the database is stopped at once (SIGQUIT), not as an operator does")
    parser.add_argument("--scarce-epsilon", default="3", help="budget of the data set that is to be used up")
    parser.add_argument("--again", type=int, default=None, help="paid requests that are sent again at the end; all of them by default")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    plan = Plan(
        given.seconds,
        {Harm.WORKER: given.worker_kills, Harm.REPLICA: 1, Harm.QUIT if given.immediate else Harm.RESTART: 1},
        given.analysts,
        replicas=given.replicas,
        workers=given.workers,
        scarce_epsilon=given.scarce_epsilon,
        again_max=given.again,
        seed=given.seed,
    )
    os.environ["LAPWING_TEST_DISK"] = "1"
    cluster = Cluster(["shared_buffers=256MB", "max_wal_size=4GB"])
    try:
        with tempfile.TemporaryDirectory() as directory:
            result = campaign(cluster, Path(directory), plan, say=lambda text: print(text, file=sys.stderr, flush=True))
    finally:
        cluster.close()
    show(plan, result)
    sys.exit(bool(result.reckoning.wrong or result.crowd.surprises))


def show(plan: Plan, result: Result) -> None:
    """The table, and everything that is wrong."""
    counts, got = result.reckoning.counts, result.crowd.got
    paid = [one.seconds for one in got if one.kind is Kind.NEW and one.charge_id and not one.free and one.attempts == 1]
    free = [one.seconds for one in got if one.free and one.attempts == 1]
    rows: list[tuple[str, object]] = [
        ("analysts, seconds", f"{plan.analysts}, {result.seconds:.0f}"),
        ("replicas x workers", f"{plan.replicas} x {plan.workers}"),
        *result.harms.items(),
        ("answers", f"{counts['answers']:,} ({counts['answers'] / result.seconds:.1f} a second)"),
        *((name, f"{count:,}") for name, count in sorted(counts.items()) if name != "answers"),
        ("**overspent**", len(result.reckoning.overspent)),
        ("**uncharged answers**", len(result.reckoning.uncharged)),
        ("**paid answers lost**", len(result.reckoning.lost)),
        ("**answers that differ**", len(result.reckoning.unequal)),
        ("paid answers at the first attempt, p50 and p99", _cuts(paid)),
        ("free answers at the first attempt, p50 and p99", _cuts(free)),
        *((f"on the way: {name}", f"{count:,}") for name, count in result.crowd.troubles.most_common()),
        *((f"not expected: {name}", f"{count:,}") for name, count in result.crowd.surprises.items()),
        ("load of the machine, processors", f"{os.getloadavg()[1]:.1f}, {os.cpu_count()}"),
    ]
    for one in result.growths:
        rows.append(
            (
                f"memory of a worker over {one.seconds:.0f} s",
                f"{one.first_mb:.0f} to {one.last_mb:.0f} MB, {one.mb_a_minute:+.2f} MB a minute",
            )
        )
    print("| | |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")
    for text in result.reckoning.wrong[:20]:
        print(text)


def _cuts(seconds: list[float]) -> str:
    if len(seconds) < 2:
        return "too few"
    return f"{statistics.median(seconds):.2f} s, {statistics.quantiles(seconds, n=100)[98]:.2f} s"


if __name__ == "__main__":
    main()
