"""Releases of one query over each of several blocks of time, put together: an answer over all of them.

Cells of the same group add up. Their noise is a sum of independent draws, so its variances add up; the parts that clipping cut off add up
too, and are bounded by the histograms of all blocks together. Post-processing of noisy values and public facts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

from lapwing.answers.noise_sums import gaussian_of_sum, half_width_of_sum
from lapwing.contribution.clipping_bound import predicted
from lapwing.contribution.histograms import ClippingBound
from lapwing.contribution.model import ContributionModel
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.expressions import Value
from lapwing.kernel.ir import KnownGroups
from lapwing.kernel.laws import SCALE_MAX, DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.release import ChosenQuantiles, NoisyColumn, NoisyTable
from lapwing.planning.planned import Part

Group = tuple[Value, ...]


def summed(tables: Sequence[NoisyTable], order: Sequence[Group], *, confidence: Fraction) -> NoisyTable:
    """The releases of one query over disjoint blocks as one release, its groups in this order, and those that are not named behind."""
    first = tables[0]
    terms: dict[Group, int] = {}
    for table in tables:
        for group in table.groups:
            terms[group] = terms.get(group, 0) + 1
    named = [group for group in order if group in terms]
    known = set(named)
    listed = [*named, *(group for group in terms if group not in known)]
    place = {group: number for number, group in enumerate(listed)}
    most = max(terms.values(), default=1)
    columns = tuple(_added(column.name, tables, place, terms=most, confidence=confidence) for column in first.columns)
    quantiles = tuple(_side_by_side(chosen.name, tables, place) for chosen in first.quantiles)
    rows_max = sum(table.rows_max for table in tables)
    return replace(first, groups=tuple(listed), columns=columns, rows_max=rows_max, quantiles=quantiles)


def _added(name: str, tables: Sequence[NoisyTable], place: Mapping[Group, int], *, terms: int, confidence: Fraction) -> NoisyColumn:
    columns = [table.column(name) for table in tables]
    step = _common_step([column.step for column in columns])
    values, laws = [0] * len(place), dict[Law, None]()
    for table, column in zip(tables, columns, strict=True):
        times = int(column.step / step)
        laws[_wider(column.law, times)] = None
        for group, value in zip(table.groups, column.values, strict=True):
            if (at := place.get(group)) is not None:
                values[at] += times * value
    law = law_of_sum(tuple(laws), terms=terms, confidence=confidence)
    return NoisyColumn(name, tuple(values), law, step, max(column.rounding for column in columns))


def _common_step(steps: Sequence[Fraction]) -> Fraction:
    """The largest step of which all of these are multiples."""
    one = steps[0]
    for other in {*steps[1:]} - {one}:
        one = Fraction(math.gcd(one.numerator * other.denominator, other.numerator * one.denominator), one.denominator * other.denominator)
    return one


def _wider(law: Law, times: int) -> Law:
    return law if times == 1 else replace(law, scale=_scale(law.scale * times))


def _scale(value: Fraction) -> Fraction:
    """At least this value, as the scale of a law."""
    return min(Fraction(math.nextafter(float(value), math.inf)), SCALE_MAX)


def law_of_sum(laws: Sequence[Law], *, terms: int, confidence: Fraction) -> Law:
    """A law whose interval at this confidence holds a sum of so many draws, each of one of these laws.

    Where the laws differ, all draws count as those of the widest. Gaussian draws add up to a Gaussian; those of Laplace laws, and of both
    kinds, are described by the Gaussian whose interval at this confidence is as wide as theirs.
    """
    widest = max(laws, key=lambda law: law.scale)
    if terms == 1 and len(laws) == 1:
        return widest
    if all(isinstance(law, DiscreteGaussian) for law in laws):
        assert isinstance(widest, DiscreteGaussian)
        return gaussian_of_sum(widest, terms=terms)
    # A Gaussian draw is no wider than one of the Laplace law of its scale, by the bound on moments that sums are computed with.
    width = half_width_of_sum(DiscreteLaplace(widest.scale), terms=terms, confidence=confidence)
    deviations = NormalDist().inv_cdf(1 - float(1 - confidence) / 2)
    return DiscreteGaussian(_scale(max((width + 1) / Fraction(deviations), widest.scale)))


def _side_by_side(name: str, tables: Sequence[NoisyTable], place: Mapping[Group, int]) -> ChosenQuantiles:
    """Quantiles of groups that are in one block each."""
    chosen = [table.chosen(name) for table in tables]
    values = [[0] * len(place) for _ in chosen[0].values]
    for table, item in zip(tables, chosen, strict=True):
        for target, column in zip(values, item.values, strict=True):
            for group, value in zip(table.groups, column, strict=True):
                if (at := place.get(group)) is not None:
                    target[at] = value
    return replace(chosen[0], values=tuple(tuple(column) for column in values))


@dataclass(frozen=True, slots=True)
class SumOfBlocks:
    """How the part of an answer over blocks differs from that of one of them, the one that was planned."""

    whole: Part
    """The part as it is planned over the whole range: its query, and its groups."""
    blocks: int
    fits: Mapping[int, ContributionModel]
    """By identity of a fit that bounds were chosen from: the fit to the histograms of all blocks."""

    def part(self, part: Part, *, first: int) -> Part:
        """The part of one block as the part of all, its queries numbered from ``first`` on."""
        whole = self._whole(part)
        terms = self._terms(len(part.groups or ((),)), whole)
        cuts = {name: self._cut(cut, terms, whole) for name, cut in part.cuts.items()}
        lost = part.lost if part.left_out or not cuts else max(cut.choice.lost for cut in cuts.values())
        return replace(
            part,
            query=part.query if whole is None else whole.query,
            number=None if part.number is None else part.number + first,
            groups=part.groups if whole is None else whole.groups,
            rows=None if part.rows is None else part.rows * self.blocks,
            rows_upper=None,
            choice=replace(part.choice, truncation=part.choice.truncation * terms, noise=part.choice.noise * math.sqrt(terms)),
            cuts=cuts,
            lost=lost,
            nothing_to_sum={} if whole is None else whole.nothing_to_sum,
            apart={level: self.part(total, first=first) for level, total in part.apart.items()},
            quantiles=None if part.quantiles is None else self.part(part.quantiles, first=first),
        )

    def _whole(self, part: Part) -> Part | None:
        """The same part over the whole range; None of a level that is measured separately."""
        return self.whole if part.query.keys == self.whole.query.keys else None

    def _terms(self, cells: int, whole: Part | None) -> int:
        """How many blocks have each group."""
        groups = cells if whole is None or not whole.groups else len(whole.groups)
        return max(round(self.blocks * cells / groups), 1)

    def measured(self, query: CertifiedQuery, *, confidence: Fraction) -> CertifiedQuery:
        """What is measured of one block, with the noise of the sum over all: by this an answer is explained, and nothing is released."""
        groups = query.query.groups
        whole = self.whole if query.query.keys == self.whole.query.keys else None
        terms = self._terms(groups.cells, whole) if isinstance(groups, KnownGroups) else self.blocks
        if whole is not None and whole.groups and query.query.keys:
            groups = KnownGroups(whole.groups)
        vectors = tuple(
            replace(each, vector=replace(each.vector, law=law_of_sum((each.vector.law,), terms=terms, confidence=confidence)))
            for each in query.vectors
        )
        return replace(query, query=replace(query.query, groups=groups), vectors=vectors)

    def _cut(self, cut: ClippingBound, terms: int, whole: Part | None) -> ClippingBound:
        fit, choice = self.fits.get(id(cut.fit)), cut.choice
        if fit is None:
            return cut
        cells = cut.cells if whole is None or not whole.groups else len(whole.groups)
        total = float(fit.norms() ** 2 @ fit.expected) if cut.of_units else None
        unit_noise = choice.noise / choice.cap * math.sqrt(terms)
        choice = predicted(fit, choice.cap, unit_noise=unit_noise, cells=cells, total_l1=total, grain=cut.grain)
        return replace(cut, fit=fit, choice=choice, cells=cells)
