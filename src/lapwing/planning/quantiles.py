"""Quantiles, medians and extremes as sets: all quantiles of one value are selected together, for one share of the loss.

MIN and MAX are answered as the value at a rank from the end, because the last row itself is one unit's. The rank is the one that the
selection reaches with confidence ``EXTREME_CONFIDENCE``: if it misses, the selection errs towards other rows, not into the empty range
beyond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import assert_never

from lapwing.errors import Refused
from lapwing.kernel.domains import DateDomain, Domain, IntegerDomain, Kind, RealDomain, TimestampDomain, bounds, is_numeric, kind_of
from lapwing.kernel.expressions import Expression
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import QuantileSet
from lapwing.kernel.quantile_tree import TARGETS_MAX, AtShare, FromGreatest, FromLeast, Target
from lapwing.kernel.selections import CertifiedQuantiles
from lapwing.kernel.stability import Shape, domain_of
from lapwing.planning.grids import STEPS_MAX, filtered
from lapwing.planning.quantile_errors import extreme_rank, tree_scale
from lapwing.statements import QUANTILES, Aggregate, AggregateKind, quantile_kind

EXTREME_CONFIDENCE = Fraction(95, 100)
CANDIDATES_WANTED = 10**7
"""A computed real is put on the finest decimal grid with no more values than this; each further factor of ten costs some ranks of error."""
UNSCALED = Fraction(1)
DAY_MICROSECONDS = 86_400_000_000


@dataclass(frozen=True, slots=True)
class QuantileMeasure:
    """The aggregate is number ``target`` of a set of quantiles."""

    quantiles: str
    target: int
    kind: Kind
    """The kind of the answer: it is rounded to whole numbers or dates, and an interpolated date is a moment."""
    of_days: bool
    """The integers are days."""

    def value(self, chosen: int, step: Fraction) -> int | float:
        """The value of a chosen integer."""
        exact = chosen * step
        match self.kind:
            case Kind.REAL:
                return float(exact)
            case Kind.TIMESTAMP if self.of_days:
                return int(exact * DAY_MICROSECONDS)
            case _:
                # halves may round either way
                return round(exact)


@dataclass(frozen=True, slots=True)
class QuantileRequest:
    """All quantiles requested of one value."""

    value: Expression
    lower: Fraction
    upper: Fraction
    steps: int
    targets: tuple[Target, ...]

    def unscaled(self, name: str) -> QuantileSet:
        """The set, before its scale and the ranks of its extremes are known."""
        return QuantileSet(name, self.value, self.lower, self.upper, self.steps, self.targets, UNSCALED)


def wanted_quantiles(
    aggregates: Sequence[Aggregate], shape: Shape
) -> tuple[Mapping[str, QuantileRequest], Mapping[Aggregate, QuantileMeasure]]:
    """The sets that the aggregates need, by name, and the set and target of each aggregate."""
    by_value: dict[Expression, list[Aggregate]] = {}
    for aggregate in aggregates:
        if aggregate.kind in QUANTILES:
            if aggregate.value is None:
                raise Refused("wrong-arguments", "a quantile needs a value")
            by_value.setdefault(filtered(aggregate.value, aggregate.where, shape), []).append(aggregate)
    sets: dict[str, QuantileRequest] = {}
    chosen: dict[Aggregate, QuantileMeasure] = {}
    for value, asked in by_value.items():
        name, domain = f"s{len(sets)}", domain_of(value, shape.columns)
        targets = sorted({target_of(aggregate) for aggregate in asked}, key=_place)
        if len(targets) > TARGETS_MAX:
            raise Refused("quantile-invalid", f"a statement may ask for at most {TARGETS_MAX} quantiles of one value")
        between = any(aggregate.kind is AggregateKind.QUANTILE_CONT for aggregate in asked)
        sets[name] = QuantileRequest(value, *_ends(domain), _steps(domain, between=between), tuple(targets))
        for aggregate in asked:
            of_days = isinstance(domain, DateDomain)
            chosen[aggregate] = QuantileMeasure(
                name, targets.index(target_of(aggregate)), quantile_kind(aggregate.kind, kind_of(domain)), of_days
            )
    return sets, chosen


def target_of(aggregate: Aggregate) -> Target:
    """The requested target; a quantile of 0 or 1 is an extreme."""
    share = aggregate.share
    if aggregate.kind is AggregateKind.MIN or share == 0:
        return FromLeast(1)
    if aggregate.kind is AggregateKind.MAX or share == 1:
        return FromGreatest(1)
    if share is None:
        raise Refused("wrong-arguments", "a quantile needs a number from 0 to 1")
    return AtShare(share)


def _place(target: Target) -> Fraction:
    match target:
        case AtShare(share):
            return share
        case FromLeast():
            return Fraction(0)
        case FromGreatest():
            return Fraction(1)
        case _:
            assert_never(target)


def _ends(domain: Domain) -> tuple[Fraction, Fraction]:
    if isinstance(domain, DateDomain | TimestampDomain):
        return Fraction(domain.lo), Fraction(domain.hi)
    if not is_numeric(domain):
        raise Refused("type-mismatch", f"a quantile needs a number or a date, not a {kind_of(domain).value}")
    return bounds(domain)


def _steps(domain: Domain, *, between: bool) -> int:
    """Steps per 1. Interpolated quantiles of whole numbers lie between them: halves are kept apart, as in a median."""
    match domain:
        case RealDomain(steps=int(steps)):
            return steps
        case RealDomain(lo, hi):
            steps = STEPS_MAX
            while steps > 1 and (hi - lo) * steps > CANDIDATES_WANTED:
                steps //= 10
            return steps
        case IntegerDomain():
            return 2 if between else 1
        case _:
            return 1


def with_scale(derived: CertifiedQuantiles, facts: Facts, share: Fraction) -> QuantileSet:
    """The set with the scale that its share of the loss buys, and the resulting ranks of its extremes."""
    mechanism, targets = derived.mechanism, derived.quantiles.targets
    scale = tree_scale(
        facts.account,
        loss=share,
        targets=targets,
        rows_per_unit=mechanism.rows_per_unit,
        neighbours=mechanism.neighbours,
        alone=mechanism.alone,
    )
    rank = extreme_rank(replace(mechanism, scale=scale), confidence=EXTREME_CONFIDENCE)
    ranked: list[Target] = []
    for target in targets:
        ranked.append(target if isinstance(target, AtShare) else replace(target, rank=rank))
    return replace(derived.quantiles, targets=tuple(ranked), scale=scale)
