"""Lapwing and bare DuckDB side by side on one data set whose bounds do not bind, with so large a budget that noise is 0.

How huge: a statement is asked at the least epsilon of ``EPSILONS`` at which the chance that any of its noise draws is not 0, computed
from the laws of its own plan, is at most ``CHANCE_OF_NOISE``; then counts and sums of integers must be equal and other values agree to
1e-9. That takes 10^6 to 3 * 10^8 here. A sum of a *computed* real (``SUM(cost * 1.19)``) lives on a grid of a millionth, where even the
largest epsilon leaves some noise: there the difference must be within what the law of its noise explains at confidence ``SURE``, plus the
rounding of each row to the grid.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, assert_never

import duckdb

import lapwing as lw
from lapwing.asking.ask import plan_of
from lapwing.kernel.certify import Certified, CertifiedQuery, CertifiedVector
from lapwing.kernel.domains import RealDomain
from lapwing.kernel.ir import (
    Clipped,
    DiscoveredGroups,
    Filter,
    GridSum,
    KnownGroups,
    PerUnit,
    Project,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    SemiJoin,
    Union,
    UnitJoin,
    UnitNorms,
    UnitWindow,
)
from lapwing.kernel.laws import DiscreteLaplace, Law, tail_upper
from lapwing.kernel.stability import domain_of
from lapwing.planning.measures import AverageMeasure, SumMeasure
from lapwing.planning.planned import PlannedStatement
from lapwing.spread import half_width
from lapwing.statements import LinearOutput, Statement
from tests.properties import limit_world
from tests.support.sql_pieces import Generated

BUDGET = 10**9
EPSILONS = (10**6, 3 * 10**6, 10**7, 3 * 10**7, 10**8, 3 * 10**8)
SURE_BARS = 4
"""Noise is not this many times as large as an error bar of 95 %: once in 10^14."""
CHANCE_OF_NOISE = Fraction(1, 10**12)
SURE = Fraction(10**12 - 1, 10**12)
ROWS = 500
"""More rows than any table has."""
JOINED_ROWS = 10_000
"""More rows than any join of three tables has here."""


class TooNoisy(Exception):
    """Even the largest epsilon leaves noise."""


Named = tuple[int, str]
"""A vector: the number of its query, and its name there."""


def chances_of_noise(certified: Certified) -> dict[Named, Fraction]:
    """For each vector, and for the keys, at least the chance that some noise draw is not 0; discovered groups number at most the rows."""
    found: dict[Named, Fraction] = {}
    for number, query in enumerate(certified.queries):
        groups = query.query.groups
        cells = len(groups.groups) if isinstance(groups, KnownGroups) else min(query.shape.rows_max, JOINED_ROWS)
        laws = {vector.vector.name: vector.vector.law for vector in query.vectors}
        found |= {(number, name): 2 * cells * tail_upper(law, 1) for name, law in laws.items()}
        if isinstance(groups, DiscoveredGroups):
            found[number, "keys"] = 2 * cells * tail_upper(groups.law, margin(groups))
    return found


def margin(groups: DiscoveredGroups) -> int:
    """Noise of the keys below this decides nothing: units are whole, and a weight that is nearer to the threshold is not compared."""
    return 1 if groups.spread_bits is None else 2**groups.spread_bits // 64


def key_weights(units: Mapping[tuple[Any, ...], list[Any] | None], groups: DiscoveredGroups) -> dict[tuple[Any, ...], int]:
    """What decides whether each group is shown, from the units it has."""
    listed = {key: {unit for unit in some if unit is not None} for key, some in units.items() if some is not None}
    if groups.spread_bits is None:
        return {key: len(some) for key, some in listed.items()}
    numbers = Counter(unit for some in listed.values() for unit in some)
    return {key: sum(math.isqrt(4**groups.spread_bits // numbers[unit]) for unit in some) for key, some in listed.items()}


def exact_laws(certified: Certified) -> list[Law]:
    """Laws of all vectors but computed reals."""
    return [v.vector.law for query in certified.queries for v in query.vectors if v.vector.name not in _computed(query)]


def _factor(law: Law) -> float:
    """How many times the epsilon is about what makes this law silent; only a first guess."""
    return float(law.scale) * 38 if isinstance(law, DiscreteLaplace) else float(law.scale) ** 2 * 76


def _computed(query: CertifiedQuery) -> set[str]:
    sums = {v.vector.name: v.vector.measure.value for v in query.vectors if isinstance(v.vector.measure, GridSum)}
    domains = {name: domain_of(value, query.shape.columns) for name, value in sums.items()}
    return {name for name, domain in domains.items() if isinstance(domain, RealDomain) and domain.steps is None}


def computed_reals(certified: Certified) -> set[Named]:
    """Vectors that add up a computed real."""
    return {(number, name) for number, query in enumerate(certified.queries) for name in _computed(query)}


def rounded_away(certified: Certified) -> set[Named]:
    """Vectors of a clipped plan, which counts in 1/1024 of a row, whose noise is lost when the answer is rounded to whole numbers."""
    clipped = [(number, query) for number, query in enumerate(certified.queries) if isinstance(query.query.bounding, Clipped)]
    return {(number, v.vector.name) for number, query in clipped for v in query.vectors if tolerance(v, rows=0) < 0.5}


def rows_of_a_unit(relation: Relation) -> int:
    """At most so many rows has any unit of the limit world in a relation, whatever its scans allow."""
    match relation:
        case Scan(table):
            return limit_world.MOST_ROWS[table]
        case Filter(source) | Project(source) | PublicJoin(source) | SemiJoin(source) | UnitWindow(source):
            return rows_of_a_unit(source)
        case UnitJoin(left, right):
            return rows_of_a_unit(left) * rows_of_a_unit(right)
        case Union(sources):
            return sum(rows_of_a_unit(source) for source in sources)
        case PerUnit(source, _, keys):
            return rows_of_a_unit(source) if keys else 1
        case _:
            assert_never(relation)


def leaves_out_rows(relation: Relation) -> bool:
    """Whether some scan takes fewer rows of a unit than there are."""
    match relation:
        case Scan(table, rows):
            return rows < limit_world.MOST_ROWS[table]
        case Filter(source) | Project(source) | PublicJoin(source) | PerUnit(source) | UnitWindow(source):
            return leaves_out_rows(source)
        case UnitJoin(left, right) | SemiJoin(left, right):
            return leaves_out_rows(left) or leaves_out_rows(right)
        case Union(sources):
            return any(leaves_out_rows(source) for source in sources)
        case _:
            assert_never(relation)


def binds(planned: PlannedStatement) -> bool:
    """Whether a plan may leave out something: where a filter seems to keep few rows, units are bounded below what they have."""
    for part in planned.parts:
        if part.number is None:
            continue
        query = planned.certified.queries[part.number].query
        assert not isinstance(query.source, UnitNorms), "norms are asked for before the plan is made"
        if leaves_out_rows(query.source):
            return True
        if not isinstance(query.bounding, Ranked) and part.choice.limit < rows_of_a_unit(query.source):
            return True
    return False


def undecided(planned: PlannedStatement, units: Mapping[tuple[Any, ...], list[Any] | None]) -> bool:
    """Whether noise may decide that a group is shown: a weight of more than one unit lies near the threshold."""
    if planned.measured is None:
        return False
    query = planned.certified.queries[0]
    keys, groups = query.keys, query.query.groups
    if keys is None or not isinstance(groups, DiscoveredGroups) or groups.spread_bits is None:
        return False
    return any(keys.weight < weight and abs(weight - keys.threshold) < margin(groups) for weight in key_weights(units, groups).values())


def tolerance(vector: CertifiedVector, *, rows: int) -> float:
    """What the noise of a vector explains, in its own unit, and the rounding of its rows."""
    return float(half_width(vector.vector.law, confidence=SURE) * vector.step + rows * vector.rounding)


def comparable(value: Any) -> Any:
    """Both sides in one form: a date is its midnight, whole numbers are integers, what is no number is NULL."""
    match value:
        case None | bool() | str() | datetime.datetime():
            return value
        case datetime.date():
            return datetime.datetime.combine(value, datetime.time())
        case _:
            number = float(value)
            return None if not math.isfinite(number) else int(number) if number.is_integer() else number


def agree(found: Any, expected: Any) -> bool:
    """Equal, or equal to 1e-9 where either is no whole number."""
    if isinstance(found, bool) or isinstance(expected, bool) or not isinstance(found, int | float) or not isinstance(expected, int | float):
        return bool(found == expected)
    if isinstance(found, int) and isinstance(expected, int):
        return found == expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)


@dataclass
class Seen:
    """What a chunk compared."""

    exact: int = 0
    noisy: int = 0
    cut: int = 0
    """Cells that a bound by norms changed by more than a little: within their error bars."""
    groups: int = 0
    empty_groups: int = 0
    hidden: int = 0
    limited: int = 0


def _key(row: tuple[Any, ...], statement: Generated) -> tuple[Any, ...]:
    return tuple(comparable(value) for value in row[: statement.keys])


def _is_ordered(text: str) -> bool:
    """Whether the whole statement is ordered, not only something inside brackets."""
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return " ORDER BY " in text


class Limit:
    """A data set and the bare engine, side by side."""

    def __init__(self, directory: Path, *, neighbours: str, delta: str, seed: int = 1) -> None:
        self.directory, self.copies = directory, 0
        self.written: dict[str, Any] = {"neighbours": neighbours, "delta": delta, "seed": seed}
        self.data = self.fresh()
        self.bare: duckdb.DuckDBPyConnection = limit_world.bare(directory / "1")
        self.seen = Seen()

    def fresh(self) -> lw.DataSet:
        """The same rows under a budget of their own."""
        self.copies += 1
        limit_world.write(self.directory / f"{self.copies}", **self.written)
        data = lw.open(self.directory / f"{self.copies}", home=self.directory / f"home{self.copies}")
        data.prepare()
        return data

    def afford(self, epsilon: int) -> None:
        """Another copy where the budget may not be enough."""
        if (1 - self.data.budget.share_spent) * BUDGET < 1.01 * epsilon:
            self.data.close()
            self.data = self.fresh()

    def compare(self, statement: Generated) -> bool:
        """Ask both, unless the plan's own bound binds: whether they were asked."""
        epsilon, planned, tolerances = self._price(statement)
        if binds(planned):
            return False
        existing = self._existing(statement)
        if undecided(planned, existing):
            return False
        self.afford(epsilon)
        answer = self.data.ask(statement.unlimited, epsilon=epsilon)
        rows = [tuple(row.values()) for row in answer.table.to_pylist()]
        expected = [tuple(comparable(value) for value in row) for row in self.bare.execute(statement.reference).fetchall()]
        cuts = [part["lost"] for part in self.data.explain(statement.unlimited, epsilon=epsilon).to_dict()["parts"] if part.get("caps")]
        query = None if planned.measured is None else planned.measured.queries[0]
        if query is not None and query.keys is not None and isinstance(groups := query.query.groups, DiscoveredGroups):
            keys = query.keys  # groups of too few units stay hidden
            hidden = {key for key, weight in key_weights(existing, groups).items() if weight < keys.threshold}
            expected = [row for row in expected if row[: statement.keys] not in hidden]
            self.seen.hidden += len(hidden)
        numbers = [i for i, row in enumerate(rows) if _key(row, statement) in existing]
        assert len(numbers) == len(expected), statement.text
        pairs = list(zip(numbers, expected, strict=True))
        if len(expected) > 1 and not statement.keys:  # several counts, one under the other, in any order
            numbers.sort(key=lambda number: [comparable(value) for value in rows[number]])
            pairs = list(zip(numbers, sorted(expected), strict=True))
        elif not _is_ordered(statement.text):
            by_key = {row[: statement.keys]: row for row in expected}
            pairs = [(number, by_key[_key(rows[number], statement)]) for number in numbers]
        # In the reference a sum of nothing is 0, which it is unless declarations show that there is nothing to sum.
        nothing = any(groups for part in planned.parts for groups in part.nothing_to_sum.values())
        for number, wanted in pairs:
            if planned.measured is None:  # what is computed over no groups at all is NULL, where the reference has groups of 0
                bare = self.bare.execute(statement.text).fetchall()
                for i, (found, expected) in enumerate(zip(rows[number], wanted, strict=True)):
                    is_null = found is None and any(row[i] is None for row in bare)
                    assert is_null or (found or 0) == (expected or 0), statement.text
                continue
            reach = {
                i: SURE_BARS * (bar.hi - bar.lo) / 2
                for i, name in enumerate(answer.table.column_names[statement.keys :])
                if name in answer.intervals and (bar := answer.intervals[name][number]) is not None
            }
            self._compare_row(statement, rows[number], wanted, tolerances, reach, cuts, nothing=nothing)
        self.seen.empty_groups += len(rows) - len(numbers)
        if statement.limit is not None:
            self._compare_limited(statement, rows, epsilon)
        return True

    def _price(self, statement: Generated) -> tuple[int, PlannedStatement, dict[int, float]]:
        """The epsilon to ask at, its plan, and how far each output may then be off; outputs not named may not be off at all."""
        _, first = plan_of(self.data.curator, statement.unlimited, EPSILONS[0])
        if first.measured is None:  # no row can meet its conditions
            return EPSILONS[0], first, {}
        guess = EPSILONS[0] * max((_factor(law) for law in exact_laws(first.certified)), default=1.0)
        for epsilon in [*(epsilon for epsilon in EPSILONS[:-1] if epsilon >= guess), EPSILONS[-1]]:
            bound, planned = plan_of(self.data.curator, statement.unlimited, epsilon)
            chances = chances_of_noise(planned.certified)
            noisy = {name for name, chance in chances.items() if chance > CHANCE_OF_NOISE / len(chances)}
            if noisy <= computed_reals(planned.certified) | rounded_away(planned.certified):
                break
        else:
            raise TooNoisy(f"the largest epsilon is too small for {statement.text}")
        return epsilon, planned, self._tolerances(statement, bound, planned, noisy)

    def _tolerances(self, statement: Generated, bound: Statement, planned: PlannedStatement, noisy: set[Named]) -> dict[int, float]:
        if not noisy or all(piece.whole for piece in statement.outputs):
            return {}
        first = {name for number, name in noisy if number == 0}
        vectors = {vector.vector.name: vector for vector in planned.certified.queries[0].vectors}
        found: dict[int, float] = {}
        for i, (output, piece) in enumerate(zip(bound.post.outputs[statement.keys :], statement.outputs, strict=True)):
            if piece.whole:
                continue
            if not isinstance(output.derivation, LinearOutput):
                assert piece.sharp, statement.text
                if not noisy <= computed_reals(planned.certified):
                    found[i] = math.inf  # a clipped plan, and more than an error bar can follow
                continue
            recipe, scale = planned.only.recipes[output.derivation.aggregate.index], abs(float(output.derivation.scale))
            match recipe:
                case SumMeasure(vector) if vector in first:
                    found[i] = scale * tolerance(vectors[vector], rows=ROWS)
                case AverageMeasure(total, count, lower=lower, upper=upper) if total in first or count in first:  # of one row at least
                    found[i] = scale * (tolerance(vectors[total], rows=1) + tolerance(vectors[count], rows=0) * float(upper - lower))
                case _:
                    pass
        return found

    def _existing(self, statement: Generated) -> dict[tuple[Any, ...], list[Any] | None]:
        if statement.existing is None:
            return {(): None}
        found = self.bare.execute(statement.existing).fetchall()
        cut = statement.keys
        return {tuple(comparable(value) for value in row[:cut]): row[cut] if len(row) > cut else None for row in found}

    def _compare_row(
        self,
        statement: Generated,
        row: tuple[Any, ...],
        wanted: tuple[Any, ...],
        tolerances: dict[int, float],
        reach: dict[int, float],
        cuts: list[float],
        *,
        nothing: bool,
    ) -> None:
        assert _key(row, statement) == wanted[: statement.keys], statement.text
        self.seen.groups += 1
        for i, piece in enumerate(statement.outputs):
            found, expected = comparable(row[statement.keys + i]), wanted[statement.keys + i]
            context = f"{statement.text}\n{piece.sql}: {found!r}, not {expected!r}"
            if nothing and found is None:
                continue
            if cuts and i in reach and None not in (found, expected) and not agree(found, expected):
                # The statement's norms were bought: sums are on a finer grid than their values, and a unit may be scaled down.
                error, little = abs(found - expected), 0.05 * max(abs(expected), 1.0)
                assert error <= (reach[i] if any(cuts) else min(reach[i], 0.01 * max(abs(expected), 1.0))), context
                self.seen.cut += error > little
                self.seen.noisy += error <= little
            elif i not in tolerances or found is None or expected is None:
                assert agree(found, expected), context
                self.seen.exact += 1
            else:
                assert abs(found - expected) <= tolerances[i] + 1e-9 * abs(expected), context
                self.seen.noisy += math.isfinite(tolerances[i])

    def _compare_limited(self, statement: Generated, rows: list[tuple[Any, ...]], epsilon: int) -> None:
        """LIMIT and OFFSET cut the very same answer, free."""
        cut = self.data.ask(statement.text, epsilon=epsilon)
        assert statement.limit is not None
        assert [tuple(row.values()) for row in cut.table.to_pylist()] == rows[statement.offset : statement.offset + statement.limit]
        assert cut.cost.free
        self.seen.limited += 1
