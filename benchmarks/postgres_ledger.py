"""How fast the ledger on PostgreSQL is, against plain INSERT on the same server.

    python -m benchmarks.postgres_ledger                       # about two minutes
    python -m benchmarks.postgres_ledger --seconds 20 --past 1_000_000

A temporary server on the disk, with fsync on; load from pgbench. Measured in turn, twice: plain INSERT of a row of similar size; a
reservation on one hot data set, as one function call that waits for the disk under the lock, and as the procedure that waits after it; the
procedure over 1,000 data sets; the procedure with so many past charges. Then what one Python worker adds to an answer. Ratios are of
neighbouring runs, because a shared machine is never the same for long.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from lapwing.kernel.permit import Permit
from lapwing.ledger.amounts import budget_text
from tests.ledger.cluster import APP_ROLE, Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request

DATA_SETS = 1000
_RANDOM = "\\set key random(1, 9000000000000000)\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8, help="of each run")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--past", type=int, default=100_000, help="past charges of a data set that is compared with an empty one")
    parser.add_argument("--answers", type=int, default=200, help="answers of one Python worker")
    chosen = parser.parse_args()
    os.environ["LAPWING_TEST_DISK"] = "1"
    cluster = Cluster(["shared_buffers=256MB", "max_wal_size=4GB"])
    try:
        with tempfile.TemporaryDirectory() as directory:
            measure(cluster, Path(directory), chosen)
    finally:
        cluster.close()


def measure(cluster: Cluster, directory: Path, chosen: argparse.Namespace) -> None:
    place = new_place(cluster, cluster.new_database(), directory)
    place.execute(
        "CREATE TABLE plain (id bigserial PRIMARY KEY, analyst text, request text, loss numeric, digest text)",
        f"GRANT ALL ON plain, plain_id_seq TO {APP_ROLE}",
        _many_data_sets(),
    )
    past = new_place(cluster, place.database, directory)
    with place.create(pure_budget(10**15)) as hot, past.create(pure_budget(10**15)) as full:
        add_past_charges(past, full.ledger_id, chosen.past)
        key = "'ana', 'k' || :key, 'digest of the plan', 1, 'SELECT 1', 1, 0, 0, ''"
        nothing = ", NULL" * 5
        scripts = {
            "INSERT": "INSERT INTO plain (analyst, request, loss, digest) VALUES ('ana', 'k' || :key, 1, 'digest of the plan');",
            "function, hot": f"SELECT outcome FROM lapwing.reserve('{hot.ledger_id}', '{hot.epoch}', 'n', {key});",
            "procedure, hot": f"CALL lapwing.reserve_durably('{hot.ledger_id}', '{hot.epoch}', 'n', {key}{nothing});",
            "procedure, 1,000 data sets": f"\\set d random(1, {DATA_SETS})\n"
            f"CALL lapwing.reserve_durably('l' || :d, 'e' || :d, 'n', {key}{nothing});",
            "procedure, past charges": f"CALL lapwing.reserve_durably('{full.ledger_id}', '{full.epoch}', 'n', {key}{nothing});",
        }
        print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        for _ in range(2):
            plain = rate(place, directory, scripts["INSERT"], chosen)
            print(f"{'INSERT':30} {plain:9,.0f}/s")
            for name in ("function, hot", "procedure, hot", "procedure, 1,000 data sets"):
                found = rate(place, directory, scripts[name], chosen)
                print(f"{name:30} {found:9,.0f}/s  {found / plain:.2f} of INSERT")
        print(f"one client, {chosen.past:,} past charges against none:")
        chosen.clients = 1
        ratios = []
        for _ in range(3):
            empty = rate(place, directory, scripts["procedure, hot"], chosen)
            filled = rate(place, directory, scripts["procedure, past charges"], chosen)
            ratios.append(empty / filled)
            print(f"  {1000 / empty:.2f} ms and {1000 / filled:.2f} ms a reservation: {empty / filled:.2f} x")
        print(f"  median {statistics.median(ratios):.2f} x")
        overhead(place, chosen.answers)


def rate(place: Place, directory: Path, script: str, chosen: argparse.Namespace) -> float:
    """Transactions a second of a pgbench script; a failure of any is a failure of the run."""
    file = directory / "script.sql"
    file.write_text(_RANDOM + script + "\n", encoding="utf-8")
    command = [str(place.cluster.programs / "pgbench"), "-n", "-h", str(place.cluster.home), "-U", APP_ROLE, "-f", str(file)]
    command += ["-c", str(chosen.clients), "-j", "1", "-T", str(chosen.seconds), place.database]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"tps = ([0-9.]+)", shown)
    assert found is not None and "failed transactions: 0 " in shown, shown
    return float(found[1])


def overhead(place: Place, answers: int) -> None:
    """What the ledger adds to one answer of a Python worker that does nothing else: reserve, anchor, commit."""
    times: dict[str, list[float]] = {"reserve": [], "commit": []}
    with place.open() as ledger:
        for number in range(answers):
            start = time.perf_counter()
            permit = ledger.reserve(request(f"timed {number}"))
            middle = time.perf_counter()
            assert isinstance(permit, Permit)
            ledger.commit(permit, b"a" * 2000)
            times["reserve"].append(middle - start)
            times["commit"].append(time.perf_counter() - middle)
    times["both"] = [sum(pair) for pair in zip(times["reserve"], times["commit"], strict=True)]
    for name, found in times.items():
        cuts = statistics.quantiles(found, n=100)
        print(f"one worker, {name}: p50 {1000 * statistics.median(found):.1f} ms, p99 {1000 * cuts[98]:.1f} ms")


def _many_data_sets() -> str:
    budget = f"'{budget_text(pure_budget(10**15))}'"
    return f"""DO $$ BEGIN FOR i IN 1..{DATA_SETS} LOOP
        PERFORM lapwing.create_data_set('l' || i, 's' || i, 'f' || i, {budget}, {budget}, 'bench', '');
        PERFORM lapwing.set_analyst('l' || i, 'ana', NULL, false, NULL, NULL, NULL, '');
        PERFORM lapwing.register_worker('l' || i, 'e' || i, 'h', 'b', 'n', 1, 's', 86400, '{{}}');
    END LOOP; END $$"""


def add_past_charges(place: Place, ledger_id: str, count: int) -> None:
    """Rows as so many past answers leave them. Only the time to charge after them is measured, so their hashes are made up."""
    place.execute(
        "SET session_replication_role = replica",
        f"""INSERT INTO lapwing.charge (ledger_id, charge_id, analyst, request_id, digest, version, summary, loss, delta, epoch, nonce,
            state, payload, payload_digest)
        SELECT '{ledger_id}', i, 'ana', 'past ' || i, 'digest ' || i, 1, 'SELECT 1', 1, 0, 'gone', 'n', 'committed',
            convert_to(repeat('a', 200), 'UTF8'), 'd'
        FROM generate_series(1, {count}) AS i""",
        f"""INSERT INTO lapwing.entry
        SELECT d.ledger_id, d.entries + 2 * i + k, '', CASE k WHEN 1 THEN 'reserve' ELSE 'commit' END, 'ana', i, 2 - k, 0, '', '',
            encode(sha256(convert_to(i || ' ' || k, 'UTF8')), 'hex')
        FROM lapwing.data_set d, generate_series(0, {count} - 1) AS i, generate_series(1, 2) AS k WHERE ledger_id = '{ledger_id}'""",
        f"""UPDATE lapwing.data_set SET charges = {count}, entries = entries + 2 * {count}, loss_spent = {count}
        WHERE ledger_id = '{ledger_id}'""",
        "ANALYZE lapwing.charge",
        "ANALYZE lapwing.entry",
    )


if __name__ == "__main__":
    main()
