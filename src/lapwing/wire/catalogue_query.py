"""Statements about the catalogue, read by a grammar and written anew: the shadow never sees a client's text.

Each rule reads one kind of node of a SELECT and writes it from fixed keywords, quoted names and literals of our own. A name with a bracket
is a call where the grammar has a call, and nowhere else; whatever a rule does not know is refused. Operators keep their order and are not
grouped: PostgreSQL does that, and all of its operators only compute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lapwing.errors import Refused
from lapwing.sql.text.refusals import span_of
from lapwing.wire.catalogue_words import (
    FILTERS,
    FUNCTIONS,
    GUARDS,
    PRIVILEGE_FUNCTIONS,
    RELATIONS,
    SCHEMA_FUNCTIONS,
    SCHEMA_RELATIONS,
    SCHEMA_TYPES,
    TYPES,
    Guard,
)
from lapwing.wire.lexing import Word, WordKind

WORDS_MAX = 5_000
DEPTH_MAX = 40
SERIES_ROWS_MAX = 100_000
"""Rows of one generate_series."""

_RESERVED_WORDS = """
all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default deferrable desc distinct
do else end except fetch for foreign from grant group having in initially intersect into lateral leading limit not offset on only or order
placing primary references returning select some symmetric table then to trailing union unique using variadic when where window with
cross full ilike inner is isnull join left like natural notnull outer overlaps right similar tablesample binary concurrently freeze
verbose authorization collation operator
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
_VALUE_WORDS_TEXT = """
true false null current_date current_user session_user user current_role current_catalog current_schema current_time current_timestamp
localtime localtimestamp
"""
_VALUE_WORDS = frozenset(_VALUE_WORDS_TEXT.split())
_WITH_PRECISION = frozenset({"current_time", "current_timestamp", "localtime", "localtimestamp"})
_GRAMMAR_FUNCTIONS = {
    "coalesce": (",",),
    "greatest": (",",),
    "least": (",",),
    "nullif": (",",),
    "grouping": (",",),
    "position": ("in",),
    "substring": (",", "from", "for", "similar", "escape"),
    "overlay": (",", "placing", "from", "for"),
    "trim": (",", "from"),
}
"""Functions that are written into PostgreSQL's grammar, with what stands between their arguments."""
_NUMBER_TYPES = frozenset({"int", "integer", "smallint", "bigint", "real", "boolean"})
_SIZED_TYPES = frozenset(
    {"float", "decimal", "dec", "numeric", "varchar", "nchar", "bit", "char", "character", "timestamp", "time", "interval"}
)
_INTERVAL_FIELDS = frozenset({"year", "month", "day", "hour", "minute", "second", "to"})
_OPERATOR = re.compile(r"[+\-*/<>=~!@#%^&|`?]+")
_NOT_DECODED = re.compile(r"\\[0-7xXuU]")
_FRAME_WORDS = ("unbounded", "preceding", "following", "current", "row", "exclude", "group", "ties", "no", "others", "between", "and")


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    """A statement for the shadow, and where each piece of it stands in the client's text."""

    text: str
    places: tuple[tuple[int, int], ...]

    def original(self, place: int) -> int:
        """The place in the client's text that a place in ours comes from."""
        found = 0
        for written, read in self.places:
            if written > place:
                break
            found = read
        return found


def written_query(text: str, words: Sequence[Word]) -> WrittenQuery:
    """The statement of these words as we write it; ``Refused`` where it has anything that is not known."""
    if len(words) > WORDS_MAX:
        raise Refused("wire-statement", f"statements about the catalogue have at most {WORDS_MAX} words")
    return _Reader(text, words).written()


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    place: int


class _Reader:
    """Reads words from the first on, and writes pieces."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self._text, self._words = text, words
        self._at = self._depth = self._common = 0
        self._pieces: list[_Piece] = []
        self._ctes: dict[str, str] = {}
        self._no_query: set[int] = set()
        """Brackets that were found to hold no query."""

    def written(self) -> WrittenQuery:
        self._query()
        if self._next() is not None:
            raise self._refuse("this is not expected here")
        places, length = [], 0
        for piece in self._pieces:
            places.append((length, piece.place))
            length += len(piece.text) + 1
        return WrittenQuery(" ".join(piece.text for piece in self._pieces), tuple(places))

    # -- words and pieces ------------------------------------------------------------------------------------------------------------

    def _next(self, ahead: int = 0) -> Word | None:
        place = self._at + ahead
        return self._words[place] if place < len(self._words) else None

    def _says(self, *words: str, ahead: int = 0) -> bool:
        word = self._next(ahead)
        return word is not None and word.says(*words)

    def _place(self) -> int:
        word = self._next() or self._words[-1]
        return word.start

    def _write(self, text: str, place: int | None = None) -> None:
        self._pieces.append(_Piece(text, self._place() if place is None else place))

    def _keyword(self, *words: str) -> str:
        """Read and write one of these keywords or signs, if it is next; else nothing."""
        word = self._next()
        if word is None or not word.says(*words):
            return ""
        self._write(word.value.upper())
        self._at += 1
        return word.value

    def _keywords(self, *words: str) -> bool:
        """Read and write all of these, if they are next."""
        if not all(self._says(word, ahead=ahead) for ahead, word in enumerate(words)):
            return False
        for word in words:
            self._keyword(word)
        return True

    def _require(self, *words: str) -> str:
        found = self._keyword(*words)
        if not found:
            raise self._refuse(f"{' or '.join(words).upper()} is missing here", code="sql-syntax")
        return found

    def _name(self) -> str:
        """Read and write a name, in quotes."""
        word = self._next()
        if word is None or not word.is_name or (word.kind is WordKind.NAME and word.value in _RESERVED):
            raise self._refuse("a name is missing here", code="sql-syntax")
        self._write(_quoted(word.value))
        self._at += 1
        return word.value

    def _list(self, rule: Callable[[], object]) -> None:
        rule()
        while self._keyword(","):
            rule()

    def _refuse(self, message: str, *, code: str = "wire-statement", word: Word | None = None) -> Refused:
        at = word or self._next() or self._words[-1]
        return Refused(code, message, hint=_HINT, span=span_of(self._text, at.start, at.end))

    # -- queries ---------------------------------------------------------------------------------------------------------------------

    def _query(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._refuse(f"statements about the catalogue nest at most {DEPTH_MAX} deep")
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
        """A query with a name. It gets a name of ours, so that no relation of the catalogue is ever meant by it."""
        word = self._next()
        if word is None or not word.is_name:
            raise self._refuse("a name is missing here", code="sql-syntax")
        self._common += 1
        own = f"common table {self._common}"
        self._write(_quoted(own))
        self._at += 1
        if recursive:
            self._ctes[word.value] = own
        if self._keyword("("):
            self._list(self._name)
            self._require(")")
        self._require("as")
        if self._keyword("not"):
            self._require("materialized")
        else:
            self._keyword("materialized")
        self._require("(")
        self._query()
        self._require(")")
        self._ctes[word.value] = own

    def _select_or_brackets(self) -> None:
        if self._keyword("("):
            self._query()
            self._require(")")
        elif self._keyword("values"):
            self._list(self._row)
        else:
            self._require("select")
            self._select()

    def _row(self) -> None:
        self._require("(")
        self._list(self._expression)
        self._require(")")

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
        word = self._next()
        if self._keyword("as") or (word is not None and word.is_name and not (word.kind is WordKind.NAME and word.value in _RESERVED)):
            word = self._next()
            if word is None or not word.is_name:
                raise self._refuse("a name is missing here", code="sql-syntax")
            if self._pieces[-1].text != "AS":
                self._write("AS")
            self._write(_quoted(word.value))
            self._at += 1
        elif first is not None and self._pieces[begin].text.startswith("CASE ") and not first.says("case"):
            self._write(f"AS {_quoted(_called(self._words, first))}", first.start)  # a guard has no name of its own

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
            self._require("(")
            self._list(self._grouping)
            self._require(")")
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
        """Relations and joins, in the order they stand."""
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
                self._require("(")
                self._list(self._name)
                self._require(")")
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
        name = parts[-1].value
        if name in GUARDS:
            raise self._refuse(f"the function {name} gives no table here", code="wire-function", word=parts[-1])
        self._call(parts)
        if name != "generate_series":
            self._keywords("with", "ordinality")
            self._alias()
            return
        # A function in FROM is computed whole before its first row is used; in a SELECT list it stops at a limit.
        called, self._pieces[begin:] = self._pieces[begin:], []
        alias_at = len(self._pieces)
        if self._says("as") and self._says("(", ahead=1):
            raise self._refuse("an alias is missing here", code="sql-syntax")
        self._alias(name=name)
        alias = self._pieces[alias_at:]
        column = alias[1].text
        opening = "(SELECT" if lateral else "LATERAL (SELECT"
        closing = f"AS {column} LIMIT {SERIES_ROWS_MAX})"
        self._pieces[alias_at:] = [_Piece(opening, parts[0].start), *called, _Piece(closing, parts[0].start), *alias]

    def _table(self, parts: list[Word]) -> None:
        word, schema = parts[-1], parts[-2].value if len(parts) > 1 else ""
        name, start = word.value, parts[0].start
        if not schema and name in self._ctes:
            self._write(_quoted(self._ctes[name]), start)
            self._keyword("*")
            self._alias(name=name)
            return
        if schema in ("", "pg_catalog") and name in RELATIONS and len(parts) <= 2:
            if name in FILTERS:
                self._write(f"(SELECT * FROM pg_catalog.{_quoted(name)} WHERE {FILTERS[name]})", start)
            else:
                self._write(f"pg_catalog.{_quoted(name)}", start)
        elif schema == "information_schema" and name in SCHEMA_RELATIONS and len(parts) <= 3:
            self._write(".".join(_quoted(part.value) for part in parts), start)
        else:
            raise Refused(
                "wire-statement",
                f"{name[:63]} is not a relation of the catalogue that is shown here",
                hint="SHOW TABLES and DESCRIBE say what is declared",
                span=span_of(self._text, parts[0].start, word.end),
            )
        self._keyword("*")
        self._alias(name=name if name in FILTERS else "")

    def _alias(self, *, name: str = "") -> None:
        """An alias with the names of its columns, and their types where a function has none; ``name`` where the client gives none."""
        word = self._next()
        if self._says("as") and self._says("(", ahead=1):  # a function's columns without an alias
            self._keyword("as")
        elif self._keyword("as") or (word is not None and word.is_name and not (word.kind is WordKind.NAME and word.value in _NO_ALIAS)):
            if self._pieces[-1].text != "AS":
                self._write("AS")
            self._name()
        elif name:
            self._write("AS")
            self._write(_quoted(name))
            return
        else:
            return
        if self._keyword("("):
            self._list(self._column_definition)
            self._require(")")

    def _column_definition(self) -> None:
        self._name()
        if not self._says(",", ")"):
            self._type()

    def _name_parts(self) -> list[Word]:
        """Read a name with dots, without writing it."""
        parts: list[Word] = []
        while True:
            word = self._next()
            if word is None or not word.is_name or (not parts and word.kind is WordKind.NAME and word.value in _RESERVED):
                raise self._refuse("a name is missing here", code="sql-syntax")
            parts.append(word)
            self._at += 1
            if not self._says(".") or self._says("*", ahead=1):
                return parts
            self._at += 1

    # -- expressions -----------------------------------------------------------------------------------------------------------------

    def _expression(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._refuse(f"statements about the catalogue nest at most {DEPTH_MAX} deep")
        self._operand()
        while self._infix():
            pass
        self._depth -= 1

    def _infix(self) -> bool:
        """What stands between two operands, with the second."""
        if self._keyword("and", "or", "escape", "overlaps"):
            self._operand()
        elif self._says("not") and self._says("like", "ilike", "similar", "between", "in", ahead=1):
            self._keyword("not")
            return self._infix()
        elif self._keyword("like", "ilike") or self._keywords("similar", "to"):
            self._operand()
        elif self._keyword("between"):
            self._keyword("symmetric", "asymmetric")
            self._operand()
        elif self._says("in") and self._says("(", ahead=1):
            self._keyword("in")
            self._brackets()
        elif self._keywords("at", "time", "zone"):
            self._operand()
        elif self._is_operator():
            self._operator()
            self._operand()
        else:
            return False
        return True

    def _is_operator(self) -> bool:
        word = self._next()
        if word is None:
            return False
        sign = word.kind is WordKind.SIGN and word.value not in ("=>",) and _OPERATOR.fullmatch(word.value) is not None
        return sign or (word.says("operator") and self._says("(", ahead=1))

    def _operator(self) -> None:
        if not self._keyword("operator"):
            self._sign()
            return
        self._require("(")
        if not self._says("pg_catalog"):
            raise self._refuse("only operators of pg_catalog are known here")
        self._at += 1
        self._write("pg_catalog")
        self._require(".")
        self._sign()
        self._require(")")

    def _sign(self) -> None:
        word = self._next()
        if word is None or word.kind is not WordKind.SIGN or _OPERATOR.fullmatch(word.value) is None:
            raise self._refuse("an operator is missing here", code="sql-syntax")
        self._write(word.value)
        self._at += 1

    def _operand(self) -> None:
        while self._keyword("not") or self._is_operator():
            if self._is_operator():
                self._operator()
        self._value()
        while self._postfix():
            pass

    def _postfix(self) -> bool:
        if self._keyword("::"):
            self._type()
        elif self._keyword("["):
            while not self._keyword("]"):
                if not self._keyword(":"):
                    self._expression()
        elif self._says(".") and not self._says("*", ahead=1):
            self._keyword(".")
            self._name()
        elif self._keywords(".", "*") or self._keyword("isnull", "notnull"):
            pass
        elif self._keyword("is"):
            self._keyword("not")
            if self._require("null", "true", "false", "unknown", "distinct") == "distinct":
                self._require("from")
                self._operand()
        elif self._keyword("collate"):
            self._dotted(self._name_parts())
        else:
            return False
        return True

    def _dotted(self, parts: Sequence[Word]) -> None:
        self._write(".".join(_quoted(part.value) for part in parts), parts[0].start)

    def _value(self) -> None:
        word = self._next()
        if word is None:
            raise self._refuse("a value is missing here", code="sql-syntax")
        if word.kind is WordKind.TEXT:
            self._literal()
        elif word.kind in (WordKind.NUMBER, WordKind.PARAMETER):
            self._write(word.value if word.kind is WordKind.NUMBER else f"${int(word.value)}")
            self._at += 1
        elif word.says("("):
            self._brackets()
        elif word.kind is WordKind.NAME:
            self._named(word)
        elif word.kind is WordKind.QUOTED:
            self._called_or_column()
        else:
            raise self._refuse("a value is missing here", code="sql-syntax")

    def _literal(self) -> None:
        word = self._next()
        assert word is not None
        written = self._text[word.start : word.end]
        if written[0] not in "'$eE" or (written[0] in "eE" and _NOT_DECODED.search(written.replace("\\\\", ""))):
            raise self._refuse("this spelling of a text is not read here", code="sql-syntax")
        self._write(_literal(word.value))
        self._at += 1

    def _named(self, word: Word) -> None:
        """What begins with a word without quotes."""
        rule = _RULES.get(word.value)
        if rule is not None and (rule[0] is None or self._says(*rule[0], ahead=1)):
            self._keyword(word.value)
            rule[1](self)
        elif word.value in _VALUE_WORDS:
            self._keyword(word.value)
            if word.value in _WITH_PRECISION and self._keyword("("):
                self._number()
                self._require(")")
            elif word.value == "current_schema":
                self._keywords("(", ")")
        elif word.value in _GRAMMAR_FUNCTIONS and self._says("(", ahead=1):
            self._keyword(word.value)
            self._grammar_function(_GRAMMAR_FUNCTIONS[word.value])
            self._after_call()
        elif not self._typed_literal(word):
            self._called_or_column()

    def _number(self) -> None:
        word = self._next()
        if word is None or word.kind is not WordKind.NUMBER:
            raise self._refuse("a number is missing here", code="sql-syntax")
        self._write(word.value)
        self._at += 1

    def _called_or_column(self) -> None:
        parts = self._name_parts()
        if self._says("("):
            self._call(parts)
        elif (word := self._next()) is not None and word.kind is WordKind.TEXT:
            self._known_type([part.value for part in parts], parts)
            self._literal()
        elif len(parts) == 3 and parts[0].value == "pg_catalog" and parts[1].value in FILTERS:
            self._dotted(parts[1:])
        else:
            self._dotted(parts)

    def _typed_literal(self, word: Word) -> bool:
        """A type of the SQL standard and a text."""
        if word.value not in _NUMBER_TYPES and word.value not in _SIZED_TYPES and word.value not in ("double", "national"):
            return False
        at, written = self._at, len(self._pieces)
        try:
            self._type()
        except Refused:
            self._at, self._pieces[written:] = at, []
            return False
        after = self._next()
        if after is None or after.kind is not WordKind.TEXT:
            self._at, self._pieces[written:] = at, []
            return False
        self._literal()
        self._interval_fields(word.value)
        return True

    def _brackets(self) -> None:
        """A query, a value or a row of values in brackets."""
        if self._is_query():
            at, written, depth, ctes = self._at, len(self._pieces), self._depth, self._ctes
            try:
                self._in_brackets(self._query)
                return
            except Refused:
                self._no_query.add(at)
                self._at, self._pieces[written:], self._depth, self._ctes = at, [], depth, ctes
                if not self._says("(", ahead=1):
                    raise
        self._in_brackets(lambda: self._list(self._expression))

    def _is_query(self) -> bool:
        """Whether a bracket that is next may hold a query."""
        ahead = 0
        while self._says("(", ahead=ahead):
            ahead += 1
        return self._at not in self._no_query and self._says("select", "with", "values", ahead=ahead)

    def _in_brackets(self, rule: Callable[[], object]) -> None:
        self._require("(")
        rule()
        self._require(")")

    def _case(self) -> None:
        if not self._says("when"):
            self._expression()
        while self._keyword("when"):
            self._expression()
            self._require("then")
            self._expression()
        if self._keyword("else"):
            self._expression()
        self._require("end")

    def _cast(self) -> None:
        self._require("(")
        self._expression()
        self._require("as")
        self._type()
        self._require(")")

    def _extract(self) -> None:
        self._require("(")
        word = self._next()
        if word is None or not (word.is_name or word.kind is WordKind.TEXT):
            raise self._refuse("a field is missing here", code="sql-syntax")
        self._write(_literal(word.value))
        self._at += 1
        self._require("from")
        self._expression()
        self._require(")")

    def _array(self) -> None:
        if self._says("("):
            self._in_brackets(self._query)
            return
        self._require("[")
        if not self._keyword("]"):
            self._list(self._array_item)
            self._require("]")

    def _array_item(self) -> None:
        if self._says("["):
            self._array()
        else:
            self._expression()

    def _row_value(self) -> None:
        if not self._keywords("(", ")"):
            self._row()

    # -- calls -----------------------------------------------------------------------------------------------------------------------

    def _grammar_function(self, between: Sequence[str]) -> None:
        self._require("(")
        if "placing" not in between and "from" in between:
            self._keyword("leading", "trailing", "both")
            self._keyword("from")
        self._expression()
        while self._keyword(*between):
            self._expression()
        self._require(")")

    def _call(self, parts: list[Word]) -> None:
        """A function with its arguments. Pre: its name is read and not written, and a bracket is next."""
        name, schema = parts[-1].value, parts[0].value if len(parts) > 1 else "pg_catalog"
        known = FUNCTIONS if schema == "pg_catalog" else SCHEMA_FUNCTIONS if schema == "information_schema" else frozenset()
        if name not in known or len(parts) > 2:
            raise self._refuse(f"the function {name[:63]} is not called here", code="wire-function", word=parts[-1])
        begin = len(self._pieces)
        self._write(f"{schema}.{_quoted(name)}", parts[0].start)
        self._require("(")
        count = 0
        if not self._keyword("*") and not self._says(")"):
            self._keyword("distinct", "all")
            count = self._arguments()
            self._order()
        if name in PRIVILEGE_FUNCTIONS and count > (3 if name == "has_column_privilege" else 2):
            raise self._refuse("privileges of other roles are not shown here", code="wire-function", word=parts[-1])
        self._require(")")
        self._after_call()
        if name in GUARDS:
            self._guard(GUARDS[name], parts, begin, count)

    def _arguments(self) -> int:
        self._argument()
        count = 1
        while self._keyword(","):
            self._argument()
            count += 1
        return count

    def _guard(self, guard: Guard, parts: list[Word], begin: int, count: int) -> None:
        """Write a guarded call anew. Its arguments stand between its brackets, with commas between them."""
        inner = self._pieces[begin + 2 : -1]
        if count != guard.arguments or self._pieces[-1].text != ")":
            raise self._refuse("this function is called with fewer words here", code="wire-function", word=parts[-1])
        arguments, depth = [""], 0
        for piece in inner:
            depth += (piece.text in ("(", "[")) - (piece.text in (")", "]"))
            if piece.text == "," and depth == 0:
                arguments.append("")
            else:
                arguments[-1] += f" {piece.text}"
        self._pieces[begin:] = [_Piece(guard.template.format(*(f"({one} )" for one in arguments)), parts[0].start)]

    def _argument(self) -> None:
        self._keyword("variadic")
        word = self._next()
        if word is not None and word.is_name and self._says("=>", ":=", ahead=1):
            self._name()
            self._require("=>", ":=")
        self._expression()

    def _after_call(self) -> None:
        if self._says("within") and self._says("group", ahead=1):
            self._keywords("within", "group")
            self._in_brackets(self._order)
        if self._says("filter") and self._says("(", ahead=1):
            self._keyword("filter")
            self._require("(")
            self._require("where")
            self._expression()
            self._require(")")
        if self._keyword("over"):
            if self._says("("):
                self._window()
            else:
                self._name()

    # -- types -----------------------------------------------------------------------------------------------------------------------

    def _type(self) -> None:
        word = self._next()
        if word is None or not word.is_name:
            raise self._refuse("a type is missing here", code="sql-syntax")
        if word.kind is WordKind.NAME and not self._says(".", ahead=1) and self._standard_type(word.value):
            pass
        else:
            parts = self._name_parts()
            self._known_type([part.value for part in parts], parts)
            self._sizes()
        while self._keyword("["):
            if not self._says("]"):
                self._number()
            self._require("]")

    def _standard_type(self, name: str) -> bool:
        """A type that the SQL standard writes in words of its own."""
        if name == "double":
            self._keyword("double")
            self._require("precision")
        elif name in _NUMBER_TYPES:
            self._keyword(name)
        elif name in _SIZED_TYPES:
            self._keyword(name)
            self._keyword("varying")
            self._sizes()
            if name in ("timestamp", "time") and self._says("with", "without") and self._says("time", ahead=1):
                self._keyword("with", "without")
                self._keyword("time")
                self._require("zone")
            self._interval_fields(name)
        else:
            return False
        return True

    def _interval_fields(self, name: str) -> None:
        while name == "interval" and self._keyword(*_INTERVAL_FIELDS):
            self._sizes()

    def _sizes(self) -> None:
        if self._keyword("("):
            self._list(self._number)
            self._require(")")

    def _known_type(self, names: Sequence[str], parts: Sequence[Word]) -> None:
        schema, name = names[0] if len(names) == 2 else "pg_catalog", names[-1]
        known = TYPES if schema == "pg_catalog" else SCHEMA_TYPES if schema == "information_schema" else frozenset()
        if len(names) > 2 or name.removeprefix("_") not in known:
            raise self._refuse(f"the type {name[:63]} is not known here", word=parts[-1])
        self._write(f"{schema}.{_quoted(name)}", parts[0].start)


_NO_ALIAS = _RESERVED | {"on", "using"}
_RULES: dict[str, tuple[tuple[str, ...] | None, Callable[[_Reader], None]]] = {
    "case": (None, _Reader._case),
    "cast": (("(",), _Reader._cast),
    "extract": (("(",), _Reader._extract),
    "exists": (("(",), lambda reader: reader._in_brackets(reader._query)),
    "array": (("[", "("), _Reader._array),
    "row": (("(",), _Reader._row_value),
    "any": (("(",), _Reader._brackets),
    "some": (("(",), _Reader._brackets),
    "all": (("(",), _Reader._brackets),
}
"""Values that begin with a keyword, what must follow it, and the rule that reads the rest."""
_HINT = "questions about the catalogue may call functions that change nothing; answers about data come from SELECT on its tables"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: str) -> str:
    """A text that means the same whatever standard_conforming_strings is."""
    written = value.replace("'", "''")
    return f"E'{written}'".replace("\\", "\\\\") if "\\" in value else f"'{written}'"


def _called(words: Sequence[Word], first: Word) -> str:
    """The name of the function that is called here."""
    at = next(place for place, word in enumerate(words) if word.start == first.start)
    while at + 2 < len(words) and words[at + 1].says("."):
        at += 2
    return words[at].value
