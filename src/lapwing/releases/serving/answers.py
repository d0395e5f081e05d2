"""Free answers: a covered statement is answered from released marginals, with error bars. Noisy values and public facts only.

Only the estimates are made here, with their exact variances and covariances. Later steps (sorting, limits,
expressions over answers, marks, simulated error bars) are the same as for any other answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from lapwing.answers.assembly import AssembledAnswer, check_pairs, has_computed, noisy_table, put_together
from lapwing.answers.estimates import Estimate
from lapwing.answers.intervals import Interval, ratio_ends
from lapwing.answers.ratio_estimator import FINE
from lapwing.answers.simulated_intervals import MissingShares, redrawn_values
from lapwing.answers.simulation import Floats, noise_by_place
from lapwing.answers.suppression import MARK_CONFIDENCE, Marks
from lapwing.kernel.facts import Facts
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.planning.measures import AverageMeasure, CountMeasure, Recipe, SumMeasure
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.synopsis import MeasuredMarginal, Synopsis
from lapwing.releases.serving.coverage import ROWS, CoveredQuery, NotCovered, PublicMarginals, covered_queries
from lapwing.releases.serving.error_sides import longest_sides
from lapwing.releases.serving.tree_counts import TreeCounts
from lapwing.releases.serving.tree_quantiles import ServedQuantile, TreeQuantiles
from lapwing.releases.serving.weighted_sums import JointSums, WeightedSums, covariances
from lapwing.statements import CellMark, Noisy, RatioOutput, Statement

JOINT_MAX = 2_000
"""Most sums whose noise is drawn together, for error bars of values computed from them."""
JOINT_WORK_MAX = 20_000_000
"""Most numbers that are read for that."""


@dataclass(frozen=True, slots=True)
class ServedMarginals:
    """Released marginals, ready to answer."""

    public: PublicMarginals
    synopsis: Synopsis | TreeCounts

    @classmethod
    def of(
        cls,
        table: str,
        axes: Sequence[Axis],
        measured: Sequence[MeasuredMarginal],
        *,
        laplace: bool = False,
        notes: tuple[str, ...] = (),
    ) -> ServedMarginals:
        """Marginals over these axes, by what was measured."""
        precisions: dict[tuple[int, ...], float] = {}
        variances: dict[tuple[int, ...], float] = {}
        for each in measured:
            if each.axes in variances and each.variance > 0 and variances[each.axes] > 0:
                precisions[each.axes] += 1 / each.variance
                variances[each.axes] = 1 / precisions[each.axes]
            else:
                precisions[each.axes] = 1 / each.variance if each.variance > 0 else 0.0
                variances[each.axes] = each.variance
        public = PublicMarginals(table, tuple(axes), variances, laplace, notes)
        return cls(public, Synopsis(public.sizes, measured))

    @classmethod
    def of_tree(cls, counts: TreeCounts) -> ServedMarginals:
        """The one marginal of a tree, by all its levels."""
        return cls(counts.public, counts)


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """A free answer and its notes."""

    assembled: AssembledAnswer
    notes: tuple[str, ...]


def serve(statement: Statement, facts: Facts, marginals: ServedMarginals, *, confidence: Fraction) -> ServedAnswer | NotCovered:
    """The answer of a bound statement from released marginals, or the reason why they do not answer it; the latter from public facts
    alone."""
    return serve_best(statement, facts, [marginals], confidence=confidence)


def serve_best(
    statement: Statement, facts: Facts, sections: Sequence[ServedMarginals], *, confidence: Fraction
) -> ServedAnswer | NotCovered:
    """The answer from the section whose error bars are shortest, or the reason why none of them answers; public facts alone decide."""
    found: list[tuple[tuple[float, ...], int, tuple[CoveredQuery, ...]]] = []
    reasons: dict[str, None] = {}
    for number, section in enumerate(sections):
        covered = covered_queries(statement, facts, section.public)
        if isinstance(covered, NotCovered):
            reasons[covered.reason] = None
        else:
            sides = longest_sides(covered, section.public, confidence) if len(sections) > 1 else ()
            found.append((sides, number, covered))
    if not found:
        return NotCovered("; ".join(reasons))
    _, number, covered = min(found, key=lambda each: each[:2])
    return _served(statement, covered, sections[number], confidence)


def _served(statement: Statement, covered: tuple[CoveredQuery, ...], marginals: ServedMarginals, confidence: Fraction) -> ServedAnswer:
    check_pairs([len(each.groups) for each in covered], statement.post)
    parts = [ServedPart(WeightedSums(each, marginals.public), marginals.synopsis, confidence) for each in covered]

    def ratio(output: RatioOutput, above: int, below: int) -> Interval | None:
        return _ratio(output, parts, above, below, confidence)

    redrawn = _redrawn(parts, confidence) if has_computed(statement.post) else None
    assembled = put_together(parts, statement.post, confidence=confidence, ratio=ratio, redrawn=redrawn)
    return ServedAnswer(assembled, (*marginals.public.notes, *statement.notes))


class ServedPart:
    """One private query, estimated from marginals."""

    def __init__(self, sums: WeightedSums, synopsis: Synopsis | TreeCounts, confidence: Fraction) -> None:
        self.sums, self.recipes, self._confidence = sums, sums.covered.recipes, confidence
        marginal = synopsis.marginal(sums.covered.axes)
        self.totals: Mapping[str, Floats] = {name: sums.values(name, marginal) for name in sums.covered.weights}
        """By vector and row, in parts of one."""
        self.ratios: dict[tuple[str, str], tuple[Floats, Floats]] = {}
        self.ratios_across: dict[tuple[str, int, str], tuple[Floats, Floats]] = {}
        """By vector, and number of the other part and its vector: by row of this part and of the other."""
        quantiles = self._quantiles(marginal)
        numbered = list(enumerate(self.recipes))
        found = [quantiles[number].estimates if number in quantiles else self._estimates(recipe) for number, recipe in numbered]
        marks = [quantiles[number].marks if number in quantiles else self._marks(recipe) for number, recipe in numbered]
        self.estimates: list[list[Estimate]] = [
            [Estimate(None, None) if mark is CellMark.MEANINGLESS else estimate for estimate, mark in zip(column, own, strict=True)]
            for column, own in zip(found, marks, strict=True)
        ]
        values = [[estimate.value for estimate in column] for column in self.estimates]
        levels = [each.level for each in sums.levels]
        self.table: pa.Table = noisy_table(sums.covered.query, sums.covered.columns, self.recipes, levels, values, marks)

    def _quantiles(self, marginal: Floats) -> dict[int, ServedQuantile]:
        covered, found = self.sums.covered, dict[int, ServedQuantile]()
        if covered.quantiles:
            tree = TreeQuantiles(covered, self.sums.marginals)
            for number in covered.quantiles:
                recipe = self.recipes[number]
                assert isinstance(recipe, QuantileMeasure)
                found[number] = tree.served(number, marginal, self._confidence, kind=recipe.kind)
        return found

    def plain(self, aggregate: Noisy) -> str | None:
        """The vector behind an aggregate that is one."""
        recipe = self.recipes[aggregate.index]
        return recipe.vector if isinstance(recipe, CountMeasure | SumMeasure) else None

    def _estimates(self, recipe: Recipe) -> list[Estimate]:
        match recipe:
            case CountMeasure(vector):
                return self._plain(vector, whole=True)
            case SumMeasure(vector, whole):
                return self._plain(vector, whole=whole)
            case AverageMeasure():
                return self._averages(recipe)
            case _:
                raise AssertionError("only counts, sums and averages are covered")

    def _plain(self, vector: str, *, whole: bool) -> list[Estimate]:
        scale = self.sums.covered.scales[vector]
        values, widths = self.totals[vector] / scale, self.sums.half_width(vector, self._confidence) / scale
        found = []
        for value, width in zip(values.tolist(), widths.tolist(), strict=True):
            shown = round(value) if whole else value
            found.append(Estimate(shown, Interval(min(value - width, shown), max(value + width, shown))))
        return found

    def _averages(self, recipe: AverageMeasure) -> list[Estimate]:
        total, count = self.totals[recipe.total], self.totals[recipe.count]
        low, high = (float(end * recipe.steps - recipe.offset) for end in (recipe.lower, recipe.upper))
        lows, highs = self.ratio_ends(recipe.total, recipe.count)
        found = []
        for s, n, begin, end in zip(total.tolist(), count.tolist(), lows.tolist(), highs.tolist(), strict=True):
            if round(n) < 1:  # the count is shown as 0, so there is no average
                found.append(Estimate(None, None))
                continue
            value = min(max(s / n, low), high)
            ends = (low, high) if np.isnan(begin) else (min(max(begin, low), value), max(min(end, high), value))
            shifted = [(each + recipe.offset) / recipe.steps for each in (value, *ends)]
            found.append(Estimate(shifted[0], Interval(shifted[1], shifted[2])))
        return found

    def ratio_ends(self, top: str, bottom: str) -> tuple[Floats, Floats]:
        """The interval of the ratio of two vectors, row by row; not a number where there is none."""
        if (top, bottom) not in self.ratios:
            self.ratios[top, bottom] = ratio_ends(
                self.totals[top],
                self.totals[bottom],
                variances=(self.sums.variance(top, self._confidence), self.sums.variance(bottom, self._confidence)),
                covariance=self.sums.covariance(top, bottom, self._confidence),
                reach=self.sums.reach(self._confidence),
            )
        return self.ratios[top, bottom]

    def _marks(self, recipe: Recipe) -> Marks:
        match recipe:
            case CountMeasure(vector):
                noise = self._noise_only(vector)
            case SumMeasure(vector):
                noise = self._noise_only(vector) | self._noise_only(ROWS)
            case AverageMeasure(total, count):
                lost = self._noise_only(count) | self._noise_only(ROWS) | self._could_be_anything(recipe, total, count)
                return [CellMark.MEANINGLESS if each else None for each in (lost & (self._width(count) > 0)).tolist()]
            case _:
                raise AssertionError("only counts, sums and averages are covered")
        return [CellMark.NOISE_ONLY if each else None for each in noise.tolist()]

    def _width(self, vector: str) -> Floats:
        """The half-width of the noise for marks; 0 if it would be rounded away."""
        width = self.sums.half_width(vector, MARK_CONFIDENCE)
        return np.where(width <= self.sums.step(vector), 0.0, width)  # the noise alone is below half a step

    def _noise_only(self, vector: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        width, values = self._width(vector), self.totals[vector]
        signed = bool((self.sums.covered.weights[vector] < 0).any())
        return np.asarray((width > 0) & ((np.abs(values) if signed else values) <= width))

    def _could_be_anything(self, recipe: AverageMeasure, total: str, count: str) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether the noise explains both ends of the declared range, and so every average."""
        if recipe.lower == recipe.upper:
            return np.zeros(self.sums.rows, dtype=np.bool_)
        variances = self.sums.variance(total, MARK_CONFIDENCE), self.sums.variance(count, MARK_CONFIDENCE)
        covariance, reach = self.sums.covariance(total, count, MARK_CONFIDENCE), self.sums.reach(MARK_CONFIDENCE)
        explained = np.ones(self.sums.rows, dtype=np.bool_)
        for end in (float(end * recipe.steps - recipe.offset) for end in (recipe.lower, recipe.upper)):
            variance = np.maximum(variances[0] - 2 * end * covariance + end**2 * variances[1], 0.0)
            explained &= np.abs(self.totals[total] - end * self.totals[count]) <= reach * np.sqrt(variance)
        return explained


def _ratio(output: RatioOutput, parts: Sequence[ServedPart], above: int, below: int, confidence: Fraction) -> Interval | None:
    one, other = parts[output.numerator.query], parts[output.denominator.query]
    top, bottom = one.plain(output.numerator), other.plain(output.denominator)
    if top is None or bottom is None:
        return None
    if one is other and above == below:
        lows, highs = one.ratio_ends(top, bottom)
        ends = float(lows[above]), float(highs[above])
    else:
        lows, highs = _ratios_across(one, top, other, bottom, output.denominator.query, confidence)
        ends = float(lows[above, below]), float(highs[above, below])
    if np.isnan(ends[0]):
        return None
    factor = float(output.scale) * other.sums.covered.scales[bottom] / one.sums.covered.scales[top]
    low, high = sorted(end * factor for end in ends)
    return Interval(low, high)


def _ratios_across(one: ServedPart, top: str, other: ServedPart, bottom: str, number: int, confidence: Fraction) -> tuple[Floats, Floats]:
    """The ends of ratios of values of two rows, such as a group and the whole."""
    if (top, number, bottom) not in one.ratios_across:
        work = max(each.sums.rows * each.sums.covered.group.size for each in (one, other))
        if work > JOINT_WORK_MAX:
            unknown = np.full((one.sums.rows, other.sums.rows), np.nan)
            return unknown, unknown
        one.ratios_across[top, number, bottom] = ratio_ends(
            one.totals[top][:, None],
            other.totals[bottom][None, :],
            variances=(one.sums.variance(top, confidence)[:, None], other.sums.variance(bottom, confidence)[None, :]),
            covariance=covariances(one.sums, top, other.sums, bottom, confidence),
            reach=one.sums.reach(confidence),
        )
    return one.ratios_across[top, number, bottom]


def _redrawn(parts: Sequence[ServedPart], confidence: Fraction) -> list[_RedrawnPart] | None:
    """The parts with redrawn noise; None if they are too many for joint draws or include quantiles."""
    if any(part.sums.covered.quantiles for part in parts):
        return None
    joint = JointSums([(part.sums, _vectors(part.recipes)) for part in parts])
    if joint.size() > JOINT_MAX or joint.work() > JOINT_WORK_MAX:
        return None
    drawn = _JointNoise(joint, confidence)
    return [_RedrawnPart(part, number, drawn) for number, part in enumerate(parts)]


class _JointNoise:
    """Simulated noise of all sums; the same at each call."""

    def __init__(self, joint: JointSums, confidence: Fraction) -> None:
        self.joint = joint
        self._confidence = confidence
        self._runs: dict[int, Floats] = {}

    def drawn(self, runs: int) -> Floats:
        """By run and sum."""
        if runs not in self._runs:
            size = self.joint.size()
            normal = noise_by_place(DiscreteGaussian(Fraction(FINE)), f"marginals {size}", count=runs * size).reshape(runs, size) / FINE
            self._runs[runs] = normal @ self.joint.root(self._confidence).T
        return self._runs[runs]


@dataclass(frozen=True, slots=True)
class _RedrawnPart:
    part: ServedPart
    number: int
    noise: _JointNoise

    @property
    def table(self) -> pa.Table:
        return self.part.table

    @property
    def recipes(self) -> Sequence[Recipe]:
        return self.part.recipes

    def size(self) -> int:
        return self.part.sums.rows * len(_vectors(self.part.recipes))

    def clipped(self, place: str) -> set[str]:
        return set()

    def values(self, place: str, runs: int, missing: MissingShares) -> list[Floats]:
        drawn = self.noise.drawn(runs)
        scales = self.part.sums.covered.scales
        cells = {
            vector: (self.part.totals[vector][None, :] - drawn[:, begin:end]) / scales[vector]
            for number, vector, begin, end in self.noise.joint.places
            if number == self.number
        }
        return [redrawn_values(recipe, cells) for recipe in self.part.recipes]


def _vectors(recipes: Sequence[Recipe]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for recipe in recipes:
        match recipe:
            case CountMeasure(vector) | SumMeasure(vector):
                found[vector] = None
            case AverageMeasure(total, count):
                found |= {total: None, count: None}
            case _:
                raise AssertionError("only counts, sums and averages are covered")
    return tuple(found)
