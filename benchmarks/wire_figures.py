"""What the PostgreSQL wire adds to HTTP, and whether it keeps anything of those who have gone. All on loopback, on this machine alone.

    python -m benchmarks.wire_figures overhead                       # p50 and p99 over HTTP and over the wire, in turn
    python -m benchmarks.wire_figures connections --seconds 300      # 200 connections that come, ask and go at random

The server is a process of its own with one worker, over the demonstration with a local ledger and a large budget; public moments are off,
since they would hide the difference; the shadow is a temporary PostgreSQL server. *Overhead*: the same new question is asked first over
one, then over the other, in turn which is first, so the second is always a replay and only the first counts; then replays of both.
*Connections*: each of 200 connects (SCRAM), asks two to five things, one of them of the tool's kind (served by the shadow), waits a moment
and goes, one in three without a word; then another comes in its place. Printed once in 30 seconds: memory of the worker, its open files,
links to the shadow. Exits with 1 if files or links grow.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random  # noqa: TID251 - whoever comes and goes
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import asyncpg
import psycopg
from benchmarks.server_figures import EPSILON, cuts, megabytes, statement, timed, worker_of

import lapwing
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.ledger.cluster import Cluster
from tests.server.fleet import Replica
from tests.server.process import free_port
from tests.wire.world import write_rich_demo

ROLE = "wire_figures"
LINKS = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
BURST = 100_000


@dataclass(frozen=True)
class Place:
    """A running server, where its wire listens, and the cluster of its shadow."""

    server: Replica
    key: str
    address: str
    cluster: Cluster

    def links(self) -> int:
        """Connections of the wire to its shadow."""
        with self.cluster.superuser() as superuser:
            row = superuser.execute(LINKS, [ROLE]).fetchone()
        return int(str(row[0])) if row else 0

    def files(self) -> int:
        """Files and sockets that the worker has open."""
        return len(os.listdir(f"/proc/{worker_of(self.server)}/fd"))


@contextmanager
def served(scratch: Path) -> Iterator[Place]:
    """The demonstration over HTTP and over the wire."""
    cluster = Cluster()
    clinic = scratch / "clinic"
    write_rich_demo(clinic, patients=200)
    with lapwing.open(clinic, home=scratch / "home") as data_set:
        data_set.prepare(accept_losses=True)
    found = re.search(r'(?m)^id = "([^"]+)"', (clinic / "lapwing.toml").read_text(encoding="utf-8"))
    assert found is not None
    one = Replica(scratch / "server", {"LAPWING_HOME": str(scratch / "home")})
    one.home.mkdir(mode=0o700)
    port = free_port()
    shadow = f"postgresql://postgres@/postgres?host={quote(str(cluster.home), safe='')}"
    lines = [
        *("[server]", f"port = {one.port}", "workers = 1", "[limits]", "requests_per_second = 10000.0", f"burst = {BURST}"),
        *("[wire]", f'shadow = "{shadow}"', f"port = {port}", f'role = "{ROLE}"', "connections_max = 400"),
        *("[moments]", "public = false", "[[data_set]]", f'catalogue = "{clinic}"'),
    ]
    (one.home / "lapwing-server.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    identities = Identities(f"sqlite:///{one.home / 'identities.db'}")
    identities.grant("ada", Grant(Role.ANALYST, "*"))
    key, _ = identities.new_key("ada")
    identities.close()
    try:
        one.start()
        yield Place(one, key, f"postgresql://ada:{key}@127.0.0.1:{port}/{found[1]}", cluster)
    finally:
        one.stop()
        cluster.close()


def overhead(place: Place, questions: int) -> None:
    """The same questions over both."""
    remote = lapwing.connect(place.server.url, token=place.key)
    seconds: dict[tuple[str, str], list[float]] = {}
    with psycopg.connect(place.address, autocommit=True) as wire:
        wire.execute(f"SET lapwing.epsilon = {EPSILON}".encode())

        def by_wire(sql: str) -> None:
            wire.execute(sql.encode()).fetchall()

        def by_http(sql: str) -> None:
            remote.ask(sql, epsilon=EPSILON)

        for number in range(questions + 5):
            order = [("HTTP", by_http), ("wire", by_wire)]
            for place_in_turn, (name, act) in enumerate(order if number % 2 else order[::-1]):
                took = timed(partial(act, statement(number)))
                if number >= 5:
                    seconds.setdefault((name, "replay" if place_in_turn else "new"), []).append(took)
    for kind in ("new", "replay"):
        for name in ("HTTP", "wire"):
            middle, late = cuts(seconds[name, kind])
            print(f"{kind} over {name}: p50 {middle:.1f} ms, p99 {late:.1f} ms ({len(seconds[name, kind])} of them)")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


async def visits(place: Place, until: float, chance: random.Random, counts: dict[str, int]) -> None:
    """One comes after the other in the same place."""
    while time.monotonic() < until:
        try:
            connection = await asyncpg.connect(place.address, timeout=120)
        except (OSError, TimeoutError, asyncpg.PostgresError) as error:
            counts[type(error).__name__] = counts.get(type(error).__name__, 0) + 1
            await asyncio.sleep(1)
            continue
        counts["connected"] += 1
        for _ in range(chance.randint(1, 4)):
            try:
                await connection.fetchval(f"SELECT COUNT(*) AS n FROM patients WHERE birth_year > {1950 + chance.randrange(20)}")
                counts["answers"] += 1
            except asyncpg.TooManyConnectionsError:  # more wait for one data set than may: said so, and the session goes on
                counts["told to come again"] += 1
            await asyncio.sleep(chance.uniform(0, 4))
        await connection.fetchval("SELECT relname FROM pg_class WHERE relname = $1", "visits")
        if chance.random() < 2 / 3:
            await connection.close()
        else:
            connection.terminate()


async def crowd(place: Place, seconds: float, connections: int) -> bool:
    """All of them, and what the server holds meanwhile."""
    counts = {"connected": 0, "answers": 0, "told to come again": 0}
    chance, begun = random.Random(), time.monotonic()
    tasks = [asyncio.create_task(visits(place, begun + seconds, chance, counts)) for _ in range(connections)]
    files: list[int] = []
    while time.monotonic() < begun + seconds:
        await asyncio.sleep(min(30.0, seconds / 4))
        files.append(place.files())
        held = f"{megabytes(worker_of(place.server)):.0f} MB, {files[-1]} files, {place.links()} links to the shadow"
        print(f"after {time.monotonic() - begun:.0f} s: {held}; {counts}", flush=True)
    await asyncio.gather(*tasks)
    await asyncio.sleep(5)
    left, links = place.files(), place.links()
    print(f"all gone: {megabytes(worker_of(place.server)):.0f} MB, {left} files, {links} links; load {os.getloadavg()[0]:.1f}")
    return left <= min(files) and len(counts) == 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["overhead", "connections"])
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--connections", type=int, default=200)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, served(Path(directory)) as place:
        os.chmod(directory, 0o755)
        if asked.what == "overhead":
            overhead(place, asked.questions)
        elif not asyncio.run(crowd(place, asked.seconds, asked.connections)):
            sys.exit(1)


if __name__ == "__main__":
    main()
