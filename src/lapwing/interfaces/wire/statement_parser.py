"""Parses the words of a statement into a command. An unrecognised statement is refused: nothing is passed on by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.errors import Refused
from lapwing.interfaces.wire.catalogue.query import written_query
from lapwing.interfaces.wire.catalogue.rules import OwnNames, of_the_catalogue
from lapwing.interfaces.wire.commands import (
    AboutCatalogue,
    Ask,
    CloseCursor,
    Command,
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
from lapwing.interfaces.wire.lexing import Word, WordKind
from lapwing.sql.text.refusals import span_of

_QUERY_WORDS = ("select", "with", "values", "(", "from")
_TRANSACTION = {
    "begin": "BEGIN",
    "start": "START TRANSACTION",
    "commit": "COMMIT",
    "end": "COMMIT",
    "rollback": "ROLLBACK",
    "abort": "ROLLBACK",
    "savepoint": "SAVEPOINT",
    "release": "RELEASE",
}
ROWS_FETCHED_MAX = 2**31


@dataclass(frozen=True, slots=True)
class StatementParser:
    """Parses statements for one data set."""

    own: OwnNames

    def command(self, text: str, words: Sequence[Word]) -> Command:
        """The command of these words; ``text`` is the client's whole text. Pre: there is a word."""
        return _Reading(text, list(words), self.own).command()


class _Reading:
    """The words of one statement, read from the first on."""

    def __init__(self, text: str, words: list[Word], own: OwnNames) -> None:
        self._text, self._words, self._own = text, words, own
        self._at = 0

    # -- reading -------------------------------------------------------------------------------------------------------------------

    def _next(self) -> Word | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def _accept(self, *says: str) -> bool:
        word = self._next()
        if word is None or not word.says(*says):
            return False
        self._at += 1
        return True

    def _require(self, *says: str) -> None:
        if not self._accept(*says):
            raise self._refuse(f"{' or '.join(says).upper()} is missing here", code="sql-syntax")

    def _name(self) -> str:
        word = self._next()
        if word is None or not word.is_name:
            raise self._refuse("a name is missing here", code="sql-syntax")
        self._at += 1
        return word.value

    def _end(self) -> None:
        if self._next() is not None:
            raise self._refuse("this is not expected here")

    def _refuse(self, message: str, *, code: str = "wire-statement", hint: str = "") -> Refused:
        word = self._next() or self._words[-1]
        return Refused(code, message, hint=hint, span=span_of(self._text, word.start, word.end))

    # -- statements ----------------------------------------------------------------------------------------------------------------

    def command(self) -> Command:
        first = self._words[0]
        if first.says(*_QUERY_WORDS):
            return self._query()
        self._at = 1
        word = first.value if first.kind is WordKind.NAME else ""
        if word in _TRANSACTION:
            return self._transaction(word)
        match word:
            case "explain" | "describe" | "desc":
                return self._asked_in_our_words(word)
            case "show":
                return self._show()
            case "set":
                return self._set()
            case "reset":
                return SetSetting(self._setting_name(), None)
            case "declare":
                return self._declare()
            case "fetch" | "move":
                return self._fetch(move=word == "move")
            case "close":
                name = None if self._accept("all") else self._name()
                self._end()
                return CloseCursor(name)
            case "copy":
                return self._copy()
            case "prepare":
                return self._prepare()
            case "execute":
                return self._execute()
            case "deallocate":
                self._accept("prepare")
                name = None if self._accept("all") else self._name()
                self._end()
                return Deallocate(name)
            case "discard":
                everything = self._accept("all")
                if not everything:
                    self._require("plans", "temp", "temporary", "sequences")
                self._end()
                return Discard(everything)
            case "unlisten":
                return NoEffect("UNLISTEN")
        self._at = 0
        hint = "SELECT from the tables of the data set is answered; data can never be changed here"
        raise self._refuse(f"{word.upper() or 'this'} is not a supported statement", hint=hint)

    def _query(self) -> Query:
        """The rest of the statement as a query: for the curator if it names a table of the data set, otherwise for the shadow."""
        words = self._words[self._at :]
        if not words or not words[0].says(*_QUERY_WORDS):
            raise self._refuse("a query is missing here", hint="SELECT ...")
        start, end = words[0].start, words[-1].end
        self._at = len(self._words)
        asked = Ask(self._text[start:end], start)
        if self._own.mentioned(words):
            return asked
        try:
            return AboutCatalogue(written_query(self._text, words))
        except Refused:
            if of_the_catalogue(words):
                raise
            return asked  # a table's name may be mistyped: the curator can suggest the right one

    def _asked_in_our_words(self, word: str) -> Ask:
        """``EXPLAIN`` and ``DESCRIBE``, which the curator answers. An engine's plan is never shown."""
        start, end = self._words[0].start, self._words[-1].end
        if word == "explain":
            self._accept("privacy")
            following = self._next()
            if following is None or not following.says("select", "with", "from"):
                hint = "EXPLAIN PRIVACY says what a statement would cost, free of charge"
                raise self._refuse("an engine's plan is never shown", code="statement-unsupported", hint=hint)
        return Ask(self._text[start:end], start)

    def _show(self) -> Command:
        if self._accept("tables", "columns", "privacy"):
            return Ask(self._text[self._words[0].start : self._words[-1].end], self._words[0].start)
        if self._accept("time"):
            self._require("zone")
            name = "timezone"
        elif self._accept("transaction"):
            self._require("isolation")
            self._require("level")
            name = "transaction_isolation"
        elif self._accept("session"):
            self._require("authorization")
            name = "session_authorization"
        else:
            name = self._setting_name()
        self._end()
        return ShowOne(name)

    def _setting_name(self) -> str:
        parts = [self._name()]
        while self._accept("."):
            parts.append(self._name())
        return ".".join(parts).casefold()

    def _set(self) -> Command:
        local = self._accept("local")
        if not local and self._accept("session"):
            if self._accept("characteristics"):
                return NoEffect("SET")
            if self._accept("authorization"):
                return self._role()
        if self._accept("transaction", "constraints"):
            return NoEffect("SET")
        if self._accept("role"):
            return self._role()
        if self._accept("time"):
            self._require("zone")
            name = "timezone"
        elif self._accept("names"):
            name = "client_encoding"
        elif self._accept("schema"):
            name = "search_path"
        else:
            name = self._setting_name()
            self._require("=", "to", ":=")
        return SetSetting(name, self._setting_value(), local)

    def _role(self) -> Command:
        if self._accept("none", "default") and self._next() is None:
            return NoEffect("SET")
        raise self._refuse("the login decides who asks", hint="connect with another login")

    def _setting_value(self) -> str | None:
        if self._accept("default"):
            self._end()
            return None
        parts: list[str] = []
        sign = ""
        while (word := self._next()) is not None:
            self._at += 1
            if word.says("-", "+") and not sign:
                sign = word.value
            elif word.kind in (WordKind.TEXT, WordKind.NUMBER) or word.is_name:
                parts.append(sign + (f'"{word.value}"' if word.kind is WordKind.QUOTED and "," in word.value else word.value))
                sign = ""
                if self._next() is not None:
                    self._require(",")
            else:
                raise self._refuse("this is not a value of a setting")
        if not parts or sign:
            raise self._refuse("a value is missing", code="sql-syntax")
        return ", ".join(parts)

    def _transaction(self, word: str) -> Transaction:
        tag = _TRANSACTION[word]
        if self._accept("prepared"):
            raise self._refuse("prepared transactions are not supported, because no statement changes data")
        if word == "rollback" and any(one.says("to") for one in self._words):
            tag = "ROLLBACK TO"
        if any(not one.is_name and not one.says(",") for one in self._words):
            raise self._refuse("this is not expected here")
        return Transaction(tag)

    # -- cursors, copies, kept queries ---------------------------------------------------------------------------------------------

    def _declare(self) -> DeclareCursor:
        name = self._name()
        while self._accept("binary", "insensitive", "asensitive", "no", "scroll"):
            if self._words[self._at - 1].says("binary"):
                raise self._refuse("FETCH decides the format of a cursor's rows", hint="leave BINARY out")
        self._require("cursor")
        hold = False
        if self._accept("with", "without"):
            hold = self._words[self._at - 1].says("with")
            self._require("hold")
        self._require("for")
        return DeclareCursor(name, self._query(), hold)

    def _fetch(self, *, move: bool) -> FetchRows:
        count: int | None = 1
        if self._accept("next"):
            count = 1
        else:
            forward = self._accept("forward")
            if self._accept("all"):
                count = None
            elif (word := self._next()) is not None and word.kind is WordKind.NUMBER and word.value.isdigit():
                self._at += 1
                count = min(int(word.value), ROWS_FETCHED_MAX)
            elif not forward and self._accept("backward", "prior", "last", "absolute", "relative", "first", "-"):
                raise self._refuse("cursors can only move forward", hint="use FETCH FORWARD")
        self._accept("from", "in")
        name = self._name()
        self._end()
        return FetchRows(name, count, move)

    def _copy(self) -> CopyOut:
        if not self._accept("("):
            raise self._refuse("tables cannot be copied", hint="COPY (SELECT ... GROUP BY ...) TO STDOUT copies an answer")
        closing = self._closing()
        inner = _Reading(self._text, self._words[self._at : closing], self._own)
        if not inner._words:
            raise self._refuse("a query is missing here")
        query = inner._query()
        self._at = closing + 1
        self._require("to")
        self._require("stdout")
        return self._copy_options(query)

    def _closing(self) -> int:
        depth = 1
        for place in range(self._at, len(self._words)):
            depth += self._words[place].says("(") - self._words[place].says(")")
            if depth == 0:
                return place
        raise self._refuse("a bracket is not closed", code="sql-syntax")

    def _copy_options(self, query: Query) -> CopyOut:
        self._accept("with")
        bracket = self._accept("(")
        form, header, delimiter, null = "text", False, "", None
        while (word := self._next()) is not None and not word.says(")"):
            if self._accept("format"):
                named = self._next()
                form = named.value.lower() if named is not None and (named.is_name or named.kind is WordKind.TEXT) else ""
                self._at += 1
            elif self._accept("csv", "binary"):
                form = self._words[self._at - 1].value
            elif self._accept("header"):
                value = self._next()
                header = not (value is not None and value.says("false", "off"))
                self._accept("true", "on", "false", "off")
            elif self._accept("delimiter", "null"):
                option = self._words[self._at - 1].value
                self._accept("as")
                value = self._next()
                if value is None or value.kind is not WordKind.TEXT:
                    raise self._refuse("a string literal is missing here", code="sql-syntax")
                self._at += 1
                delimiter, null = (value.value, null) if option == "delimiter" else (delimiter, value.value)
            elif self._accept("encoding"):
                self._at += 1
            else:
                raise self._refuse("this option of COPY is not supported", hint="FORMAT, HEADER, DELIMITER and NULL are supported")
            self._accept(",")
        if bracket:
            self._require(")")
        self._end()
        if form not in ("text", "csv", "binary") or len(delimiter.encode()) > 1:
            raise self._refuse("this option of COPY is not supported", hint="use FORMAT text, csv or binary")
        return CopyOut(query, form, header, delimiter, null)

    def _prepare(self) -> PrepareNamed:
        name, types = self._name(), []
        if self._accept("("):
            while not self._accept(")"):
                parts = [self._name()]
                while (word := self._next()) is not None and word.is_name:
                    parts.append(self._name())
                types.append(" ".join(parts))
                self._accept(",")
        self._require("as")
        return PrepareNamed(name, self._query(), tuple(types))

    def _execute(self) -> ExecuteNamed:
        name, values = self._name(), []
        if self._accept("("):
            while not self._accept(")"):
                values.append(self._constant())
                self._accept(",")
        self._end()
        return ExecuteNamed(name, tuple(values))

    def _constant(self) -> str | None:
        sign = "-" if self._accept("-") else ""
        word = self._next()
        if word is None:
            raise self._refuse("a value is missing", code="sql-syntax")
        self._at += 1
        if word.says("null") and not sign:
            return None
        if word.kind is WordKind.NUMBER or (not sign and (word.kind is WordKind.TEXT or word.says("true", "false"))):
            if self._accept("::"):
                self._name()
            return sign + word.value
        self._at -= 1
        raise self._refuse("only constants are allowed as values here")
