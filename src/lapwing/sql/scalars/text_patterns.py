"""Functions that take a regular expression, and SIMILAR TO: public look-ups over declared text."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from lapwing.kernel.domains import Kind
from lapwing.sql.scalars.binding import Handler, Scalars
from lapwing.sql.scalars.named_function import Composer, FunctionReference, NamedFunction
from lapwing.sql.scalars.open_text import OpenText
from lapwing.sql.scalars.regular_expressions import Program, Spans, Unreadable, compiled
from lapwing.sql.scalars.text_functions import lookup, opened
from lapwing.sql.scalars.text_tables import TEXT_CHARACTERS_MAX, WORK_CHARACTERS_MAX, Result, emit, mapped, too_much
from lapwing.sql.scalars.typed import Typed
from lapwing.sql.text.reader import Reader

_WORK_OF_A_THREAD = 20
"""One step of a pattern on one character counts as much work as this many characters of other functions."""
_REWRITE = re.compile(r"\\[0-9\\]|[^\\]")


def _program(scalars: Scalars, node: exp.Expr, pattern: str, *, any_case: bool = False) -> Program:
    try:
        return compiled(pattern, any_case=any_case)
    except Unreadable as error:
        hint = "letters, [a-z], . \\d \\w \\s, ( ) |, ^ $ and * + ? {2,5} are supported"
        raise scalars.session.refuse(
            "wrong-arguments", f"this regular expression is not supported: {error}", node=node, hint=hint
        ) from error


def _spend(scalars: Scalars, node: exp.Expr) -> Callable[[int], None]:
    def spend(threads: int) -> None:
        scalars.session.lookup_work += _WORK_OF_A_THREAD * threads
        if scalars.session.lookup_work > WORK_CHARACTERS_MAX:
            raise too_much(scalars, node)

    return spend


def _options(composer: Composer, nodes: tuple[exp.Expr, ...], known: str) -> str:
    options = composer.constant_text(nodes[0]) if nodes else ""
    if not set(options) <= set(known):
        message, hint = "this option of a regular expression is not supported", f"known: {' '.join(known)}"
        raise composer.scalars.session.refuse("wrong-arguments", message, node=nodes[0], hint=hint)
    return options


def _table(scalars: Scalars, node: exp.Expr, text: exp.Expr, change: Callable[[str], Result], kind: Kind) -> Typed:
    return emit(scalars, node, mapped(scalars, node, lookup(scalars, text), change), kind)


def _matches(composer: Composer, nodes: tuple[exp.Expr, ...], *, full: bool = False) -> Typed:
    scalars, spend = composer.scalars, _spend(composer.scalars, composer.node)
    options = _options(composer, nodes[2:], "ic")
    program = _program(scalars, nodes[1], composer.constant_text(nodes[1]), any_case="i" in options)
    undeclared = opened(scalars, composer.node, nodes[0])
    if undeclared is not None:
        return _plainly(undeclared, nodes[1], None if "i" in options else composer.constant_text(nodes[1]), full=full)
    return _table(scalars, composer.node, nodes[0], lambda text: program.search(text, 0, full=full, spend=spend) is not None, Kind.BOOLEAN)


def _plainly(text: OpenText, node: exp.Expr, pattern: str | None, *, full: bool) -> Typed:
    """Match open text with a regular expression that is made of plain texts."""
    matched = None if pattern is None else text.matches(pattern, full=full)
    if matched is None:
        message = "on text without declared values a regular expression may contain only plain text, ^, $ and |"
        hint = "use LIKE, ILIKE, SUBSTRING or SPLIT_PART instead, or ask the owner to declare the values"
        raise text.scalars.session.refuse("text-undeclared", message, node=node, hint=hint)
    return matched


def _extract(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    """The text of the match or of a group; empty if there is none."""
    scalars, spend = composer.scalars, _spend(composer.scalars, composer.node)
    program = _program(scalars, nodes[1], composer.constant_text(nodes[1]))
    group = composer.constant_integer(nodes[2], least=0, most=program.groups) if len(nodes) == 3 else 0

    def extracted(text: str) -> str:
        spans = program.search(text, 0, full=False, spend=spend)
        return "" if spans is None else _of_group(text, spans, group)

    return _table(scalars, composer.node, nodes[0], extracted, Kind.TEXT)


def _of_group(text: str, spans: Spans, group: int) -> str:
    start, end = spans[2 * group : 2 * group + 2]
    return "" if start is None or end is None else text[start:end]


def _replace(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    """The first match replaced, or with the option g all of them; \\1 refers to a group."""
    scalars, spend = composer.scalars, _spend(composer.scalars, composer.node)
    options = _options(composer, nodes[3:], "gic")
    program = _program(scalars, nodes[1], composer.constant_text(nodes[1]), any_case="i" in options)
    written = composer.constant_text(nodes[2])
    pieces = _REWRITE.findall(written)
    if "".join(pieces) != written or any(piece[1:].isdigit() and int(piece[1:]) > program.groups for piece in pieces if len(piece) == 2):
        message, hint = "a backslash must be followed by the number of a group", "write \\\\ for a backslash"
        raise scalars.session.refuse("wrong-arguments", message, node=nodes[2], hint=hint)

    def replaced(text: str) -> str:
        made, at, last = "", 0, -1
        while at <= len(text):
            spans = program.search(text, at, full=False, spend=spend)
            if spans is None:
                break
            start, end = spans[0] or 0, spans[1] or 0
            made += text[at:start]
            if start == end == last:  # an empty match right after a match does not count
                made, at = made + text[start : start + 1], start + 1
                continue
            made += "".join(piece if len(piece) == 1 else _piece(piece[1], text, spans) for piece in pieces)
            at = last = end
            if len(made) > TEXT_CHARACTERS_MAX:
                raise too_much(scalars, composer.node)
            if "g" not in options:
                break
        return made + text[at:]

    return _table(scalars, composer.node, nodes[0], replaced, Kind.TEXT)


def _piece(mark: str, text: str, spans: Spans) -> str:
    return mark if mark == "\\" else _of_group(text, spans, int(mark))


def _similar(scalars: Scalars, reader: Reader) -> Typed:
    """Whether the whole text matches a regular expression, as in DuckDB; % and _ have another meaning elsewhere, and are refused."""
    composer, node = Composer(scalars, reader.node), reader.node_of("expression")
    text, pattern = reader.node_of("this"), composer.constant_text(node)
    if "%" in pattern or "_" in pattern:
        message, hint = "SIMILAR TO takes a regular expression for the whole text, without % and _", "use LIKE, or .* and ."
        raise scalars.session.refuse("wrong-arguments", message, node=node, hint=hint)
    program, spend = _program(scalars, node, pattern), _spend(scalars, reader.node)
    undeclared = opened(scalars, reader.node, text)
    if undeclared is not None:
        return _plainly(undeclared, node, pattern, full=True)
    return _table(scalars, reader.node, text, lambda value: program.search(value, 0, full=True, spend=spend) is not None, Kind.BOOLEAN)


def _entry(
    names: str,
    arguments: str,
    counts: tuple[int, int],
    bind: Callable[[Composer, tuple[exp.Expr, ...]], Typed],
    means: str,
    *checked: str | tuple[str, str],
    gives: str,
) -> NamedFunction:
    total = "a public look-up over the declared values, matched by Lapwing in linear time"
    return NamedFunction(
        FunctionReference(tuple(names.split()), arguments, "text", gives, means, total=total, checked=checked), *counts, bind
    )


NAMED: tuple[NamedFunction, ...] = (
    _entry(
        "REGEXP_MATCHES REGEXP_LIKE",
        "s, 'pattern' [, 'i']",
        (2, 3),
        _matches,
        "whether some part of the text matches a regular expression",
        "REGEXP_MATCHES(code, '^[A-I]')",
        "REGEXP_MATCHES(region, 'o.*(t|d)$')",
        "REGEXP_MATCHES(region, 'EAST', 'i')",
        "REGEXP_MATCHES(region, '(a+|o+)+r')",
        ("REGEXP_LIKE(region, '[^a-z]')", "regexp_matches(region, '[^a-z]')"),
        gives="boolean",
    ),
    _entry(
        "REGEXP_FULL_MATCH",
        "s, 'pattern' [, 'i']",
        (2, 3),
        lambda composer, nodes: _matches(composer, nodes, full=True),
        "whether the whole text matches a regular expression",
        "REGEXP_FULL_MATCH(region, '(north|west).*')",
        "REGEXP_FULL_MATCH(region, 'w[a-z]+-\\d')",
        "REGEXP_FULL_MATCH(code, '[CJ]\\d{2}')",
        gives="boolean",
    ),
    _entry(
        "REGEXP_EXTRACT",
        "s, 'pattern' [, group]",
        (2, 3),
        _extract,
        "the first part of the text that matches, or a group of it; empty if none does",
        "REGEXP_EXTRACT(code, '^[A-Z]')",
        "REGEXP_EXTRACT(region, '([a-z])(o|e)', 1)",
        "REGEXP_EXTRACT(region, '(x)|([a-z]+?)(-|$)', 2)",
        "REGEXP_EXTRACT(region, '[ns]o(r|u)t{0,1}h?', 0)",
        gives="text",
    ),
    _entry(
        "REGEXP_REPLACE",
        "s, 'pattern', 'new' [, 'g']",
        (3, 4),
        _replace,
        "the first match, or with g every match, replaced; \\1 is a group",
        "REGEXP_REPLACE(region, '[0-9]+', '')",
        "REGEXP_REPLACE(region, '(o)([a-z])', '\\2-\\1', 'g')",
        "REGEXP_REPLACE(region, 'x*', '.', 'g')",
        "REGEXP_REPLACE(region, 'o|', '<\\0>', 'g')",
        gives="text",
    ),
)
HANDLERS: dict[type[exp.Expr], Handler] = {exp.SimilarTo: Handler(_similar)}
