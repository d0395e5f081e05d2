"""The measured marginals and the division of the price among them, from public facts alone: sizes of axes and the workload.

With Gaussian noise the price is the sum of precisions, and the best division is a convex problem: multiplicative updates converge to it,
and a lower bound shows how near they are. With a pure guarantee the price is the sum of the inverse Laplace scales, so precision grows with
the square of the price and few tables are best: the problem is not convex and is solved from several starts and by exchanges between two
tables.

A division does not depend on the price: all deviations shrink together as more is paid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from lapwing.releases.marginals.synopsis import Axes, Floats
from lapwing.releases.marginals.workload import NoiseModel, Workload, WorkloadQuery, total

Objective: TypeAlias = Literal["rmse", "l1", "max"]
"""The minimised objective: the mean squared error of a cell, the mean absolute error of a cell, or the largest half-width."""

ROUNDS_MAX = 2_000
GAP = 1e-4
"""Relative distance to the optimum at which the search stops (Gaussian noise)."""

DROPPING = 1e-3
"""How much the value may grow when useless tables are left out: each costs a pass over the data."""

PURE_ROUNDS = 200
EXCHANGE_WORK = 30_000_000
"""Maximum number of entries that are examined for exchanges (half a second). If one round over all pairs of tables exceeds it, none is
tried."""

_NOTHING = 1e-12


@dataclass(frozen=True, slots=True)
class PriceSplit:
    """The tables to measure, each with its share of the price (shares add up to one), and the resulting errors.

    A price is an epsilon where ``pure``, else a loss rho of zCDP. The reach is by how much one unit changes a whole table (the L1 norm
    where pure, else the L2 norm); it is the same for all tables. ``within`` says how far the value of the objective is from the least
    possible at most, as a part of it; None where that is not known.
    """

    sizes: Axes
    pure: bool
    tables: tuple[Axes, ...]
    shares: tuple[float, ...]
    within: float | None

    def table_variances(self, price: float, *, reach: float = 1.0) -> tuple[float, ...]:
        """The variance of the noise in a cell of each table."""
        return tuple(self._unit(price, reach) / _precision(share, self.pure) for share in self.shares)

    def deviations(self, wanted: Sequence[WorkloadQuery], price: float, *, reach: float = 1.0) -> tuple[float, ...]:
        """The standard deviation of the best estimate of each wanted count; infinite if no table determines it."""
        workload = Workload(self.sizes, wanted, further=self.tables)
        number = {axes: index for index, axes in enumerate(workload.tables)}
        thetas = np.zeros(len(workload.tables))
        for axes, share in zip(self.tables, self.shares, strict=True):
            thetas[number[axes]] = _precision(share, self.pure)
        unit = self._unit(price, reach)
        return tuple(math.sqrt(variance * unit) for variance in workload.variances(workload.precisions(thetas)).tolist())

    def cell_deviations(self, marginals: Sequence[Axes], price: float, *, reach: float = 1.0) -> tuple[float, ...]:
        """The standard deviation of a cell of each marginal."""
        return self.deviations([WorkloadQuery(axes) for axes in marginals], price, reach=reach)

    def total_variations(self, marginals: Sequence[Axes], price: float, *, rows: int, reach: float = 1.0) -> tuple[float, ...]:
        """The expected distance of each marginal from the truth in total variation, if the table has this many rows; at most 1.

        Errors are treated as normal. Those of Laplace noise without sums are smaller by an eighth.
        """
        deviations = self.cell_deviations(marginals, price, reach=reach)
        cells = [math.prod(self.sizes[axis] for axis in axes) for axes in marginals]
        return tuple(
            min(1.0, 0.5 * count * math.sqrt(2.0 / math.pi) * deviation / rows) for count, deviation in zip(cells, deviations, strict=True)
        )

    def _unit(self, price: float, reach: float) -> float:
        """The factor for variances at a price of one, in sums of precisions or of rates."""
        if not (price > 0.0 and reach > 0.0):
            raise ValueError("a price and a reach are above 0")
        return (reach / price) ** 2 if self.pure else reach * reach / (2.0 * price)


@dataclass(frozen=True, slots=True)
class TargetPrice:
    """The least price found at which every deviation is within its target, and its division."""

    price: float
    split: PriceSplit


def price_split(
    sizes: Sequence[int], wanted: Sequence[WorkloadQuery], *, pure: bool, objective: Objective = "l1", further: Sequence[Axes] = ()
) -> PriceSplit:
    """The division of a price that minimises the objective. Tables over the axes in ``further`` may be measured too."""
    return _best(Workload(sizes, wanted, further=further), pure=pure, objective=objective)[0]


def target_price(
    sizes: Sequence[int],
    wanted: Sequence[WorkloadQuery],
    deviations: Sequence[float],
    *,
    pure: bool,
    reach: float = 1.0,
    further: Sequence[Axes] = (),
) -> TargetPrice:
    """The least price at which each wanted count has at most its deviation; weights are ignored."""
    if len(wanted) != len(deviations) or not all(deviation > 0.0 for deviation in deviations):
        raise ValueError("a deviation above 0 for each wanted count")
    scaled = [WorkloadQuery(each.axes, 1.0 / deviation, each.bins) for each, deviation in zip(wanted, deviations, strict=True)]
    split, value = _best(Workload(sizes, scaled, further=further), pure=pure, objective="max")
    return TargetPrice(math.sqrt(value) * reach if pure else 0.5 * value * reach * reach, split)


def best_shares(model: NoiseModel, *, pure: bool, objective: Objective) -> tuple[Floats, float, float | None]:
    """A share of the price for each table, the value of the objective at a price of one, and a bound on its distance to the optimum."""
    value_of = _value(model, objective)
    bound: float | None = None
    if pure:
        shares = _with_laplace(model, objective)
    else:
        shares, bound = _with_gaussian(model, objective)
    shares, value = _without_idle(model, shares, value_of, pure)
    return shares, value, None if bound is None else max(0.0, value / bound - 1.0)


def _best(workload: Workload, *, pure: bool, objective: Objective) -> tuple[PriceSplit, float]:
    shares, value, within = best_shares(workload, pure=pure, objective=objective)
    kept = np.flatnonzero(shares)
    tables = tuple(workload.tables[index] for index in kept)
    return PriceSplit(workload.sizes, pure, tables, tuple(float(shares[index]) for index in kept), within), value


def _precision(share: float, pure: bool) -> float:
    """One over the variance of a cell: of Laplace noise with scale b it is 1 / (2 b^2)."""
    return 0.5 * share * share if pure else share


def _thetas(shares: Floats, pure: bool) -> Floats:
    return 0.5 * shares * shares if pure else shares


def _value(model: NoiseModel, objective: Objective) -> Callable[[Floats], Floats]:
    """The objective as a function of variances: a sum of variances, a sum of deviations, or the largest variance."""
    weights = model.weights * model.counts
    match objective:
        case "rmse":
            return lambda variances: total(weights * variances)
        case "l1":
            return lambda variances: total(weights * np.sqrt(variances))
        case "max":
            squared = model.weights * model.weights
            return lambda variances: np.asarray(np.max(squared * variances, axis=-1), dtype=np.float64)


class _Pull:
    """The present weight of each variance: fixed for squared errors, by its deviation for absolute ones, learnt for the largest."""

    def __init__(self, model: NoiseModel, objective: Objective) -> None:
        self._objective = objective
        self._weights: Floats = model.weights * (model.counts if objective != "max" else model.weights)
        self._blame = np.full(len(model.weights), 1.0 / len(model.weights))

    def of(self, variances: Floats) -> Floats:
        match self._objective:
            case "rmse":
                return self._weights
            case "l1":
                return np.asarray(0.5 * self._weights / np.sqrt(variances), dtype=np.float64)
            case "max":
                return np.asarray(self._weights * self._blame, dtype=np.float64)

    def lower_bound(self, variances: Floats, slopes: Floats, value: float) -> float:
        """A lower bound for all divisions, by the convexity of the objective and its degree in the price (-1, or -1/2)."""
        steepest = float(np.max(slopes))
        match self._objective:
            case "rmse":
                return value * value / steepest
            case "l1":
                return value * math.sqrt(0.5 * value / steepest)
            case "max":
                blamed = float(total(self._weights * self._blame * variances))
                return blamed * blamed / steepest

    def learn(self, variances: Floats) -> None:
        if self._objective == "max":
            self._blame = _normal(self._blame * np.sqrt(self._weights * variances))


def _with_gaussian(model: NoiseModel, objective: Objective) -> tuple[Floats, float]:
    """Multiplicative updates from equal shares: a share grows with the square root of its slope. Also returns the best lower bound
    found."""
    value_of, pull = _value(model, objective), _Pull(model, objective)
    shares = np.full(model.count, 1.0 / model.count)
    best, least, bound = shares, math.inf, 0.0
    for _ in range(ROUNDS_MAX):
        precisions = model.precisions(shares)
        variances = model.variances(precisions)
        value = float(value_of(variances))
        slopes = model.slopes(precisions, pull.of(variances))
        if value < least:
            best, least = shares, value
        bound = max(bound, pull.lower_bound(variances, slopes, value))
        if least <= (1.0 + GAP) * bound:
            break
        pull.learn(variances)
        shares = _normal(shares * np.sqrt(slopes))
    return best, bound


def _with_laplace(model: NoiseModel, objective: Objective) -> Floats:
    """Updates from several starts, and then exchanges between two tables while one helps."""
    value_of = _value(model, objective)
    shares = min((_descended(model, objective, start) for start in _starts(model)), key=lambda each: each[1])[0]
    return _exchanged(model, shares, value_of)


def _starts(model: NoiseModel) -> list[Floats]:
    """Equal shares, the largest tables only, and uneven ones: updates never separate equal shares of similar tables."""
    numbers = np.arange(1.0, model.count + 1.0)
    scattered = (numbers * 0.6180339887498949) % 1.0
    return [
        _normal(each) for each in (np.ones(model.count), model.largest(), numbers, numbers[::-1].copy(), scattered * scattered + _NOTHING)
    ]


def _descended(model: NoiseModel, objective: Objective, shares: Floats) -> tuple[Floats, float]:
    """Each update minimises a bound that touches the value (a share to the power 4/3 times its slope to 1/3), three quarters of the way."""
    value_of, pull = _value(model, objective), _Pull(model, objective)
    best, least = shares, math.inf
    for _ in range(PURE_ROUNDS):
        precisions = model.precisions(_thetas(shares, pure=True))
        variances = model.variances(precisions)
        value = float(value_of(variances))
        if not math.isfinite(value):
            break
        if value < least:
            best, least = shares, value
        worth = shares * model.slopes(precisions, pull.of(variances))
        pull.learn(variances)
        shares = _normal(shares * np.sqrt(np.sqrt(worth / float(np.max(worth)))))
    return best, least


def _exchanged(model: NoiseModel, shares: Floats, value_of: Callable[[Floats], Floats]) -> Floats:
    """Move parts of one table's share to another while that helps."""
    count = model.count
    parts = np.array([1.0, 0.5, 0.25, 0.0625, 0.015625])
    value = float(value_of(model.variances(model.precisions(_thetas(shares, pure=True)))))
    effort = model.entries * count * len(parts)
    work, improved = effort * np.count_nonzero(shares), True
    while improved and work <= EXCHANGE_WORK:
        improved = False
        for giver in np.flatnonzero(shares):
            moved = np.repeat(shares[None, :], count * len(parts), axis=0)
            given = np.repeat(parts * shares[giver], count)
            moved[:, giver] -= given
            moved[np.arange(len(moved)), np.tile(np.arange(count), len(parts))] += given
            variances = model.variances(model.precisions(_thetas(moved, pure=True)))
            values = value_of(variances)
            chosen = int(np.argmin(values))
            if values[chosen] < (1.0 - 1e-6) * value:
                shares, value, improved = _normal(moved[chosen]), float(values[chosen]), True
        work += effort * np.count_nonzero(shares)
    return shares


def _without_idle(model: NoiseModel, shares: Floats, value_of: Callable[[Floats], Floats], pure: bool) -> tuple[Floats, float]:
    """Drop the smallest shares as long as the value hardly changes."""

    def valued(each: Floats) -> float:
        return float(value_of(model.variances(model.precisions(_thetas(each, pure)))))

    value = valued(shares)
    for part in (0.1, 0.03, 0.01, 0.001, 1e-6):
        kept = _normal(np.where(shares < part / np.count_nonzero(shares), 0.0, shares))
        if valued(kept) <= (1.0 + DROPPING) * value:
            return kept, valued(kept)
    return shares, value


def _normal(shares: Floats) -> Floats:
    """Normalised to sum 1, without shares of 0."""
    shares = shares / total(shares)
    return np.where(shares < _NOTHING, 0.0, shares)
