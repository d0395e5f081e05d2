"""Statements about the catalogue, parsed by a grammar and rewritten: the shadow never sees a client's text.

Each rule reads one kind of node of a SELECT and writes it from fixed keywords, quoted names and literals of our own. A name with a bracket
is a call only where the grammar has a call; anything that no rule knows is refused. Operators keep their order and are not grouped:
PostgreSQL does that, and none of its operators has a side effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lapwing.errors import Refused
from lapwing.interfaces.wire.catalogue.own_relations import INSTEAD
from lapwing.interfaces.wire.catalogue.pieces import Piece, quoted
from lapwing.interfaces.wire.catalogue.values import ValueWriter
from lapwing.interfaces.wire.catalogue.words import GUARDS, RELATIONS, SCHEMA_RELATIONS
from lapwing.interfaces.wire.lexing import Word
from lapwing.sql.text.refusals import span_of

WORDS_MAX = 5_000
SERIES_ROWS_MAX = 100_000
"""Rows of one generate_series."""
_FRAME_WORDS = ("unbounded", "preceding", "following", "current", "row", "exclude", "group", "ties", "no", "others", "between", "and")


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    """A statement for the shadow, and the place of each piece in the client's text."""

    text: str
    places: tuple[tuple[int, int], ...]

    def original(self, place: int) -> int:
        """The place in the client's text that corresponds to a place in ours."""
        found = 0
        for written, read in self.places:
            if written > place:
                break
            found = read
        return found


def written_query(text: str, words: Sequence[Word]) -> WrittenQuery:
    """The statement rewritten from these words; ``Refused`` if it has anything unknown."""
    if len(words) > WORDS_MAX:
        raise Refused("wire-statement", f"statements about the catalogue have at most {WORDS_MAX} words")
    return _QueryWriter(text, words).written()


class _QueryWriter(ValueWriter):
    def __init__(self, text: str, words: Sequence[Word]) -> None:
        super().__init__(text, words)
        self._common = 0

    def written(self) -> WrittenQuery:
        self._query()
        if self._next() is not None:
            raise self._refuse("this is not expected here")
        places, length = [], 0
        for piece in self._pieces:
            places.append((length, piece.place))
            length += len(piece.text) + 1
        return WrittenQuery(" ".join(piece.text for piece in self._pieces), tuple(places))

    # -- queries ---------------------------------------------------------------------------------------------------------------------

    def _query(self) -> None:
        self._deeper()
        outer = self._ctes
        self._ctes = dict(outer)
        if self._keyword("with"):
            recursive = bool(self._keyword("recursive"))
            self._list(lambda: self._common_table(recursive=recursive))
        self._select_or_brackets()
        while self._keyword("union", "intersect", "except"):
            self._keyword("all", "distinct")
            self._select_or_brackets()
        self._order()
        while self._keyword("limit", "offset", "fetch"):
            if self._words[self._at - 1].says("fetch"):
                self._require("first", "next")
                if not self._says("row", "rows"):
                    self._operand()
                self._require("row", "rows")
                self._require("only")
            elif not self._keyword("all"):
                self._expression()
                self._keyword("row", "rows")
        self._ctes = outer
        self._depth -= 1

    def _common_table(self, *, recursive: bool) -> None:
        """A common table expression. It gets a new name, which cannot be that of a relation of the catalogue."""
        word = self._next()
        if word is None or not word.is_name:
            raise self._refuse("a name is missing here", code="sql-syntax")
        self._common += 1
        own = f"common table {self._common}"
        self._write(quoted(own))
        self._at += 1
        if recursive:
            self._ctes[word.value] = own
        if self._says("("):
            self._in_brackets(lambda: self._list(self._name))
        self._require("as")
        if self._keyword("not"):
            self._require("materialized")
        else:
            self._keyword("materialized")
        self._in_brackets(self._query)
        self._ctes[word.value] = own

    def _select_or_brackets(self) -> None:
        if self._says("("):
            self._in_brackets(self._query)
        elif self._keyword("values"):
            self._list(self._row)
        else:
            self._require("select")
            self._select()

    def _select(self) -> None:
        if self._keyword("distinct"):
            if self._keyword("on"):
                self._row()
        else:
            self._keyword("all")
        if not self._says("from", "where", "union", ")", ";") and self._next() is not None:
            self._list(self._target)
        if self._keyword("from"):
            self._list(self._joined)
        if self._keyword("where"):
            self._expression()
        if self._keywords("group", "by"):
            self._keyword("all", "distinct")
            self._list(self._grouping)
        if self._keyword("having"):
            self._expression()
        if self._keyword("window"):
            self._list(self._named_window)

    def _target(self) -> None:
        if self._keyword("*"):
            return
        first, begin = self._next(), len(self._pieces)
        self._expression()
        if self._keyword("as") or self._is_free_name():
            word = self._next()
            if word is None or not word.is_name:
                raise self._refuse("a name is missing here", code="sql-syntax")
            if self._pieces[-1].text != "AS":
                self._write("AS")
            self._write(quoted(word.value))
            self._at += 1
        elif first is not None and self._pieces[begin].text.startswith("CASE ") and not first.says("case"):
            self._write(f"AS {quoted(_called(self._words, first))}", first.start)  # a guard has no column name

    def _order(self) -> None:
        if self._keywords("order", "by"):
            self._list(self._sort)

    def _sort(self) -> None:
        self._expression()
        if not self._keyword("asc", "desc") and self._keyword("using"):
            self._operator()
        if self._keyword("nulls"):
            self._require("first", "last")

    def _grouping(self) -> None:
        if (self._says("rollup", "cube") and self._says("(", ahead=1)) or (self._says("grouping") and self._says("sets", ahead=1)):
            if self._keyword("grouping"):
                self._require("sets")
            else:
                self._keyword("rollup", "cube")
            self._in_brackets(lambda: self._list(self._grouping))
        elif not self._keywords("(", ")"):
            self._expression()

    def _named_window(self) -> None:
        self._name()
        self._require("as")
        self._window()

    def _window(self) -> None:
        self._require("(")
        if not self._says("partition", "order", "rows", "range", "groups", ")"):
            self._name()
        if self._keywords("partition", "by"):
            self._list(self._expression)
        self._order()
        if self._keyword("rows", "range", "groups"):
            while not self._says(")"):
                if not self._keyword(*_FRAME_WORDS):
                    self._operand()
        self._require(")")

    # -- relations -------------------------------------------------------------------------------------------------------------------

    def _joined(self) -> None:
        """Relations and joins, in their order."""
        self._relation()
        while True:
            if self._keyword("cross", "natural", "inner", "left", "right", "full"):
                while self._keyword("inner", "left", "right", "full", "outer"):
                    pass
                self._require("join")
                self._relation()
            elif self._keyword("join"):
                self._relation()
            elif self._keyword("on"):
                self._expression()
            elif self._keyword("using"):
                self._in_brackets(lambda: self._list(self._name))
            else:
                return

    def _relation(self) -> None:
        lateral = bool(self._keyword("lateral"))
        if self._says("("):
            if self._is_query():
                self._in_brackets(self._query)
            else:
                self._in_brackets(self._joined)
            self._alias()
            return
        self._keyword("only")
        begin, parts = len(self._pieces), self._name_parts()
        if self._says("("):
            self._function_in_from(parts, begin, lateral=lateral)
        elif lateral:
            raise self._refuse("a query or a function is missing here", code="sql-syntax")
        else:
            self._table(parts)

    def _function_in_from(self, parts: list[Word], begin: int, *, lateral: bool) -> None:
        """Write a function as a subquery. Otherwise its alias would be its value, and ``alias.f`` a call of ``f`` with it."""
        name, start = parts[-1].value, parts[0].start
        if name in GUARDS:
            raise self._refuse(f"the function {name} cannot be used as a table here", code="wire-function", word=parts[-1])
        self._call(parts)
        series = name == "generate_series"
        if not series:
            self._keywords("with", "ordinality")
        called, self._pieces[begin:] = self._pieces[begin:], []
        if self._says("as") and self._says("(", ahead=1):
            raise self._refuse("an alias is missing here", code="sql-syntax")
        self._alias(name=name)
        alias = self._pieces[begin:]
        opening = "(SELECT" if lateral else "LATERAL (SELECT"
        if series:
            # In FROM all of it would be computed before its first row is used; in a SELECT list it stops at a limit.
            query = [Piece(opening, start), *called, Piece(f"AS {alias[1].text} LIMIT {SERIES_ROWS_MAX})", start), *alias]
        else:
            query = [Piece(f"{opening} * FROM", start), *called, *alias, Piece(")", start), *alias[:2]]
        self._pieces[begin:] = query

    def _table(self, parts: list[Word]) -> None:
        word, schema = parts[-1], parts[-2].value if len(parts) > 1 else ""
        name, start = word.value, parts[0].start
        if not schema and name in self._ctes:
            self._write(quoted(self._ctes[name]), start)
            self._keyword("*")
            self._alias(name=name)
            return
        if schema in ("", "pg_catalog") and name in RELATIONS | INSTEAD.keys() and len(parts) <= 2:
            self._write(INSTEAD.get(name, f"pg_catalog.{quoted(name)}"), start)
        elif schema == "information_schema" and name in SCHEMA_RELATIONS and len(parts) <= 3:
            self._write(".".join(quoted(part.value) for part in parts), start)
        else:
            raise Refused(
                "wire-statement",
                f"{name[:63]} is not a relation of the catalogue that is shown here",
                hint="SHOW TABLES and DESCRIBE list what is declared",
                span=span_of(self._text, parts[0].start, word.end),
            )
        self._keyword("*")
        self._alias(name=name if name in INSTEAD else "")

    def _alias(self, *, name: str = "") -> None:
        """An alias with its column names, and types for a function without them; ``name`` if the client gives no alias."""
        if self._says("as") and self._says("(", ahead=1):  # a function's columns without an alias
            self._keyword("as")
        elif self._keyword("as") or self._is_free_name():
            if self._pieces[-1].text != "AS":
                self._write("AS")
            self._name()
        elif name:
            self._write("AS")
            self._write(quoted(name))
            return
        else:
            return
        if self._says("("):
            self._in_brackets(lambda: self._list(self._column_definition))

    def _column_definition(self) -> None:
        self._name()
        if not self._says(",", ")"):
            self._type()


def _called(words: Sequence[Word], first: Word) -> str:
    """The name of the function that is called here."""
    at = next(place for place, word in enumerate(words) if word.start == first.start)
    while at + 2 < len(words) and words[at + 1].says("."):
        at += 2
    return words[at].value
