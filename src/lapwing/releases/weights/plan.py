"""A session of weights before it is opened: its noise, price, promised error, and the cost of alternatives.

Everything follows from public facts. The allowed error is divided: the threshold is two thirds of it, and the noise of a comparison may
be the other third. A fresh count may be off by a sixth, so that the weights are updated in the right direction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from lapwing.errors import Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account
from lapwing.kernel.count_stream import CertifiedStream, StreamPlan, certify_stream
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Scan
from lapwing.kernel.laws import SCALE_MAX, SCALE_MIN, DiscreteGaussian, DiscreteLaplace, Law, loss
from lapwing.releases.explanation import VARIANCE_MIN
from lapwing.releases.marginals.axes import Axis
from lapwing.releases.marginals.workload import subsets
from lapwing.releases.plan import planned_release
from lapwing.releases.request import Bins, Marginals, ReleaseRequest
from lapwing.releases.sections import sections_of
from lapwing.releases.serving.weighted_sums import reach_of
from lapwing.releases.weights.multiplicative_weights import CELLS_MAX
from lapwing.spread import half_width

SUMMARY = "weights "
"""The prefix of the ledger's line of a session of weights."""
COMPARED_WAYS = 3
"""Columns per question in the release that a session is compared with."""


@dataclass(frozen=True, slots=True)
class WeightsRequest:
    """A request for a session of weights."""

    table: str
    columns: tuple[str, ...]
    bins: tuple[tuple[str, Bins], ...]
    alpha: Fraction
    starts: int
    confidence: Fraction
    rows: int
    rows_per_unit: int = 1
    start: str = ""
    """The name of the release that the weights start from; empty for a uniform start."""
    name: str = ""
    """Distinguishes the session from equal ones."""

    def text(self) -> str:
        """The request as one line, for the ledger."""
        bins = {column: cut if isinstance(cut, int) else [str(edge) for edge in cut] for column, cut in self.bins}
        about: dict[str, Any] = {
            "table": self.table,
            "columns": list(self.columns),
            "bins": bins,
            "alpha": str(self.alpha),
            "starts": self.starts,
            "confidence": str(self.confidence),
            "rows": self.rows,
            "rows_per_unit": self.rows_per_unit,
            "start": self.start,
            "name": self.name,
        }
        return SUMMARY + json.dumps(about, ensure_ascii=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class PlannedWeights:
    """A session that can be opened: its stream is certified."""

    request: WeightsRequest
    axes: tuple[Axis, ...]
    stream: StreamPlan
    certified: CertifiedStream

    @property
    def near_error(self) -> int:
        """The largest error of the weights' estimate, with the session's confidence, if a count was found to be near."""
        return self.stream.threshold + _compared_noise(self.stream.of_threshold, self.request.confidence)

    @property
    def fresh_error(self) -> int:
        """The largest error of a fresh count, with the session's confidence."""
        return half_width(self.stream.of_count, confidence=self.request.confidence)

    @property
    def least_apart(self) -> int:
        """The least distance of the weights from a count that was not near, with the session's confidence."""
        return max(self.stream.threshold - _compared_noise(self.stream.of_threshold, self.request.confidence), 1)

    @property
    def updates_max(self) -> int:
        """The number of updates after which the weights are near every count if the noise is within its bounds:
        docs/explanation/weights.md."""
        apart = max(self.least_apart - 1, 1) / self.request.rows  # the weights say whole rows
        return math.ceil(math.log(math.prod(axis.size for axis in self.axes)) / apart**2)


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Alternatives for the same counts, in losses of the account: one direct count, and a release of marginals for all of them."""

    session: Fraction
    direct: Fraction
    release: Fraction | None
    """None where such a release would be too large."""
    ways: int

    @property
    def direct_counts(self) -> int:
        """How many direct counts within the same error cost as much as the session."""
        return math.floor(self.session / self.direct)


def planned_weights(request: WeightsRequest, facts: Facts) -> PlannedWeights:
    """The cheapest session with the requested error: ``alpha`` of all rows, at the confidence, for each question."""
    axes = weights_axes(request.table, Marginals(*request.columns, ways=1, bins=dict(request.bins)), facts)
    cells = math.prod(axis.size for axis in axes)
    if cells > CELLS_MAX:
        hint = "cut columns into fewer bins, or leave some out"
        raise Refused("weights-cells", f"the columns have {cells:,} combinations; at most {CELLS_MAX:,}", hint=hint)
    allowed = math.floor(request.alpha * request.rows) if 0 < request.alpha < 1 else 0
    noise = allowed // 3
    if noise < 1:
        message = f"alpha = {float(request.alpha):g} is not between 0 and 1, or too small a share of {request.rows:,} rows"
        raise Refused("weights-alpha", message, hint="the allowed error must be at least three rows")
    of_threshold = DiscreteLaplace(_widest(lambda scale: _compared_noise(DiscreteLaplace(scale), request.confidence) <= noise))
    of_distance = DiscreteLaplace(2 * of_threshold.scale)
    of_count = _law_within(max(noise // 2, 1), facts, request.confidence)
    rows = Scan(request.table, min(request.rows_per_unit, facts.table(request.table).rows_per_unit_max))
    stream = StreamPlan(rows, request.columns, request.starts, allowed - noise, of_threshold, of_distance, of_count, request.name)
    return PlannedWeights(request, axes, stream, certify_stream(stream, facts))


def weights_axes(table: str, wanted: Marginals, facts: Facts) -> tuple[Axis, ...]:
    """The columns in bins."""
    return sections_of(ReleaseRequest("weights", table, (wanted,)), facts)[0].axes


def other_ways(planned: PlannedWeights, facts: Facts) -> Alternatives:
    """The cost of direct counts, and of a release of marginals, with the same error."""
    request, reach = planned.request, planned.certified.reach
    error = planned.stream.threshold * 3 // 2
    law = _law_within(error, facts, request.confidence)
    direct = loss(law, facts.account, l1=reach, l2_squared=reach**2, order=facts.order)
    session = Fraction(planned.certified.cost.loss, LOSS_UNITS)
    ways = min(COMPARED_WAYS, len(request.columns))
    return Alternatives(session, direct, _release_loss(planned, facts, ways=ways, error=error, session=session), ways)


def _compared_noise(law: DiscreteLaplace, confidence: Fraction) -> int:
    """A bound on the noise of a threshold and of a distance, which is twice as wide, together."""
    sure = 1 - (1 - confidence) / 2
    return half_width(law, confidence=sure) + half_width(DiscreteLaplace(2 * law.scale), confidence=sure)


def _law_within(error: int, facts: Facts, confidence: Fraction) -> Law:
    """The cheapest noise of one count that stays within an error."""
    family = DiscreteGaussian if facts.account is Account.APPROXIMATE and facts.order is None else DiscreteLaplace
    return family(_widest(lambda scale: half_width(family(scale), confidence=confidence) <= error))


def _widest(fits: Callable[[Fraction], bool]) -> Fraction:
    """The largest scale that fits, to within a thousandth; the least scale if none fits."""
    low, high = SCALE_MIN, SCALE_MAX / 4
    while high > low * Fraction(1001, 1000):
        middle = Fraction(math.sqrt(float(low) * float(high)))
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _release_loss(planned: PlannedWeights, facts: Facts, *, ways: int, error: int, session: Fraction) -> Fraction | None:
    """The loss of a release of all marginals over this many columns that answers a count over half of the bins of each within an error."""
    request = planned.request
    wanted = ReleaseRequest(
        "compared", request.table, (Marginals(*request.columns, ways=ways, bins=dict(request.bins)),), planned.certified.reach
    )
    try:
        (release,) = planned_release(wanted, facts, loss=session, rows=float(request.rows)).sections
    except Refused:
        return None
    variances = dict(zip(release.tables, release.variances, strict=True))
    deviation = max(_deviation_of_half(release.sizes, variances, axes) for axes in combinations(range(len(request.columns)), ways))
    pure = facts.account is Account.PURE
    stretch = Fraction(reach_of(request.confidence, laplace=pure) * deviation / error)
    return session * (stretch if pure else stretch**2)


def _deviation_of_half(sizes: Sequence[int], variances: Mapping[tuple[int, ...], float], axes: tuple[int, ...]) -> float:
    """The deviation of a count of half of the bins of each of these axes, from all tables combined (docs/explanation/releases.md)."""
    precisions: dict[tuple[int, ...], float] = {}
    for table, variance in variances.items():
        for part in subsets(table):
            apart = math.prod(sizes[axis] for axis in table if axis not in part)
            precisions[part] = precisions.get(part, 0.0) + 1.0 / (max(variance, VARIANCE_MIN) * apart)
    halves = {axis: max(1, sizes[axis] // 2) for axis in axes}

    def share(axis: int, inside: bool) -> float:
        half, size = halves[axis], sizes[axis]
        return half * (1.0 - half / size) if inside else (half / size) ** 2

    return math.sqrt(math.fsum(math.prod(share(axis, axis in part) for axis in axes) / precisions[part] for part in subsets(axes)))
