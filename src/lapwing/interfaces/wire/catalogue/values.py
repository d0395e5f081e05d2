"""Values in statements about the catalogue: operators, calls of listed functions, casts, and the keywords of PostgreSQL's grammar."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence

from lapwing.errors import Refused
from lapwing.interfaces.wire.catalogue.own_relations import INSTEAD
from lapwing.interfaces.wire.catalogue.pieces import NUMBER_TYPES, SIZED_TYPES, Piece, PieceWriter, literal, quoted
from lapwing.interfaces.wire.catalogue.words import FIELDS, FUNCTIONS, GUARDS, PRIVILEGE_FUNCTIONS, SCHEMA_FUNCTIONS, Guard
from lapwing.interfaces.wire.lexing import Word, WordKind

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
"""Functions with their own syntax in PostgreSQL's grammar, with the separators of their arguments."""
_OPERATOR = re.compile(r"[+\-*/<>=~!@#%^&|`?]+")


class ValueWriter(PieceWriter):
    """Reads and writes values. Operators keep their order and are not grouped."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        super().__init__(text, words)
        self._ctes: dict[str, str] = {}
        self._no_query: set[int] = set()
        """Brackets that do not hold a query."""

    @abstractmethod
    def _query(self) -> None: ...

    @abstractmethod
    def _order(self) -> None: ...

    @abstractmethod
    def _window(self) -> None: ...

    def _expression(self) -> None:
        self._deeper()
        self._operand()
        while self._infix():
            pass
        self._depth -= 1

    def _infix(self) -> bool:
        """The operator between two operands, with the second operand."""
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
            if not (word := self._next()) or not word.is_name or word.value not in FIELDS:
                raise self._refuse("this field is not known here")
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

    def _named(self, word: Word) -> None:
        """A value that begins with an unquoted word."""
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

    def _called_or_column(self) -> None:
        parts = self._name_parts()
        if self._says("("):
            self._call(parts)
        elif (word := self._next()) is not None and word.kind is WordKind.TEXT:
            self._known_type([part.value for part in parts], parts)
            self._literal()
        elif len(parts) == 3 and parts[0].value == "pg_catalog" and parts[1].value in INSTEAD:
            self._dotted(parts[1:])
        else:
            self._dotted(parts)

    def _typed_literal(self, word: Word) -> bool:
        """A type of the SQL standard, followed by a string literal."""
        if word.value not in NUMBER_TYPES and word.value not in SIZED_TYPES and word.value not in ("double", "national"):
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
        self._write(literal(word.value))
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

    def _row(self) -> None:
        self._require("(")
        self._list(self._expression)
        self._require(")")

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
            raise self._refuse(f"the function {name[:63]} may not be called here", code="wire-function", word=parts[-1])
        begin = len(self._pieces)
        self._write(f"{schema}.{quoted(name)}", parts[0].start)
        self._require("(")
        starts: list[int] = []
        if not self._keyword("*") and not self._says(")"):
            self._keyword("distinct", "all")
            starts = self._arguments()
            self._order()
        if name in PRIVILEGE_FUNCTIONS and len(starts) > (3 if name == "has_column_privilege" else 2):
            raise self._refuse("privileges of other roles are not shown here", code="wire-function", word=parts[-1])
        self._require(")")
        if name in GUARDS:
            self._guard(GUARDS[name], parts, begin, starts)
        else:
            self._after_call()

    def _arguments(self) -> list[int]:
        """Where each argument begins among the pieces."""
        starts = [len(self._pieces)]
        self._argument()
        while self._keyword(","):
            starts.append(len(self._pieces))
            self._argument()
        return starts

    def _guard(self, guard: Guard, parts: list[Word], begin: int, starts: list[int]) -> None:
        """Rewrite a guarded call. Arguments are separated by a comma, and a bracket follows the last."""
        if len(starts) != guard.arguments:
            raise self._refuse("this function has another number of arguments", code="wire-function", word=parts[-1])
        ends = [*(start - 1 for start in starts[1:]), len(self._pieces) - 1]
        texts = [" ".join(piece.text for piece in self._pieces[start:end]) for start, end in zip(starts, ends, strict=True)]
        self._pieces[begin:] = [Piece(guard.template.format(*(f"( {text} )" for text in texts)), parts[0].start)]

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


_RULES: dict[str, tuple[tuple[str, ...] | None, Callable[[ValueWriter], None]]] = {
    "case": (None, ValueWriter._case),
    "cast": (("(",), ValueWriter._cast),
    "extract": (("(",), ValueWriter._extract),
    "exists": (("(",), lambda reader: reader._in_brackets(reader._query)),
    "array": (("[", "("), ValueWriter._array),
    "row": (("(",), ValueWriter._row_value),
    "any": (("(",), ValueWriter._brackets),
    "some": (("(",), ValueWriter._brackets),
    "all": (("(",), ValueWriter._brackets),
}
"""Values that begin with a keyword, what must follow it, and the rule that reads the rest."""
