"""Tables of constants that answers are joined with: VALUES, series of numbers and dates, and the rows of public tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from lapwing.kernel import calendar
from lapwing.kernel.domains import Kind, kind_of
from lapwing.kernel.expressions import Literal
from lapwing.kernel.expressions import Value as Constant
from lapwing.kernel.facts import PublicFacts
from lapwing.sql.over_answers.dates import interval_sql, is_small
from lapwing.sql.over_answers.expressions import Outputs
from lapwing.sql.over_answers.values import Value, literal_sql
from lapwing.sql.rows import algebra
from lapwing.sql.rows.names import NoisyField, NoisyItem
from lapwing.sql.rows.tables import Called
from lapwing.sql.scalars.binding import identifier, unsupported
from lapwing.sql.scalars.date_arithmetic import DAYS, MICROSECONDS, MONTHS, constant_interval
from lapwing.sql.text.reader import Reader, Session
from lapwing.statements import RowsAtMost

SERIES_MAX = 100_000
"""Most rows of a series."""
PUBLIC_MAX = 10_000
"""Most rows of a public table that is joined with an answer: they are written into the statement."""
_TYPES = {Kind.INTEGER: "BIGINT", Kind.REAL: "DOUBLE", Kind.TEXT: "VARCHAR"}


def listed_item(outputs: Outputs, node: exp.Expr) -> Called | None:
    """VALUES or a series as an item of FROM; None for anything else."""
    if type(node) is exp.Values:
        with outputs.session.reading(node) as reader:
            rows = [_row(outputs, part) for part in reader.many("expressions")]
            return _called(outputs.session, reader, _values(outputs, node, rows), "valueslist")
    if type(node) is exp.Table and type(node.this) is exp.GenerateSeries:
        with outputs.session.reading(node) as reader:
            series = reader.node_of("this")
            name = "range" if series.args.get("is_end_exclusive") else "generate_series"
            return _called(outputs.session, reader, _series(outputs, series, name), name)
    return None


def _called(session: Session, reader: Reader, item: NoisyItem, default: str) -> Called:
    """The item by its alias, and its columns by theirs: ``AS t(a, b)``."""
    alias = reader.optional("alias")
    if alias is None:
        return Called(item, default, reader.node)
    if type(alias) is not exp.TableAlias:
        raise unsupported(session, alias)
    with session.reading(alias) as table:
        called = table.optional("this")
        names = [identifier(session, column).lower() for column in table.many("columns")]
        name = default if called is None else identifier(session, called).lower()
    if names and (len(set(names)) != len(names) or len(names) != len(item.fields)):
        raise session.refuse("union-columns", "each column of this table needs a distinct name", node=alias)
    fields = dict(zip(names or item.fields, item.fields.values(), strict=True))
    if not names and alias.this is not None and list(item.fields) == [default]:
        fields[name] = fields.pop(default)  # a series has the name of its column
    return Called(NoisyItem(item.sql, fields, item.rows), name, reader.node)


def _row(outputs: Outputs, node: exp.Expr) -> list[Value]:
    if type(node) is not exp.Tuple:
        return [_constant(outputs, node)]
    with outputs.session.reading(node) as reader:
        return [_constant(outputs, part) for part in reader.many("expressions")]


def _constant(outputs: Outputs, node: exp.Expr) -> Value:
    value = outputs.bind(node)
    if value.constant is None:
        raise outputs.session.refuse("list-not-constant", "VALUES and series take only constants", node=node)
    return value


def _values(outputs: Outputs, node: exp.Expr, rows: list[list[Value]]) -> NoisyItem:
    session, width = outputs.session, len(rows[0])
    if any(len(row) != width for row in rows):
        raise session.refuse("union-columns", "all rows of VALUES need the same number of columns", node=node)
    if len(rows) > session.settings.list_items_max:
        message = f"VALUES may list at most {session.settings.list_items_max} rows"
        raise session.refuse("list-too-long", message, node=node)
    columns = [outputs.alike([row[place] for row in rows]) for place in range(width)]
    written = [[value.sql for value in values] for values, _ in columns]
    return _table({f"col{place}": (sql, kind) for place, (sql, (_, kind)) in enumerate(zip(written, columns, strict=True))})


def _type(kind: Kind) -> str:
    return _TYPES.get(kind, kind.value.upper())


def _table(columns: Mapping[str, tuple[Sequence[str], Kind | None]]) -> NoisyItem:
    """A table of these columns, each with its values as SQL and its type."""
    many = max((len(values) for values, _ in columns.values()), default=0)
    places = range(len(columns))
    listed = [f"CAST(l.v{i} AS {_type(kind)})" if kind else f"l.v{i}" for i, (_, kind) in enumerate(columns.values())]
    rows = [", ".join(row) for row in zip(*(values for values, _ in columns.values()), strict=True)] or [", ".join("NULL" for _ in places)]
    source = f"(VALUES {', '.join(f'({row})' for row in rows)}) AS l({', '.join(f'v{i}' for i in places)})"
    kept = "" if many else " WHERE FALSE"
    sql = f"SELECT {', '.join(f'{value} AS c{i}' for i, value in enumerate(listed))} FROM {source}{kept}"
    fields = {name: NoisyField(f"c{i}", kind, algebra.COMPUTED) for i, (name, (_, kind)) in enumerate(columns.items())}
    return NoisyItem(sql, fields, RowsAtMost(max(many, 1)))


def _series(outputs: Outputs, node: exp.Expr, name: str) -> NoisyItem:
    """Whole numbers or timestamps from a start to an end, with a step: RANGE excludes the end, GENERATE_SERIES includes it."""
    session = outputs.session
    with session.reading(node) as reader:
        exclusive, step = reader.flag("is_end_exclusive"), reader.optional("step")
        start, end = (_constant(outputs, reader.node_of(which)) for which in ("start", "end"))
        if start.kind is end.kind is Kind.INTEGER:
            by = 1 if step is None else _constant(outputs, step).constant
            number = by if isinstance(by, int) else by.value if by is not None and by.kind is Kind.INTEGER else None
            low, high = _whole(start), _whole(end)
            if isinstance(number, int) and 1 <= number < 2**31 and max(abs(low), abs(high)) < 2**53:
                return _made(session, node, name, (high - low) // number, f"{low}, {high + (not exclusive)}, {number}", Kind.INTEGER)
        elif {start.kind, end.kind} <= {Kind.DATE, Kind.TIMESTAMP} and type(step) is exp.Interval:
            count, unit = constant_interval(outputs.scalars, step)
            span = _moment(end) - _moment(start)
            length = count * (MICROSECONDS.get(unit) or calendar.DAY_MICROSECONDS * (DAYS.get(unit) or 28 * MONTHS.get(unit, 1)))
            if count > 0 and is_small(count, unit):
                ends = f"CAST({start.sql} AS TIMESTAMP), CAST({end.sql} AS TIMESTAMP), {interval_sql(count, unit)}"
                return _made(session, node, name, span // length, ends, Kind.TIMESTAMP)
    message = "a series takes two whole numbers or two dates, and a positive constant step"
    raise session.refuse(
        "wrong-arguments", message, node=node, hint="generate_series(DATE '2025-01-01', DATE '2025-01-31', INTERVAL 1 DAY)"
    )


def _whole(value: Value) -> int:
    assert value.constant is not None and isinstance(value.constant.value, int)
    return value.constant.value


def _moment(value: Value) -> int:
    return _whole(value) * (calendar.DAY_MICROSECONDS if value.kind is Kind.DATE else 1)


def _made(session: Session, node: exp.Expr, name: str, steps: int, arguments: str, kind: Kind) -> NoisyItem:
    if steps >= SERIES_MAX:
        raise session.refuse("list-too-long", f"a series may have at most {SERIES_MAX:,} rows", node=node)
    called = "range" if kind is Kind.INTEGER else name
    sql = f"SELECT CAST(l.v0 AS {_type(kind)}) AS c0 FROM {called}({arguments}) AS l(v0)"
    return NoisyItem(sql, {name: NoisyField("c0", kind, algebra.COMPUTED)}, RowsAtMost(max(steps + 1, 1)))


def public_item(session: Session, node: exp.Expr, facts: PublicFacts, rows: Mapping[str, Sequence[Constant]] | None) -> NoisyItem:
    """The rows of a public table, as constants."""
    if rows is None or any(len(values) > PUBLIC_MAX for values in rows.values()):
        message = f"a public table that is joined with an answer may have at most {PUBLIC_MAX:,} rows"
        raise session.refuse("table-public", message, node=node, hint="join it to the protected table, in the subquery")
    kinds = {name: kind_of(domain) for name, domain in facts.columns.items()}
    columns = {}
    for name, values in rows.items():
        kind = kinds[name]
        if kind is Kind.KEY:
            kind = Kind.INTEGER if all(value is None or isinstance(value, int) for value in values) else Kind.TEXT
        columns[name.lower()] = ([literal_sql(Literal(value, kind)) for value in values], kind)
    return _table(columns)
