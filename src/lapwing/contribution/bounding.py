"""The choice of bounding plan and parameter: least predicted total error, from truncation and noise together.

Inputs are public: declared domains, bought or assumed contributions, the share of rows a filter keeps by its text. Every candidate can be
certified; the choice affects accuracy and speed only. Ranked plans are near the bare engine's speed, bounding after the filter costs a
GROUP BY on the unit, so the latter has to be clearly better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from lapwing.contribution.row_sample import RankError, best_limit
from lapwing.contribution.rows_per_unit import Contributions
from lapwing.kernel.accounting import Account
from lapwing.kernel.neighbours import Neighbours

WORTH_A_SHUFFLE = 0.8
"""Bounding after the filter is chosen when its predicted error is below this share of the ranked one."""
NEGLIGIBLE = 0.1
"""When noise stays below this many rows even at the cap, no row is left out."""
SELECTIVE = 0.2
"""After a filter that keeps less than this, a GROUP BY on the unit is cheap."""
SKEW = 1.35
"""Assumed ratio of the root mean square to the mean of the loss per group: large groups lose most (1.34 for weights i^-0.7)."""
GROUPED_WASTE = 1.5
"""Assumed loss of the grouped plan: that of a limit smaller by this factor."""
DISTINCT_ROWS = 4.0
"""Rows of each unit that count towards distinct values of undeclared number: values that many units share occur in any of
them.
"""
DISCOVERED_GROUPS_MIN = 50
"""Assumed least number of discovered groups."""
KEY_THRESHOLD = 7.0
"""Units that a group needs to be released, in standard deviations of the noise of their number."""
CONCENTRATION = 0.85
"""Assumed ratio of the Euclidean norm of a unit's counts over groups to their sum, when there are several groups."""


@dataclass(frozen=True, slots=True)
class BoundingInputs:
    """The inputs of the choice."""

    contributions: Contributions
    rows_per_unit_max: int
    kept: float
    """Share of rows the filter keeps."""
    cells: int | None
    """Known cells, or None when groups are discovered."""
    account: Account
    loss_per_vector: float
    """Loss each vector gets: epsilon, or rho."""
    has_average: bool
    units_only: bool
    """Only distinct units are counted: a unit moves each of its groups by 1, whatever its rows."""
    loss_weight: float = 1.0
    """Weight of a lost row over all vectors: 1 for counts, less if only averages are requested."""
    noise_weight: float = 1.0
    """Noise of a vector that one row moves by its largest value, in typical values: 1 for counts, more for sums."""
    distinct: bool = False
    """Distinct values are counted: only ranked bounding applies, and a few rows of each unit already contain most values."""
    ratios: bool = False
    """Moments or quantiles are requested: all rows must have equal weight, so only a limit on rows applies."""
    ranks: tuple[RankError, ...] = ()
    """The errors of the requested quantiles, if nothing else is requested and their limit is chosen by their errors in ranks."""
    computed: bool = False
    """Rows are themselves computed from several rows of a unit: with fewer of these they have other values."""
    fans_out: bool = False
    """Rows are joined to several rows each: bounding before the join would lose most pairs."""
    keeps_rows: bool = False
    """Windows read rows together: no row may be left out before."""
    blocks: int = 1
    """Over how many blocks of time one unit has rows: a limit on rows holds within each block, so limits are multiples of this."""
    values: int | None = None
    """The declared maximum number of distinct values, if they are counted."""
    keys_only: bool = False
    """Only the groups themselves are requested: the only noise is that of partition selection, which does not grow with a unit's rows."""
    real_keys: bool = False
    """Some key is a computed real, so a unit's groups cannot be chosen."""

    @property
    def groups_guess(self) -> int:
        """The assumed number of groups if they are discovered: as many as could have about the units that a released group needs.

        Every released group has more units, and only released groups matter.
        """
        shown = self.contributions.thinned(min(self.kept, 1.0)).units() / (KEY_THRESHOLD * self.unit_noise)
        return max(DISCOVERED_GROUPS_MIN, round(shown))

    @property
    def unit_noise(self) -> float:
        """Standard deviation of the noise of a vector that one unit moves by 1."""
        return unit_noise_of(self.account, self.loss_per_vector, Neighbours.UNBOUNDED)


def unit_noise_of(account: Account, loss: float, neighbours: Neighbours) -> float:
    """Standard deviation of the noise of a vector of counts that one unit moves by 1."""
    replaced = 2 if neighbours is Neighbours.BOUNDED else 1
    return replaced * math.sqrt(2) / loss if account is Account.PURE else math.sqrt(replaced / (2 * loss))


class BoundingKind(Enum):
    """The available bounding plans."""

    RANKED = "ranked"
    """Rows are left out before the filter, by a random rank drawn at preparation."""
    CLIPPED = "clipped"
    """After the filter, a unit's vector over the groups is clipped to a norm."""
    GROUPED = "grouped"
    """After the filter, a unit keeps a few groups, and a few rows in each."""


@dataclass(frozen=True, slots=True)
class BoundingPlan:
    """A bounding plan with its parameter and prediction, in rows per cell."""

    kind: BoundingKind
    limit: float
    """Rows per unit (ranked), norm (clipped) or rows per unit after the filter (grouped)."""
    truncation: float
    noise: float

    @property
    def error(self) -> float:
        """Predicted root mean square error of a count cell."""
        return math.hypot(self.truncation, self.noise)

    def weighed(self, situation: BoundingInputs) -> float:
        """The same over all vectors of the statement: the minimised quantity."""
        return math.hypot(situation.loss_weight * self.truncation, situation.noise_weight * self.noise)


def choose(situation: BoundingInputs) -> BoundingPlan:
    """The chosen plan."""
    if situation.rows_per_unit_max == 1 or situation.keys_only or (situation.units_only and situation.cells == 1):
        return BoundingPlan(BoundingKind.RANKED, float(situation.rows_per_unit_max), 0.0, situation.unit_noise)
    full = _ranked(situation, float(situation.rows_per_unit_max))
    if full.noise < NEGLIGIBLE:
        return full  # leaving out rows gains nothing
    if situation.distinct:
        return _distinct(situation)
    if situation.ranks:
        return _of_ranks(situation)
    ranked = best_ranked(situation)
    after = _after_filter(situation)
    if after is None:
        return ranked
    if situation.fans_out or (situation.cells is None and after.kind is BoundingKind.CLIPPED):
        # Discovering groups takes a step per unit anyway, and a unit that keeps all its rows counts in all its groups.
        return after
    nothing_to_gain = situation.kept >= 1.0 and situation.cells == 1
    worth = WORTH_A_SHUFFLE if situation.kept > SELECTIVE else 1.0
    better = after.weighed(situation) < worth * ranked.weighed(situation)
    return after if better and not nothing_to_gain else ranked


def best_ranked(situation: BoundingInputs) -> BoundingPlan:
    """The best limit on rows before the filter."""
    return _best(situation, (_ranked(situation, limit) for limit in _row_limits(situation)))


def _row_limits(situation: BoundingInputs) -> list[float]:
    """Candidate limits on rows before the filter."""
    most, step = situation.rows_per_unit_max, situation.blocks
    return [float(most)] if situation.keeps_rows else [step * limit for limit in candidate_limits(max(1, most // step), whole=True)]


def _best(situation: BoundingInputs, choices: Iterable[BoundingPlan]) -> BoundingPlan:
    return min(choices, key=lambda choice: choice.weighed(situation))


def candidate_limits(most: int, *, whole: bool) -> list[float]:
    """Candidate limits, closer than a tenth apart."""
    # Below one row every unit would be scaled down: less noise, but a biased answer.
    value = 1.0
    limits = {value, float(most)}
    while value < most:
        limits.add(float(round(value)) if whole else value)
        value *= 1.08
    return sorted(limits)


def _cells(situation: BoundingInputs) -> float:
    """The effective number of groups that share a loss; fewer than the actual number, because group sizes differ."""
    cells = situation.groups_guess if situation.cells is None else situation.cells
    return cells / SKEW if cells > 1 else 1.0


def _distinct(situation: BoundingInputs) -> BoundingPlan:
    """The rows of each unit that are needed to show the values: one if there are many more units than values.

    Of ``values`` values that are equally frequent, ``values * exp(-rows / values)`` are expected to be in none of the rows read.
    """
    most = float(situation.rows_per_unit_max)
    if situation.values is None:
        return _ranked(situation, most if situation.keeps_rows else min(most, DISTINCT_ROWS))
    values, per_cell = situation.values, situation.kept / _cells(situation)

    def error(limit: float) -> float:
        rows = per_cell * (situation.contributions.rows() - situation.contributions.excess(limit))
        return math.hypot(values * math.exp(-rows / values), situation.unit_noise * limit)

    return _ranked(situation, min(_row_limits(situation), key=error))


def _of_ranks(situation: BoundingInputs) -> BoundingPlan:
    """The limit for which quantiles have the least error."""
    cells = float(situation.groups_guess if situation.cells is None else situation.cells)
    kept = min(situation.kept, 1.0)
    limit = best_limit(
        situation.contributions, _row_limits(situation), situation.ranks, kept=kept, cells=max(cells, 1.0), computed=situation.computed
    )
    return _ranked(situation, limit)


def lost_share(situation: BoundingInputs, choice: BoundingPlan) -> float:
    """Predicted share of the rows that a bounding plan leaves out."""
    rows = situation.kept * situation.contributions.rows()
    return min(choice.truncation * _cells(situation) / rows, 1.0) if rows > 0 else 0.0


def _ranked(situation: BoundingInputs, limit: float) -> BoundingPlan:
    missing = situation.kept * situation.contributions.excess(limit) / _cells(situation)
    return BoundingPlan(
        BoundingKind.RANKED, limit, missing, situation.unit_noise * (_units_norm(situation, limit) if situation.units_only else limit)
    )


def _units_norm(situation: BoundingInputs, limit: float) -> float:
    """Norm of a unit's vector of ones over at most ``limit`` groups, for the account's noise."""
    groups = limit if situation.cells is None else min(limit, situation.cells)
    return math.sqrt(groups) if situation.account is Account.APPROXIMATE else groups


def _after_filter(situation: BoundingInputs) -> BoundingPlan | None:
    """Clipped where the noise is Gaussian, else grouped; None if neither applies to the statement."""
    clip = situation.account is Account.APPROXIMATE and not situation.units_only
    if situation.ratios or (not clip and (situation.has_average or situation.real_keys)):
        return None
    several = situation.cells != 1
    spread = CONCENTRATION if clip and several else 1.0
    gaussian = situation.account is Account.APPROXIMATE
    share = situation.kept if situation.kept < 1.0 else 1.0

    def candidate(limit: float) -> BoundingPlan:
        # The first row of a unit lies in one group; only further ones can spread.
        rows = limit if limit <= 1 else 1 + (limit - 1) / spread
        norm = limit
        if situation.units_only:
            norm = _units_norm(situation, limit)
        elif not clip and several:
            # A unit with more groups, or more rows of one group, than its share loses rows even below the limit.
            rows /= GROUPED_WASTE
            groups = groups_for(limit, situation.cells)
            norm = math.sqrt(groups) * math.ceil(limit / groups) if gaussian else limit
        missing = situation.contributions.excess(rows, share=share) / _cells(situation)
        return BoundingPlan(BoundingKind.CLIPPED if clip else BoundingKind.GROUPED, limit, missing, situation.unit_noise * norm)

    return _best(situation, (candidate(limit) for limit in candidate_limits(situation.rows_per_unit_max, whole=not clip)))


def groups_for(limit: float, cells: int | None) -> int:
    """The number of groups of a unit with ``limit`` rows: the square root, so that it equals the rows per group."""
    return 1 if cells == 1 else max(1, round(math.sqrt(limit)))
