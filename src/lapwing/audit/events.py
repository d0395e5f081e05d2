"""Chooses the event to measure: a set of outputs with a large likelihood ratio, chosen from runs that are not reused.

An event is ``score(output) >= threshold``. The score is the likelihood ratio, or anything that grows with it: exact if the law is known,
otherwise estimated from the choosing half. The audit is sound for any choice here, because the measuring half is fresh: a bad
choice costs power, never a false alarm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TypeAlias, TypeVar

import numpy as np

from lapwing.audit.claims import Claim, Floats, evidence

Output = TypeVar("Output", bound=Hashable)
Score: TypeAlias = Callable[[Sequence[Output]], Floats]
"""One number per output, larger if the output is stronger evidence for the right data set against the left one."""

_CATEGORY_RUNS = 50
"""Outputs are binned if there are fewer than this many choosing runs for each distinct output."""
_BINS = 64
_THRESHOLDS_MAX = 400


@dataclass(frozen=True, slots=True)
class ThresholdEvent:
    """An event: outputs whose score reaches the threshold."""

    score: Score[Hashable]
    threshold: float

    def hits(self, outputs: Sequence[Hashable]) -> int:
        """The number of outputs in the event."""
        return int((self.score(outputs) >= self.threshold).sum())


def choose(
    left: Sequence[Output], right: Sequence[Output], claim: Claim, *, runs: int, deviations: float, score: Score[Output] | None = None
) -> ThresholdEvent:
    """The most informative event for ``right`` against ``left``, if ``runs`` runs on each side will measure it.

    ``deviations`` is the number of standard deviations that the measuring bounds will allow, so that rare events are not overrated.
    """
    # Shares have two errors: of this estimate, and of the later measurement. Without the first, rare events look better than they are.
    known = 1.0 / (1.0 / runs + 1.0 / min(len(left), len(right)))
    best: tuple[float, Score[Output], float] | None = None
    for used in [score] if score is not None else estimated_scores(left, right):
        on_left, on_right = np.sort(used(left)), np.sort(used(right))
        thresholds = _thresholds(np.concatenate([on_left, on_right]))
        q = 1.0 - np.searchsorted(on_left, thresholds, side="left") / len(on_left)
        p = 1.0 - np.searchsorted(on_right, thresholds, side="left") / len(on_right)
        strength = evidence(claim, p=_wilson(p, known, -deviations), q=_wilson(q, known, deviations))
        place = int(np.argmax(strength))
        if best is None or strength[place] > best[0]:
            best = (float(strength[place]), used, float(thresholds[place]))
    assert best is not None  # there is always at least one score
    return ThresholdEvent(best[1], best[2])  # type: ignore[arg-type]


def _thresholds(scores: Floats) -> Floats:
    different = np.unique(scores)
    if len(different) <= _THRESHOLDS_MAX:
        return different
    return np.unique(np.quantile(scores, np.linspace(0.0, 1.0, _THRESHOLDS_MAX), method="nearest"))


def _wilson(share: Floats, runs: float, deviations: float) -> Floats:
    """Wilson's score bound: a fast approximation of the final bound."""
    squared = deviations**2 / runs
    middle = (share + squared / 2.0) / (1.0 + squared)
    spread = np.sqrt(share * (1.0 - share) / runs + squared / (4.0 * runs)) / (1.0 + squared)
    return np.clip(middle + deviations * spread, 0.0, 1.0)


def estimated_scores(left: Sequence[Output], right: Sequence[Output]) -> list[Score[Output]]:
    """Scores estimated from outputs alone: the smoothed likelihood ratio of each output, or of its bin if outputs hardly repeat.

    Numbers are cut into bins of equal frequency; they are also scores themselves, rising or falling, for laws with a monotone ratio. Lists
    of numbers of equal length are first projected on the direction in which their means differ most relative to their spread.
    """
    numbers = all(_is_number(output) for output in (*left, *right))
    repeating = len(set(left) | set(right)) * _CATEGORY_RUNS <= len(left) + len(right)
    if numbers:
        kinds = _by_category(left, right) if repeating else _binned(_as_numbers, left, right)
        return [_as_numbers, lambda outputs: -_as_numbers(outputs), kinds]
    if not repeating and all(_is_vector(output) for output in (*left, *right)) and len({len(v) for v in (*left, *right)}) == 1:  # type: ignore[arg-type]
        project = _projection(left, right)
        return [project, _binned(project, left, right)]
    return [_by_category(left, right)]


def _is_number(output: object) -> bool:
    return isinstance(output, Real) and output == output


def _is_vector(output: object) -> bool:
    return isinstance(output, tuple) and len(output) > 0 and all(_is_number(part) for part in output)


def _as_numbers(outputs: Sequence[Output]) -> Floats:
    return np.asarray(outputs, dtype=np.float64)


def _projection(left: Sequence[Output], right: Sequence[Output]) -> Score[Output]:
    a, b = _as_numbers(left), _as_numbers(right)
    direction = (b.mean(axis=0) - a.mean(axis=0)) / (a.var(axis=0) + b.var(axis=0) + 1e-12)

    def project(outputs: Sequence[Output]) -> Floats:
        projected: Floats = _as_numbers(outputs) @ direction
        return projected

    return project


def _ratio(on_left: Floats, on_right: Floats) -> Floats:
    """Log ratio of two counts, with half a hit added to each, so that a rare output does not have infinite weight."""
    smoothed: Floats = np.log((on_right + 0.5) / (on_right.sum() + 1.0)) - np.log((on_left + 0.5) / (on_left.sum() + 1.0))
    return smoothed


def _by_category(left: Sequence[Output], right: Sequence[Output]) -> Score[Output]:
    on_left, on_right = Counter(left), Counter(right)
    names = list(on_left | on_right)
    ratios = _ratio(np.array([on_left[name] for name in names], dtype=float), np.array([on_right[name] for name in names], dtype=float))
    known = dict(zip(names, ratios.tolist(), strict=True))

    def score(outputs: Sequence[Output]) -> Floats:
        # an output that never occurred has no weight
        return np.array([known.get(output, 0.0) for output in outputs], dtype=np.float64)

    return score


def _binned(feature: Score[Output], left: Sequence[Output], right: Sequence[Output]) -> Score[Output]:
    a, b = feature(left), feature(right)
    edges = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0.0, 1.0, _BINS + 1)[1:-1]))
    count = len(edges) + 1
    places = (np.searchsorted(edges, a, side="right"), np.searchsorted(edges, b, side="right"))
    ratios = _ratio(*(np.bincount(place, minlength=count).astype(np.float64) for place in places))

    def score(outputs: Sequence[Output]) -> Floats:
        scored: Floats = ratios[np.searchsorted(edges, feature(outputs), side="right")]
        return scored

    return score
