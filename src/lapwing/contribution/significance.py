"""Which bins of a noisy histogram are significant: alone, with a neighbour, or in a run. It affects accuracy only."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ALONE_SEEN = 4.0
"""A bin this many standard deviations above zero is significant, by the probability of normal noise."""
TOGETHER_SEEN = 2.5
"""Two neighbouring bins this many standard deviations above zero are significant."""
RUNS = (4, 8)
"""Lengths of runs of neighbouring bins that are tested together: a hump may be too broad to be significant in any single bin."""
RUN_SEEN = 3.5
"""A run whose sum is this many of its standard deviations above zero is significant."""
FAR_GROUPS = 4
"""A group this many groups above the last significant one is isolated ..."""
FAR = 1.25
"""... and is significant only at this multiple of the limits above. In a histogram of twenty bins one is above the normal limits by
noise alone once in 200 times, and a cap that high makes an answer useless; with these, once in 1,400 times."""
FAR_RUN = 1.12
"""The same for runs: humps too broad for any bin are real more often."""
END_SEEN = 3.5
"""Limit for the last bin alone, where units accumulate if their rows were cut."""


def normal_scores(scores: Floats, laplace: bool) -> Floats:
    """The normal scores with the same tail probability: 4 standard deviations of Laplace noise have a score of 2.9."""
    if not laplace:
        return scores
    return np.asarray(
        [-NormalDist().inv_cdf(math.exp(-math.sqrt(2.0) * min(score, 400.0)) / 2.0) if score > 0.0 else score for score in scores]
    )


def last_seen(scores: Floats, laplace: bool) -> int | None:
    """The last significant group; None if there is none. An isolated group far above all others must be more significant."""
    surely = normal_scores(scores, laplace)
    clearly = _highest(scores, surely, len(scores), FAR)
    return _highest(scores, surely, len(scores) if clearly is None else min(clearly + FAR_GROUPS, len(scores)), 1.0)


def _highest(scores: Floats, surely: Floats, below: int, times: float) -> int | None:
    """The highest group below this one that is significant at this multiple of the limits, alone, with its neighbour or in a run."""
    for at in range(below - 1, -1, -1):
        if surely[at] > times * ALONE_SEEN or (at > 0 and min(surely[at], surely[at - 1]) > times * TOGETHER_SEEN):
            return at
        for run in (scores[at + 1 - many : at + 1] for many in RUNS if many <= at + 1):  # sums of bins are nearly normal
            if scores[at] > 1.0 and run.max() <= times * ALONE_SEEN and run.sum() > min(times, FAR_RUN) * RUN_SEEN * math.sqrt(len(run)):
                return at
    return None
