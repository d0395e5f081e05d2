"""Stands between clients and a PostgreSQL server and cuts connections at a chosen step of the protocol.

It knows of the wire protocol only where a client's request ends (Sync, Query), where the server's reply ends (ReadyForQuery), and which of
the ledger's functions a request calls. A client has one request under way at a time, so requests and replies take turns.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self, assert_never

from tests.faults.clients import ended, new_field, random_plans, scarce_loss, started
from tests.faults.table import Outcome, fault
from tests.ledger.cluster import Cluster

SOCKET = ".s.PGSQL.5432"
START_SECONDS_MAX = 120.0
ROUND_SECONDS_MAX = 600.0
"""Nobody takes as long, on any machine: this ends only what hangs."""
LATE_SECONDS = 0.05
"""How long a late request is held back: longer than a client takes to connect and ask again."""

STEPS = {
    "reserve": b"lapwing.reserve_durably(",
    "reserve many": b"lapwing.reserve_many_durably(",
    "commit": b"lapwing.commit_durably(",
    "forfeit": b"lapwing.forfeit(",
    "register": b"lapwing.register_worker(",
    "renew": b"lapwing.renew_worker(",
    "disconnect": b"lapwing.disconnect_worker(",
    "find": b"lapwing.find_answer(",
    "flush": b"CALL lapwing.wait_for_disk(",
    "reopen": b"lapwing.set_closed(",
}
"""The steps of the protocol, and how a request of each is recognised."""

_REQUEST_ENDS = b"SQX"  # Sync, Query, Terminate
_READY = b"Z"


class Cut(Enum):
    """What happens to one request."""

    BEFORE = "before"
    """The connection is cut and the request never reaches the server."""
    IN_FLIGHT = "in flight"
    """The request is forwarded and both connections are cut at once: it is carried out while the client asks again."""
    AFTER = "after"
    """It was carried out and the server has replied (after its COMMIT); the reply is thrown away."""
    MIDDLE = "middle"
    """Half of the reply arrives."""
    LATE = "late"
    """The client is cut off first, and the request reaches the server some time later: after the retry that overtook it."""
    SLOW = "slow"
    """Nothing is cut; request and reply take their time."""


Decision = Callable[[str], Cut | None]
"""What to do to a request of this step; None leaves it alone."""


class Proxy:
    """Listens in a directory of its own, in a thread of its own. ``done`` counts what was done, by step and cut."""

    def __init__(self, server: Path, decide: Decision) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="lapwing-px-"))
        self.directory.chmod(0o755)
        self.decide = decide
        self.done: Counter[tuple[str, Cut]] = Counter()
        self._server = server / SOCKET
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(START_SECONDS_MAX), "the proxy does not listen"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_SECONDS_MAX)
        assert not self._thread.is_alive(), "the proxy does not stop"
        shutil.rmtree(self.directory)

    def cuts(self, cut: Cut) -> int:
        """How many requests this was done to."""
        return sum(count for (_, done), count in self.done.items() if done is cut)

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        listener = loop.run_until_complete(asyncio.start_unix_server(self._accepted, self.directory / SOCKET, backlog=256))
        self._listening.set()
        try:
            loop.run_forever()
        finally:
            listener.close()
            for task in self._tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            loop.close()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._served(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _served(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        to_server: asyncio.StreamWriter | None = None
        try:
            from_server, to_server = await asyncio.open_unix_connection(self._server)
            length = await from_client.readexactly(4)
            to_server.write(length + await from_client.readexactly(int.from_bytes(length, "big") - 4))
            to_client.write(await _until(from_server, _READY))
            while await self._turn(from_client, to_client, from_server, to_server):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass  # either side is gone; the other is told below
        finally:
            for writer in (to_client, to_server):
                if writer is not None:
                    writer.close()

    async def _turn(
        self,
        from_client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> bool:
        """One request and its reply; False if that was the last."""
        request = await _until(from_client, _REQUEST_ENDS)
        step = next((name for name, mark in STEPS.items() if mark in request), None)
        cut = None if step is None else self.decide(step)
        if step is not None and cut is not None:
            self.done[step, cut] += 1
        match cut:
            case None:
                to_server.write(request)
                to_client.write(await _until(from_server, _READY))
                return True
            case Cut.SLOW:
                await asyncio.sleep(LATE_SECONDS)
                to_server.write(request)
                reply = await _until(from_server, _READY)
                await asyncio.sleep(LATE_SECONDS)
                to_client.write(reply)
                return True
            case Cut.BEFORE:
                return False
            case Cut.IN_FLIGHT:
                to_server.write(request)
                await to_server.drain()
                return False
            case Cut.AFTER:
                to_server.write(request)
                await _until(from_server, _READY)
                return False
            case Cut.MIDDLE:
                to_server.write(request)
                reply = await _until(from_server, _READY)
                to_client.write(reply[: len(reply) // 2])
                await to_client.drain()
                return False
            case Cut.LATE:
                to_client.close()
                await asyncio.sleep(LATE_SECONDS)
                to_server.write(request)
                await _until(from_server, _READY)
                return False
            case _:
                assert_never(cut)


class CutsInTurn:
    """Every kind of cut in turn, for each step by itself: ``often`` times for reserve and commit, ``seldom`` for each other.

    Of reservations and commits two thirds are cut, by chance, until there were so many; of the other steps the first ones.
    """

    def __init__(self, seed: int, *, often: int, seldom: int) -> None:
        self._chance = random.Random(seed)
        self._often = often
        self._seldom = seldom
        self._turns: Counter[str] = Counter()

    def __call__(self, step: str) -> Cut | None:
        """Called by the proxy's one thread."""
        is_frequent = step in ("reserve", "commit")
        if self._turns[step] >= (self._often if is_frequent else self._seldom) or (is_frequent and self._chance.random() < 1 / 3):
            return None
        self._turns[step] += 1
        return list(Cut)[(self._turns[step] - 1) % len(Cut)]


def cut_connections(
    cluster: Cluster, database: str, directory: Path, *, seed: int, clients: int, sources: int, acts: int, often: int, seldom: int
) -> tuple[Outcome, Counter[tuple[str, Cut]]]:
    """Clients ask through a proxy that cuts their connections, as often as :class:`CutsInTurn` says."""
    loss_total = scarce_loss(clients=clients, sources=sources, acts=acts)
    field = new_field(cluster, database, directory, sources=sources, loss_total=loss_total)
    decide = CutsInTurn(seed, often=often, seldom=seldom)
    with Proxy(cluster.home, decide) as proxy:
        dsn = cluster.dsn(database).replace(str(cluster.home), str(proxy.directory))
        plans = random_plans(field, dsn, clients=clients, acts=acts, seed=seed)
        ended(started(field, plans), seconds_max=ROUND_SECONDS_MAX)
    _, violations = field.judged(codes=frozenset({"reply-lost"}))
    counts = Counter({f"connection cut: {cut.value}": proxy.cuts(cut) for cut in Cut})
    return Outcome(counts, violations, [field.log]), proxy.done


@fault("connection cut")
def cut_connections_somewhere(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    """One round of the campaign."""
    clients, sources, acts = random.Random(seed).choice([(1, 1, 60), (1, 10, 60), (4, 1, 25), (4, 10, 25), (32, 1, 5), (32, 10, 5)])
    database = cluster.new_database()
    outcome, _ = cut_connections(cluster, database, directory, seed=seed, clients=clients, sources=sources, acts=acts, often=120, seldom=36)
    cluster.drop_database(database)
    return outcome


async def _until(reader: asyncio.StreamReader, ends: bytes) -> bytes:
    """Messages up to and with the first of one of these types."""
    pieces = []
    while True:
        head = await reader.readexactly(5)
        pieces += [head, await reader.readexactly(int.from_bytes(head[1:], "big") - 4)]
        if head[:1] in ends:
            return b"".join(pieces)
