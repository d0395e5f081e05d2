"""How much the server adds, and how large it may be. Each line of what is printed is of one run; all on loopback, on this machine alone.

    python -m benchmarks.server_figures overhead       # p50 and p99 of asking, replaying and explaining, against the library call
    python -m benchmarks.server_figures replays        # replays a second, with one worker and with two
    python -m benchmarks.server_figures data-sets      # 1,000 catalogues: start, memory, connections to the database
    python -m benchmarks.server_figures cells          # an answer of 10^6 cells: time, memory, and who else is answered meanwhile

Data sets are the demonstration with few patients, so that nearly all of the time is that of planning, the ledger and the server.
*Overhead*: the same questions in turn, by the library in this process and by a server with one worker, on copies of one data set with local
ledgers; the difference of the medians, and of the 99th percentiles, is what the server adds. *Replays*: sixteen threads ask for one answer
again and again; they take processor time from the workers. *Data sets*: none is prepared but the first ones, which are asked in turn, with
a ledger in PostgreSQL; resident memory of the one worker. *Cells*: COUNT by two columns of 1,000 declared values each; /health/live is
asked every 50 ms meanwhile.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.demo import write_demo
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.owner.policies import admit_share
from tests.ledger.cluster import Cluster
from tests.ledger.wired import new_wired
from tests.server.fleet import Replica, resident_bytes

EPSILON = "0.001"
SIDE = 1_000
WIDE = f"""format = 1
[dataset]
id = "wide"
engine = "duckdb"
unit = "person"
neighbours = "unbounded"
units = 10000
[budget]
epsilon = 3
delta = "2^-40"
ceiling = {{ epsilon = 6 }}
[tables.points]
source = "points.parquet"
unit = "person"
one_row_per_unit = true
[tables.points.columns]
person = {{ type = "key", null = false }}
x = {{ type = "integer", min = 1, max = {SIDE}, null = false }}
y = {{ type = "integer", min = 1, max = {SIDE}, null = false }}
"""


def statement(number: int) -> str:
    """A question that nobody has asked."""
    return f"SELECT region, COUNT(*) AS n FROM patients WHERE birth_year + {number} > 1950 + {number} GROUP BY region"


@contextmanager
def serving(
    scratch: Path, name: str, catalogues: Sequence[Path], *, workers: int = 1, public: bool = True, more: Sequence[str] = ()
) -> Iterator[tuple[Replica, str]]:
    """A server on these catalogues, and the key of somebody who may ask."""
    one = Replica(scratch / name, {"LAPWING_HOME": str(scratch / "home")})
    one.home.mkdir(mode=0o700)
    lines = ["[server]", f"port = {one.port}", f"workers = {workers}", "[limits]", "requests_per_second = 10000.0", "burst = 100000"]
    lines += [*more, "[moments]", f"public = {str(public).lower()}"]
    for catalogue in catalogues:
        lines += ["[[data_set]]", f'catalogue = "{catalogue}"']
    (one.home / "lapwing-server.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    identities = Identities(f"sqlite:///{one.home / 'identities.db'}")
    identities.grant("ada", Grant(Role.ANALYST, "*"))
    key, _ = identities.new_key("ada")
    identities.close()
    try:
        one.start()
        yield one, key
    finally:
        one.stop()


def worker_of(one: Replica) -> int:
    """The process that answers, where there is one worker."""
    assert one.process is not None
    return next(iter(one.workers()), one.process.pid)


def processor_seconds(one: Replica) -> float:
    """What all of its processes have used of processors."""
    assert one.process is not None
    found = 0
    for pid in (one.process.pid, *one.workers()):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found += int(fields[11]) + int(fields[12])
    return found / os.sysconf("SC_CLK_TCK")


def megabytes(pid: int) -> float:
    """What it has in memory."""
    return (resident_bytes(pid) or 0) / 1e6


def cuts(seconds: Sequence[float]) -> tuple[float, float]:
    """p50 and p99, in milliseconds."""
    return 1000 * statistics.median(seconds), 1000 * statistics.quantiles(seconds, n=100)[98]


def timed(act: Callable[[], object]) -> float:
    """Seconds that it takes."""
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


def overhead(scratch: Path, questions: int) -> None:
    """The same in turn, by the library and by the server."""
    for name in ("here", "there"):
        write_demo(scratch / name, patients=200)
    with lapwing.open(scratch / "here", home=scratch / "home") as local, lapwing.open(scratch / "there", home=scratch / "home") as other:
        local.prepare(accept_losses=True)
        other.prepare(accept_losses=True)
    print("| moments | | library p50, p99 | server p50, p99 | the server adds, p50, p99 |\n|---|---|---|---|---|")
    for public in (False, True):
        first = 1_000_000 * (1 + public)
        with (
            serving(scratch, f"server-{public}", [scratch / "there"], public=public) as (one, key),
            lapwing.open(scratch / "here", home=scratch / "home") as local,
        ):
            remote = lapwing.connect(one.url, token=key)
            for number in range(5):
                local.ask(statement(first - 1 - number), epsilon=EPSILON)
                remote.ask(statement(first - 1 - number), epsilon=EPSILON)
            acts: list[tuple[str, Callable[[DataSet | lapwing.RemoteDataSet, int], object]]] = [
                ("ask", lambda data_set, number: data_set.ask(statement(number), epsilon=EPSILON)),
                ("ask again, free", lambda data_set, number: data_set.ask(statement(number), epsilon=EPSILON)),
                ("explain", lambda data_set, number: data_set.explain(statement(number), epsilon=EPSILON)),
            ]
            for what, act in acts:
                here, there = [], []
                for number in range(first, first + questions):
                    here.append(timed(partial(act, local, number)))
                    there.append(timed(partial(act, remote, number)))
                ours, theirs = cuts(here), cuts(there)
                added = [b - a for a, b in zip(ours, theirs, strict=True)]
                shown = " | ".join(f"{pair[0]:.0f} ms, {pair[1]:.0f} ms" for pair in (ours, theirs, added))
                print(f"| {'on' if public else 'off'} | {what} | {shown} |", flush=True)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def replays(scratch: Path, seconds: float, clients: int = 16) -> None:
    """Replays a second."""
    write_demo(scratch / "there", patients=200)
    with lapwing.open(scratch / "there", home=scratch / "home") as data_set:
        data_set.prepare(accept_losses=True)
    for workers in (1, 2):
        with serving(scratch, f"server-{workers}", [scratch / "there"], workers=workers) as (one, key):
            lapwing.connect(one.url, token=key).ask(statement(0), epsilon=EPSILON)
            done, until = [0] * clients, time.monotonic() + seconds
            used = processor_seconds(one)

            def client(number: int, url: str = one.url, token: str = key, done: list[int] = done, until: float = until) -> None:
                remote = lapwing.connect(url, token=token)
                while time.monotonic() < until:
                    remote.replay(statement(0), epsilon=EPSILON)
                    done[number] += 1

            threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            rate, each = sum(done) / seconds, 1000 * (processor_seconds(one) - used) / max(1, sum(done))
            print(
                f"replays with {workers} worker(s), {clients} clients: {rate:.1f} a second, {each:.0f} ms of processor each;"
                f" load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


def data_sets(scratch: Path, listed: int, asked: int, open_max: int) -> None:
    """Many catalogues in one worker."""
    os.environ["LAPWING_TEST_DISK"] = "1"
    cluster = Cluster()
    try:
        database = cluster.new_database()
        catalogues = []
        for number in range(listed):
            base = scratch / f"d{number}"
            if number < asked:
                new_wired(base, cluster.dsn(database), patients=40)
            else:
                shutil.copytree(scratch / f"d{asked - 1}", base, ignore=shutil.ignore_patterns(".lapwing"))
            catalogue = base / "clinic" / "lapwing.toml"
            text = catalogue.read_text(encoding="utf-8").splitlines()
            lines = [f'id = "data-set-{number}"' if line.startswith("id = ") else line for line in text]
            catalogue.write_text("\n".join(lines) + "\n", encoding="utf-8")
            if number < asked:
                with DataSet(Curator(base / "clinic", home=scratch / "home")) as data_set:
                    data_set.prepare()
                    admit_share(data_set.curator, "ada", None, by="owner", reason="")
            catalogues.append(base / "clinic")
        for count, name in ((1, "one"), (listed, "all")):
            begun = time.perf_counter()
            with serving(scratch, name, catalogues[:count], public=False, more=[f"open_max = {open_max}"]) as (one, key):
                took, worker = time.perf_counter() - begun, worker_of(one)
                print(f"{count:,} data sets: answers after {took:.1f} s, {megabytes(worker):.0f} MB", flush=True)
                for number in range(min(asked, count)):
                    remote = lapwing.connect(one.url, token=key, data_set=f"data-set-{number}")
                    first = timed(partial(remote.ask, statement(number), epsilon=EPSILON))
                    second = timed(partial(remote.ask, statement(number + listed), epsilon=EPSILON))
                    if number + 1 in (1, open_max // 2, open_max, open_max + 5, asked):
                        with cluster.superuser() as superuser:
                            row = superuser.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [database]).fetchone()
                        print(
                            f"  {number + 1} asked: {megabytes(worker):.0f} MB, {row[0] if row else 0} connections; first question"
                            f" {1000 * first:.0f} ms, second {1000 * second:.0f} ms",
                            flush=True,
                        )
    finally:
        cluster.close()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def cells(scratch: Path) -> None:
    """One answer of as many cells as may be."""
    wide = scratch / "wide"
    wide.mkdir()
    (wide / "lapwing.toml").write_text(WIDE, encoding="utf-8")
    people = range(10_000)
    rows = {"person": [f"p{one}" for one in people], "x": [one % SIDE + 1 for one in people], "y": [one * 7 % SIDE + 1 for one in people]}
    pq.write_table(pa.table(rows), wide / "points.parquet")
    sql = "SELECT x, y, COUNT(*) AS n FROM points GROUP BY x, y"
    with lapwing.open(wide, home=scratch / "home") as data_set:
        data_set.prepare(accept_losses=True)
        took = timed(lambda: data_set.ask(sql, epsilon="0.5"))
        print(f"library: {took:.0f} s", flush=True)
    with serving(scratch, "server", [wide]) as (one, key):
        worker, peak, waits, done = worker_of(one), [0.0], [0.0], threading.Event()
        print(f"server: {megabytes(worker):.0f} MB before", flush=True)

        def watch() -> None:
            while not done.is_set():
                waits.append(timed(lambda: urllib.request.urlopen(f"{one.url}/health/live", timeout=60).close()))
                peak[0] = max(peak[0], megabytes(worker))
                time.sleep(0.05)

        watcher = threading.Thread(target=watch)
        watcher.start()
        remote = lapwing.connect(one.url, token=key)
        for what, epsilon in (("asked", "0.25"), ("asked again", "0.25")):
            before = len(waits)
            took = timed(partial(remote.ask, sql, epsilon=epsilon))
            meanwhile = waits[before:]
            print(
                f"{what}: {took:.0f} s, peak {peak[0]:.0f} MB; health meanwhile: p50 {1000 * statistics.median(meanwhile):.0f} ms,"
                f" p99 {1000 * sorted(meanwhile)[int(0.99 * len(meanwhile))]:.0f} ms, longest {1000 * max(meanwhile):.0f} ms",
                flush=True,
            )
        done.set()
        watcher.join()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["overhead", "replays", "data-sets", "cells"])
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--listed", type=int, default=1_000)
    parser.add_argument("--asked", type=int, default=75)
    parser.add_argument("--open-max", type=int, default=50, help="data sets that may be open at once")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        match given.what:
            case "overhead":
                overhead(scratch, given.questions)
            case "replays":
                replays(scratch, given.seconds)
            case "data-sets":
                data_sets(scratch, given.listed, given.asked, given.open_max)
            case _:
                cells(scratch)


if __name__ == "__main__":
    main()
