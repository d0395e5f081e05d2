"""The listener of one worker: connections become sessions, and their statements can be cancelled."""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.http.access import AppState
from lapwing.interfaces.http.configuration import WireSettings
from lapwing.interfaces.http.data_set_pool import ServedDataSet
from lapwing.interfaces.http.rates import Rates
from lapwing.interfaces.wire.catalogue.rules import OwnNames
from lapwing.interfaces.wire.client_reader import ClientReader
from lapwing.interfaces.wire.connections import STRANGERS_MAX, Connections
from lapwing.interfaces.wire.declared import declared_tables, schema_names, table_names
from lapwing.interfaces.wire.execution import Runner
from lapwing.interfaces.wire.messages import ProtocolError, message, parameter_status
from lapwing.interfaces.wire.parameters import TYPE_NAMES
from lapwing.interfaces.wire.portals import NamedObjects, PortalMemory
from lapwing.interfaces.wire.refusals import error_message
from lapwing.interfaces.wire.request import LoginEnded, RequestHandler, as_shown
from lapwing.interfaces.wire.session import WireSession
from lapwing.interfaces.wire.settings import REPORTED, SessionSettings
from lapwing.interfaces.wire.shadow.database import DeclaredTable, address_of, make_shadow, shadow_name
from lapwing.interfaces.wire.shadow.pool import ShadowPool
from lapwing.interfaces.wire.spending import DailySpending, SessionSpending
from lapwing.interfaces.wire.startup import CancelRequest, LoggedIn, LoginRefused, first_words, log_in
from lapwing.interfaces.wire.statement_parser import StatementParser

_log = logging.getLogger("lapwing.wire")
LOGIN_SECONDS = 10.0
KEYS_SECONDS = 1.0
"""How often to check which keys are still valid."""
READ_AHEAD_BYTES = 2**17


@dataclass(frozen=True, slots=True)
class WiredDataSet:
    """A data set as the sessions of one worker use it."""

    served: ServedDataSet
    pool: ShadowPool
    recogniser: StatementParser
    columns: dict[str, int]
    server_version: str


@dataclass(slots=True)
class Listener:
    """The wire of one worker."""

    app_state: AppState
    settings: WireSettings
    encryption: ssl.SSLContext | None
    secret: bytes
    password: str
    _data_sets: dict[str, WiredDataSet] = field(default_factory=dict)
    _sessions: dict[tuple[int, int], WireSession] = field(default_factory=dict)
    _connections: Connections = field(init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _daily: DailySpending = field(init=False)
    _catalogue_rates: Rates = field(init=False)
    _kept: PortalMemory = field(default_factory=PortalMemory)
    _numbers: int = 0
    _gate: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._daily = DailySpending(self.settings.day_share)
        self._connections = Connections(self.settings.connections_max, self.settings.sessions_per_person)
        self._catalogue_rates = Rates(200.0, 2_000)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen until the block ends; yields the port."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: asyncio.StreamReaderProtocol(ClientReader(READ_AHEAD_BYTES), self._connected, loop=loop),
            self.settings.host,
            self.settings.port,
            reuse_port=self.settings.port != 0,
            backlog=STRANGERS_MAX * 4,
        )
        keys = asyncio.ensure_future(self._watch_keys())
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            keys.cancel()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for one in self._data_sets.values():
                one.pool.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None and isinstance(reader, ClientReader)
        self._tasks.add(task)
        self.app_state.metrics.connected("wire", 1)
        try:
            await self._served(task, reader, writer)
        except asyncio.CancelledError:
            pass  # dropped for another connection, or the server stops: the task ends here
        except LoginEnded:
            gone = CallRefused("unauthenticated", "the key of this session is no longer valid")
            writer.write(error_message(gone, severity="FATAL"))
        except (ProtocolError, EOFError, ConnectionError, TimeoutError, LoginRefused, ssl.SSLError):
            pass  # the client disconnected, or does not speak the protocol
        except LapwingError as error:
            writer.write(error_message(as_shown(error), severity="FATAL"))
        except Exception as error:
            _log.error("%s on the wire", type(error).__name__)
        finally:
            self._tasks.discard(task)
            self.app_state.metrics.connected("wire", -1)
            with suppress(Exception):
                writer.close()

    async def _watch_keys(self) -> None:
        """End sessions whose key was revoked or has expired, even idle ones."""
        while True:
            await asyncio.sleep(KEYS_SECONDS)
            sessions = list(self._sessions.values())
            try:
                good = (
                    await asyncio.to_thread(self.app_state.identities.good_key_ids, {one.key_id for one in sessions}) if sessions else set()
                )
            except LapwingError:
                continue  # a client that sends a request gets the error
            for session in sessions:
                if session.key_id not in good:
                    session.end_login()

    async def _served(self, task: asyncio.Task[None], reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        with self._connections.stranger(task):
            async with asyncio.timeout(LOGIN_SECONDS):
                words = await first_words(reader, writer, self.encryption, lambda: self._connections.heard(task))
                if isinstance(words, CancelRequest):
                    asked = self._sessions.get((words.process, words.secret))
                    if asked is not None:
                        asked.cancel()
                    return
                who = await log_in(reader, writer, self.app_state, self.secret, words)
        with self._connections.session(who.identity.name):
            await self._in_session(who, reader, writer)

    async def _in_session(self, who: LoggedIn, reader: ClientReader, writer: asyncio.StreamWriter) -> None:
        wired = await self._wired(who.data_set)
        settings = _first_settings(who.settings)
        self._numbers += 1
        key = self._numbers, secrets.randbits(32)
        session = WireSession(
            reader,
            writer,
            self._runner(who, wired, settings),
            wired.recogniser,
            self.app_state.configuration.limits.body_bytes_max,
            self.settings.idle_seconds,
        )
        self._sessions[key] = session
        try:
            told = {**REPORTED, "server_version": wired.server_version, "session_authorization": who.identity.name}
            for name, value in told.items():
                writer.write(parameter_status(name, settings.values.get(name.lower(), value)))
            writer.write(message(b"K", struct.pack("!II", *key)))
            await session.serve()
        finally:
            del self._sessions[key]

    def _runner(self, who: LoggedIn, wired: WiredDataSet, settings: SessionSettings) -> Runner:
        spending = SessionSpending(who.identity.name, who.data_set, self.settings.session_share, self._daily)
        handler = RequestHandler(self.app_state, wired.served, who.key_id, who.identity.name, settings, spending)
        kept = NamedObjects(who.identity.name, self._kept)
        return Runner(handler, wired.pool, wired.columns, kept, catalogue_rates=self._catalogue_rates)

    async def _wired(self, data_set: str) -> WiredDataSet:
        async with self._gate:
            if data_set not in self._data_sets:
                self._data_sets[data_set] = await self._open(data_set)
            return self._data_sets[data_set]

    async def _open(self, data_set: str) -> WiredDataSet:
        served = self.app_state.desk.of(data_set)
        assert served is not None
        database, role = shadow_name(self.settings.shadow_prefix, data_set), self.settings.role
        tables, known, schemas = await asyncio.to_thread(_declared_in, served)
        shadow, password = self.settings.shadow, self.password
        # The data set may have been declared or prepared after the server started; an up-to-date shadow is left unchanged.
        await asyncio.to_thread(make_shadow, shadow, database=database, role=role, password=password, tables=tables)
        pool = ShadowPool(
            address_of(self.settings.shadow, database=database, role=role, password=self.password), self.settings.shadow_connections
        )
        async with pool.lent({}, "") as link:
            version = link.server_version
        columns: dict[str, int] = {}
        for column in (column for table in tables for column in table.columns):
            columns.setdefault(column.name.lower(), TYPE_NAMES[column.type_name.split()[0]])
        return WiredDataSet(served, pool, StatementParser(OwnNames(known, schemas)), columns, version)


def _declared_in(served: ServedDataSet) -> tuple[list[DeclaredTable], frozenset[str], frozenset[str]]:
    """Tables of a data set, and the names by which statements may mention them and their schema; an error before its first version."""
    with served.opened() as opened:
        return declared_tables(opened), table_names(opened), schema_names(opened)


def _first_settings(words: dict[str, str]) -> SessionSettings:
    """The settings in a client's startup message, including ``options``; a wrong setting ends the connection."""
    settings = SessionSettings()
    options = words.pop("options", "").replace("\\ ", "\0").split()
    while options:
        option = options.pop(0)
        if option == "-c" and options:
            option = options.pop(0)
        elif option.startswith("-c"):
            option = option[2:]
        elif option.startswith("--"):
            option = option[2:].replace("-", "_")
        else:
            raise CallRefused("wire-setting", "these options are not supported", hint="use -c name=value")
        name, _, value = option.partition("=")
        settings.set(name.replace("\0", " ").lower(), value.replace("\0", " "))
    for name, value in words.items():
        if name not in ("replication",):
            settings.set(name.lower(), value)
        elif value.lower() not in ("false", "off", "no", "0"):
            raise CallRefused("wire-setting", "replication is not supported")
    return settings
