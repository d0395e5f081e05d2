"""Debian's pgbouncer in front of a test server, with a server connection for each transaction and not for each client."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from tests.ledger.cluster import APP_ROLE, OWNER_ROLE, Cluster

PORT = 5432
START_SECONDS_MAX = 20.0
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
        users.write_text("".join(f'"{role}" ""\n' for role in (APP_ROLE, OWNER_ROLE)), encoding="utf-8")
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
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                cluster.as_user([program, str(settings)]), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory
            )

    def __enter__(self) -> Self:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                psycopg.connect(f"host={self.directory} dbname=postgres user={APP_ROLE}").close()
                return self
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.directory / "log").read_text(encoding="utf-8")[-2000:]) from None
                time.sleep(0.05)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait(START_SECONDS_MAX)
        shutil.rmtree(self.directory)
