"""One session: the protocol's state machine, simple and extended. Messages are answered one at a time, in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from lapwing.errors import CallRefused, LapwingError, Refused
from lapwing.interfaces.wire.client_reader import ClientReader
from lapwing.interfaces.wire.commands import PrepareNamed, Transaction
from lapwing.interfaces.wire.execution import FAILED, IDLE, OPEN, Runner
from lapwing.interfaces.wire.lexing import statements_of, words_of
from lapwing.interfaces.wire.long_texts import apart
from lapwing.interfaces.wire.messages import (
    Payload,
    ProtocolError,
    formats_of,
    message,
    parameter_description,
    parameter_status,
    read_message,
    ready,
    row_description,
    zero_ended,
)
from lapwing.interfaces.wire.parameters import PARAMETERS_MAX
from lapwing.interfaces.wire.portals import PortalInUse, PreparedStatement
from lapwing.interfaces.wire.refusals import LocatedError, ShadowError, error_message, notice
from lapwing.interfaces.wire.request import LoginEnded, as_shown
from lapwing.interfaces.wire.results import StatementOutcome, copied
from lapwing.interfaces.wire.statement_parser import StatementParser

_log = logging.getLogger("lapwing.wire")
FLUSH_BYTES = 65_536
ROWS_AT_ONCE = 100
"""Rows that are sent before other tasks run."""
_NO_DATA, _EMPTY, _SUSPENDED = message(b"n"), message(b"I"), message(b"s")
_ENDERS = ("COMMIT", "ROLLBACK", "ROLLBACK TO")


class _ClientGone(EOFError):
    """The client has disconnected."""


class _Interrupted(Exception):
    """The work was cancelled or took too long."""

    def __init__(self, refusal: CallRefused) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


@dataclass(slots=True)
class WireSession:
    """A client that has logged in."""

    reader: ClientReader
    writer: asyncio.StreamWriter
    runner: Runner
    recogniser: StatementParser
    bytes_max: int
    idle_seconds: float
    _running: asyncio.Task[None] | None = None
    _skipping: bool = False
    """Whether messages are skipped after an error in the extended protocol, until the client synchronises."""
    _login_over: asyncio.Event = field(default_factory=asyncio.Event)
    _out: bytearray = field(default_factory=bytearray)

    async def serve(self) -> None:
        """Answer messages until the client disconnects."""
        self._write(ready(self.runner.status))
        await self._flush()
        while True:
            letter, body = await self._next_message()
            if letter == b"X":
                return
            await self._message(letter, body)

    async def _next_message(self) -> tuple[bytes, bytes]:
        reading = asyncio.ensure_future(read_message(self.reader, self.bytes_max))
        over = asyncio.ensure_future(self._login_over.wait())
        try:
            await asyncio.wait({reading, over}, timeout=self.idle_seconds, return_when=asyncio.FIRST_COMPLETED)
            if over.done():
                raise LoginEnded
            if not reading.done():
                raise CallRefused("wire-idle", "the session was idle for too long and ends", hint="connect again")
            return reading.result()
        finally:
            over.cancel()
            if reading.cancel():
                await asyncio.gather(reading, return_exceptions=True)

    @property
    def key_id(self) -> str:
        """The id of the key that opened the session."""
        return self.runner.handler.key_id

    def end_login(self) -> None:
        """The key is no longer valid: cancel the running statement, and end the session."""
        self._login_over.set()
        self.cancel()

    def cancel(self) -> None:
        """Cancel the running statement. A question that was charged continues by itself."""
        if self._running is not None:
            self._running.cancel()

    async def _message(self, letter: bytes, body: bytes) -> None:
        read = Payload(body)
        if letter == b"S":
            self._skipping = False
            if self.runner.status == IDLE:
                self.runner.kept.end_transaction()
            self._write(ready(self.runner.status))
            await self._flush()
        elif letter == b"H":
            await self._flush()
        elif letter == b"Q":
            self._skipping = False
            await self._guarded(self._simple(read), simple=True)
            self._write(ready(self.runner.status))
            await self._flush()
        elif letter == b"F":
            await self._guarded(self._function_call(), simple=True)
            self._write(ready(self.runner.status))
            await self._flush()
        elif letter in _EXTENDED:
            if not self._skipping:
                await self._guarded(_EXTENDED[letter](self, read), simple=False)
                await self._let_others()  # a client may send much and never synchronise
        elif letter not in (b"d", b"c", b"f"):  # the rest of a copy is ignored
            raise ProtocolError("an unknown message")

    async def _guarded(self, work: Coroutine[Any, Any, None], *, simple: bool) -> None:
        """Handle one message. An error is sent to the client and aborts the transaction."""
        try:
            await self._ended(work)
            return
        except _Interrupted as error:
            self._write(error_message(error.refusal))
        except (_ClientGone, LoginEnded):
            raise
        except ShadowError as error:
            self._write(message(b"E", error.body))
        except ProtocolError as error:
            self._write(error_message(CallRefused("wire-protocol", str(error))))
        except LocatedError as error:
            self._write(error_message(as_shown(error.error), position=error.position))
        except Exception as error:  # an unexpected error may hold a value: it is reported as "internal"
            own = as_shown(error)
            if own.code == "internal":
                _log.error("%s in a session on the wire", type(error).__name__)
            self._write(error_message(own))
        if self.runner.status == OPEN:
            self.runner.status = FAILED
        self._skipping = not simple

    async def _ended(self, work: Coroutine[Any, Any, None]) -> None:
        """Return when the work is done; it is cancelled on request, on timeout, or when the client disconnects."""
        running, gone = asyncio.ensure_future(work), asyncio.ensure_future(self.reader.gone.wait())
        self._running, handler = running, self.runner.handler
        handler.charge = ""
        try:
            await asyncio.wait({running, gone}, timeout=handler.settings.timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._running = None
            gone.cancel()
            if over := running.cancel():
                await asyncio.gather(running, return_exceptions=True)
        if self._login_over.is_set():
            raise LoginEnded
        if over and gone.done() and not gone.cancelled():
            raise _ClientGone
        if over:
            raise _Interrupted(CallRefused("wire-time-over", "the statement took longer than statement_timeout", hint=handler.charge))
        if running.cancelled():
            raise _Interrupted(CallRefused("wire-cancelled", "the statement was cancelled on request", hint=handler.charge))
        running.result()

    # -- the simple protocol -----------------------------------------------------------------------------------------------------------

    async def _simple(self, read: Payload) -> None:
        text = read.text()
        read.end()
        self.runner.kept.statements.pop("", None)
        self.runner.kept.portals.pop("", None)
        statements = await apart(text, lambda: self._statements(text))
        self._tell_news()
        if not statements:
            self._write(_EMPTY)
        for statement in statements:
            self._require_no_failure(statement)
            await self.runner.read(statement)
            if statement.types and not isinstance(statement.command, PrepareNamed):
                raise CallRefused("wire-parameter", "a simple query cannot have parameters")
            outcome = await self.runner.opened(PortalInUse(statement))
            self._begin_outcome(outcome)
            if outcome.fields is not None and outcome.copied is None:
                self._write(row_description(outcome.fields, [0] * len(outcome.fields)))
            await self._rows(outcome, [0] * len(outcome.fields or ()), 0, None)
            self._end_outcome(outcome)

    def _statements(self, text: str) -> list[PreparedStatement]:
        try:
            return [PreparedStatement(self.recogniser.command(text, words), text) for words in statements_of(words_of(text))]
        except LapwingError as error:
            raise _placed(error) from error

    def _require_no_failure(self, statement: PreparedStatement) -> None:
        """In a failed transaction, accept only statements that end it."""
        ends = isinstance(statement.command, Transaction) and statement.command.word in _ENDERS
        if self.runner.status == FAILED and not ends:
            raise CallRefused("wire-transaction", "the transaction has failed: statements are ignored until it ends", hint="ROLLBACK")

    # -- the extended protocol ---------------------------------------------------------------------------------------------------------

    async def _parse(self, read: Payload) -> None:
        name, text = read.text(), read.text()
        given = tuple(read.oid() for _ in range(read.count()))
        read.end()
        if len(given) > PARAMETERS_MAX:
            raise CallRefused("wire-parameter", "there are too many parameters")
        if not name:
            self.runner.kept.statements.pop("", None)
        statements = await apart(text, lambda: self._statements(text))
        if len(statements) > 1:
            raise Refused("statement-several", "there is more than one statement", hint="send the statements one at a time")
        statement = statements[0] if statements else PreparedStatement(None, text)
        statement.given = given
        if statement.command is not None:
            self._require_no_failure(statement)
            await self.runner.read(statement)
        self.runner.kept.keep_statement(name, statement)
        self._write(message(b"1"))

    async def _bind(self, read: Payload) -> None:
        name, statement_name = read.text(), read.text()
        forms = [read.int16() for _ in range(read.count())]
        values = [read.counted() for _ in range(read.count())]
        formats = [read.int16() for _ in range(read.count())]
        read.end()
        if not set(forms) | set(formats) <= {0, 1}:
            raise ProtocolError("the only formats are 0 (text) and 1 (binary)")
        statement = self.runner.kept.statement(statement_name)
        if len(values) != len(statement.types):
            message_text = f"the statement has {len(statement.types)} parameters, but {len(values)} values were given"
            raise CallRefused("wire-parameter", message_text)
        formats_of(forms, len(values))
        if not name:
            self.runner.kept.portals.pop("", None)
        self.runner.kept.keep_portal(name, PortalInUse(statement, values, forms, formats))
        self._write(message(b"2"))

    async def _describe(self, read: Payload) -> None:
        kind, name = read.take(1), read.text()
        read.end()
        if kind == b"S":
            statement = self.runner.kept.statement(name)
            self._write(parameter_description(statement.types))
            statement.described = fields = await self.runner.fields(statement)
            self._write(_NO_DATA if fields is None else row_description(fields, [0] * len(fields)))
        elif kind == b"P":
            portal = self.runner.kept.portal(name)
            if portal.described is None:
                portal.described = await self.runner.fields(portal.statement, portal)
            fields = portal.described
            self._write(_NO_DATA if fields is None else row_description(fields, formats_of(portal.formats, len(fields))))
        else:
            raise ProtocolError("only statements and portals can be described")

    async def _execute(self, read: Payload) -> None:
        portal, most = self.runner.kept.portal(read.text()), read.int32()
        read.end()
        if portal.statement.command is None:
            self._write(_EMPTY)
            return
        self._tell_news()
        self._require_no_failure(portal.statement)
        begun = portal.outcome is None
        outcome = await self.runner.opened(portal)
        if begun:
            self._begin_outcome(outcome)
        formats = formats_of(portal.formats, len(outcome.fields or ()))
        limit = most if most > 0 and outcome.copied is None else None
        if await self._rows(outcome, formats, portal.at, limit):
            portal.at += most
            self._write(_SUSPENDED)
            return
        left = 0 if outcome.rows is None else len(outcome.rows) - portal.at
        portal.at += left
        self._end_outcome(outcome, left)

    async def _close(self, read: Payload) -> None:
        kind, name = read.take(1), read.text()
        read.end()
        if kind not in (b"S", b"P"):
            raise ProtocolError("only statements and portals can be closed")
        (self.runner.kept.statements if kind == b"S" else self.runner.kept.portals).pop(name, None)
        self._write(message(b"3"))

    async def _function_call(self) -> None:
        raise CallRefused("wire-statement", "function calls by number are not supported")

    # -- writing -----------------------------------------------------------------------------------------------------------------------

    def _tell_news(self) -> None:
        """Report the outcomes of earlier interrupted questions."""
        for news in self.runner.handler.news() if self.runner.handler.settings.wants_notices else ():
            self._write(notice(news))

    def _begin_outcome(self, outcome: StatementOutcome) -> None:
        if outcome.notices and self.runner.handler.settings.wants_notices:
            self._write(notice(outcome.notices[0], detail="\n".join(outcome.notices[1:])))
        if outcome.status is not None:
            self._write(parameter_status(*outcome.status))

    async def _rows(self, outcome: StatementOutcome, formats: list[int], first: int, most: int | None) -> bool:
        """Send rows; returns whether the limit ``most`` stopped it."""
        if outcome.rows is None:
            return False
        if outcome.copied is not None:
            binary = int(outcome.copied.form == "binary")
            columns = len(outcome.fields or ())
            head = bytes([binary]) + columns.to_bytes(2, "big") + binary.to_bytes(2, "big") * columns
            self._write(message(b"H", head))
            for number, piece in enumerate(copied(outcome.copied, outcome.fields or (), outcome.rows)):
                self._write(message(b"d", piece))
                if number % ROWS_AT_ONCE == 0 or len(self._out) > FLUSH_BYTES:
                    await self._let_others()
            self._write(message(b"c"))
            return False
        last = len(outcome.rows) if most is None else min(first + most, len(outcome.rows))
        for place in range(first, last, ROWS_AT_ONCE):
            self._write(outcome.rows.messages(place, min(place + ROWS_AT_ONCE, last), formats))
            await self._let_others()
        return most is not None and last == first + most

    def _end_outcome(self, outcome: StatementOutcome, sent: int | None = None) -> None:
        word, _, count = outcome.tag.partition(" ")
        tag = f"{word} {sent}" if sent is not None and count.isdigit() else outcome.tag
        self._write(message(b"C", zero_ended(tag)))

    def _write(self, data: bytes) -> None:
        self._out += data

    async def _let_others(self) -> None:
        """Let other tasks run, and send the output if it has grown large."""
        await asyncio.sleep(0)
        if len(self._out) > FLUSH_BYTES:
            await self._flush()

    async def _flush(self) -> None:
        self.writer.write(bytes(self._out))
        self._out.clear()
        async with asyncio.timeout(self.idle_seconds):  # a client that never reads
            await self.writer.drain()


def _placed(error: LapwingError) -> LocatedError:
    """The error with its position. Pre: the error points into the client's whole text."""
    return LocatedError(error, None if error.span is None else error.span.start + 1)


_EXTENDED = {
    b"P": WireSession._parse,
    b"B": WireSession._bind,
    b"D": WireSession._describe,
    b"E": WireSession._execute,
    b"C": WireSession._close,
}
