"""How fast the ledger on PostgreSQL is, against plain INSERT on the same server.

    python -m benchmarks.postgres_ledger                       # about two minutes
    python -m benchmarks.postgres_ledger --seconds 20 --past 1_000_000

A temporary server on the disk, with fsync on; load from pgbench. Measured in turn, twice: plain INSERT of a row of similar size; pgbench's
own TPC-B-like transactions; a reservation on one hot data set, as one function call that waits for the disk under the lock, and as the
procedure that waits after it; 32 reservations in one statement, as a process would send them in which so many analysts wait, from one
client and from all; the procedure over 1,000 data sets; 32 reservations of as many of these in one statement, as a server process sends
them, from one process and from four (what was charged is counted: what others hold is left out); and threads of one Python process, with
their anchors: on one data set, and on 50 of those 1,000 (as many as a server has open), each reservation by itself, each data set by
itself, and all that wait together, as a server sends them. Then the procedure with so many past charges, and what Python workers add to an
answer. Ratios are of neighbouring runs, because a shared machine is never the same for long.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import secrets
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from lapwing.kernel.permit import Permit
from lapwing.ledger.amounts import budget_text
from lapwing.ledger.postgres import across
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.shared import SharedPostgresLedger
from tests.ledger.cluster import APP_ROLE, Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import pure_budget, request

DATA_SETS = 1000
OPEN_SETS = 50
"""Of these in one process: what a server opens at most, unless it is told otherwise."""
SERVER_PROCESSES = 4
TOGETHER = 32
CHUNKS, STATEMENTS_A_CHUNK = 9, 40
ANSWERS_A_THREAD = 5
TPCB_SCALE = 10
ANSWER_BYTES = 2000
MANY_WORKERS = 8
_RANDOM = "\\set key random(1, 9000000000000000)\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=8, help="of each run")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--past", type=int, default=100_000, help="past charges of a data set that is compared with an empty one")
    parser.add_argument("--answers", type=int, default=200, help="answers of each Python worker")
    parser.add_argument("--processor-time", action="store_true", help="only that, which says the same on a busy machine")
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
        key = "'ana', 'k' || :key, 'digest of the plan', 1, 'SELECT 1', 1, 0, NULL, 0, ''"
        nothing = ", NULL" * 5
        together = f"CALL lapwing.reserve_many_durably({_many_requests(hot.ledger_id, hot.epoch, TOGETHER)}{nothing});"
        across_sets = f"\\set d random(1, {DATA_SETS})\nCALL lapwing.reserve_across_durably({_across_data_sets(TOGETHER)}, NULL, NULL);"
        scripts = {
            "INSERT": "INSERT INTO plain (analyst, request, loss, digest) VALUES ('ana', 'k' || :key, 1, 'digest of the plan');",
            "function, hot": f"SELECT outcome FROM lapwing.reserve('{hot.ledger_id}', '{hot.epoch}', 'n', {key});",
            "procedure, hot": f"CALL lapwing.reserve_durably('{hot.ledger_id}', '{hot.epoch}', 'n', {key}{nothing});",
            "hot, 32 a statement": together,
            "hot, 32 a statement, one client": together,
            "procedure, 1,000 data sets": f"\\set d random(1, {DATA_SETS})\n"
            f"CALL lapwing.reserve_durably('l' || :d, 'e' || :d, 'n', {key}{nothing});",
            "procedure, past charges": f"CALL lapwing.reserve_durably('{full.ledger_id}', '{full.epoch}', 'n', {key}{nothing});",
        }
        prepare_tpcb(place)
        several = [new_place(cluster, place.database, directory) for _ in range(OPEN_SETS)]
        for one in several:
            one.create(pure_budget(10**15)).disconnect()
        if not chosen.processor_time:
            rates(place, directory, chosen, scripts, several, together=together, across_sets=across_sets)
        processor_time_of_threads(several, TOGETHER)
        processor_time_of_threads([place], TOGETHER)
        processor_time_of_answers(place)
        names = ("INSERT", "procedure, hot", "hot, 32 a statement", "procedure, 1,000 data sets")
        processor_time(place, {**{name: scripts[name] for name in names}, "1,000 data sets, 32 a statement": across_sets})
    for workers in () if chosen.processor_time else (1, MANY_WORKERS):
        overhead(place, workers, chosen.answers)


def rates(
    place: Place,
    directory: Path,
    chosen: argparse.Namespace,
    scripts: dict[str, str],
    several: Sequence[Place],
    *,
    together: str,
    across_sets: str,
) -> None:
    """Requests a second, twice in turn; then with past charges and without."""
    for _ in range(2):
        plain = rate(place, directory, scripts["INSERT"], chosen)
        tpcb = rate(place, directory, None, chosen)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        print(f"{'INSERT':33} {plain:9,.0f}/s")
        print(f"{'TPC-B-like':33} {tpcb:9,.0f}/s  {tpcb / plain:.2f} of INSERT")
        for name in list(scripts)[1:-1]:
            requests = TOGETHER if scripts[name] is together else 1
            found = requests * rate(place, directory, scripts[name], chosen, clients=1 if "one client" in name else None)
            print(f"{name:33} {found:9,.0f}/s  {found / plain:.2f} of INSERT, {found / tpcb:.2f} of TPC-B-like", flush=True)
        for clients in (1, SERVER_PROCESSES):
            before = charges_of_many(place)
            rate(place, directory, across_sets, chosen, clients=clients)
            found = (charges_of_many(place) - before) / chosen.seconds
            name = f"1,000, 32 a statement, {clients} client{'s' * (clients > 1)}"
            print(f"{name:33} {found:9,.0f}/s  {found / plain:.2f} of INSERT, {found / tpcb:.2f} of TPC-B-like", flush=True)
        for name, places, kind, commits, crosses in (
            ("32 threads, one by one", [place], PostgresLedger, False, False),
            ("the same, with commits", [place], PostgresLedger, True, False),
            ("32 threads, together", [place], SharedPostgresLedger, False, True),
            ("the same, with commits", [place], SharedPostgresLedger, True, True),
            ("50 sets, one by one", several, PostgresLedger, True, False),
            ("50 sets, each set by itself", several, SharedPostgresLedger, True, False),
            ("50 sets, together", several, SharedPostgresLedger, False, True),
            ("the same, with commits", several, SharedPostgresLedger, True, True),
        ):
            found = rate_of_threads(places, kind, chosen, commits=commits, crosses=crosses)
            print(f"{name:33} {found:9,.0f}/s  {found / plain:.2f} of INSERT, {found / tpcb:.2f} of TPC-B-like", flush=True)
    print(f"one client, {chosen.past:,} past charges against none:")
    chosen.clients = 1
    ratios = []
    for _ in range(3):
        empty = rate(place, directory, scripts["procedure, hot"], chosen)
        filled = rate(place, directory, scripts["procedure, past charges"], chosen)
        ratios.append(empty / filled)
        print(f"  {1000 / empty:.2f} ms and {1000 / filled:.2f} ms a reservation: {empty / filled:.2f} x")
    print(f"  median {statistics.median(ratios):.2f} x")


def prepare_tpcb(place: Place) -> None:
    """The tables of pgbench, in the same database."""
    command = [str(place.cluster.programs / "pgbench"), "-i", "-q", "-s", str(TPCB_SCALE), "-h", str(place.cluster.home), "-U", "postgres"]
    subprocess.run([*command, place.database], check=True, capture_output=True)


def rate(place: Place, directory: Path, script: str | None, chosen: argparse.Namespace, *, clients: int | None = None) -> float:
    """Transactions a second of a pgbench script (None: its own TPC-B-like one); a failure of any is a failure of the run."""
    file = directory / "script.sql"
    file.write_text(_RANDOM + (script or "") + "\n", encoding="utf-8")
    what = ["-U", "postgres", "-b", "tpcb-like"] if script is None else ["-U", APP_ROLE, "-f", str(file)]
    command = [str(place.cluster.programs / "pgbench"), "-n", "-h", str(place.cluster.home), *what]
    command += ["-c", str(clients or chosen.clients), "-j", "1", "-T", str(chosen.seconds), place.database]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"tps = ([0-9.]+)", shown)
    assert found is not None and "failed transactions: 0 " in shown, shown
    return float(found[1])


def charges_of_many(place: Place) -> int:
    """How many there are in the 1,000 data sets."""
    with place.cluster.superuser(place.database) as connection:
        row = connection.execute("SELECT sum(charges)::bigint FROM lapwing.data_set WHERE source_id ~ '^s[0-9]+$'").fetchone()
    assert row is not None and isinstance(row[0], int)
    return row[0]


@contextmanager
def _each_set_by_itself() -> Iterator[None]:
    """As it was before data sets went together."""
    plain = across.crossing_of
    across.crossing_of = lambda database: None
    try:
        yield
    finally:
        across.crossing_of = plain


@contextmanager
def _used(places: Sequence[Place], kind: type[PostgresLedger], *, crosses: bool) -> Iterator[list[PostgresLedger]]:
    with ExitStack() as opened:
        if not crosses:
            opened.enter_context(_each_set_by_itself())
        yield [opened.enter_context(kind.open(one.dsn, source_id=one.source_id, anchors=one.anchors)) for one in places]


def _in_threads(count: int, client: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=client, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _answer(ledgers: Sequence[PostgresLedger], *, commits: bool = True) -> int:
    """One request to one of them; how many statements that would have been."""
    ledger = ledgers[secrets.randbelow(len(ledgers))]
    permit = ledger.reserve(request(f"{secrets.token_hex(8)}", analyst="ana", loss=1))
    assert isinstance(permit, Permit)
    if commits:
        ledger.commit(permit, b"a" * ANSWER_BYTES)
    return 1 + commits


def _answers(ledgers: Sequence[PostgresLedger], _: int) -> None:
    for _ in range(ANSWERS_A_THREAD):
        _answer(ledgers)


def rate_of_threads(
    places: Sequence[Place], kind: type[PostgresLedger], chosen: argparse.Namespace, *, commits: bool, crosses: bool
) -> float:
    """Reservations a second of as many threads as there are clients, of one process that shares these ledgers: as a server makes them.

    With ``commits``, each is answered, and what is counted is both. What is left reserved is forfeited outside the time.
    """
    done = [0] * chosen.clients
    with _used(places, kind, crosses=crosses) as ledgers:
        begun = time.monotonic()

        def client(number: int) -> None:
            while time.monotonic() < begun + chosen.seconds:
                done[number] += _answer(ledgers, commits=commits)

        _in_threads(chosen.clients, client)
        took = time.monotonic() - begun
    return sum(done) / took


def processor_time_of_threads(places: Sequence[Place], clients: int) -> None:
    """What an answer (reserve, anchor, commit, anchor) takes of a processor, in the database's server and in the process that asks."""
    for name, kind, crosses in (
        ("each request by itself", PostgresLedger, False),
        ("each data set by itself", SharedPostgresLedger, False),
        ("all together", SharedPostgresLedger, True),
    ):
        found: list[tuple[float, float]] = []
        with _used(places, kind, crosses=crosses) as ledgers:
            for _ in range(CHUNKS):
                before = _server_time(places[0]), time.process_time()
                _in_threads(clients, partial(_answers, ledgers))
                server, process = _server_time(places[0]) - before[0], time.process_time() - before[1]
                found.append((server / 1000 / clients / ANSWERS_A_THREAD, 1e6 * process / clients / ANSWERS_A_THREAD))
        server, process = (statistics.median(column) for column in zip(*found[1:], strict=True))  # the first opens connections
        threads = f"{len(places)} data sets, {clients} threads, {name}"
        print(f"processor time, {threads}: {server:.0f} us an answer in the server, {process:.0f} us here", flush=True)


def _server_time(place: Place) -> int:
    """Nanoseconds that the processes of the server have had for this database, of those that are there."""
    with place.cluster.superuser() as connection:
        pids = connection.execute("SELECT pid FROM pg_stat_activity WHERE datname = %s", [place.database]).fetchall()
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for (pid,) in pids)


def processor_time(place: Place, scripts: dict[str, str]) -> None:
    """What one request takes of a processor in the server, sent by one client; unlike a rate it says the same on a busy machine."""
    with psycopg.connect(place.dsn, autocommit=True, prepare_threshold=None) as connection:
        clock = Path(f"/proc/{connection.info.backend_pid}/schedstat")  # nanoseconds on a processor, then others
        found: dict[str, list[float]] = {name: [] for name in scripts}
        for _ in range(CHUNKS):
            for name, script in scripts.items():
                before = int(clock.read_text().split()[0])
                for _ in range(STATEMENTS_A_CHUNK):
                    statement = script.partition("\n")[2] or script  # without what pgbench draws
                    statement = statement.replace(":key", str(secrets.randbits(60))).replace(":d", str(1 + secrets.randbelow(DATA_SETS)))
                    connection.execute(statement.encode())
                used = int(clock.read_text().split()[0]) - before
                found[name].append(used / 1000 / STATEMENTS_A_CHUNK / (TOGETHER if "32 a statement" in name else 1))
    for name, chunks in found.items():
        print(f"processor time, {name}: median {statistics.median(chunks):.0f} us a request, least {min(chunks):.0f} us")


def processor_time_of_answers(place: Place) -> None:
    """What reserving and storing an answer take of a processor in the server: one by one, and 32 in one statement."""
    with PostgresLedger.open(place.dsn, source_id=place.source_id, anchors=place.anchors) as ledger:
        [(pid,)] = ledger.connection.ask("SELECT pg_catalog.pg_backend_pid()", again=True)
        clock = Path(f"/proc/{pid}/schedstat")
        found: dict[str, list[float]] = {"reserve": [], "commit": [], "reserve, 32 together": [], "commit, 32 together": []}

        def used(name: str, act: Callable[[], Any]) -> Any:
            before = int(clock.read_text().split()[0])
            result = act()
            found[name].append((int(clock.read_text().split()[0]) - before) / 1000 / TOGETHER)
            return result

        def one_by_one(act: Callable[[Any], Any], items: list[Any]) -> list[Any]:
            return [act(item) for item in items]

        for _ in range(CHUNKS):
            asked = [request(secrets.token_hex(8), analyst="ana", loss=1) for _ in range(2 * TOGETHER)]
            permits = used("reserve", partial(one_by_one, ledger.reserve, asked[:TOGETHER]))
            used("commit", partial(one_by_one, lambda permit: ledger.commit(permit, b"a" * ANSWER_BYTES), permits))
            permits = used("reserve, 32 together", partial(ledger.reserve_many, asked[TOGETHER:]))
            used("commit, 32 together", partial(ledger.commit_many, [(permit, b"a" * ANSWER_BYTES) for permit in permits]))
    for name, chunks in found.items():
        print(f"processor time, {name}: median {statistics.median(chunks):.0f} us an answer, least {min(chunks):.0f} us")


def overhead(place: Place, workers: int, answers: int) -> None:
    """What the ledger adds to an answer of so many Python processes on one data set that do nothing else: reserve, anchor, commit."""
    opened = partial(PostgresLedger.open, place.dsn, source_id=place.source_id, anchors=place.anchors)
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        measured = pool.starmap(_answer_times, [(opened, f"{workers} {worker}", answers) for worker in range(workers)])
    times = [pair for pairs in measured for pair in pairs]
    for name, found in (
        ("reserve", [reserve for reserve, _ in times]),
        ("commit", [commit for _, commit in times]),
        ("both", [reserve + commit for reserve, commit in times]),
    ):
        cuts = statistics.quantiles(found, n=100)
        print(f"workers {workers}, {name}: p50 {1000 * statistics.median(found):.1f} ms, p99 {1000 * cuts[98]:.1f} ms")


def _answer_times(opened: Callable[[], PostgresLedger], prefix: str, answers: int) -> list[tuple[float, float]]:
    """Seconds to reserve and to commit, of each answer."""
    times = []
    with opened() as ledger:
        for number in range(answers):
            start = time.perf_counter()
            permit = ledger.reserve(request(f"timed {prefix} {number}"))
            middle = time.perf_counter()
            assert isinstance(permit, Permit)
            ledger.commit(permit, b"a" * ANSWER_BYTES)
            times.append((middle - start, time.perf_counter() - middle))
    return times


def _many_requests(ledger_id: str, epoch: str, count: int) -> str:
    """The arguments of one statement for so many requests with keys of their own."""

    def filled(value: str) -> str:
        return f"array_fill({value}, ARRAY[{count}])"

    keys = ", ".join(f"'k' || :key || ' {number}'" for number in range(count))
    arrays = [filled("'n'::text"), filled("'ana'::text"), f"ARRAY[{keys}]", filled("'digest of the plan'::text"), filled("1::bigint")]
    arrays += [filled("'SELECT 1'::text"), filled("1::numeric"), filled("0::numeric"), filled("NULL::numeric")]
    return ", ".join([f"'{ledger_id}'", f"'{epoch}'", *arrays, "0", "''"])


def _across_data_sets(count: int) -> str:
    """The arguments of one statement for so many requests of as many data sets of the thousand."""

    def filled(value: str) -> str:
        return f"array_fill({value}, ARRAY[{count}])"

    numbers = [f"((:d + {number * (DATA_SETS // count)}) % {DATA_SETS} + 1)" for number in range(count)]
    keys = ", ".join(f"'k' || :key || ' {number}'" for number in range(count))
    ids, epochs = (", ".join(f"'{letter}' || {number}" for number in numbers) for letter in "le")
    arrays = [f"ARRAY[{ids}]", f"ARRAY[{epochs}]", filled("0::bigint"), filled("''::text"), filled("'n'::text"), filled("'ana'::text")]
    arrays += [f"ARRAY[{keys}]", filled("'digest of the plan'::text"), filled("1::bigint"), filled("'SELECT 1'::text")]
    return ", ".join([*arrays, filled("1::numeric"), filled("0::numeric"), filled("NULL::numeric")])


def _many_data_sets() -> str:
    budget = f"'{budget_text(pure_budget(10**15))}'"
    return f"""DO $$ BEGIN FOR i IN 1..{DATA_SETS} LOOP
        PERFORM lapwing.create_data_set('l' || i, 's' || i, 'f' || i, {budget}, {budget}, 'bench', '', '{{bench}}');
        PERFORM lapwing.set_analyst('l' || i, 'ana', NULL, false, NULL, NULL, NULL, '');
        PERFORM lapwing.register_worker('l' || i, 'e' || i, 'h', 'b', 'n', 1, 's', 86400, '{{}}', '{{bench}}');
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
