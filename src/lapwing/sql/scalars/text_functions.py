"""Functions of text and LIKE: public look-ups over declared values, and for open text the functions in ``open_text``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Function, Literal
from lapwing.render.letters import lower, upper
from lapwing.sql.scalars import text_values
from lapwing.sql.scalars.binding import Handler, Scalars, function
from lapwing.sql.scalars.named_function import NULL_IF_ANY, Composer, FunctionReference, NamedFunction, check_count
from lapwing.sql.scalars.open_text import OpenText, open_text
from lapwing.sql.scalars.text_tables import TEXT_CHARACTERS_MAX, Lookup, Result, emit, joined, lookup_of, mapped, too_much
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader


@dataclass(frozen=True, slots=True)
class TextFunction:
    """A function from text to text: how it becomes a table, and the names it may be called by."""

    read: Callable[[Scalars, Reader], Lookup]
    names: frozenset[str] = frozenset()
    of_open: Callable[[OpenText, Reader], Typed] | None = None
    """The function of text without declared values, if it is supported."""

    def handler(self) -> Handler:
        """The handler where an expression is needed."""

        def bind(scalars: Scalars, reader: Reader) -> Typed:
            text = None if self.of_open is None else opened(scalars, reader.node, reader.node_of("this"))
            if text is not None and self.of_open is not None:
                return self.of_open(text, reader)
            return emit(scalars, reader.node, self.read(scalars, reader), Kind.TEXT)

        return Handler(bind, self.names)


def lookup(scalars: Scalars, node: exp.Expr) -> Lookup:
    """The table of a text expression: nested functions of text become one table."""
    known = _TEXT.get(type(node))
    named = NAMED_TEXT.get(str(node.args.get("this")).upper()) if type(node) is exp.Anonymous else None
    if named is not None:
        with scalars.session.reading(node) as reader:
            reader.word("this")
            nodes = reader.many("expressions")
            check_count(scalars, node, nodes, least=named.least, most=named.most)
            return named.read(scalars, node, nodes)
    if known is None:
        return lookup_of(scalars, scalars.bind(node))
    scalars.check_name(node, known.names)
    with scalars.session.reading(node) as reader:
        return known.read(scalars, reader)


def opened(scalars: Scalars, node: exp.Expr, text: exp.Expr) -> OpenText | None:
    """Text without declared values, of which ``node`` is a function; None for anything else."""
    found = open_text(scalars, text, is_text_function)
    return None if found is None else OpenText(scalars, node, found)


def _integer(scalars: Scalars, node: exp.Expr) -> int:
    constant = scalars.bind(node).expression
    if isinstance(constant, Literal) and isinstance(constant.value, int) and constant.kind is Kind.INTEGER and abs(constant.value) < 2**31:
        return constant.value
    raise scalars.session.refuse("wrong-arguments", "a whole number is needed here", node=node)


def _constant(scalars: Scalars, node: exp.Expr) -> str:
    constant = scalars.bind(node).expression
    if isinstance(constant, Literal) and isinstance(constant.value, str):
        return constant.value
    raise scalars.session.refuse("wrong-arguments", "a text constant is needed here", node=node)


# -- from text to text ---------------------------------------------------------------------------------------------------------------------


def _one(change: Callable[[str], str], of_open: Function, *names: str) -> TextFunction:
    def read(scalars: Scalars, reader: Reader) -> Lookup:
        return mapped(scalars, reader.node, lookup(scalars, reader.node_of("this")), change)

    return TextFunction(read, frozenset(names), lambda text, _: text.call(of_open, text.text))


def _paren(scalars: Scalars, reader: Reader) -> Lookup:
    return lookup(scalars, reader.node_of("this"))


def _substring(scalars: Scalars, reader: Reader) -> Lookup:
    table, start, length = lookup(scalars, reader.node_of("this")), reader.node_of("start"), reader.optional("length")
    first, count = _integer(scalars, start), None if length is None else _integer(scalars, length)
    return mapped(scalars, reader.node, table, lambda text: text_values.substring(text, first, count))


def _open_substring(text: OpenText, reader: Reader) -> Typed:
    start, length = reader.node_of("start"), reader.optional("length")
    return text.substring(_integer(text.scalars, start), None if length is None else _integer(text.scalars, length))


def _end(take: Callable[[str, int], str], of_open: Callable[[OpenText, int], Typed], *names: str) -> TextFunction:
    def read(scalars: Scalars, reader: Reader) -> Lookup:
        table, count = lookup(scalars, reader.node_of("this")), _integer(scalars, reader.node_of("expression"))
        return mapped(scalars, reader.node, table, lambda text: take(text, count))

    def of_text(text: OpenText, reader: Reader) -> Typed:
        return of_open(text, _integer(text.scalars, reader.node_of("expression")))

    return TextFunction(read, frozenset(names), of_text)


def _trim(scalars: Scalars, reader: Reader) -> Lookup:
    position, characters = reader.word("position").upper(), reader.optional("expression")
    if characters is not None:
        listed = _constant(scalars, characters)
        return mapped(
            scalars, reader.node, lookup(scalars, reader.node_of("this")), lambda text: text_values.stripped(text, position, listed)
        )
    return mapped(scalars, reader.node, lookup(scalars, reader.node_of("this")), lambda text: text_values.trimmed(text, position))


def _replace(scalars: Scalars, reader: Reader) -> Lookup:
    table = lookup(scalars, reader.node_of("this"))
    old, new = (_constant(scalars, reader.node_of(name)) for name in ("expression", "replacement"))

    def replaced(text: str) -> str:
        if not old:
            return text
        if len(text) + text.count(old) * (len(new) - len(old)) > TEXT_CHARACTERS_MAX:
            raise too_much(scalars, reader.node)
        return text.replace(old, new)

    return mapped(scalars, reader.node, table, replaced)


def _bar(scalars: Scalars, reader: Reader) -> Lookup:
    """a || b is NULL where either is."""
    reader.flag("safe")  # other dialects would also concatenate numbers
    before, after = (lookup(scalars, reader.node_of(name)) for name in ("this", "expression"))
    return joined(scalars, reader.node, before, after, lambda a, b: a + b if isinstance(a, str) and isinstance(b, str) else None)


def _concat(scalars: Scalars, reader: Reader) -> Lookup:
    """CONCAT leaves NULLs out."""
    reader.flag("safe")
    if not reader.flag("coalesce"):
        raise scalars.session.refuse("sql-unsupported", "use || or CONCAT to concatenate texts", node=reader.node)
    whole = Lookup.constant("")
    for node in reader.many("expressions"):
        whole = joined(scalars, node, whole, lookup(scalars, node), lambda a, b: f"{a or ''}{b or ''}")
    return whole


# -- from text to something else -----------------------------------------------------------------------------------------------------------


def _length(scalars: Scalars, reader: Reader) -> Typed:
    text = opened(scalars, reader.node, reader.node_of("this"))
    if text is not None:
        return text.length()
    return emit(scalars, reader.node, mapped(scalars, reader.node, lookup(scalars, reader.node_of("this")), len), Kind.INTEGER)


def _tested(test: Callable[[str, str], bool], *names: str) -> Handler:
    return function(
        lambda scalars, reader: tested(scalars, reader.node, reader.node_of("this"), reader.node_of("expression"), test), *names
    )


def tested(scalars: Scalars, node: exp.Expr, text: exp.Expr, other: exp.Expr, test: Callable[[str, str], bool]) -> Typed:
    """Whether a text starts with, ends with or contains a constant."""
    constant = _constant(scalars, other)
    undeclared = opened(scalars, node, text)
    if undeclared is not None:
        before, after = test is not str.startswith, test is not str.endswith
        return undeclared.liked((*([""] if before else []), constant, *([""] if after else [])))
    table = mapped(scalars, node, lookup(scalars, text), lambda value: test(value, constant))
    return emit(scalars, node, table, Kind.BOOLEAN)


def _contains(text: str, other: str) -> bool:
    return other in text


def is_text_function(node: exp.Expr) -> bool:
    """Whether a node is read by ``lookup`` itself."""
    return type(node) in _TEXT or (type(node) is exp.Anonymous and str(node.args.get("this")).upper() in NAMED_TEXT)


def _like(scalars: Scalars, reader: Reader) -> Typed:
    return _liked(scalars, reader, None)


def _escape(scalars: Scalars, reader: Reader) -> Typed:
    like, character = reader.node_of("this"), reader.node_of("expression")
    escape = _constant(scalars, character)
    if type(like) is not exp.Like or len(escape) != 1:
        raise scalars.session.refuse("wrong-arguments", "ESCAPE takes one character, and is allowed only after LIKE", node=character)
    with scalars.session.reading(like) as inner:
        return _liked(scalars, inner, escape)


def _liked(scalars: Scalars, reader: Reader, escape: str | None) -> Typed:
    node, text, place = reader.node, reader.node_of("this"), reader.node_of("expression")
    any_case, negated, written = type(node) is exp.ILike, reader.flag("negate"), _constant(scalars, place)
    pattern = text_values.Pattern.read(lower(written) if any_case else written, escape)
    if pattern is None:
        raise scalars.session.refuse("wrong-arguments", "the pattern ends with its escape character", node=place)
    undeclared = opened(scalars, node, text)
    if undeclared is not None:
        if any("" in part for part in pattern.parts):
            hint = "compare its SUBSTRING and LENGTH, or ask the owner to declare the values of the column"
            raise scalars.session.refuse("text-undeclared", "_ in a pattern needs declared values", node=place, hint=hint)
        in_case = replace(undeclared, text=undeclared.call(Function.LOWER, undeclared.text)) if any_case else undeclared
        matched = in_case.liked(["".join(part) for part in pattern.parts])
    else:
        fits = pattern.matches
        table = mapped(scalars, node, lookup(scalars, text), lambda value: fits(lower(value) if any_case else value))
        matched = emit(scalars, node, table, Kind.BOOLEAN)
    return scalars.call(node, Function.NOT, matched) if negated else matched


# -- functions that are called by name -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedText:
    """A function from text to text that is called by name: how it becomes a table."""

    meaning: FunctionReference
    least: int
    most: int
    read: Callable[[Scalars, exp.Expr, tuple[exp.Expr, ...]], Lookup]
    of_open: Callable[[OpenText, tuple[exp.Expr, ...]], Typed] | None = None

    def entry(self) -> NamedFunction:
        """The entry where an expression is needed."""

        def bind(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
            text = None if self.of_open is None else opened(composer.scalars, composer.node, nodes[0])
            if text is not None and self.of_open is not None:
                return self.of_open(text, nodes)
            return emit(composer.scalars, composer.node, self.read(composer.scalars, composer.node, nodes), Kind.TEXT)

        return NamedFunction(self.meaning, self.least, self.most, bind)


def _pad(*, before: bool) -> Callable[[Scalars, exp.Expr, tuple[exp.Expr, ...]], Lookup]:
    def read(scalars: Scalars, node: exp.Expr, nodes: tuple[exp.Expr, ...]) -> Lookup:
        table, length = lookup(scalars, nodes[0]), _integer(scalars, nodes[1])
        fill = _constant(scalars, nodes[2]) if len(nodes) == 3 else " "
        if not fill or not 0 <= length <= TEXT_CHARACTERS_MAX:
            message = f"the length must be from 0 to {TEXT_CHARACTERS_MAX}, and the fill text not empty"
            raise scalars.session.refuse("wrong-arguments", message, node=node)
        return mapped(scalars, node, table, lambda text: text_values.padded(text, length, fill, before=before))

    return read


def _repeat(scalars: Scalars, node: exp.Expr, nodes: tuple[exp.Expr, ...]) -> Lookup:
    table, count = lookup(scalars, nodes[0]), _integer(scalars, nodes[1])

    def repeated(text: str) -> str:
        if len(text) * max(count, 0) > TEXT_CHARACTERS_MAX:
            raise too_much(scalars, node)
        return text * max(count, 0)

    return mapped(scalars, node, table, repeated)


def _separated(scalars: Scalars, node: exp.Expr, nodes: tuple[exp.Expr, ...]) -> tuple[str, int]:
    separator, number = _constant(scalars, nodes[1]), _integer(scalars, nodes[2])
    if not separator or number == 0:
        raise scalars.session.refuse(
            "wrong-arguments", "the separator must not be empty, and the number of the part must not be 0", node=node
        )
    return separator, number


def _split_part(scalars: Scalars, node: exp.Expr, nodes: tuple[exp.Expr, ...]) -> Lookup:
    table, (separator, number) = lookup(scalars, nodes[0]), _separated(scalars, node, nodes)
    return mapped(scalars, node, table, lambda text: text_values.split_part(text, separator, number))


def _translate(scalars: Scalars, node: exp.Expr, nodes: tuple[exp.Expr, ...]) -> Lookup:
    table, old, new = lookup(scalars, nodes[0]), _constant(scalars, nodes[1]), _constant(scalars, nodes[2])
    return mapped(scalars, node, table, lambda text: text_values.translated(text, old, new))


def _initcap(scalars: Scalars, node: exp.Expr, nodes: tuple[exp.Expr, ...]) -> Lookup:
    return mapped(scalars, node, lookup(scalars, nodes[0]), text_values.capitalised)


def _concat_ws(scalars: Scalars, node: exp.Expr, nodes: tuple[exp.Expr, ...]) -> Lookup:
    """NULLs are left out, with the separator before them."""
    separator = _constant(scalars, nodes[0])

    def put(before: Result, after: Result) -> Result:
        return after if before is None else before if after is None else f"{before}{separator}{after}"

    whole = Lookup.constant(None)
    for part in nodes[1:]:
        whole = joined(scalars, part, whole, lookup(scalars, part), put)
    return joined(scalars, node, whole, Lookup.constant(""), lambda text, nothing: nothing if text is None else text)


def _place(composer: Composer, text: exp.Expr, part: exp.Expr) -> Typed:
    """The position of a constant in a text, from 1; 0 if it does not occur."""
    constant = _constant(composer.scalars, part)
    undeclared = opened(composer.scalars, composer.node, text)
    if undeclared is not None:
        return undeclared.position(constant)
    table = mapped(composer.scalars, composer.node, lookup(composer.scalars, text), lambda value: value.find(constant) + 1)
    return emit(composer.scalars, composer.node, table, Kind.INTEGER)


def _position(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    """POSITION(part IN text): the parser reads it as a call with one condition."""
    if type(nodes[0]) is not exp.In:
        raise composer.scalars.session.refuse("wrong-arguments", "write POSITION(text IN text)", node=composer.node)
    with composer.scalars.session.reading(nodes[0]) as reader:
        part, text = reader.node_of("this"), reader.node_of("field")
        return _place(composer, text, part)


def _code(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    table = mapped(composer.scalars, composer.node, lookup(composer.scalars, nodes[0]), lambda value: ord(value[0]) if value else 0)
    return emit(composer.scalars, composer.node, table, Kind.INTEGER)


def _meaning(
    names: str,
    arguments: str,
    means: str,
    checked: tuple[str | tuple[str, str], ...],
    *,
    gives: str = "text",
    null: str = NULL_IF_ANY,
    differs: str = "",
    samples: tuple[str, ...] = (),
) -> FunctionReference:
    total = "a public look-up over the declared values"
    return FunctionReference(tuple(names.split()), arguments, "text", gives, means, null, total, differs, checked, samples)


_NAMED_TEXTS = (
    NamedText(
        _meaning(
            "SPLIT_PART",
            "s, 'separator', n",
            "the n-th part between separators, from the end if n is negative",
            ("SPLIT_PART(region, '-', 1)", "SPLIT_PART(region, '-', 2)", "SPLIT_PART(region, 'o', -1)", "SPLIT_PART(region, 'o', -3)"),
        ),
        3,
        3,
        _split_part,
        lambda text, nodes: text.split_part(*_separated(text.scalars, text.node, nodes)),
    ),
    NamedText(
        _meaning(
            "LPAD",
            "s, n [, 'fill']",
            "padded at the start, or truncated, to n characters",
            ("LPAD(region, 9, 'xy')", "LPAD(region, 3, '*')", ("LPAD(sex, 3)", "lpad(sex, 3, ' ')")),
        ),
        2,
        3,
        _pad(before=True),
    ),
    NamedText(
        _meaning(
            "RPAD",
            "s, n [, 'fill']",
            "padded at the end, or truncated, to n characters",
            ("RPAD(region, 9, 'xy')", "RPAD(region, 0, '*')", ("RPAD(sex, 3)", "rpad(sex, 3, ' ')")),
        ),
        2,
        3,
        _pad(before=False),
    ),
    NamedText(_meaning("REPEAT", "s, n", "repeated n times", ("REPEAT(sex, 3)", "REPEAT(region, 0)", "REPEAT(region, -2)")), 2, 2, _repeat),
    NamedText(
        _meaning(
            "TRANSLATE",
            "s, 'from', 'to'",
            "characters replaced one by one",
            ("TRANSLATE(region, 'nor', 'NO')", "TRANSLATE(region, 'oo', 'ab')", "TRANSLATE(region, '', 'x')"),
        ),
        3,
        3,
        _translate,
    ),
    NamedText(
        _meaning(
            "INITCAP",
            "s",
            "first letter of every word in upper case, the rest in lower case",
            (("INITCAP(sex)", "upper(sex)"), ("INITCAP(region)", "upper(left(region, 1)) || lower(substr(region, 2))")),
            differs="PostgreSQL's; DuckDB has none",
        ),
        1,
        1,
        _initcap,
    ),
    NamedText(
        _meaning(
            "CONCAT_WS",
            "'separator', s, ...",
            "texts concatenated with a separator between them",
            ("CONCAT_WS('-', region, 'x', region)", "CONCAT_WS('', region, 'x')", "CONCAT_WS('/', region)"),
            null="leaves NULLs out",
        ),
        2,
        100,
        _concat_ws,
    ),
)
NAMED_TEXT: dict[str, NamedText] = {name: named for named in _NAMED_TEXTS for name in named.meaning.names}
"""Functions from text to text that are called by name."""
NAMED: tuple[NamedFunction, ...] = (
    *(named.entry() for named in _NAMED_TEXTS),
    NamedFunction(
        _meaning(
            "STRPOS INSTR",
            "s, 'part'",
            "the position of the first occurrence of the part in the text, from 1; 0 if there is none",
            gives="integer",
            checked=("STRPOS(region, 'o')", "INSTR(region, '-')", "STRPOS(region, '')"),
            samples=(),
        ),
        2,
        2,
        lambda composer, nodes: _place(composer, nodes[0], nodes[1]),
    ),
    NamedFunction(
        _meaning(
            "POSITION",
            "'part' IN s",
            "the position of the first occurrence of the part in the text, from 1; 0 if there is none",
            gives="integer",
            checked=("POSITION('o' IN region)", "POSITION('20' IN region)"),
        ),
        1,
        1,
        _position,
    ),
    NamedFunction(
        _meaning(
            "ASCII", "s", "code of the first character, 0 if empty", gives="integer", checked=("ASCII(region)", "ASCII(LEFT(region, 0))")
        ),
        1,
        1,
        _code,
    ),
    NamedFunction(
        _meaning("PREFIX", "s, 'start'", "whether the text starts with a constant", gives="boolean", checked=("PREFIX(region, 'n')",)),
        2,
        2,
        lambda composer, nodes: tested(composer.scalars, composer.node, nodes[0], nodes[1], str.startswith),
    ),
    NamedFunction(
        _meaning("SUFFIX", "s, 'end'", "whether the text ends with a constant", gives="boolean", checked=("SUFFIX(region, 'e')",)),
        2,
        2,
        lambda composer, nodes: tested(composer.scalars, composer.node, nodes[0], nodes[1], str.endswith),
    ),
)


_TEXT: dict[type[exp.Expr], TextFunction] = {
    exp.Paren: TextFunction(_paren),
    exp.Lower: _one(lower, Function.LOWER, "LOWER", "LCASE"),
    exp.Upper: _one(upper, Function.UPPER, "UPPER", "UCASE"),
    exp.Substring: TextFunction(_substring, frozenset({"SUBSTRING", "SUBSTR"}), _open_substring),
    exp.Left: _end(text_values.left, OpenText.first, "LEFT"),
    exp.Right: _end(text_values.right, OpenText.last, "RIGHT"),
    exp.Trim: TextFunction(_trim, frozenset({"TRIM", "LTRIM", "RTRIM"})),
    exp.Replace: TextFunction(_replace, frozenset({"REPLACE"})),
    exp.DPipe: TextFunction(_bar),
    exp.Concat: TextFunction(_concat, frozenset({"CONCAT"})),
}

HANDLERS: dict[type[exp.Expr], Handler] = {
    **{node: found.handler() for node, found in _TEXT.items() if node is not exp.Paren},
    exp.Length: function(_length, "LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"),
    exp.StartsWith: _tested(str.startswith, "STARTS_WITH"),
    exp.EndsWith: _tested(str.endswith, "ENDS_WITH"),
    exp.Contains: _tested(_contains, "CONTAINS"),
    exp.Like: Handler(_like),
    exp.ILike: Handler(_like),
    exp.Escape: Handler(_escape),
}
