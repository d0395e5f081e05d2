"""Functions of text and LIKE, as public look-ups; on text without declared values only LIKE 'start%' and comparisons are possible."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction

from sqlglot import exp

from lapwing.kernel.domains import Kind, TextDomain
from lapwing.kernel.expressions import Function, Literal
from lapwing.sql.functions import INTEGER_BITS, REALS, cast, type_name
from lapwing.sql.lookups import Lookup, Result, emit, joined, lookup_of
from lapwing.sql.reader import Reader
from lapwing.sql.scalars import Handler, Scalars, Typed, function

_NUMBER = re.compile(r"([+-]?)(\d{1,300}\.?\d{0,300}|\.\d{1,300})(?:[eE]([+-]?\d{1,3}))?", re.ASCII)


# -- what the functions do, as the reference engine has them -----------------------------------------------------------------------------


def lower(text: str) -> str:
    """Letter by letter; a letter whose small form is several letters keeps its first."""
    return "".join(letter.lower()[0] for letter in text)


def upper(text: str) -> str:
    """Letter by letter; a letter whose capital would be several letters has a single title form, or stays."""
    return "".join(_capital(letter) for letter in text)


def _capital(letter: str) -> str:
    if letter == "ß":
        return "ẞ"
    return next((form for form in (letter.upper(), letter.title()) if len(form) == 1), letter)


def substring(text: str, start: int, length: int | None) -> str:
    """Characters from ``start`` on, counted from 1, or from the end if negative; a negative length takes those before."""
    first = start - 1 if start >= 0 else len(text) + start
    last = max(first, len(text)) if length is None else first + length
    first, last = min(first, last), max(first, last)
    return text[max(first, 0) : max(last, 0)]


def left(text: str, count: int) -> str:
    """The first characters, or all but the last if negative."""
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def right(text: str, count: int) -> str:
    """The last characters, or all but the first if negative."""
    return text[max(len(text) - count, 0) :] if count >= 0 else text[-count:]


def trimmed(text: str, position: str) -> str:
    """Without spaces at the start, the end or both."""
    start, end = 0, len(text)
    while position in ("", "BOTH", "LEADING") and start < end and unicodedata.category(text[start]) == "Zs":
        start += 1
    while position in ("", "BOTH", "TRAILING") and start < end and unicodedata.category(text[end - 1]) == "Zs":
        end -= 1
    return text[start:end]


Pattern = list[str | None]
"""A LIKE pattern: a character, the empty string for any one character, None for any number of characters."""


def pattern_of(written: str, escape: str | None) -> Pattern | None:
    """The parts of a LIKE pattern, or None where the escape character stands before nothing."""
    parts: Pattern = []
    letters = iter(written)
    for letter in letters:
        if escape is not None and letter == escape:
            following = next(letters, None)
            if following is None:
                return None
            parts.append(following)
        else:
            parts.append(None if letter == "%" else "" if letter == "_" else letter)
    return parts


def matches(text: str, pattern: Pattern) -> bool:
    """Whether a text fits a pattern; steps are at most the product of their lengths, whatever the pattern."""
    at = part = 0
    wild, resume = -1, 0
    while at < len(text):
        if part < len(pattern) and pattern[part] is not None and pattern[part] in ("", text[at]):
            at, part = at + 1, part + 1
        elif part < len(pattern) and pattern[part] is None:
            wild, resume, part = part, at, part + 1
        elif wild >= 0:
            resume += 1
            at, part = resume, wild + 1
        else:
            return False
    return all(rest is None for rest in pattern[part:])


def parsed_number(text: str) -> Fraction | None:
    """A text that is a plain decimal number, with spaces around it, exactly."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    sign, digits, exponent = found.groups()
    return Fraction(f"{sign}{digits.rstrip('.') or '0'}") * Fraction(10) ** int(exponent or 0)


def _whole(number: Fraction) -> int:
    """Halves away from zero."""
    rounded = (abs(number) + Fraction(1, 2)) // 1
    return int(rounded) if number >= 0 else -int(rounded)


# -- reading -----------------------------------------------------------------------------------------------------------------------------

TextHandler = Callable[[Scalars, Reader], Lookup]


def lookup(scalars: Scalars, node: exp.Expr) -> Lookup:
    """The table of a text expression: nested functions of text become one table."""
    handler = _TEXT.get(type(node))
    if handler is None:
        return lookup_of(scalars, scalars.bind(node))
    scalars.check_name(node, handler.names)
    with scalars.session.reading(node) as reader:
        return handler.read(scalars, reader)


class _Text:
    """A function from text to text: how it is read, and its names."""

    def __init__(self, read: TextHandler, *names: str) -> None:
        self.read, self.names = read, frozenset(names)

    def handler(self) -> Handler:
        """The handler of the function where an expression is wanted."""
        return function(lambda scalars, reader: emit(scalars, reader.node, self.read(scalars, reader), Kind.TEXT), *self.names)


def _integer(scalars: Scalars, node: exp.Expr) -> int:
    found = scalars.bind(node).expression
    if isinstance(found, Literal) and isinstance(found.value, int) and found.kind is Kind.INTEGER and abs(found.value) < 2**31:
        return found.value
    raise scalars.session.refuse("wrong-arguments", "a whole number is needed here", node=node)


def text_constant(scalars: Scalars, node: exp.Expr) -> str:
    """A text constant, or refuse."""
    found = scalars.bind(node).expression
    if isinstance(found, Literal) and isinstance(found.value, str):
        return found.value
    raise scalars.session.refuse("wrong-arguments", "a text constant is needed here", node=node)


def _simple(function_of_text: Callable[[str], str]) -> TextHandler:
    return lambda scalars, reader: lookup(scalars, reader.node_of("this")).map(function_of_text)


def _paren(scalars: Scalars, reader: Reader) -> Lookup:
    return lookup(scalars, reader.node_of("this"))


def _substring(scalars: Scalars, reader: Reader) -> Lookup:
    found, start, length = lookup(scalars, reader.node_of("this")), reader.node_of("start"), reader.optional("length")
    first, count = _integer(scalars, start), None if length is None else _integer(scalars, length)
    return found.map(lambda text: substring(text, first, count))


def _ends(take: Callable[[str, int], str]) -> TextHandler:
    def read(scalars: Scalars, reader: Reader) -> Lookup:
        found, count = lookup(scalars, reader.node_of("this")), _integer(scalars, reader.node_of("expression"))
        return found.map(lambda text: take(text, count))

    return read


def _trim(scalars: Scalars, reader: Reader) -> Lookup:
    position = reader.word("position").upper()
    return lookup(scalars, reader.node_of("this")).map(lambda text: trimmed(text, position))


def _replace(scalars: Scalars, reader: Reader) -> Lookup:
    found = lookup(scalars, reader.node_of("this"))
    old, new = (text_constant(scalars, reader.node_of(name)) for name in ("expression", "replacement"))
    return found.map(lambda text: text.replace(old, new) if old else text)


def _bar(scalars: Scalars, reader: Reader) -> Lookup:
    """a || b is NULL where either is."""
    reader.flag("safe")  # says that other dialects would also accept numbers
    before, after = (lookup(scalars, reader.node_of(name)) for name in ("this", "expression"))
    return joined(scalars, before, after, reader.node, lambda a, b: a + b if isinstance(a, str) and isinstance(b, str) else None)


def _concat(scalars: Scalars, reader: Reader) -> Lookup:
    """CONCAT leaves NULLs out."""
    reader.flag("safe")
    if not reader.flag("coalesce"):
        raise scalars.session.refuse("sql-unsupported", "this form of CONCAT is not supported", node=reader.node)
    whole = Lookup(None, {None: ""})
    for node in reader.many("expressions"):
        whole = joined(scalars, whole, lookup(scalars, node), node, lambda a, b: f"{a or ''}{b or ''}")
    return whole


def _length(scalars: Scalars, reader: Reader) -> Typed:
    return emit(scalars, reader.node, lookup(scalars, reader.node_of("this")).map(len), Kind.INTEGER)


def _tested(test: Callable[[str, str], bool]) -> Callable[[Scalars, Reader], Typed]:
    def bind(scalars: Scalars, reader: Reader) -> Typed:
        return tested(scalars, reader.node, reader.node_of("this"), reader.node_of("expression"), test)

    return bind


def tested(scalars: Scalars, node: exp.Expr, text: exp.Expr, other: exp.Expr, test: Callable[[str, str], bool]) -> Typed:
    """Whether a text starts with, ends with or contains a constant."""
    constant = text_constant(scalars, other)
    if test is str.startswith and type(text) not in _TEXT:
        found = scalars.bind(text)
        if isinstance(found.domain, TextDomain) and found.domain.values is None:
            return scalars.call(node, Function.STARTS_WITH, found, scalars.constant(other, Literal(constant, Kind.TEXT)))
    return emit(scalars, node, lookup(scalars, text).map(lambda value: test(value, constant)), Kind.BOOLEAN)


def _contains(text: str, other: str) -> bool:
    return other in text


def _like(scalars: Scalars, reader: Reader) -> Typed:
    return _liked(scalars, reader, None)


def _escape(scalars: Scalars, reader: Reader) -> Typed:
    like, character = reader.node_of("this"), reader.node_of("expression")
    escape = text_constant(scalars, character)
    if type(like) not in (exp.Like, exp.ILike) or len(escape) != 1:
        raise scalars.session.refuse("wrong-arguments", "ESCAPE takes one character, after LIKE", node=character)
    with scalars.session.reading(like) as inner:
        return _liked(scalars, inner, escape)


def _liked(scalars: Scalars, reader: Reader, escape: str | None) -> Typed:
    node, text, any_case = reader.node, reader.node_of("this"), type(reader.node) is exp.ILike
    if any_case and escape is not None:
        raise scalars.session.refuse("sql-unsupported", "ILIKE with ESCAPE is not supported", node=node, hint="use LOWER(...) LIKE")
    place = reader.node_of("expression")
    written, negated = text_constant(scalars, place), reader.flag("negate")
    pattern = pattern_of(lower(written) if any_case else written, escape)
    if pattern is None:
        raise scalars.session.refuse("wrong-arguments", "the pattern ends with its escape character", node=place)
    found = _liked_undeclared(scalars, node, text, pattern) if not any_case and type(text) not in _TEXT else None
    if found is None:
        table = lookup(scalars, text).map(lambda value: matches(lower(value) if any_case else value, pattern))
        found = emit(scalars, node, table, Kind.BOOLEAN)
    return scalars.call(node, Function.NOT, found) if negated else found


def _liked_undeclared(scalars: Scalars, node: exp.Expr, text: exp.Expr, pattern: Pattern) -> Typed | None:
    """LIKE on text without declared values: the whole text, or its start. None for declared text and other patterns."""
    found = scalars.bind(text)
    if not isinstance(found.domain, TextDomain) or found.domain.values is not None:
        return None
    head = pattern[:-1] if pattern and pattern[-1] is None else pattern
    if any(part in (None, "") for part in head):
        return None
    constant = scalars.constant(node, Literal("".join(part or "" for part in head), Kind.TEXT))
    return scalars.call(node, Function.EQUAL if head is pattern else Function.STARTS_WITH, found, constant)


def _try_cast(scalars: Scalars, reader: Reader) -> Typed:
    """A cast that gives NULL where it fails: of text with declared values it is a look-up, of anything else a cast that cannot fail."""
    reader.flag("safe")
    wanted, inner = type_name(scalars, reader.node_of("to")), reader.node_of("this")
    if type(inner) not in _TEXT:
        found = scalars.bind(inner)
        if not isinstance(found.domain, TextDomain) or isinstance(found.expression, Literal):
            return cast(scalars, reader.node, found, wanted)
    table = lookup(scalars, inner)
    if wanted in REALS:
        return emit(scalars, reader.node, table.map(lambda text: _in_range(parsed_number(text), 2**300)), Kind.REAL)
    if wanted in INTEGER_BITS:
        limit = 2 ** (INTEGER_BITS[wanted] - 1)
        return emit(scalars, reader.node, table.map(lambda text: _in_range(_rounded(text), limit)), Kind.INTEGER)
    raise scalars.session.refuse("cast-unsupported", "text can be cast to numbers only", node=reader.node)


def _rounded(text: str) -> Result:
    number = parsed_number(text)
    return None if number is None else _whole(number)


def _in_range(number: Result, limit: int) -> Result:
    return number if isinstance(number, int | Fraction) and -limit <= number < limit else None


_TEXT: dict[type[exp.Expr], _Text] = {
    exp.Paren: _Text(_paren),
    exp.Lower: _Text(_simple(lower), "LOWER", "LCASE"),
    exp.Upper: _Text(_simple(upper), "UPPER", "UCASE"),
    exp.Substring: _Text(_substring, "SUBSTRING", "SUBSTR"),
    exp.Left: _Text(_ends(left), "LEFT"),
    exp.Right: _Text(_ends(right), "RIGHT"),
    exp.Trim: _Text(_trim, "TRIM", "LTRIM", "RTRIM"),
    exp.Replace: _Text(_replace, "REPLACE"),
    exp.DPipe: _Text(_bar),
    exp.Concat: _Text(_concat, "CONCAT"),
}

HANDLERS: dict[type[exp.Expr], Handler] = {
    **{node: text.handler() for node, text in _TEXT.items() if node is not exp.Paren},
    exp.Length: function(_length, "LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"),
    exp.StartsWith: function(_tested(str.startswith), "STARTS_WITH"),
    exp.EndsWith: function(_tested(str.endswith), "ENDS_WITH"),
    exp.Contains: function(_tested(_contains), "CONTAINS"),
    exp.Like: Handler(_like),
    exp.ILike: Handler(_like),
    exp.Escape: Handler(_escape),
    exp.TryCast: Handler(_try_cast),
}
