"""Multiplicative weights for a known list of linear queries: the textbook's algorithm, with its exact law on small universes.

A *model* of the data is a law over the universe; it starts uniform. In each round the query that the model answers worst is chosen by the
exponential mechanism, its true count is measured with Laplace noise, and if the two are far apart the weights of the records that the query
counts are made smaller or larger. Each update brings the model nearer to the data, so few are needed however many queries there are (Hardt
and Rothblum 2010; Hardt, Ligett and McSherry 2012). Only the choices and the noisy counts depend on the data: the model and its answers
are computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import ln_upper, require_exact
from lapwing.mechanisms.additive import LaplaceMechanism
from lapwing.mechanisms.selection import ExponentialMechanism
from lapwing.theory.databases import Histogram

Model: TypeAlias = tuple[Fraction, ...]
"""A probability for each record of the universe."""

LinearQuery: TypeAlias = tuple[int, ...]
"""0 or 1 for each record of the universe: whether the query counts it."""

Round: TypeAlias = tuple[int, int]
"""The index of the chosen query, and its noisy count."""


def uniform(cells: int) -> Model:
    """The uniform model, which contains no information on the data."""
    if cells < 1:
        raise LapwingError("theory-argument", "a universe must have at least one record")
    return (Fraction(1, cells),) * cells


def answered(model: Sequence[Fraction], query: LinearQuery) -> Fraction:
    """The share of people that the query counts, according to the model."""
    return sum((chance for chance, counted in zip(model, query, strict=True) if counted), Fraction(0))


def updated(model: Model, query: LinearQuery, *, above: bool, rate: Fraction) -> Model:
    """The model with less weight on the records that the query counts, if its answer is above the truth; else with more.

    ``p_i (1 - s rate q_i)``, normalised, with ``s`` the sign of the error. If the error is at least ``alpha`` and the rate ``alpha / 2``,
    the Kullback-Leibler divergence of the data from the model falls by at least ``alpha^2 / 4``.
    """
    require_exact(rate)
    if not 0 < rate <= Fraction(1, 2):
        raise LapwingError("theory-argument", "the rate of an update must be positive and at most 1/2")
    moved = [chance * (1 - (rate if above else -rate) * counted) for chance, counted in zip(model, query, strict=True)]
    whole = sum(moved, Fraction(0))
    return tuple(chance / whole for chance in moved)


def updates_max(cells: int, *, alpha: Fraction) -> int:
    """The maximum number of updates until every query is within ``alpha``: ``4 ln(cells) / alpha^2``.

    The divergence is at most ``ln(cells)`` at the start, never negative, and falls by ``alpha^2 / 4`` each time.
    """
    require_exact(alpha)
    if alpha <= 0 or cells < 1:
        raise LapwingError("theory-argument", "an accuracy must be positive, and a universe must have at least one record")
    return math.floor(4 * ln_upper(Fraction(cells)) / Fraction(alpha) ** 2)


@dataclass(frozen=True, slots=True)
class PrivateWeights:
    """Rounds of the algorithm over queries about a database of ``n`` rows (``n`` is public: neighbours have one row replaced).

    ``threshold`` is the least difference, in rows, between the noisy count and the model's for an update at ``rate``; ``clamp`` bounds
    noisy counts, so that there are finitely many. Choice and noise have one decay: ``odds`` for each round is that of a choice whose scores
    move by 1 either way, times that of one count.
    """

    cells: int
    queries: tuple[LinearQuery, ...]
    n: int
    rounds: int
    rate: Fraction
    threshold: Fraction
    clamp: tuple[int, int]

    def __post_init__(self) -> None:
        require_exact(self.rate, self.threshold)
        if self.n < 1 or self.rounds < 1 or not self.queries or any(len(query) != self.cells for query in self.queries):
            raise LapwingError("theory-argument", "there must be rows, rounds and queries, and a query must have a value for each record")

    def model(self, transcript: Sequence[Round]) -> Model:
        """The model after these rounds, computed without the data."""
        model = uniform(self.cells)
        for chosen, count in transcript:
            expected = self.n * answered(model, self.queries[chosen])
            if abs(expected - count) >= self.threshold:
                model = updated(model, self.queries[chosen], above=expected > count, rate=self.rate)
        return model

    def scores(self, database: Histogram, model: Model) -> list[int]:
        """The error of the model in each query, in rows, rounded down. One replaced row moves each by at most 1."""
        errors = (
            abs(self.n * answered(model, query) - sum(count for count, counted in zip(database, query, strict=True) if counted))
            for query in self.queries
        )
        return [math.floor(error) for error in errors]

    def law(self, database: Histogram, *, decay: Fraction) -> dict[tuple[Round, ...], Fraction]:
        """The exact law of the output: the chosen queries and the noisy counts."""
        choice = ExponentialMechanism(Fraction(1), score_sensitivity=1, candidates=len(self.queries))
        noise = LaplaceMechanism(Fraction(1), l1=1, clamp=self.clamp)
        law: dict[tuple[Round, ...], Fraction] = {(): Fraction(1)}
        for _ in range(self.rounds):
            longer: dict[tuple[Round, ...], Fraction] = {}
            for transcript, chance in law.items():
                for chosen, share in choice.law(self.scores(database, self.model(transcript)), decay=decay).items():
                    truth = sum(count for count, counted in zip(database, self.queries[chosen], strict=True) if counted)
                    for count, part in noise.law(truth, decay=decay).items():
                        longer[*transcript, (chosen, count)] = chance * share * part
            law = longer
        return law

    def odds(self, *, decay: Fraction) -> Fraction:
        """The claimed ``exp(epsilon)``: rounds times (2 for a choice, 1 for a count), by composition."""
        return Fraction(decay) ** (-3 * self.rounds)
