"""Whether one who asks much keeps others from being answered: ten denials of service, one after the other, against a real server.

    python -m benchmarks.denials                                   # all of them, a minute each
    python -m benchmarks.denials --seconds 10 --only half-sent-requests
    python -m benchmarks.denials --check --json denials.json       # exits with 1 where a bound is broken

All on loopback and on this machine. For each denial a new `lapwing serve` with default limits and one worker over the demonstration, with a
wire whose shadow is in a temporary PostgreSQL server, and a soft limit of 1,024 open files, as services have it. Two people who are known
to it go on asking, each on a thread, all of it free: who am I, a price (explain), a statement about the catalogue in an open session, and
a new login on the wire; every HTTP call is a connection of its own. They are measured before and during the denial, which a stranger
without a key or a third analyst makes in a process of its own, `nice` 5 and paced as the table says (benchmarks/denial_attacks.py), from
the address of the others.

A *ratio* is of the time during the denial over that before it, measured for as long; the row *nothing* is of no denial, and shows how much
of a ratio is the machine's. *Refused* counts calls of the known people that were not answered, whatever the reason. *Memory* is resident,
of all processes of the server: before, at most during, and two seconds after. *Left* are backends of PostgreSQL that still work for the
wire by then. With ``--check``: no median may more than double, nobody may be refused, memory may grow by at most 64 MB for good and by
256 MB meanwhile, and no backend may be left.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg
from benchmarks.denial_attacks import DENIALS, Target, as_input
from benchmarks.markdown import show, table

import lapwing
from lapwing.demo import write_demo
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.ledger.cluster import Cluster
from tests.server.fleet import Replica, resident_bytes
from tests.server.process import free_port

ROLE = "denials"
KNOWN, ATTACKER = ("ada", "bob"), "eve"
ACTS = ("me", "explain", "catalogue", "login")
FILES = 1_024
PAUSE_SECONDS = 0.05
WAIT_SECONDS = 15
READY_SECONDS = 20.0
RATIO_MAX = 2.0
GROWTH_MB_MAX, GROWTH_MEANWHILE_MB_MAX = 64.0, 256.0
PRICED = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
CATALOGUE = "SELECT relname FROM pg_catalog.pg_class WHERE relname = 'visits'"
LEFT = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s AND state = 'active'"


@dataclass(slots=True)
class Seen:
    """What the known people met: seconds of what was answered, and what was not."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {act: [] for act in ACTS})
    refused: Counter[str] = field(default_factory=Counter)

    def cuts(self, act: str) -> tuple[float, float] | None:
        """Median and 95th percentile, in milliseconds; None where nothing was answered."""
        found = sorted(self.seconds[act])
        return (statistics.median(found) * 1e3, found[min(len(found) - 1, int(len(found) * 0.95))] * 1e3) if found else None


@dataclass(slots=True)
class Figures:
    """One denial, measured."""

    denial: str
    by: str
    pace: str
    before: dict[str, tuple[float, float] | None]
    during: dict[str, tuple[float, float] | None]
    answered: int
    refused: dict[str, int]
    memory_mb: tuple[float, float, float]
    left: int
    attack: dict[str, int]
    alive: bool

    def ratios(self, act: str) -> tuple[float, float] | None:
        """Of medians and of 95th percentiles."""
        before, during = self.before[act], self.during[act]
        return None if before is None or during is None else (during[0] / before[0], during[1] / before[1])

    def complaints(self, ratio_max: float = RATIO_MAX) -> list[str]:
        """The bounds that are broken."""
        found = [] if self.alive else ["the server is gone"]
        for act in ACTS:
            ratio = self.ratios(act)
            if ratio is not None and ratio[0] > ratio_max:
                found.append(f"the median of {act} is {ratio[0]:.1f} times that before")
        if self.refused:
            found.append(f"known people were refused: {self.refused}")
        before, most, after = self.memory_mb
        if after - before > GROWTH_MB_MAX or most - before > GROWTH_MEANWHILE_MB_MAX:
            found.append(f"memory grew from {before:.0f} to {most:.0f}, and was {after:.0f} MB afterwards")
        if self.left:
            found.append(f"{self.left} backends of PostgreSQL are left")
        return found


@dataclass(frozen=True, slots=True)
class DeniedServer:
    """A running server and whoever knows a key of it."""

    server: Replica
    wire_port: int
    data_set: str
    keys: dict[str, str]
    cluster: Cluster
    sessions: dict[str, psycopg.Connection] = field(default_factory=dict)
    """Of the known people, opened before the denial."""

    def session(self, who: str) -> psycopg.Connection:
        """A session on the wire."""
        return psycopg.connect(
            host="127.0.0.1",
            port=self.wire_port,
            user=who,
            password=self.keys[who],
            dbname=self.data_set,
            autocommit=True,
            connect_timeout=WAIT_SECONDS,
            options="-c statement_timeout=15000",
        )

    def call(self, who: str, path: str, body: dict[str, str] | None = None) -> None:
        """A call that is answered; ``ConnectionRefusedError`` with the status where it is not."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=WAIT_SECONDS)
        try:
            headers = {"Authorization": f"Bearer {self.keys[who]}", "Content-Type": "application/json"}
            connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            reply.read()
            if reply.status != 200:
                raise ConnectionRefusedError(f"status {reply.status}")
        finally:
            connection.close()

    def memory_mb(self) -> float:
        """Of all its processes."""
        assert self.server.process is not None
        total = 0
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if os.getsid(int(entry.name)) == self.server.process.pid:
                        total += resident_bytes(int(entry.name)) or 0
                except ProcessLookupError:
                    continue
        return total / 1e6

    def left(self) -> int:
        """Backends of PostgreSQL that work for the wire."""
        with self.cluster.superuser() as superuser:
            row = superuser.execute(LEFT, [ROLE]).fetchone()
        return int(str(row[0])) if row else 0


class Denials:
    """A temporary PostgreSQL server and a prepared demonstration, for servers that are denied one after the other."""

    def __init__(self, scratch: Path, *, workers: int = 1) -> None:
        self.scratch, self.workers = scratch, workers
        self.clinic = scratch / "clinic"
        write_demo(self.clinic, patients=200)
        with lapwing.open(self.clinic, home=scratch / "home") as data_set:
            data_set.prepare()
        found = re.search(r'(?m)^id = "([^"]+)"', (self.clinic / "lapwing.toml").read_text(encoding="utf-8"))
        assert found is not None
        self.data_set = found[1]
        self.cluster = Cluster()

    def close(self) -> None:
        """Stop PostgreSQL."""
        self.cluster.close()

    @contextmanager
    def served(self) -> Iterator[DeniedServer]:
        """A new server, with three analysts."""
        one, port = Replica(Path(tempfile.mkdtemp(dir=self.scratch)), {"LAPWING_HOME": str(self.scratch / "home")}), free_port()
        shadow = f"postgresql://postgres@/postgres?host={quote(str(self.cluster.home), safe='')}"
        lines = ["[server]", f"port = {one.port}", f"workers = {self.workers}", "[wire]", f'shadow = "{shadow}"', f"port = {port}"]
        lines += [f'role = "{ROLE}"', "[[data_set]]", f'catalogue = "{self.clinic}"']
        (one.home / "lapwing-server.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        identities, keys = Identities(f"sqlite:///{one.home / 'identities.db'}"), {}
        for who in (*KNOWN, ATTACKER):
            identities.grant(who, Grant(Role.ANALYST, "*"))
            keys[who], _ = identities.new_key(who)
        identities.close()
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, limit[1]), limit[1]))
        try:
            one.start()
            place = DeniedServer(one, port, self.data_set, keys, self.cluster)
            yield place
            for session in place.sessions.values():
                session.close()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)
            if one.process is not None and one.process.poll() is None:
                one.kill()  # it holds nothing that is worth its end in order

    def measured(self, name: str, seconds: float) -> Figures:
        """One denial against a new server."""
        denial = DENIALS[name]
        with self.served() as server:
            _watched(server, 1.0)  # the first of everything is slow
            before = _watched(server, seconds)
            memory = server.memory_mb()
            target = Target(server.server.port, server.wire_port, server.data_set, ATTACKER, server.keys[ATTACKER], seconds + 60)
            most, over = [memory], threading.Event()
            sampler = threading.Thread(target=_sampled, args=(server, most, over))
            sampler.start()
            command = [sys.executable, "-m", "benchmarks.denial_attacks", name]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as attack:
                assert attack.stdin is not None and attack.stdout is not None
                attack.stdin.write(as_input(target))
                attack.stdin.flush()
                select.select([attack.stdout], [], [], READY_SECONDS)  # until it has begun, or as far as it got
                during = _watched(server, seconds)
                attack.stdin.close()
                said = attack.stdout.read().replace(b"ready\n", b"")
            over.set()
            sampler.join()
            time.sleep(2.0)
            assert server.server.process is not None
            return Figures(
                name,
                denial.by,
                denial.pace,
                {act: before.cuts(act) for act in ACTS},
                {act: during.cuts(act) for act in ACTS},
                sum(len(found) for found in during.seconds.values()),
                dict(during.refused),
                (memory, max(most), server.memory_mb()),
                server.left(),
                json.loads(said or b"{}"),
                server.server.process.poll() is None,
            )


def _sampled(server: DeniedServer, most: list[float], over: threading.Event) -> None:
    while not over.wait(0.2):
        most.append(server.memory_mb())


def _watched(server: DeniedServer, seconds: float) -> Seen:
    """What the known people meet for so long."""
    seen, until = [Seen() for _ in KNOWN], time.monotonic() + seconds
    threads = [threading.Thread(target=_asks, args=(server, who, until, one)) for who, one in zip(KNOWN, seen, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Seen()
    for one in seen:
        found.refused.update(one.refused)
        for act, more in one.seconds.items():
            found.seconds[act].extend(more)
    return found


def _asks(server: DeniedServer, who: str, until: float, seen: Seen) -> None:
    """One of them asks one thing after the other."""
    while time.monotonic() < until:
        for act in ACTS:
            begun = time.monotonic()
            try:
                if act == "me":
                    server.call(who, "/v1/me")
                elif act == "explain":
                    server.call(who, f"/v1/data-sets/{server.data_set}/explain", {"sql": PRICED})
                elif act == "login":
                    server.session(who).close()
                else:
                    if who not in server.sessions or server.sessions[who].closed:
                        server.sessions[who] = server.session(who)
                        begun = time.monotonic()
                    server.sessions[who].execute(CATALOGUE).fetchall()
                seen.seconds[act].append(time.monotonic() - begun)
            except (OSError, http.client.HTTPException, psycopg.Error) as error:
                why = str(error).strip().partition("\n")[0].rpartition(": ")[2].strip() or type(error).__name__
                seen.refused[f"{act}: {why}"] += 1
            time.sleep(PAUSE_SECONDS)


def printed(figures: Sequence[Figures]) -> None:
    """All of them, as a table."""
    rows = []
    for one in figures:
        ratios = []
        for act in ACTS:
            ratio = one.ratios(act)
            ratios.append("none" if ratio is None else f"{ratio[0]:.1f} / {ratio[1]:.1f}")
        refused = sum(one.refused.values())
        memory = " / ".join(f"{size:,.0f}" for size in one.memory_mb)
        rows.append([f"{one.denial}: {one.by}, {one.pace}", *ratios, f"{refused} of {refused + one.answered}", memory, str(one.left)])
    head = ["denial", *(f"{act}, median / p95" for act in ACTS), "refused", "memory, MB: before / most / after", "left"]
    table("Ratios of times during the denial to those before", head, rows)
    show("", f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors; attackers at nice 5")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each denial")
    parser.add_argument("--only", action="append", choices=list(DENIALS), help="this one; may be said again")
    parser.add_argument("--workers", type=int, default=1, help="of the server")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bound is broken")
    given = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as directory:
        denials = Denials(Path(directory), workers=given.workers)
        try:
            for name in given.only or DENIALS:
                figures.append(denials.measured(name, given.seconds))
                print(f"{name}: {figures[-1].attack}; {figures[-1].complaints() or 'within bounds'}", file=sys.stderr, flush=True)
        finally:
            denials.close()
    printed(figures)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in figures], indent=1) + "\n", encoding="utf-8")
    if given.check and any(one.complaints() for one in figures):
        sys.exit(1)


if __name__ == "__main__":
    main()
