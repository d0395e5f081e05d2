"""Certified queries to SQL: the bounding plans.

Every statement gives one row per group: the keys, one exact integer per vector and, for discovered groups, the number of units. The order
is always: input (keys and values per row) -> cells (per unit and group, where the plan needs them) -> bound -> sum over units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.certify import Certified, CertifiedQuery
from lapwing.kernel.domains import DateDomain, Domain, IntegerDomain, TimestampDomain
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import (
    Cap,
    Clipped,
    DiscoveredGroups,
    DistinctCount,
    Follow,
    GridSum,
    Grouped,
    QuantileSet,
    Ranked,
    RowCount,
    UnitCount,
    Vector,
    Weighted,
)
from lapwing.kernel.row_ranges import row_range
from lapwing.kernel.selections import quantile_bounds
from lapwing.kernel.stability import domain_of
from lapwing.render.cells import CellInputs, cells_of, row_value
from lapwing.render.dialect import GROUP_SALT, Dialect, double_literal
from lapwing.render.encoding import encoded
from lapwing.render.expressions import SQL_BYTES_MAX, VisibleColumns, as_double, clamped, gridded, render_expression
from lapwing.render.key_weights import NUMBER_OF_GROUPS, checked_weight, weight_at_most
from lapwing.render.norms import render_source
from lapwing.render.relations import ROWS, UNIT

BYTES_PER_PART = 8
"""Bytes of SQL that count as one part of an expression."""


@dataclass(frozen=True, slots=True)
class RenderedQuantiles:
    """SQL of one set of quantiles, and the domain its integers are read with."""

    sql: str
    domain: Domain


@dataclass(frozen=True, slots=True)
class RenderedQuery:
    """SQL of one query. Columns: k0.., v0.., and ``units`` when groups are discovered. ``salted``: it has the
    group salt as a parameter.

    ``quantiles`` has one statement per set of quantiles: k0.., the grid integer, the number of rows. Where there is nothing else to measure
    ``sql`` is empty.
    """

    sql: str
    key_domains: tuple[Domain, ...]
    vectors: int
    discovered: bool
    salted: bool
    quantiles: tuple[RenderedQuantiles, ...] = ()


def render_plan(certified: Certified, dialect: Dialect) -> tuple[RenderedQuery, ...]:
    """SQL of every query of a certified plan. Refuses a plan that becomes too much for an engine once it is written out."""
    # With tables by name: a virtual one is a long text, and the same in every statement.
    by_name, apart = replace(dialect, table=dialect.quoted), not _is_read_in_place(certified.facts, dialect)
    named = _rendered(certified, by_name, apart=apart)
    try:
        require_bounded_sql(certified, named)
    except Refused:
        # Units of few rows apart are read by a text of their own; without that, the statement is shorter.
        apart, named = False, _rendered(certified, by_name, apart=False)
        require_bounded_sql(certified, named)
    return named if dialect.table is dialect.quoted else _rendered(certified, dialect, apart=apart)


def _is_read_in_place(facts: Facts, dialect: Dialect) -> bool:
    """Whether some table is prepared in the very statement: reading it twice would prepare it twice."""
    return any(dialect.table(name).startswith("(") for name in facts.tables)


def _rendered(certified: Certified, dialect: Dialect, *, apart: bool) -> tuple[RenderedQuery, ...]:
    return tuple(_render_query(query, certified.facts, dialect, apart=apart) for query in certified.queries)


def require_bounded_sql(certified: Certified, rendered: tuple[RenderedQuery, ...]) -> None:
    """Guards of functions repeat their arguments, which the kernel does not see: what counts in the end is how long the SQL is.

    Each byte of it is computed at most once for each of a unit's rows. Depends on the plan and public facts only, before any charge.
    """
    lengths = [len(query.sql) + sum(len(item.sql) for item in query.quantiles) for query in rendered]
    if sum(lengths) > SQL_BYTES_MAX:
        raise Refused("statement-too-large", "the statement becomes too large for an engine")
    work = sum(length * query.shape.widest for length, query in zip(lengths, certified.queries, strict=True))
    limit = BYTES_PER_PART * certified.facts.limits.work
    if work > limit:
        message = "what is computed for the rows of one unit is too much, written out for the engine"
        raise Refused("unit-work", message, hint="ask for less in one statement, or join fewer rows of one unit")


def _render_query(certified: CertifiedQuery, facts: Facts, dialect: Dialect, *, apart: bool) -> RenderedQuery:
    query = certified.query
    rows = _Input(certified, facts, dialect, apart=apart)
    match query.bounding:
        case Ranked() if rows.spread_bits is not None:
            sql, salted = _summed(rows, 0, rows.spread_bits), False
        case Ranked() | Weighted():
            sql, salted = rows.flat(), False
        case Clipped(bits):
            sql, salted = _clipped(rows, bits), False
        case Grouped():
            salted = needs_choice(certified)
            sql = _grouped(rows, certified.groups_per_unit if salted else None)
        case _:
            assert_never(query.bounding)
    domains = tuple(domain_of(key, certified.shape.columns) for _, key in query.keys)
    discovered = isinstance(query.groups, DiscoveredGroups)
    if not query.vectors and not discovered:
        sql = ""
    quantiles = tuple(_quantiles(item.quantiles, certified, facts, dialect) for item in certified.quantiles)
    return RenderedQuery(sql, domains, len(query.vectors), discovered, salted, quantiles)


def _quantiles(item: QuantileSet, certified: CertifiedQuery, facts: Facts, dialect: Dialect) -> RenderedQuantiles:
    """Rows by group and grid integer. A unit's rows are bounded by the relation, and no value can make a row count twice."""
    query, scope = certified.query, VisibleColumns(certified.shape.columns, "t", dialect)
    domain = domain_of(item.value, certified.shape.columns)
    listed = [f"{render_expression(key, scope)} AS k{i}" for i, (_, key) in enumerate(query.keys)]
    if isinstance(domain, DateDomain | TimestampDomain):
        value = render_expression(item.value, scope)
    else:
        lower, upper = quantile_bounds(item, domain)
        value, domain = (
            gridded(as_double(item.value, scope), steps=item.steps, lo=lower, hi=upper, dialect=dialect),
            IntegerDomain(lower, upper),
        )
    rows = f"SELECT {', '.join([*listed, f'{value} AS x'])} FROM ({render_source(query.source, facts, dialect)}) t"
    columns = ", ".join([*(f"i.k{i}" for i in range(len(query.keys))), "i.x"])
    return RenderedQuantiles(f"SELECT {columns}, COUNT(*) AS n FROM ({rows}) i WHERE i.x IS NOT NULL GROUP BY {columns}", domain)


def needs_choice(certified: CertifiedQuery) -> bool:
    """Whether a unit can have more groups than it may keep."""
    groups = certified.query.groups
    most = certified.shape.rows_per_unit
    if not isinstance(groups, DiscoveredGroups) and not certified.query.keys:
        most = 1
    return most > certified.groups_per_unit


class _Input:
    """The per-row input of a query: unit, keys k0.., values x0.. of sums and distinct counts, conditions as 0/1 integers."""

    def __init__(self, certified: CertifiedQuery, facts: Facts, dialect: Dialect, *, apart: bool = True) -> None:
        self.certified = certified
        self.dialect = dialect
        self.query = certified.query
        self.never_scaled = rows_never_scaled(certified) if apart else 0
        """Units with at most so many rows in their table are below every cap, and rows say how many theirs has; 0 where they do not."""
        with_rows = isinstance(self.query.bounding, Weighted) or self.never_scaled > 0
        scope = VisibleColumns(certified.shape.columns, "t", dialect)
        self.inputs = CellInputs(self.query.source, certified.shape.columns, dialect)
        listed = [f"t.{UNIT}"]
        listed += [f"{render_expression(key, scope)} AS k{i}" for i, (_, key) in enumerate(self.query.keys)]
        listed += [f"{sql} AS x{i}" for i, v in enumerate(self.query.vectors) if (sql := row_value(v.measure, scope)) is not None]
        if isinstance(self.query.bounding, Weighted):
            listed.append(f"t.{ROWS}")
        self.sql = f"SELECT {', '.join(listed)} FROM ({render_source(self.query.source, facts, dialect, rows=with_rows)}) t"
        self.keys = [f"k{i}" for i in range(len(self.query.keys))]
        groups = self.query.groups
        self.spread_bits = groups.spread_bits if isinstance(groups, DiscoveredGroups) else None

    def flat(self) -> str:
        """Ranked and weighted plans: one GROUP BY, no shuffle on the unit."""
        weight = _weight(self.query.bounding, self.dialect) if isinstance(self.query.bounding, Weighted) else None
        columns = [f"{self._flat_vector(i, v, weight)} AS v{i}" for i, v in enumerate(self.query.vectors)]
        if isinstance(self.query.groups, DiscoveredGroups):
            columns.append(f"COUNT(DISTINCT i.{UNIT}) AS units")
        return self.grouped_select(columns, f"({self.sql}) i", "i")

    def flat_units(self, shift: int) -> str:
        """Units that no cap scales down: what their rows add up to by group, times 2^shift as in ``cells``."""
        columns = []
        for i, vector in enumerate(self.query.vectors):
            total = self._flat_vector(i, vector, None)
            total = f"CAST({total} AS {self.dialect.integer})" if isinstance(vector.measure, GridSum) else total
            columns.append(f"{total}{_finer(vector, shift)} AS v{i}")
        return self.grouped_select(columns, f"({self.sql} WHERE {few_rows('t', self.never_scaled)}) i", "i")

    def _flat_vector(self, i: int, vector: Vector, weight: str | None) -> str:
        measure = vector.measure
        match measure:
            case RowCount(where):
                if weight is not None:
                    return _total(weight if where is None else f"CASE WHEN i.x{i} = 1 THEN {weight} END", self.dialect)
                return "COUNT(*)" if where is None else f"COUNT(CASE WHEN i.x{i} = 1 THEN 1 END)"
            case UnitCount(where):
                return f"COUNT(DISTINCT i.{UNIT})" if where is None else f"COUNT(DISTINCT CASE WHEN i.x{i} = 1 THEN i.{UNIT} END)"
            case DistinctCount():
                return f"COUNT(DISTINCT i.x{i})"
            case GridSum():
                value = self.inputs.integers(f"i.x{i}", measure)
                return _total(value if weight is None else f"{weight} * {value}", self.dialect)
            case _:
                assert_never(measure)

    def cells(self, shift: int) -> str:
        """One row per unit and group, with its exact cell of every vector in c0.., times 2^shift (but units that have no bound).

        Where units that are never scaled are added up apart, of the other units alone.
        """
        columns = []
        for i, vector in enumerate(self.query.vectors):
            columns.append(f"{self.inputs.cell(f'i.x{i}', vector.measure, 0)}{_finer(vector, shift)} AS c{i}")
        many = f" WHERE NOT ({few_rows('t', self.never_scaled)})" if self.never_scaled else ""
        return cells_of(f"{self.sql}{many}", self.keys, columns)

    def grouped_select(self, columns: list[str], source: str, alias: str) -> str:
        """SELECT keys and columns FROM source GROUP BY keys."""
        keys = ", ".join(f"{alias}.{key}" for key in self.keys)
        listed = ", ".join([*([keys] if keys else []), *columns])
        return f"SELECT {listed} FROM {source}" + (f" GROUP BY {keys}" if keys else "")


def _finer(vector: Vector, shift: int) -> str:
    """The factor that puts whole numbers on the finer grid of clipping; units that have no bound stay whole."""
    return "" if not shift or (isinstance(vector.measure, UnitCount) and vector.bound is None) else f" * {2**shift}"


def few_rows(alias: str, rows: int) -> str:
    """Whether a row's unit has so few rows in its table that no cap can bind."""
    return f"{alias}.{ROWS} <= {rows}"


def rows_never_scaled(certified: CertifiedQuery) -> int:
    """As many rows of a unit as are below every cap of a clipped query, whatever they hold; 0 where that does not help.

    A unit with n rows has a norm of at most n times the largest that a row adds (docs/proofs/clipping.md, Claim 4).
    """
    query, shape = certified.query, certified.shape
    spread = isinstance(query.groups, DiscoveredGroups)
    if not isinstance(query.bounding, Clipped) or spread or not shape.weighable:
        return 0
    caps = [(vector.bound.limit, vector.measure) for vector in query.vectors if isinstance(vector.bound, Cap)]
    one = 2**query.bounding.bits
    return min((limit // (max(row_range(measure, shape.columns)[0].magnitude, 1) * one) for limit, measure in caps), default=0)


def _total(value: str, dialect: Dialect) -> str:
    return f"COALESCE({dialect.total(value)}, 0)"


def _weight(bounding: Weighted, dialect: Dialect) -> str:
    """floor(2^bits * min(1, rows / rows of the unit)) in integers; rounded down, so a unit never weighs more than rows * 2^bits."""
    one = 2**bounding.bits
    share = dialect.quotient(f"CAST({bounding.rows * one} AS {dialect.integer})", f"i.{ROWS}")
    return f"(CASE WHEN i.{ROWS} <= {bounding.rows} THEN {one} ELSE {share} END)"


def _clipped(rows: _Input, bits: int) -> str:
    """Scale each unit's vector by C / r with an integer r that is checked, in integers, to be at least the vector's norm.

    Then |scaled cell| <= |cell| * C / r, so the norm is at most C: privacy rests on ``r * r >= sum of squares`` alone
    (docs/proofs/clipping.md).
    """
    vectors, dialect = rows.query.vectors, rows.dialect
    capped = [(i, v.bound.limit) for i, v in enumerate(vectors) if isinstance(v.bound, Cap)]
    squares = ", ".join(f"{dialect.total(_square(f'c{i}', dialect))} AS q{i}" for i, _ in capped)
    if not capped:
        return _summed(rows, bits, rows.spread_bits)
    norms = ", ".join(f"{norm_at_least(f'q{i}', dialect)} AS r{i}" for i, _ in capped)
    kept = ", ".join(f"q{i}" for i, _ in capped)
    columns = [f"{_total(_scaled(i, v, rows, dialect), dialect)} AS v{i}" for i, v in enumerate(vectors)]
    if rows.spread_bits is not None:
        squares, kept = f"{squares}, {NUMBER_OF_GROUPS}", f"{kept}, d, {weight_at_most('d', rows.spread_bits, dialect)} AS w"
        columns.append(_weights(rows.spread_bits, dialect))
    units = f"SELECT {UNIT}, {kept}, {norms} FROM (SELECT {UNIT}, {squares} FROM cells GROUP BY {UNIT}) s"
    body = rows.grouped_select(columns, f"cells c JOIN ({units}) u ON c.{UNIT} = u.{UNIT}", "c")
    if rows.never_scaled:
        both = [f"{_total(f'b.v{i}', dialect)} AS v{i}" for i in range(len(vectors))]
        body = rows.grouped_select(both, f"({rows.flat_units(bits)} UNION ALL {body}) b", "b")
    return f"WITH cells AS {dialect.materialised}({rows.cells(bits)}) {body}"


def _summed(rows: _Input, shift: int, spread_bits: int | None) -> str:
    """All cells as they are, added up by group; with the weights of units where they find the groups."""
    columns = [f"{_total(f'c.c{i}', rows.dialect)} AS v{i}" for i in range(len(rows.query.vectors))]
    if spread_bits is None:
        return rows.grouped_select(columns, f"({rows.cells(shift)}) c", "c")
    body = rows.grouped_select([*columns, _weights(spread_bits, rows.dialect)], f"cells c {_joined_weights(rows, spread_bits)}", "c")
    return f"WITH cells AS {rows.dialect.materialised}({rows.cells(shift)}) {body}"


def _weights(bits: int, dialect: Dialect) -> str:
    """The output column that decides which groups are shown."""
    return f"{_total(checked_weight('u.d', 'u.w', bits), dialect)} AS units"


def _joined_weights(rows: _Input, bits: int, *, groups_kept: int | None = None) -> str:
    """JOIN of each unit's number of groups d (as many as it keeps) and its weight w; ``cells`` has one row per unit and group."""
    units = f"SELECT {UNIT}, {NUMBER_OF_GROUPS} FROM cells GROUP BY {UNIT}"
    kept = "n.d" if groups_kept is None else f"least(n.d, {groups_kept})"
    proposed = (
        f"SELECT s.{UNIT}, s.d, {weight_at_most('s.d', bits, rows.dialect)} AS w FROM (SELECT n.{UNIT}, {kept} AS d FROM ({units}) n) s"
    )
    return f"JOIN ({proposed}) u ON c.{UNIT} = u.{UNIT}"


def _square(cell: str, dialect: Dialect) -> str:
    return f"{_wide(cell, dialect)} * {cell}"


def _wide(sql: str, dialect: Dialect) -> str:
    return f"CAST({sql} AS {dialect.wide_integer})"


def _scaled(i: int, vector: Vector, rows: _Input, dialect: Dialect) -> str:
    match vector.bound:
        case Cap(limit, None):
            return scaled_cell(f"c.c{i}", square=f"u.q{i}", norm=f"u.r{i}", limit=limit, dialect=dialect)
        case Cap(limit, alike):
            j, other = next((j, v.bound) for j, v in enumerate(rows.query.vectors) if v.name == alike)
            assert isinstance(other, Cap)
            return alike_cell(f"c.c{i}", (f"u.q{i}", f"u.r{i}", limit), (f"u.q{j}", f"u.r{j}", other.limit), dialect)
        case Follow(name):
            leader = next(j for j, v in enumerate(rows.query.vectors) if v.name == name)
            bound = rows.query.vectors[leader].bound
            assert isinstance(bound, Cap)
            return scaled_cell(f"c.c{i}", square=f"u.q{leader}", norm=f"u.r{leader}", limit=bound.limit, dialect=dialect)
        case _:
            return f"c.c{i}"


def scaled_cell(cell: str, *, square: str, norm: str, limit: int, dialect: Dialect) -> str:
    """cell, or trunc(cell * limit / norm) where the unit's norm exceeds the limit; 0 where the integer check fails."""
    scaled = dialect.quotient(f"({_wide(cell, dialect)} * {limit})", norm)
    small = f"{square} <= {_wide(str(limit), dialect)} * {limit}"
    return f"CASE WHEN {small} THEN {_wide(cell, dialect)} WHEN {norm_check(norm, square)} THEN {scaled} ELSE 0 END"


def alike_cell(cell: str, own: tuple[str, str, int], other: tuple[str, str, int], dialect: Dialect) -> str:
    """cell, scaled by the smaller of two factors limit / norm of its unit; 0 where an integer check fails. Each is (square, norm, limit).

    The factor is never above the vector's own, nor above 1, so its norm is at most its own limit.
    """
    (square, norm, limit), (other_square, other_norm, other_limit) = own, other
    small = f"{square} <= {_wide(str(limit), dialect)} * {limit}"
    other_small = f"{other_square} <= {_wide(str(other_limit), dialect)} * {other_limit}"
    checked = f"{norm_check(norm, square)} AND {norm_check(other_norm, other_square)}"
    smaller = f"{_wide(str(limit), dialect)} * {other_norm} <= {_wide(str(other_limit), dialect)} * {norm}"
    by_own = f"NOT ({small}) AND ({other_small} OR {smaller})"
    factors = ((limit, norm), (other_limit, other_norm))
    scaled, other_scaled = (dialect.quotient(f"({_wide(cell, dialect)} * {most})", by) for most, by in factors)
    return (
        f"CASE WHEN {small} AND {other_small} THEN {_wide(cell, dialect)} WHEN NOT ({checked}) THEN 0 "
        f"WHEN {by_own} THEN {scaled} ELSE {other_scaled} END"
    )


def norm_at_least(square: str, dialect: Dialect) -> str:
    """An integer a little above the square root, proposed by a double; only ``norm_check`` is trusted."""
    larger = double_literal(1.000000000001, dialect.double)
    return f"{dialect.whole_as_wide(f'ceil(sqrt({dialect.wide_as_double(square)}) * {larger})', dialect.wide_integer)} + 1"


def norm_check(norm: str, square: str) -> str:
    """The integer check that clipping rests on."""
    return f"{norm} * {norm} >= {square}"


def _grouped(rows: _Input, groups_kept: int | None) -> str:
    """Clamp each cell; where a unit can have too many groups keep ``groups_kept`` of them by keyed hash of (unit, group)."""
    named, source = "", f"({rows.cells(0)}) c"
    if groups_kept is not None:
        named, source = _chosen(rows, groups_kept)
    columns = []
    for i, vector in enumerate(rows.query.vectors):
        value = clamped(f"c.c{i}", lo=-vector.bound.limit, hi=vector.bound.limit) if isinstance(vector.bound, Cap) else f"c.c{i}"
        columns.append(f"{_total(value, rows.dialect)} AS v{i}")
    if rows.spread_bits is not None:
        columns.append(_weights(rows.spread_bits, rows.dialect))
        if groups_kept is None:
            named, source = f"WITH cells AS {rows.dialect.materialised}({rows.cells(0)}) ", "cells c"
        source += f" {_joined_weights(rows, rows.spread_bits, groups_kept=groups_kept)}"
    elif isinstance(rows.query.groups, DiscoveredGroups):
        # one row per unit and group here: rows are units
        columns.append("COUNT(*) AS units")
    return named + rows.grouped_select(columns, source, "c")


def _chosen(rows: _Input, groups_kept: int) -> tuple[str, str]:
    """The WITH clause, and the cells that remain when each unit keeps ``groups_kept`` groups.

    Only crowded units, those that have more groups, are hashed and numbered: that costs more than all the rest, and after a filter few
    units are crowded. A unit is either crowded or not with all of its cells, so it keeps all of at most ``groups_kept`` or the first
    ``groups_kept``: the same cells as if all units were numbered.
    """
    columns = [UNIT, *rows.keys, *(f"c{i}" for i in range(len(rows.query.vectors)))]
    listed, picked = (", ".join(f"{alias}.{column}" for column in columns) for alias in ("c", "p"))
    order = rows.dialect.keyed_hash(rows.dialect.parameter(GROUP_SALT), _choice_text(rows))
    crowded = f"SELECT c.{UNIT} FROM cells c GROUP BY c.{UNIT} HAVING {crowded_predicate(groups_kept)}"
    is_crowded = f"EXISTS (SELECT 1 FROM crowded w WHERE w.{UNIT} = c.{UNIT})"
    numbered = f"SELECT {listed}, ROW_NUMBER() OVER (PARTITION BY c.{UNIT} ORDER BY {order}) AS pick FROM cells c WHERE {is_crowded}"
    some = f"SELECT {picked} FROM ({numbered}) p WHERE {choice_predicate(groups_kept)}"
    every = f"SELECT {listed} FROM cells c WHERE NOT {is_crowded}"
    once = rows.dialect.materialised
    return f"WITH cells AS {once}({rows.cells(0)}), crowded AS {once}({crowded}) ", f"({every} UNION ALL {some}) c"


def crowded_predicate(groups_kept: int) -> str:
    """Whether a unit has more groups than it may keep."""
    return f"COUNT(*) > {groups_kept}"


def choice_predicate(groups_kept: int) -> str:
    """The group limit of a unit."""
    return f"p.pick <= {groups_kept}"


def _choice_text(rows: _Input) -> str:
    """What is hashed with the group salt: the unit, and the keys by their domains."""
    dialect, columns = rows.dialect, rows.certified.shape.columns
    keys = (encoded(f"c.{name}", domain_of(key, columns), dialect) for name, (_, key) in zip(rows.keys, rows.query.keys, strict=True))
    return " || ',' || ".join([f"CAST(c.{UNIT} AS {dialect.text})", *keys])
