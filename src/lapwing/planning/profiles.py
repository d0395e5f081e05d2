"""The profiles of a table, which preparation buys: units by their rows, and by the sum of each of its measures.

Statements about the whole table have these very norms, so their bounds need no histogram of their own. A profile counts the rows of one
version. It affects accuracy only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from lapwing.contribution.histograms import histogram_of, name_of, norms_of, norms_of_rows, norms_plan
from lapwing.contribution.model import NormHistogram
from lapwing.contribution.rows_per_unit import DEVIATION_LEAST, UNITS, bin_edges, histogram_plan
from lapwing.errors import Refused
from lapwing.kernel.certify import derived_queries
from lapwing.kernel.domains import Domain, IntegerDomain, bounds, is_numeric
from lapwing.kernel.expressions import Column
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Measure, Plan, Query, RowCount, Scan, UnitNorms
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.release import Released
from lapwing.kernel.stability import shape_of
from lapwing.planning.grids import count_of, grid_of
from lapwing.spread import variance

PROFILES_MAX = 8
"""Most profiles of a table, that of its rows included: they share a price."""
MEASURE_VALUES_MIN = 100
"""A column of integers with fewer possible values is a key or a flag, not a measure."""


def profile_plan(table: str, facts: Facts, *, loss: Fraction) -> Plan:
    """The plan that buys all profiles of a table, together for ``loss``."""
    return _plan(table, _norms_of_measures(_whole(table, facts), facts), facts, loss=loss)


def _whole(table: str, facts: Facts) -> Scan:
    return Scan(table, facts.table(table).rows_per_unit_max)


def _plan(table: str, norms: Sequence[UnitNorms], facts: Facts, *, loss: Fraction) -> Plan:
    each = loss / (1 + len(norms))
    rows = histogram_plan(table, facts, loss=each)
    return Plan((*rows.queries, *_histograms(norms, facts, loss=each)))


def _histograms(norms: Sequence[UnitNorms], facts: Facts, *, loss: Fraction) -> list[Query]:
    """A query for each, at this loss."""
    return [query for one in norms for query in norms_plan(one, facts, loss=loss).queries]


def block_norms(table: str, block: int, facts: Facts) -> tuple[UnitNorms, ...]:
    """What is profiled of a block of time: units by their rows in it, and by the sum of each measure."""
    known = facts.table(table)
    scan = Scan(table, known.rows_per_unit_max, known.blocks_between(block, block))
    return norms_of_rows(scan, facts), *_norms_of_measures(scan, facts)


def block_profile_plan(table: str, block: int, facts: Facts, *, loss: Fraction) -> Plan:
    """The plan that buys the profiles of a block, together for ``loss``."""
    norms = block_norms(table, block, facts)
    return Plan(tuple(_histograms(norms, facts, loss=loss / len(norms))))


def profile_figures(table: str, facts: Facts, released: Released) -> dict[str, Any]:
    """Released profiles as the state directory keeps them, with the version whose rows they count."""
    rows, *others = released.tables
    edges, column = bin_edges(facts.table(table).rows_per_unit_max), rows.column(UNITS)
    deviation, is_laplace = math.sqrt(variance(column.law)), isinstance(column.law, DiscreteLaplace)
    noisy = tuple(float(value) for value in column.values)
    of_rows = NormHistogram(tuple(map(float, edges)), noisy, max(deviation, DEVIATION_LEAST), whole=1, laplace=is_laplace)
    measured = zip(_norms_of_measures(_whole(table, facts), facts), others, strict=True)
    return {
        "edges": list(edges),
        "noisy": list(column.values),
        "deviation": deviation,
        "version": facts.version,
        "profiles": {
            name_of(norms_of_rows(Scan(table, facts.table(table).rows_per_unit_max), facts)): asdict(of_rows),
            **{name_of(norms): asdict(histogram_of(norms, one, facts)) for norms, one in measured},
        },
    }


def profiles_of(statistics: Mapping[str, Mapping[str, Any]], facts: Facts) -> dict[str, NormHistogram]:
    """Profiles by the name of their norms: those of this version, because another version has other rows."""
    of_version = [kept for kept in statistics.values() if kept.get("version") == facts.version]
    return {name: _histogram(fields) for kept in of_version for name, fields in kept["profiles"].items()}


def _histogram(fields: Mapping[str, Any]) -> NormHistogram:
    return NormHistogram(**{**fields, "edges": tuple(fields["edges"]), "noisy": tuple(fields["noisy"])})


def _norms_of_measures(scan: Scan, facts: Facts) -> tuple[UnitNorms, ...]:
    """The norms of the sum of each measure, and of the count of its values where it may be NULL."""
    shape = shape_of(scan, facts)
    found: list[UnitNorms] = []
    for name, domain in facts.table(scan.table).columns.items():
        if not _is_measure(domain):
            continue
        grid = grid_of(Column(name), shape)
        count = count_of(grid.value, shape)
        measures: tuple[Measure, ...] = (grid,) if count == RowCount() else (grid, count)
        of_column = [norms_of(scan, (), measure, shape, rules=facts.planning_rules) for measure in measures]
        if len(found) + len(of_column) < PROFILES_MAX and _can_be_measured(scan, [*found, *of_column], facts):
            found += of_column
    return tuple(found)


def _is_measure(domain: Domain) -> bool:
    if not is_numeric(domain):
        return False
    lower, upper = bounds(domain)
    return not isinstance(domain, IntegerDomain) or upper - lower >= MEASURE_VALUES_MIN


def _can_be_measured(scan: Scan, norms: Sequence[UnitNorms], facts: Facts) -> bool:
    """Whether they can be bought in one plan.

    The sum of a unit's rows may be too large for the integers of the engine, or the rows too many to be added up so many times.
    """
    try:
        one = Fraction(1)
        rows = (
            _histograms([norms_of_rows(scan, facts)], facts, loss=one)
            if scan.blocks
            else histogram_plan(scan.table, facts, loss=one).queries
        )
        derived_queries(Plan((*rows, *_histograms(norms, facts, loss=one))), facts)
    except Refused as error:
        if error.code not in ("range-too-wide", "unit-size", "unit-work"):
            raise
        return False
    return True
