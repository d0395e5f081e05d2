"""A server whose disk is full, and has room again.

Two ways. A *small disk*: all files of the server are in a memory file system of their own, which is filled to the last page; that takes the
right to mount. A *low limit*: the kernel lets no file of the server's processes grow beyond a size, so a write fails in the same
places with "file too large" instead of "no space left"; that takes no right, and is there for machines that allow no mount.

What PostgreSQL does then: a table that cannot grow is an error of the statement, which changes nothing. A log that cannot grow is a panic:
all sessions end, and the server starts again by itself if recovery finds room; else it stops and has to be started by hand.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import resource
import subprocess
import tempfile
import time
from enum import Enum
from pathlib import Path

import psycopg

from tests.faults.clients import new_field, random_plans, started
from tests.faults.table import Outcome, fault
from tests.ledger.cluster import Cluster

DISK_MEGABYTES = 112
LIMIT_BYTES = 300_000
FULL_SECONDS_MAX = 300.0
WORK_SECONDS_MAX = 300.0
RECOVERY_SECONDS_MAX = 2.0
_SETTINGS = ("min_wal_size=2MB", "max_wal_size=6MB", "restart_after_crash=on", "autovacuum=off")


class How(Enum):
    """In which way there is no room."""

    SMALL_DISK = "small disk"
    LOW_LIMIT = "low limit"


def may_mount() -> bool:
    """Whether this process may mount a file system."""
    try:
        SmallDisk(1).close()
    except subprocess.CalledProcessError:
        return False
    return True


class SmallDisk:
    """A memory file system of its own."""

    def __init__(self, megabytes: int = DISK_MEGABYTES) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="lapwing-disk-"))
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "lapwing", str(self.path)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except BaseException:
            self.path.rmdir()
            raise

    def fill(self, leave_bytes: int) -> None:
        """Leave so much room, in whole pages. The server writes meanwhile, so room is taken until there is none."""
        with (self.path / "filler").open("wb") as filler:
            size_bytes, piece_bytes = 0, 2**24
            while piece_bytes >= resource.getpagesize():
                try:
                    os.posix_fallocate(filler.fileno(), size_bytes, piece_bytes)
                    size_bytes += piece_bytes
                except OSError as error:
                    assert error.errno == errno.ENOSPC
                    piece_bytes //= 2
            os.truncate(filler.fileno(), max(0, size_bytes - leave_bytes))

    def free(self) -> None:
        """Give the room back."""
        (self.path / "filler").unlink()

    def close(self) -> None:
        """After the server has gone."""
        subprocess.run(["umount", "-l", str(self.path)], check=True, capture_output=True)
        self.path.rmdir()


class CrampedServer:
    """A server that can be made to run out of room."""

    def __init__(self, how: How) -> None:
        self.how = how
        self._disk = SmallDisk() if how is How.SMALL_DISK else None
        try:
            self.cluster = Cluster(_SETTINGS, within=None if self._disk is None else self._disk.path, initdb=["--wal-segsize=1"])
        except BaseException:
            if self._disk is not None:
                self._disk.close()
            raise

    def fill(self, leave_bytes: int) -> None:
        """From now on writes fail, nearly all or after a few more."""
        if self._disk is not None:
            self._disk.fill(leave_bytes)
        else:
            self._limit(str(LIMIT_BYTES + leave_bytes))

    def recover_without_room(self) -> None:
        """Wait until the server has started by itself, or has given up; not for long, it may do neither."""
        server = self.cluster.server
        assert server is not None
        deadline = time.monotonic() + RECOVERY_SECONDS_MAX
        while server.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(psycopg.OperationalError):
                self.cluster.superuser().close()
                return
            time.sleep(0.02)

    def free(self) -> str:
        """There is room again; a server that stopped is started, and one that starts by itself waited for. Which of the two it was."""
        server = self.cluster.server
        assert server is not None
        if self._disk is not None:
            self._disk.free()
        else:
            self._limit("unlimited")
        deadline = time.monotonic() + FULL_SECONDS_MAX
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(0.05)
                self.cluster.restart_stopped()
                return "had to be started"
            with contextlib.suppress(psycopg.OperationalError):
                self.cluster.superuser().close()
                return "came back by itself"
            assert time.monotonic() < deadline, "the server does not come back"

    def burn(self) -> None:
        """Write to the log until the server panics."""
        deadline = time.monotonic() + FULL_SECONDS_MAX
        while time.monotonic() < deadline:
            try:
                connection = self.cluster.superuser()
            except psycopg.OperationalError:
                return
            # An error that does not end the connection is one of the statement: not yet.
            with contextlib.closing(connection), contextlib.suppress(psycopg.Error):
                while True:
                    connection.execute("SELECT pg_logical_emit_message(true, 'lapwing', repeat('x', 200000))")
        raise AssertionError("the disk does not become full")

    def close(self) -> None:
        self.cluster.close()
        if self._disk is not None:
            self._disk.close()

    def _limit(self, size: str) -> None:
        server = self.cluster.server
        assert server is not None
        # The first of them is the parent: what it starts from now on inherits its limit. By the user of the server, who needs no right for
        # it. A process may have ended meanwhile.
        for pid in (server.pid, *self.cluster.children()):
            command = self.cluster.as_user(["prlimit", f"--pid={pid}", f"--fsize={size}:unlimited"])
            subprocess.run(command, check=pid == server.pid and server.poll() is None, capture_output=True)


def fill_while_clients_work(
    server: CrampedServer, database: str, directory: Path, *, seed: int, clients: int, sources: int, times: int
) -> Outcome:
    """So many times there is no room, and then room again, while clients ask; at last they are killed, and the ledger recovered."""
    chance = random.Random(seed)
    cluster = server.cluster
    field = new_field(cluster, database, directory, sources=sources, loss_total=10**6)
    plans = random_plans(field, cluster.dsn(database), clients=clients, acts=6000, seed=seed)
    processes = started(field, plans)
    outcome = Outcome(histories=[field.log])
    try:
        for _ in range(times):
            field.wait_for_events(field.number_of_events() + 10, seconds_max=WORK_SECONDS_MAX)
            server.fill(chance.choice([0, 0, 50_000, 200_000, 1_000_000]))
            server.burn()
            if chance.random() < 0.5:
                server.recover_without_room()
            outcome.counts[f"disk full ({server.how.value}): the server {server.free()}"] += 1
    finally:
        for process in processes:
            process.kill()
            process.join()
    _, outcome.violations = field.judged(codes=frozenset({"ledger-unreachable", "reply-lost"}))
    return outcome


@fault("disk full")
def fill_the_disk_of_an_own_server(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    """One round of the campaign. Another server is started: the given one has all the room there is."""
    chance = random.Random(seed)
    server = CrampedServer(chance.choice(list(How)) if may_mount() else How.LOW_LIMIT)
    try:
        clients, sources = chance.choice([(1, 1), (4, 10), (32, 1)])
        database = server.cluster.new_database()
        return fill_while_clients_work(server, database, directory, seed=seed, clients=clients, sources=sources, times=5)
    finally:
        server.close()
