"""What a bound statement means, computed in plain Python over a few rows, to compare with the bare engine on the same text."""

from __future__ import annotations

import datetime
import math
import random
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any, assert_never

import duckdb
import pyarrow as pa

from lapwing.answers.post_processing import post_process, typed_array
from lapwing.audit.lists.bare import define
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Expression
from lapwing.kernel.ir import (
    Filter,
    JoinKind,
    PerUnit,
    Project,
    PublicJoin,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitAggregate,
    UnitAggregateKind,
    UnitJoin,
    UnitWindow,
)
from lapwing.kernel.stability import shape_of
from lapwing.statements import QUANTILES, Aggregate, AggregateKind, PrivateQuery, Statement, quantile_kind
from tests.support.reference import evaluator
from tests.support.reference.evaluation import Evaluator
from tests.unit.sql.clinic import CLINICS, DIAGNOSES, FACTS
from tests.unit.sql.window_meaning import windowed

Row = dict[str, Any]
EPOCH = datetime.datetime(1970, 1, 1)
FIRST_DAY = datetime.date(2024, 1, 1)
UNIT = "_unit"
DRUGS = ("aspirin", "asprin", "paracetamol", "x", "y", "Aspirin", "", None)


def rows(seed: int = 7, *, patients: int = 40, visits: int = 300) -> dict[str, list[Row]]:
    """Raw rows inside their declared bounds, with NULLs; costs on their grid, so that nothing is changed by preparation."""
    rng = random.Random(seed)
    regions = ("northam", "northfield", "Eastbrook", "eastmere", "southport", "west-1", "west-20", None)
    made: dict[str, list[Row]] = {"patients": [], "visits": [], "prescriptions": []}
    for patient in range(patients):
        made["patients"].append(
            {
                "patient_id": patient,
                "birth_year": rng.randint(1920, 2020),
                "sex": rng.choice("fmx"),
                "region": rng.choice(regions),
                "smoker": rng.choice([True, False, None]),
                "vaccinated": rng.random() < 0.6,
                "income": rng.choice([None, 0.0, 200_000.0, float(rng.randint(0, 200_000))]),
            }
        )
    for visit in range(visits):
        day = FIRST_DAY + datetime.timedelta(days=rng.randrange(731))
        moment = datetime.datetime.combine(day, datetime.time(rng.randrange(24), rng.randrange(60), rng.randrange(60)))
        made["visits"].append(
            {
                "visit_id": visit,
                "patient_id": rng.randrange(patients),
                "day": day,
                "started": None if rng.random() < 0.1 else moment,
                "clinic_id": rng.randint(1, 12),
                "code": rng.choice([*DIAGNOSES, None]),
                "cost": rng.choice([None, 0.0, 5000.0, 12.34, 20.0, rng.randint(0, 500_000) / 100, rng.randint(0, 9_000) / 100]),
                "minutes": rng.choice([0, 480, 5, 7, 15, 30, rng.randint(0, 480)]),
            }
        )
        for _ in range(rng.randrange(2)):
            made["prescriptions"].append({"visit_id": visit, "drug": rng.choice(DRUGS), "dose_mg": rng.randint(0, 20_000) / 10})
    made["clinics"] = [{"clinic_id": i, "city": city, "kind": kind} for i, city, kind in CLINICS]
    made["diagnoses"] = [{"code": code, "chapter": chapter, "chronic": chronic} for code, (chapter, chronic) in DIAGNOSES.items()]
    return made


def engine(tables: dict[str, list[Row]]) -> duckdb.DuckDBPyConnection:
    """A bare engine with these tables."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    define(connection)
    for name, listed in tables.items():
        source = pa.Table.from_pylist(listed)
        connection.register("source", source)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM source")
        connection.unregister("source")
        for schema in ("public", "clinic"):
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            connection.execute(f"CREATE VIEW {schema}.{name} AS SELECT * FROM main.{name}")
    return connection


def stored(tables: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The rows as preparation stores them: grid integers, days, microseconds."""
    steps = {"income": 1, "cost": 100, "dose_mg": 10}

    def value(name: str, raw: Any) -> Any:
        if isinstance(raw, datetime.datetime):
            return (raw - EPOCH) // datetime.timedelta(microseconds=1)
        if isinstance(raw, datetime.date):
            return (raw - EPOCH.date()).days
        return round(raw * steps[name]) if name in steps and raw is not None else raw

    units = {row["visit_id"]: row["patient_id"] for row in tables["visits"]}
    made = {table: [{name: value(name, raw) for name, raw in row.items()} for row in listed] for table, listed in tables.items()}
    for table in ("patients", "visits", "prescriptions"):
        for row in made[table]:
            row[UNIT] = row["patient_id"] if table != "prescriptions" else units[row["visit_id"]]
    return made


def relation_rows(relation: Relation, tables: dict[str, list[Row]]) -> list[Row]:
    """Rows of a relation."""
    match relation:
        case Scan(table):
            return tables[table]
        case Filter(source, predicate):
            holds = evaluator(predicate, shape_of(source, FACTS).columns).value
            return [row for row in relation_rows(source, tables) if holds(row) is True]
        case PublicJoin(source, table, on, columns, kind):
            return _joined(relation_rows(source, tables), tables[table], FACTS.public_table(table).key, _value(on, source), columns, kind)
        case Project(source, projected):
            values = [(name, _value(expression, source)) for name, expression in projected]
            return [{UNIT: row[UNIT], **{name: value(row) for name, value in values}} for row in relation_rows(source, tables)]
        case UnitJoin(left, right, kind=kind):
            return _unit_joined(relation_rows(left, tables), relation_rows(right, tables), _linked(relation), relation.columns, kind)
        case SemiJoin(source, other, negated=negated):
            others, linked = relation_rows(other, tables), _linked(relation)
            listed = relation_rows(source, tables)
            return [row for row in listed if any(linked(row, found) for found in others) is not negated]
        case Union(sources):
            return [row for source in sources for row in relation_rows(source, tables)]
        case PerUnit(source, aggregates, keys):
            return _per_unit(relation_rows(source, tables), source, aggregates, keys)
        case UnitWindow(source, windows):
            return windowed(relation_rows(source, tables), shape_of(source, FACTS).columns, windows)
        case _:
            assert_never(relation)


def _linked(join: UnitJoin | SemiJoin) -> Callable[[Row, Row], bool]:
    """Whether two rows belong together."""
    left, right = (join.left, join.right) if isinstance(join, UnitJoin) else (join.source, join.other)
    of_right = shape_of(right, FACTS).columns
    columns = {**shape_of(left, FACTS).columns, **{name: of_right[column] for name, column in join.columns}}
    where = None if join.where is None else evaluator(join.where, columns).value

    def linked(row: Row, other: Row) -> bool:
        equal = row[UNIT] == other[UNIT] and all(row[a] is not None and row[a] == other[b] for a, b in join.on)
        return equal and (where is None or where({**row, **{name: other[column] for name, column in join.columns}}) is True)

    return linked


def _unit_joined(
    left: list[Row], right: list[Row], linked: Callable[[Row, Row], bool], columns: tuple[tuple[str, str], ...], kind: JoinKind
) -> list[Row]:
    made = []
    for row in left:
        found: list[Row | None] = [other for other in right if linked(row, other)]
        for other in found or ([None] if kind is JoinKind.LEFT else []):
            made.append({**row, **{name: None if other is None else other[column] for name, column in columns}})
    return made


def _per_unit(
    listed: list[Row], source: Relation, aggregates: tuple[tuple[str, UnitAggregate], ...], keys: tuple[tuple[str, Expression], ...]
) -> list[Row]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    values = [_value(value, source) for _, value in keys]
    for row in listed:
        groups.setdefault((row[UNIT], *(value(row) for value in values)), []).append(row)
    names = (UNIT, *(name for name, _ in keys))
    return [
        {**dict(zip(names, group, strict=True)), **{name: _unit_value(one, own, source) for name, one in aggregates}}
        for group, own in groups.items()
    ]


def _unit_value(aggregate: UnitAggregate, own: list[Row], source: Relation) -> Any:
    if aggregate.value is None:
        return len(own)
    value = _value(aggregate.value, source)
    values = [found for row in own if (found := value(row)) is not None]
    match aggregate.kind:
        case UnitAggregateKind.COUNT:
            return len(values)
        case UnitAggregateKind.SUM:
            return sum(values) if values else None
        case UnitAggregateKind.MIN:
            return min(values, default=None)
        case UnitAggregateKind.MAX:
            return max(values, default=None)
        case UnitAggregateKind.ANY:
            return any(values) if values else None
        case _:
            assert_never(aggregate.kind)


def _joined(
    left: list[Row], right: list[Row], key: str, on: Callable[[Row], Any], columns: tuple[tuple[str, str], ...], kind: JoinKind
) -> list[Row]:
    by_key = {row[key]: row for row in right}
    made = []
    for row in left:
        found = by_key.get(on(row))
        if found is not None or kind is JoinKind.LEFT:
            made.append({**row, **{name: None if found is None else found[column] for name, column in columns}})
    return made


def _value(expression: Expression, source: Relation) -> Callable[[Row], Any]:
    return evaluator(expression, shape_of(source, FACTS).columns).value


def aggregate_value(aggregate: Aggregate, listed: list[Row], source: Relation) -> Any:
    """The exact aggregate over some rows."""
    columns = shape_of(source, FACTS).columns
    if aggregate.where is not None:
        holds = _value(aggregate.where, source)
        listed = [row for row in listed if holds(row) is True]
    if aggregate.kind is AggregateKind.COUNT_UNITS:
        return len({row[UNIT] for row in listed})
    if aggregate.value is None:
        return len(listed)
    if aggregate.second is not None:
        return _of_pairs(aggregate.kind, [evaluator(side, columns) for side in (aggregate.value, aggregate.second)], listed)
    found = evaluator(aggregate.value, columns)
    values = [value for row in listed if (value := found.value(row)) is not None]
    if aggregate.kind is AggregateKind.COUNT:
        return len(values)
    if aggregate.kind is AggregateKind.COUNT_DISTINCT:
        return len(set(values))
    if not values:
        return None
    if aggregate.kind in QUANTILES:
        return _quantile(aggregate, values, found)
    if aggregate.kind in _SPREADS:
        return _spread(aggregate.kind, [value / (found.steps or 1) for value in values])
    total = sum(values) if found.kind is Kind.INTEGER else math.fsum(values) / (found.steps or 1)
    return total / len(values) if aggregate.kind is AggregateKind.AVG else total


def _quantile(aggregate: Aggregate, values: list[Any], found: Evaluator) -> Any:
    """Interpolated, or the least row that at least the share of rows reach; dates as days, moments as microseconds."""
    share = {AggregateKind.MIN: Fraction(0), AggregateKind.MAX: Fraction(1)}.get(aggregate.kind, aggregate.share)
    assert share is not None
    ordered = sorted(values)
    if aggregate.kind is not AggregateKind.QUANTILE_CONT:
        chosen = ordered[max(math.ceil(share * len(ordered)) - 1, 0)]
        return chosen / found.steps if found.steps else chosen
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    low_value, high_value = (Fraction(ordered[index]) for index in (low, min(low + 1, len(ordered) - 1)))
    between = low_value + (place - low) * (high_value - low_value)
    if found.kind in (Kind.DATE, Kind.TIMESTAMP):
        return math.floor(between * (86_400_000_000 if found.kind is Kind.DATE else 1))
    return float(between / (found.steps or 1))


_SPREADS = {
    AggregateKind.VAR_SAMP: statistics.variance,
    AggregateKind.VAR_POP: statistics.pvariance,
    AggregateKind.STDDEV_SAMP: statistics.stdev,
    AggregateKind.STDDEV_POP: statistics.pstdev,
}


def _spread(kind: AggregateKind, values: list[float]) -> float | None:
    sample = kind in (AggregateKind.VAR_SAMP, AggregateKind.STDDEV_SAMP)
    return None if sample and len(values) < 2 else _SPREADS[kind](values)


def _of_pairs(kind: AggregateKind, sides: list[Evaluator], listed: list[Row]) -> float | None:
    """Aggregates of y and x over rows where neither is NULL."""
    rows = [[side.value(row) for side in sides] for row in listed]
    pairs = [[value / (side.steps or 1) for value, side in zip(row, sides, strict=True)] for row in rows if None not in row]
    sample = kind is AggregateKind.COVAR_SAMP
    if len(pairs) < (2 if sample or kind is AggregateKind.CORR else 1):
        return None
    ys, xs = ([pair[i] for pair in pairs] for i in (0, 1))
    if kind in (AggregateKind.COVAR_SAMP, AggregateKind.COVAR_POP):
        total = math.fsum((y - statistics.fmean(ys)) * (x - statistics.fmean(xs)) for y, x in pairs)
        return total / (len(pairs) - 1 if sample else len(pairs))
    if len(set(xs)) == 1 or (len(set(ys)) == 1 and kind is AggregateKind.CORR):
        return None
    fit = statistics.linear_regression(xs, ys)
    match kind:
        case AggregateKind.CORR:
            return statistics.correlation(xs, ys)
        case AggregateKind.REGR_SLOPE:
            return fit.slope
        case AggregateKind.REGR_INTERCEPT:
            return fit.intercept
        case _:
            assert kind is AggregateKind.REGR_R2
            return statistics.correlation(xs, ys) ** 2


def answer(statement: Statement, tables: dict[str, list[Row]]) -> list[tuple[Any, ...]]:
    """The exact answer of a bound statement, post-processing included."""
    table = post_process([_noisy(private, tables) for private in statement.privates], statement.post).table
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns, strict=True))


def _noisy(private: PrivateQuery, tables: dict[str, list[Row]]) -> pa.Table:
    listed = relation_rows(private.source, tables)
    keys = [evaluator(key, shape_of(private.source, FACTS).columns) for _, key in private.keys]
    groups: dict[tuple[Any, ...], list[Row]] = {group: [] for group in private.groups or (() if keys else ((),))}
    for row in listed:
        groups.setdefault(tuple(key.value(row) for key in keys), []).append(row)
    names, arrays = [], []
    every = tuple(range(len(keys)))
    shown: list[tuple[tuple[Any, ...], tuple[int, ...], list[Row]]] = []
    for level in private.levels or (every,):
        added: dict[tuple[Any, ...], list[Row]] = {}
        for group, members in groups.items():
            added.setdefault(tuple(group[i] if i in level else None for i in every), []).extend(members)
        shown += [(group, level, members) for group, members in added.items()]
    for i, key in enumerate(keys):
        values = [group[i] / key.steps if key.steps and group[i] is not None else group[i] for group, _, _ in shown]
        arrays.append(typed_array(values, key.kind))
        names.append(f"k{i}")
    for i in every if private.levels is not None else ():
        arrays.append(pa.array([int(i not in level) for _, level, _ in shown], pa.int64()))
        names.append(f"g{i}")
    for i, aggregate in enumerate(private.aggregates):
        computed = [aggregate_value(aggregate, rows, private.source) for _, _, rows in shown]
        if aggregate.kind in QUANTILES and aggregate.value is not None:
            value_kind = evaluator(aggregate.value, shape_of(private.source, FACTS).columns).kind
            arrays.append(typed_array(computed, quantile_kind(aggregate.kind, value_kind)))
        else:
            whole = all(isinstance(value, int) for value in computed)
            arrays.append(pa.array(computed, pa.int64() if whole else pa.float64()))
        arrays.append(pa.array([0] * len(shown), pa.int64()))  # nothing here is noise, so nothing is marked
        names += [f"a{i}", f"m{i}"]
    return pa.table(arrays, names=names)


def comparable(value: Any) -> Any:
    """Values of both sides in one form: a date is its midnight, what is no number is NULL, numbers are floats."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, datetime.date):
        return datetime.datetime.combine(value, datetime.time())
    return float(value) + 0.0 if math.isfinite(value) else None


def same(left: list[tuple[Any, ...]], right: list[tuple[Any, ...]], *, ordered: bool) -> bool:
    """Whether two answers agree, in any order unless ``ordered``; sums of doubles in another order may differ in the last bits."""
    one, other = ([tuple(comparable(value) for value in row) for row in listed] for listed in (left, right))
    if not ordered:
        one, other = sorted(one, key=_coarse), sorted(other, key=_coarse)
    return len(one) == len(other) and all(map(_close, one, other))


def _coarse(row: tuple[Any, ...]) -> tuple[str, ...]:
    """Exact values first, then numbers to a few digits: enough to put both sides into one order."""
    exact = [repr(value) for value in row if not isinstance(value, float)]
    return (*exact, *(f"{value:.5g}" for value in row if isinstance(value, float)))


def _close(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    pairs = zip(left, right, strict=True)
    return all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) if isinstance(a, float) and isinstance(b, float) else a == b for a, b in pairs
    )
