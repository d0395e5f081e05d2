"""Replicas of the server, as processes with workers of their own, on one ledger and one database of identities in PostgreSQL.

They can be killed, in part and as a whole, and started again; how much memory each worker has is written down meanwhile.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from lapwing.ledger.postgres.policy import Limits, set_limits
from lapwing.owner.policies import admit_share
from tests.ledger.cluster import Cluster
from tests.ledger.wired import Wired, new_wired, server_ledger
from tests.server.process import free_port

START_SECONDS_MAX = 180.0
SAMPLE_SECONDS = 1.0
LOST_WORKERS_MAX = 1_000
"""Workers that may die with something reserved before the ledger closes the data set: by default it does so after ten, for life."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def url_of(dsn: str) -> str:
    """The address of a database as the configuration of the server writes it."""
    parts = conninfo_to_dict(dsn)
    return f"postgresql+psycopg://{parts['user']}@/{parts['dbname']}?host={quote(str(parts['host']), safe='')}"


@dataclass(frozen=True, slots=True)
class Offered:
    """A data set that is served: its budget, and which share of it each analyst may spend; None for no limit of their own."""

    name: str
    epsilon: str
    shares: Mapping[str, float | None]


@dataclass(slots=True)
class Memory:
    """What a worker had in memory: seconds since the beginning, and bytes."""

    samples: list[tuple[float, int]] = field(default_factory=list)


class Replica:
    """One `lapwing serve`."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        self.port, self.wire_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {**os.environ, **environment}
        self.process: subprocess.Popen[bytes] | None = None
        self.spared: int | None = None
        """A worker that is never killed by chance, so that there is one whose memory is seen over the whole time."""

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "lapwing.interfaces.cli", "serve", "--home", str(self.home)]
        with (self.home / "stderr").open("ab") as log:
            self.process = subprocess.Popen(command, env=self._environment, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)
        until = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health/ready", timeout=5).close()
                return
            except (urllib.error.URLError, OSError) as error:
                if self.process.poll() is not None or time.monotonic() > until:
                    self.stop()
                    raise AssertionError(self.log()[-2000:]) from error
                time.sleep(0.1)

    def log(self) -> str:
        """What it has logged."""
        return (self.home / "stderr").read_text(encoding="utf-8")

    def workers(self) -> list[int]:
        """The processes that answer: those that the first one has started, without Python's own helper."""
        if self.process is None or self.process.poll() is not None:
            return []
        found = []
        for child in _children(self.process.pid):
            try:
                command = Path(f"/proc/{child}/cmdline").read_bytes()
            except OSError:
                continue
            if b"spawn_main" in command:
                found.append(child)
        return found

    def kill_worker(self, index: int) -> int | None:
        """Kill one of its workers at once; None where there is none to kill."""
        workers = [pid for pid in self.workers() if pid != self.spared]
        if not workers:
            return None
        pid = workers[index % len(workers)]
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return None
        return pid

    def kill(self) -> None:
        """As when its machine is gone: all of its processes at once."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Told to stop: what runs comes to its end."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def resident_bytes(pid: int) -> int | None:
    """What a process has in memory."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return None


class Fleet:
    """Data sets, keys of analysts, and replicas that serve them; ``limits`` are more lines of that part of their configuration."""

    def __init__(
        self,
        cluster: Cluster,
        directory: Path,
        offered: Sequence[Offered],
        analysts: Sequence[str],
        *,
        on_the_wire: Sequence[str] = (),
        replicas: int = 2,
        workers: int = 2,
        limits: Sequence[str] = (),
    ) -> None:
        self.cluster = cluster
        self.database = cluster.new_database()
        self.names: list[str] = []
        """Of the data sets, in the order in which they are offered."""
        self.begun = time.monotonic()
        self.memory: dict[int, Memory] = {}
        self._stopped = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self.wired = [self._offer(directory / one.name, one) for one in offered]
        identities = url_of(cluster.dsn(cluster.new_database(), role="postgres"))
        store = Identities(identities)
        self.on_the_wire = on_the_wire
        everybody = [*analysts, *on_the_wire]
        for analyst in everybody:
            store.grant(analyst, Grant(Role.ANALYST, "*"))
        self.keys = {analyst: store.new_key(analyst)[0] for analyst in everybody}
        store.close()
        environment = {"LAPWING_HOME": str(directory / "home")}
        self.replicas = []
        for number in range(replicas):
            one = Replica(directory / f"server-{number}", environment)
            one.home.mkdir(mode=0o700)
            lines = ["[server]", f"port = {one.port}", f"workers = {workers}", f'identities = "{identities}"']
            lines += ["[limits]", "requests_per_second = 10000.0", "burst = 100000", "waiting_max = 1000", *limits]
            lines += ["[moments]", "base_seconds = 0.25"]
            if on_the_wire:
                shadow = url_of(cluster.dsn("postgres", role="postgres")).replace("+psycopg", "")
                lines += ["[wire]", f'shadow = "{shadow}"', f"port = {one.wire_port}", f'shadow_prefix = "fleet{number}_"']
            for wired in self.wired:
                lines += ["[[data_set]]", f'catalogue = "{wired.directory}"']
            (one.home / "lapwing-server.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
            self.replicas.append(one)

    def _offer(self, base: Path, offered: Offered) -> Wired:
        base.mkdir(parents=True)
        wired = new_wired(base, self.cluster.dsn(self.database))
        wired.edit("epsilon = 3    ", f"epsilon = {offered.epsilon}    ")
        wired.edit("per_day = 0.5", "per_day = 1")
        with DataSet(Curator(wired.directory, home=base.parent / "home")) as data_set:
            data_set.prepare()
            set_limits(server_ledger(data_set), Limits(lost_workers_max=LOST_WORKERS_MAX))
            for analyst, share in offered.shares.items():
                admit_share(data_set.curator, analyst, share, by="owner", reason="to be asked by many")
            self.names.append(data_set.curator.declaration.dataset.id)
        return wired

    def start(self) -> None:
        """Start all of them; the first worker of the first is spared."""
        for one in self.replicas:
            one.start()
        self.replicas[0].spared = min(self.replicas[0].workers())
        self.begun = time.monotonic()
        self._sampler.start()

    def backends(self) -> list[int]:
        """The processes of the database that serve somebody; none while it recovers."""
        with suppress(psycopg.OperationalError), self.cluster.superuser() as superuser:
            found = superuser.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
            return [int(str(pid)) for (pid,) in found]
        return []

    def _sample(self) -> None:
        while not self._stopped.wait(SAMPLE_SECONDS):
            for one in self.replicas:
                for pid in one.workers():
                    resident = resident_bytes(pid)
                    if resident is not None:
                        self.memory.setdefault(pid, Memory()).samples.append((time.monotonic() - self.begun, resident))

    def close(self) -> None:
        """Stop everything that was started here."""
        self._stopped.set()
        for one in self.replicas:
            one.stop()
