"""Bound statements in a form for reading and comparing: one thought on each line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from lapwing.kernel import calendar
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Call, Case, Column, Expression, Literal
from lapwing.kernel.ir import Filter, PerUnit, Project, PublicJoin, Relation, Scan, SemiJoin, Union, UnitJoin, UnitWindow
from lapwing.kernel.window_columns import WindowColumn
from lapwing.statements import Aggregate, ComputedOutput, Derivation, KeyOutput, LinearOutput, Noisy, PrivateQuery, RatioOutput, Statement


def dump(statement: Statement) -> str:
    """All of a statement but its text."""
    post = statement.post
    lines: list[str] = []
    for number, private in enumerate(statement.privates):
        lines += [f"q{number}:"] if len(statement.privates) > 1 else []
        lines += _private(private)
    lines += [f"from {post.source}"] if post.source != "q0" else []
    lines += ["distinct"] if post.distinct else []
    lines += [f"distinct on {item}" for item in post.distinct_on]
    for output in post.outputs:
        lines.append(f"output {output.name!r} = {output.sql}  [{_derivation(output.derivation)}]")
        # The mark of an aggregate stands beside it; those that are computed are shown.
        lines += [f"  marked by {output.mark}"] if output.mark is not None and output.mark != output.sql.replace(".a", ".m") else []
    lines += [f"where {post.where}"] if post.where is not None else []
    lines += [f"group by {item}" for item in post.group_by]
    lines += [f"having {post.having}"] if post.having is not None else []
    lines += [f"qualify {post.qualify}"] if post.qualify is not None else []
    lines += [f"order by {item}" for item in post.order_by]
    lines += [f"limit {post.limit}"] if post.limit is not None else []
    lines += [f"offset {post.offset}"] if post.offset else []
    lines += [f"{name} is {' '.join(statement.text[span.start : span.end].split())!r}" for name, span in statement.spans]
    return "\n".join(lines)


def _private(private: PrivateQuery) -> Iterator[str]:
    yield from _relation(private.source)
    yield from (f"key {name} = {expression(value)}" for name, value in private.keys)
    if private.groups is not None:
        yield f"groups {private.groups}"
    if private.levels is not None:
        yield f"levels {private.levels}"
    yield from (f"a{i} = {_aggregate(aggregate)}" for i, aggregate in enumerate(private.aggregates))


def _where(condition: Expression | None) -> str:
    return "" if condition is None else f" where {expression(condition)}"


def _inside(relation: Relation) -> str:
    return "(" + "; ".join(_relation(relation)) + ")"


def _relation(relation: Relation) -> Iterator[str]:
    match relation:
        case Scan(table, rows_per_unit):
            yield f"scan {table}, {rows_per_unit} rows per unit"
        case Filter(source, predicate):
            yield from _relation(source)
            yield f"where {expression(predicate)}"
        case PublicJoin(source, table, on, columns, kind):
            yield from _relation(source)
            added = ", ".join(f"{column} as {name}" for name, column in columns) or "nothing"
            yield f"{kind.value} join {table} on its key = {expression(on)}, adding {added}"
        case Project(source, columns):
            yield from _relation(source)
            yield f"columns {', '.join(f'{name} = {expression(value)}' for name, value in columns)}"
        case UnitJoin(left, right, on, columns, kind, where):
            yield from _relation(left)
            equal = "".join(f" and {a} = {b}" for a, b in on)
            added = ", ".join(f"{column} as {name}" for name, column in columns) or "nothing"
            yield f"{kind.value} join of rows {_inside(right)} on the unit{equal}{_where(where)}, adding {added}"
        case SemiJoin(source, other, on, negated, columns, where):
            yield from _relation(source)
            equal = "".join(f" and {a} = {b}" for a, b in on)
            called = f", its {', '.join(f'{column} as {name}' for name, column in columns)}" if columns else ""
            yield f"where the unit {'has no' if negated else 'has a'} row in {_inside(other)}{called}{equal}{_where(where)}"
        case Union(sources):
            yield f"union of {', '.join(_inside(source) for source in sources)}"
        case PerUnit(source, aggregates, keys):
            yield from _relation(source)
            listed = [f"{name} = {expression(value)}" for name, value in keys]
            listed += [f"{n} = {a.kind.value}({'*' if a.value is None else expression(a.value)})" for n, a in aggregates]
            yield f"one row per unit{' and ' + ', '.join(name for name, _ in keys) if keys else ''}: {', '.join(listed)}"
        case UnitWindow(source, windows):
            yield from _relation(source)
            yield f"windows within the unit: {', '.join(f'{name} = {_window(window)}' for name, window in windows)}"
        case _:
            assert_never(relation)


def _window(window: WindowColumn) -> str:
    value = "" if window.value is None else expression(window.value)
    parted = "".join(f" by {expression(part)}" for part in window.partition)
    ordered = "".join(
        f" ordered by {expression(key.value)}{' desc' if key.descending else ''}{' nulls first' if key.nulls_first else ''}"
        for key in window.order
    )
    return f"{window.kind.value}({value}), offset {window.offset}, reach {window.reach.value}{parted}{ordered}"


def _aggregate(aggregate: Aggregate) -> str:
    value = "" if aggregate.value is None else f" of {expression(aggregate.value)}"
    second = "" if aggregate.second is None else f" and {expression(aggregate.second)}"
    where = "" if aggregate.where is None else f" where {expression(aggregate.where)}"
    share = "" if aggregate.share is None else f" at {aggregate.share}"
    return f"{aggregate.kind.value}{value}{second}{share}{where}"


def _derivation(derivation: Derivation) -> str:
    match derivation:
        case KeyOutput(key):
            return f"key {key}"
        case LinearOutput(aggregate, scale, shift):
            return f"{scale} * {_noisy(aggregate)} + {shift}"
        case RatioOutput(numerator, denominator, scale):
            return f"{scale} * {_noisy(numerator)} / {_noisy(denominator)}"
        case ComputedOutput():
            return "computed"
        case _:
            assert_never(derivation)


def _noisy(aggregate: Noisy) -> str:
    return f"q{aggregate.query}.a{aggregate.index}"


def expression(found: Expression) -> str:
    """An expression with its functions in front."""
    match found:
        case Column(name):
            return name
        case Literal(value, kind):
            return _literal(value, kind)
        case Call(function, arguments):
            return f"{function.name.lower()}({', '.join(expression(argument) for argument in arguments)})"
        case Case(branches, otherwise):
            cases = [f"{expression(condition)} -> {expression(value)}" for condition, value in branches]
            return f"case({'; '.join([*cases, expression(otherwise)])})"
        case _:
            assert_never(found)


def _literal(value: object, kind: Kind) -> str:
    if value is None:
        return f"null:{kind.value}"
    if kind is Kind.DATE and isinstance(value, int):
        return str(calendar.to_date(value))
    if kind is Kind.TIMESTAMP and isinstance(value, int):
        days, rest = divmod(value, calendar.DAY_MICROSECONDS)
        return f"{calendar.to_date(days)}+{rest}us"
    return repr(value) if kind is Kind.TEXT else f"{value}:{kind.value}" if kind is Kind.REAL else str(value).lower()
