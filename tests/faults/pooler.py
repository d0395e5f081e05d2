"""Debian's pgbouncer in front of a test server, with a server connection for each transaction and not for each client."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from tests.faults.clients import ended, new_field, random_plans, scarce_loss, started
from tests.faults.table import Outcome, fault
from tests.ledger.cluster import APP_ROLE, OWNER_ROLE, SECOND_ROLE, Cluster

PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
ROUND_SECONDS_MAX = 600.0
"""Nobody takes as long, on any machine: this ends only what hangs."""
START_SECONDS_MAX = 120.0
_PLACES = ("/usr/sbin/pgbouncer", "/usr/bin/pgbouncer")


def pooler_program() -> str | None:
    """Where pgbouncer is: on the path, else where Debian puts it."""
    found = shutil.which("pgbouncer")
    return found or next((place for place in _PLACES if Path(place).exists()), None)


class Pooler:
    """A running pgbouncer in transaction mode, with fewer server connections than clients; it listens in ``directory``."""

    def __init__(self, cluster: Cluster, *, server_connections: int) -> None:
        program = pooler_program()
        assert program is not None, "pgbouncer is not installed"
        self.directory = Path(tempfile.mkdtemp(prefix="lapwing-pb-"))
        settings = self.directory / "pgbouncer.ini"
        users = self.directory / "users"
        users.write_text("".join(f'"{role}" ""\n' for role in (APP_ROLE, SECOND_ROLE, OWNER_ROLE)), encoding="utf-8")
        settings.write_text(
            f"[databases]\n* = host={cluster.home} port={PORT}\n[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\n"
            f"unix_socket_dir = {self.directory}\nauth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
            f"default_pool_size = {server_connections}\nmax_client_conn = 200\nserver_round_robin = 1\n"
            "log_connections = 0\nlog_disconnections = 0\n",
            encoding="utf-8",
        )
        if cluster.user is not None:
            for path in (self.directory, settings, users):
                os.chown(path, cluster.user.pw_uid, cluster.user.pw_gid)
        self._command = cluster.as_user([program, str(settings)])
        self._process = self._started()

    def __enter__(self) -> Self:
        self._wait()
        return self

    def crash(self) -> None:
        """Kill it, and start it again."""
        self._process.kill()
        self._process.wait(START_SECONDS_MAX)
        (self.directory / SOCKET).unlink(missing_ok=True)
        self._process = self._started()
        self._wait()

    def _started(self) -> subprocess.Popen[bytes]:
        with (self.directory / "log").open("ab") as log:
            return subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                psycopg.connect(f"host={self.directory} dbname=postgres user={APP_ROLE}").close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.directory / "log").read_text(encoding="utf-8")[-2000:]) from None
                time.sleep(0.05)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(START_SECONDS_MAX)
        shutil.rmtree(self.directory)


def kill_while_clients_work(
    cluster: Cluster, database: str, directory: Path, *, seed: int, clients: int, sources: int, acts: int, kills: int
) -> Outcome:
    """Clients behind a pooler, which is killed and started again so many times."""
    loss_total = scarce_loss(clients=clients, sources=sources, acts=acts)
    field = new_field(cluster, database, directory, sources=sources, loss_total=loss_total)
    outcome = Outcome(histories=[field.log])
    with Pooler(cluster, server_connections=5) as pooler:
        dsn = cluster.dsn(database).replace(str(cluster.home), str(pooler.directory))
        processes = started(field, random_plans(field, dsn, clients=clients, acts=acts, seed=seed))
        for number in range(kills):
            field.wait_for_events((number + 1) * clients * acts // (kills + 1), seconds_max=ROUND_SECONDS_MAX)
            pooler.crash()
            outcome.counts["kill -9 pooler"] += 1
        ended(processes, seconds_max=ROUND_SECONDS_MAX)
    _, outcome.violations = field.judged(codes=frozenset({"reply-lost"}))
    return outcome


@fault("pooler")
def kill_somewhere(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    """One round of the campaign."""
    clients, sources, acts = random.Random(seed).choice([(4, 10, 40), (32, 1, 8), (32, 10, 8)])
    return kill_while_clients_work(
        cluster, cluster.new_database(), directory, seed=seed, clients=clients, sources=sources, acts=acts, kills=10
    )
