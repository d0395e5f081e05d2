"""Runs parsed statements: each returns an outcome, or raises an error that may be shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.http.identity.rights import Act
from lapwing.interfaces.http.rates import Rates
from lapwing.interfaces.wire.commands import (
    AboutCatalogue,
    Ask,
    CloseCursor,
    CopyOut,
    Deallocate,
    DeclareCursor,
    Discard,
    ExecuteNamed,
    FetchRows,
    NoEffect,
    PrepareNamed,
    Query,
    SetSetting,
    ShowOne,
    Transaction,
)
from lapwing.interfaces.wire.long_texts import apart
from lapwing.interfaces.wire.messages import FieldSpec, formats_of
from lapwing.interfaces.wire.parameters import TYPE_NAMES, FilledText, filled, parameter_types, sampled
from lapwing.interfaces.wire.portals import NamedObjects, PortalInUse, PreparedStatement
from lapwing.interfaces.wire.refusals import LocatedError, ShadowError
from lapwing.interfaces.wire.request import RequestHandler
from lapwing.interfaces.wire.results import AnswerRows, RowsToSend, ShadowCells, StatementOutcome, fields_of, rows_of
from lapwing.interfaces.wire.shadow.link import ShadowLink
from lapwing.interfaces.wire.shadow.pool import ShadowPool
from lapwing.interfaces.wire.values import TEXT, literal

IDLE, OPEN, FAILED = "I", "T", "E"
"""The transaction state of a session: no transaction, an open one, a failed one."""


@dataclass(slots=True)
class Runner:
    """Runs the statements of one session, one after the other."""

    handler: RequestHandler
    pool: ShadowPool
    columns: Mapping[str, int]
    """Types of the data set's columns, to infer those of parameters."""
    kept: NamedObjects
    status: str = IDLE
    catalogue_rates: Rates = field(default_factory=lambda: Rates(200.0, 2_000))
    """The rate limit of free statements: faster clients are slowed down, not refused."""

    # -- before running --------------------------------------------------------------------------------------------------------------

    async def read(self, statement: PreparedStatement) -> None:
        """Find the types of a statement's parameters."""
        query = _query_of(statement)
        if isinstance(query, Ask):
            text, given = query.text, statement.given
            statement.types = await apart(text, lambda: parameter_types(text, given, self.columns))
        elif isinstance(query, AboutCatalogue):
            async with self._shadow(query) as link:
                statement.types = (await link.prepare(query.text, statement.given)).parameters

    async def fields(self, statement: PreparedStatement, portal: PortalInUse | None = None) -> tuple[FieldSpec, ...] | None:
        """The columns of a statement's result; None if it returns no rows. Free."""
        match statement.command:
            case Ask() as ask:
                await self._paced()
                text = await apart(ask.text, lambda: sampled(ask.text, statement.types) if portal is None else self._filled(ask, portal))
                with _pointing_at(ask, text):
                    columns = await self.handler.columns(text.text)
                return fields_of(columns, self.handler.settings.shape)
            case AboutCatalogue() as about:
                async with self._shadow(about) as link:
                    return (await link.prepare(about.text, statement.types)).fields
            case ShowOne(name):
                return (FieldSpec(name, TEXT),)
            case FetchRows(name, _, move=False):
                cursor = self._cursor(name)
                cursor.described = cursor.described or await self.fields(cursor.statement, cursor)
                return cursor.described
            case ExecuteNamed(name, values):
                kept = self._prepared(name)
                return await self.fields(kept, PortalInUse(kept, _texts(values)))
            case _:
                return None

    def _filled(self, ask: Ask, portal: PortalInUse) -> FilledText:
        types = portal.statement.types
        if len(portal.values) != len(types):
            raise CallRefused("wire-parameter", f"the statement has {len(types)} parameters, but {len(portal.values)} values were given")
        forms = formats_of(portal.forms, len(types))
        return filled(ask.text, [literal(value, of, form) for value, of, form in zip(portal.values, types, forms, strict=True)])

    # -- running -----------------------------------------------------------------------------------------------------------------------

    async def run(self, portal: PortalInUse) -> StatementOutcome:
        """Run a portal's statement. Only this spends budget."""
        match portal.statement.command:
            case Ask() as ask:
                return await self._ask(ask, portal)
            case AboutCatalogue() as about:
                return await self._ask_shadow(about, portal)
            case SetSetting(name, value, local):
                told = self.handler.settings.set(name, value, local=local)
                return StatementOutcome("RESET" if value is None else "SET", status=told)
            case ShowOne(name):
                return await self._show(name)
            case Transaction(word):
                return self._transaction(word)
            case NoEffect(tag):
                return StatementOutcome(tag)
            case _ as command:
                return await self._run_kept(command, portal)

    async def _run_kept(self, command: object, portal: PortalInUse) -> StatementOutcome:
        """Statements about what the session keeps."""
        match command:
            case DeclareCursor(name, query, hold):
                return await self._declare(name, query, hold=hold, portal=portal)
            case FetchRows(name, count, move):
                return await self._fetch(name, count, move=move, formats=portal.formats)
            case CloseCursor(None):
                self.kept.portals.clear()
                return StatementOutcome("CLOSE CURSOR ALL")
            case CloseCursor(str(name)):
                self.kept.portal(name)
                del self.kept.portals[name]
                return StatementOutcome("CLOSE CURSOR")
            case CopyOut(query) as copy:
                form = int(copy.form == "binary")
                inner = PortalInUse(_of(query, portal.statement), portal.values, portal.forms, (form,))
                outcome = await self.run(inner)
                return StatementOutcome(outcome.tag.replace("SELECT", "COPY"), outcome.fields, outcome.rows, outcome.notices, copied=copy)
            case PrepareNamed(name, query, types):
                oids = tuple(TYPE_NAMES.get(one.split()[0], 0) for one in types)
                kept = PreparedStatement(query, portal.statement.text, given=oids)
                await self.read(kept)
                self.kept.keep_statement(name, kept)
                return StatementOutcome("PREPARE")
            case ExecuteNamed(name, values):
                kept = self._prepared(name)
                return await self.run(PortalInUse(kept, _texts(values), (), portal.formats))
            case Deallocate(None):
                self.kept.statements.clear()
                return StatementOutcome("DEALLOCATE ALL")
            case Deallocate(str(name)):
                self.kept.statement(name)
                del self.kept.statements[name]
                return StatementOutcome("DEALLOCATE")
            case Discard(everything):
                self.kept.portals.clear()
                if everything:
                    self.kept.statements.clear()
                    self.handler.settings.set("all", None)
                return StatementOutcome("DISCARD ALL" if everything else "DISCARD")
            case _:
                raise LapwingError("internal", "a statement without a runner")

    async def _ask(self, ask: Ask, portal: PortalInUse) -> StatementOutcome:
        text = await apart(ask.text, lambda: self._filled(ask, portal))
        with _pointing_at(ask, text):
            answer = await self.handler.answer(text.text)
        told = portal.described or portal.statement.described
        fields, rows = await asyncio.to_thread(rows_of, answer, told, self.handler.settings.shape)
        return StatementOutcome(f"SELECT {len(rows)}", fields, rows, tuple(await asyncio.to_thread(answer.in_words)))

    async def _ask_shadow(self, about: AboutCatalogue, portal: PortalInUse) -> StatementOutcome:
        await self._paced()
        async with self._shadow(about) as link:
            prepared = await link.prepare(about.text, portal.statement.types)
            columns = len(prepared.fields or ())
            formats = formats_of(portal.formats, columns)
            given = await link.run(about.text, portal.statement.types, portal.values, portal.forms, formats)
        return StatementOutcome(given.tag, prepared.fields or (), ShadowCells(given, tuple(formats)))

    @asynccontextmanager
    async def _shadow(self, about: AboutCatalogue | None = None) -> AsyncIterator[ShadowLink]:
        """A connection to the shadow for a user with a valid key; its errors point into the client's text."""
        await self.handler.allowed(Act.SEE)
        try:
            async with self.pool.lent(self.handler.settings.for_shadow(), self.handler.name) as link:
                yield link
        except ShadowError as error:
            raise (error if about is None else error.placed(about.query.original)) from None

    async def _paced(self) -> None:
        while wait := self.catalogue_rates.seconds_to_wait(self.handler.name):
            await asyncio.sleep(wait)

    async def _show(self, name: str) -> StatementOutcome:
        value = self.handler.settings.shown(name)
        if value is None:
            async with self._shadow() as link:
                given = await link.run("SELECT pg_catalog.current_setting($1)", (TEXT,), (name.encode(),), (), ())
            cell = given.rows[0][0]
            value = "" if cell is None else cell.decode()
        return StatementOutcome("SHOW", (FieldSpec(name, TEXT),), AnswerRows(([value],), (TEXT,), 1))

    def _transaction(self, word: str) -> StatementOutcome:
        settings = self.handler.settings
        if word in ("BEGIN", "START TRANSACTION"):
            if self.status == IDLE:
                self.status = OPEN
                settings.begin()
            return StatementOutcome(word)
        if word in ("COMMIT", "ROLLBACK"):
            committed = word == "COMMIT" and self.status != FAILED
            settings.end(committed=committed)
            self.status = IDLE
            self.kept.end_transaction()
            return StatementOutcome("COMMIT" if committed else "ROLLBACK")
        if word == "ROLLBACK TO":
            self.status = OPEN if self.status == FAILED else self.status
            return StatementOutcome("ROLLBACK")
        return StatementOutcome(word)

    # -- cursors -----------------------------------------------------------------------------------------------------------------------

    async def _declare(self, name: str, query: Query, *, hold: bool, portal: PortalInUse) -> StatementOutcome:
        kept = _of(query, portal.statement)
        cursor = PortalInUse(kept, portal.values, portal.forms, hold=hold)
        cursor.described = await self.fields(kept, cursor)
        self.kept.keep_portal(name, cursor)
        return StatementOutcome("DECLARE CURSOR")

    async def _fetch(self, name: str, count: int | None, *, move: bool, formats: Sequence[int]) -> StatementOutcome:
        await self.handler.allowed(Act.SEE)
        cursor = self._cursor(name)
        if cursor.outcome is None:
            cursor.formats = formats
        notices = () if cursor.outcome is not None else (await self.opened(cursor)).notices
        outcome = await self.opened(cursor)
        assert outcome.rows is not None and outcome.fields is not None
        left = len(outcome.rows) - cursor.at
        taken = left if count is None else min(count, left)
        rows = _Part(outcome.rows, cursor.at, taken)
        cursor.at += taken
        if move:
            return StatementOutcome(f"MOVE {taken}", notices=notices)
        return StatementOutcome(f"FETCH {taken}", outcome.fields, rows, notices)

    def _cursor(self, name: str) -> PortalInUse:
        """A portal whose rows can be fetched. It must hold a query: the portal of a FETCH could be its own cursor."""
        cursor = self.kept.portal(name)
        if not isinstance(cursor.statement.command, Query):
            raise CallRefused("wire-statement", "this cursor is not for a query, so it has no rows to fetch")
        return cursor

    def _prepared(self, name: str) -> PreparedStatement:
        """A query for EXECUTE. The protocol can also keep other statements, even one that executes itself."""
        kept = self.kept.statement(name)
        if not isinstance(kept.command, Query):
            raise CallRefused("wire-statement", "EXECUTE runs only queries, and this statement is not one")
        return kept

    async def opened(self, portal: PortalInUse) -> StatementOutcome:
        """The outcome of a portal, which runs once."""
        if portal.outcome is None:
            outcome = await self.run(portal)
            if outcome.rows is not None:
                self.kept.keep_rows(outcome.rows)
            portal.outcome = outcome
        return portal.outcome


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class _Part:
    """A slice of other rows."""

    rows: RowsToSend
    first: int
    count: int

    def __len__(self) -> int:
        return self.count

    @property
    def size(self) -> int:
        return 0  # the rows themselves are counted already

    def cells(self, place: int, formats: Sequence[int]) -> list[bytes | None]:
        return self.rows.cells(self.first + place, formats)

    def messages(self, first: int, last: int, formats: Sequence[int]) -> bytes:
        return self.rows.messages(self.first + first, self.first + last, formats)


@contextmanager
def _pointing_at(ask: Ask, text: FilledText) -> Iterator[None]:
    """Make errors point into the client's text."""
    try:
        yield
    except LapwingError as error:
        if error.span is None:
            raise
        raise LocatedError(error, ask.start + text.original(error.span.start) + 1) from error


def _query_of(statement: PreparedStatement) -> Query | None:
    """The query inside a statement; both have the same parameters."""
    match statement.command:
        case Ask() | AboutCatalogue() as query:
            return query
        case DeclareCursor(_, query, _) | CopyOut(query):
            return query
        case _:
            return None


def _of(query: Query, outer: PreparedStatement) -> PreparedStatement:
    return PreparedStatement(query, outer.text, outer.types, outer.given)


def _texts(values: Sequence[str | None]) -> list[bytes | None]:
    return [None if value is None else value.encode() for value in values]
