"""A rare key, carried by one unit, appears about as often as delta says: no more, and not much less.

False-alarm probability of each test: at most 1e-6.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lapwing.kernel.laws import DiscreteLaplace, Law
from lapwing.kernel.thresholds import least_threshold, threshold_delta
from tests.statistical.samples import MILLION, MILLION_LAWS, noisy_ones

FALSE_ALARM = 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("law", MILLION_LAWS, ids=str)
@pytest.mark.parametrize("groups_per_unit", [1, 4])
def test_a_lone_unit_shows_a_key_as_often_as_delta_says(law: Law, groups_per_unit: int) -> None:
    """A million noisy counts of keys that one unit alone carries, in units of so many keys: the number of units that show any is binomial.

    Delta is the exact delta of a threshold (between 0.002 and 0.02 here), so that there is no slack for a fault to hide in.
    """
    intended = 11 if isinstance(law, DiscreteLaplace) else 8
    delta = threshold_delta(law, groups_per_unit=groups_per_unit, threshold=intended)
    assert 0.002 < delta < 0.02
    threshold = least_threshold(law, groups_per_unit=groups_per_unit, delta=delta)
    assert threshold == intended

    counts = np.asarray(noisy_ones(law), dtype=np.int64).reshape(MILLION // groups_per_unit, groups_per_unit)
    units_shown = int((counts >= threshold).any(axis=1).sum())
    assert stats.binomtest(units_shown, len(counts), float(delta)).pvalue > FALSE_ALARM

    # the check can fail: with the threshold one lower or higher, the same draws show too many or too few
    for wrong in (threshold - 1, threshold + 1):
        wrongly_shown = int((counts >= wrong).any(axis=1).sum())
        assert stats.binomtest(wrongly_shown, len(counts), float(delta)).pvalue < FALSE_ALARM
