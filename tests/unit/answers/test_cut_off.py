"""What a bound may have cut off: by caps from norms, and by a limit on rows before a join."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lapwing.answers.clipping_bias import average_reaching, missing_of
from lapwing.answers.intervals import Interval
from lapwing.answers.notes.clipping import loss_notes
from lapwing.contribution.bounding import BoundingKind, BoundingPlan
from lapwing.contribution.clipping_bound import best_cap
from lapwing.contribution.histograms import ClippingBound
from lapwing.contribution.model import NormHistogram, fitted_norms
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.kernel.release import NoisyColumn, NoisyTable, Released
from lapwing.planning.planned import Part, PlannedStatement

EDGES = tuple(2.0 ** (power / 2) for power in range(21))


def _part(*, lost: float, of_all: float | None) -> Part:
    norms = np.minimum(((np.arange(5_000) + 0.5) / 5_000) ** -0.8, EDGES[-1])
    units = np.bincount(np.searchsorted(np.asarray(EDGES), norms), minlength=len(EDGES))
    fit = fitted_norms(NormHistogram(EDGES, tuple(float(each) for each in units), 5.0))
    choice = best_cap(fit, unit_noise=5.0, cells=3, total_l1=None, grain=1.0)
    assert choice.lost < 0.3
    cut = ClippingBound(fit, choice, 3, Fraction(1), signed=False, of_units=False, grain=1.0, of_all=of_all)
    query: Any = None
    bound = BoundingPlan(BoundingKind.CLIPPED, choice.cap, choice.bias, choice.noise)
    return Part(query, 0, None, (), bound, 1.0, max(lost, choice.lost), cuts={"n": cut})


def _missing(part: Part, values: tuple[int, ...] = (6_000, 9_000, 3_000)) -> list[float]:
    column = NoisyColumn("n", values, DiscreteGaussian(Fraction(50)), Fraction(1), Fraction(0))
    return [item.most for item in missing_of(part, column, confidence=0.95, terms=1)]


def test_bars_reach_to_rows_that_a_limit_before_a_join_leaves_out() -> None:
    """Of 10 rows 4 are predicted to be left out: to what is there, and to what the cap took from it, two thirds are added."""
    plain, joined = _part(lost=0.0, of_all=0.0), _part(lost=0.4, of_all=0.0)
    assert plain.left_out == 0.0 and joined.left_out == 0.4
    for value, cap_alone, both in zip((6_000, 9_000, 3_000), _missing(plain), _missing(joined), strict=True):
        assert both - cap_alone == pytest.approx((value + cap_alone) * 2 / 3)


def test_the_note_says_what_a_limit_before_a_join_leaves_out() -> None:
    planned: Any = None
    released = Released("", (NoisyTable(("k",), ((1,), (2,), (3,)), (), None, 100),))
    for lost, said in ((0.0, False), (0.4, True)):
        (note,) = loss_notes(PlannedStatement(planned, (_part(lost=lost, of_all=0.0),), planned), released, unit="user")
        assert ("joined rows beyond a limit, about 40.0% by prediction" in note) is said


def test_one_unseen_unit_is_of_the_usual_kind() -> None:
    """With a tenth of all rows, and up to twice what rows usually add; more than the largest norm no unit has."""
    part = _part(lost=0.0, of_all=0.1)
    assert part.cuts["n"].extreme(1_000.0) == 200.0
    assert part.cuts["n"].extreme(1e9) == EDGES[-1]
    assert _part(lost=0.0, of_all=None).cuts["n"].extreme(1_000.0) == EDGES[-1]


def test_bars_of_averages_reach_to_the_larger_values_of_units_that_were_cut_for_their_sums() -> None:
    """Of orders, 3 % of the rows were missing and 5 % of the sum: the average was 1.6 % too low, and bars that went by rows missed it."""
    noise = Interval(48.0, 49.0)
    by_rows = average_reaching(noise, rows=0.02, total=0.0, signed=False, lo=0.0, hi=1_000.0)
    assert (by_rows.lo, by_rows.hi) == pytest.approx((48.0 - 0.24, 49.0 + 0.245))
    by_total = average_reaching(noise, rows=0.02, total=0.05, signed=False, lo=0.0, hi=1_000.0)
    assert (by_total.lo, by_total.hi) == pytest.approx((by_rows.lo, 49.0 + 0.98))
    either = average_reaching(noise, rows=0.02, total=0.05, signed=True, lo=0.0, hi=1_000.0)
    assert (either.lo, either.hi) == pytest.approx((48.0 - 0.96, by_total.hi))
    assert average_reaching(noise, rows=0.5, total=0.9, signed=False, lo=0.0, hi=49.5).hi < 49.5
