"""A real PostgreSQL server in a temporary directory, with everything on that makes a commit durable.

The server is a child of the test process and is stopped by its process number; should the test process itself be killed, the kernel
stops the server (``setpriv --pdeathsig``). PostgreSQL refuses to run as root, so a root process hands it to a system user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg

from lapwing.ledger.postgres.install import Roles, install
from tests.support.memory import roomy_memory

OWNER_ROLE, APP_ROLE = "lapwing_owner", "lapwing_app"
"""The owner of the schema, and who most tests ask and decide as."""
SECOND_ROLE, CURATOR_ROLE, MONITOR_ROLE = "lapwing_second", "lapwing_curator", "lapwing_monitor"
"""Another owner, one who may only ask, and one who may only read."""
ROLES = Roles()
START_SECONDS_MAX = 300.0
_SYSTEM_USERS = ("postgres", "nobody")


def server_programs() -> Path | None:
    """The directory of ``initdb`` and ``postgres``: on the path, else where Debian puts them, newest first."""
    found = shutil.which("initdb")
    if found is not None and (Path(found).resolve().parent / "postgres").exists():
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return installed[-1].parent if installed else None


def _system_user() -> pwd.struct_passwd | None:
    """Whom a root process runs the server as; None for a process that is not root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(names[name] for name in _SYSTEM_USERS if name in names)


class Cluster:
    """One server. ``close`` removes it with all it had.

    ``within`` is where its files are to be, ``initdb`` more options of that program, ``environment`` more variables of the server's, and
    ``standby_of`` a running server that it is to follow instead of being one of its own.
    """

    def __init__(
        self,
        settings: Sequence[str] = (),
        *,
        within: Path | None = None,
        initdb: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        standby_of: Cluster | None = None,
    ) -> None:
        programs = server_programs()
        assert programs is not None, "PostgreSQL is not installed"
        self.programs = programs
        self.settings = [*settings]
        self.environment = [f"{name}={value}" for name, value in (environment or {}).items()]
        self.user = _system_user()
        # Short: the name of a socket has at most 107 bytes.
        self.home = Path(tempfile.mkdtemp(prefix="lapwing-pg-", dir=roomy_memory() if within is None else within))
        self.data = self.home / "data"
        self._databases = 0
        self.server: subprocess.Popen[bytes] | None = None
        if self.user is not None:
            os.chown(self.home, self.user.pw_uid, self.user.pw_gid)
        try:
            if standby_of is not None:
                self._databases = standby_of._databases
                self.run("pg_basebackup", "-D", str(self.data), "-d", standby_of.dsn("postgres", role="postgres"), "-R", "-c", "fast")
                self.start()
            else:
                options = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-instructions", *initdb)
                self.run("initdb", "-D", str(self.data), *options)
                self.start()
                with self.superuser() as connection:
                    for role in (OWNER_ROLE, APP_ROLE, SECOND_ROLE, CURATOR_ROLE, MONITOR_ROLE):
                        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
                    for role, members in (
                        (ROLES.curators, (CURATOR_ROLE,)),
                        (ROLES.owners, (APP_ROLE, SECOND_ROLE)),
                        (ROLES.monitors, (MONITOR_ROLE,)),
                    ):
                        connection.execute(f"CREATE ROLE {role} NOLOGIN ROLE {', '.join(members)}".encode())
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = ["listen_addresses=", f"unix_socket_directories={self.home}", "fsync=on", "max_connections=120", *self.settings]
        arguments = [piece for option in options for piece in ("-c", option)]
        with (self.home / "log").open("ab") as log:
            self.server = subprocess.Popen(
                self.as_user(["env", *self.environment, str(self.programs / "postgres"), "-D", str(self.data), *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.home,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                psycopg.connect(self.dsn("postgres", role="postgres")).close()
                return
            except psycopg.OperationalError:
                if self.server.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.home / "log").read_text(encoding="utf-8")[-2000:]) from None
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT as an operator does, SIGQUIT at once, SIGKILL as a power cut does to a process.

        After SIGKILL the children of the server notice by themselves; a new server waits for them.
        """
        if self.server is None:
            return
        self.server.send_signal(how)
        self.server.wait(START_SECONDS_MAX)
        self.server = None

    def crash(self) -> None:
        """Kill the postmaster, wait for its children, start again: recovery runs."""
        self.stop(signal.SIGKILL)
        self._wait_for_children()
        self.start()

    def restart_stopped(self) -> None:
        """Start a server again that has stopped by itself."""
        assert self.server is not None and self.server.poll() is not None, "the server runs"
        self._wait_for_children()
        self.start()

    def close(self) -> None:
        """Stop it at once and remove its files."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.home, ignore_errors=True)

    def backup(self, to: Path) -> None:
        """A copy of all files, made while the server is stopped."""
        self.stop()
        shutil.copytree(self.data, to, symlinks=True)
        self.start()

    def restore(self, backup: Path) -> None:
        """Put such a copy in the place of what is there."""
        self.stop()
        shutil.rmtree(self.data)
        shutil.copytree(backup, self.data, symlinks=True)
        if self.user is not None:
            for path in (self.data, *self.data.rglob("*")):
                os.chown(path, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)
        os.chmod(self.data, 0o700)
        self.start()

    def dsn(self, database: str, *, role: str = APP_ROLE) -> str:
        return f"host={self.home} dbname={database} user={role}"

    def superuser(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.dsn(database, role="postgres"), autocommit=True)

    def new_database(self) -> str:
        """The name of a new database with the schema of the ledger in it: a copy of one that was installed once."""
        if self._databases == 0:
            self._create_database("installed", "template0")
            install(self.dsn("installed", role=OWNER_ROLE), roles=ROLES)
        self._databases += 1
        name = f"ledger{self._databases}"
        self._create_database(name, "installed")
        return name

    def _create_database(self, name: str, template: str) -> None:
        with self.superuser() as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER {OWNER_ROLE} TEMPLATE {template}".encode())

    def drop_database(self, name: str) -> None:
        with self.superuser() as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def _wait_for_children(self) -> None:
        """A shared memory segment that is still in use would keep the next server from starting."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while self.children() and time.monotonic() < deadline:
            time.sleep(0.02)

    def children(self) -> list[int]:
        """Processes that work in our data directory."""
        found = []
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    if (process / "cwd").readlink() == self.data:
                        found.append(int(process.name))
                except OSError:
                    continue
        return found

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as the user the server runs as."""
        subprocess.run(
            self.as_user([str(self.programs / program), *arguments]), check=True, capture_output=True, cwd=self.home, timeout=600
        )

    def as_user(self, command: list[str]) -> list[str]:
        """The command, to be run by the user of the server, and to end with this process."""
        changed = [] if self.user is None else [f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups"]
        return ["setpriv", *changed, "--pdeathsig", "QUIT", *command]
