"""What each tuned rule of the contribution model is worth: backward elimination on paired draws, under laws that no rule was made with.

    python -m benchmarks.ablation                    # each rule switched off alone
    python -m benchmarks.ablation --eliminate 0.02   # one after the other, while all together lose at most this share
    python -m benchmarks.ablation --seed 7                   # on other draws

For each law of rows per unit, number of units, number of cells and epsilon one table is drawn. Its norm histogram is noised at a tenth of
the price, the cap chosen, the clipped cells noised at the rest, and the interval compared with the unclipped cells. Every variant sees the
same tables and the same noise. Two figures sum up a variant: the root mean square error over that of the best cap known, and the interval
score (width, and 2 / 0.05 times the distance by which an interval misses) over the width of the best interval known, both as geometric
means. The *loss* of a variant is the mean of the relative rise of both. *Stated within 2* is how often the share that the cap is predicted
to cut off is within a factor of 2 of what it cuts, or both are below one percent.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from benchmarks.markdown import table
from benchmarks.norm_caps import BEYOND, LARGEST, SCORE, Floats, Generator, Table, drawn_table, edges, unit_noise

from lapwing.contribution import clipping_bound, curves, model, significance
from lapwing.contribution.clipping_bound import best_cap, bias_bound
from lapwing.contribution.histograms import UNLIKE_OTHERS
from lapwing.contribution.model import NormHistogram, fitted_norms

SHARE = 0.1
"""Part of the price that the histogram costs."""
NEGLIGIBLE = 0.01
"""Of shares that are missing, below this one it does not matter by which factor they are misjudged."""
LAWS: dict[str, Callable[[int, Generator], Floats]] = {
    "geometric": lambda units, random: random.geometric(0.15, size=units).astype(float),
    "two kinds": lambda units, random: np.where(random.uniform(size=units) < 0.05, random.poisson(150, size=units), 2.0),
    "weibull": lambda units, random: 6.0 * random.weibull(0.5, size=units),
    "long log-normal": lambda units, random: np.exp(random.normal(0.7, 1.8, size=units)),
    "zipf": lambda units, random: random.zipf(1.8, size=units).astype(float),
    "one bot": lambda units, random: np.where(np.arange(units) == 0, LARGEST, 1.0 + random.poisson(1.5, size=units)),
    "sharp end": lambda units, random: random.integers(30, 41, size=units).astype(float),
}
HELD_OUT: dict[str, Callable[[int, Generator], Floats]] = {
    "gamma": lambda units, random: 1.0 + random.gamma(0.4, 20.0, size=units),
    "uniform": lambda units, random: random.integers(1, 61, size=units).astype(float),
    "log-normal": lambda units, random: np.exp(random.normal(1.5, 1.0, size=units)),
    "mixed pareto": lambda units, random: np.where(random.uniform(size=units) < 0.5, 1.0, 3.0 * random.uniform(size=units) ** -0.7),
}
"""Laws on which nothing is decided: what is dropped because of the others is measured on them."""


@dataclass(frozen=True)
class Rule:
    """A rule, and the values of its constants that switch it off."""

    name: str
    module: ModuleType
    off: dict[str, object]


RULES = (
    Rule("an isolated bin must be clearer", significance, {"FAR": 1.0, "FAR_RUN": 1.0}),
    Rule("runs of bins are tested together", significance, {"RUNS": ()}),
    Rule("two neighbouring bins are tested together", significance, {"TOGETHER_SEEN": 99.0}),
    Rule("the last bin has a limit of its own", model, {"END_SEEN": 4.0}),
    Rule("few bins below the last significant one", model, {"BINS_BELOW": 99}),
    Rule("small norms are fitted in pairs and are whole", model, {"FINE_FROM": 0.0}),
    Rule("a bin may differ from its curve", model, {"MISFIT": 1e-6}),
    Rule("curves bend", curves, {"BENDS": np.array([0.0, 0.16])}),
    Rule("slopes are finely spaced", curves, {"SLOPES": np.arange(0.7, -3.3, -0.2)}),
    Rule("bends are finely spaced", curves, {"BENDS": np.array([0.0, 0.04, 0.16, 0.64, 2.56])}),
    Rule("every curve falls", curves, {"FLATTEST": -99.0}),
    Rule("prior of power laws", curves, {"STRAIGHT": 1.0 / 12}),
    Rule("prior of accumulation at the end", curves, {"HEAPED": 1.0}),
    Rule("the height of a curve is uncertain", model, {"LEVELS": np.array([0.0])}),
    Rule("usual rows of a unit", curves, {"USUAL_BINS": 1e6}),
    Rule("several humps", curves, {"HUMP_BELOW": (0.16,), "HUMP_ABOVE": ((0.52, 0.0, 1.0),)}),
    Rule("the units of a hump are uncertain", model, {"HUMP_UNITS": (0.5,)}),
    Rule("few units are drawn at random", model, {"CHANCE_PARTS": np.array([1.0]), "CHANCE_SCORES": (0.0,)}),
    Rule("cells lose unlike shares", clipping_bound, {"UNLIKE": 0.0}),
    Rule("rare long units are left out", clipping_bound, {"RARE": 0.0}),
    Rule("caps between edges", clipping_bound, {"STEPS_FINE": 1}),
    Rule("cells are unequal", clipping_bound, {"SKEW_POWER": 0.0}),
    Rule("units may be in one cell", clipping_bound, {"ODDS_UNKNOWN": 1e-3}),
    Rule("units below a half are ignored", clipping_bound, {"LIKELY_UNITS": 0.0}),
    Rule("one unit of all rows may be anywhere", clipping_bound, {"UNSEEN_CELLS": 1.0}),
)


@contextmanager
def without(rules: Sequence[Rule]) -> Iterator[None]:
    """Run with these rules switched off."""
    before = [(rule.module, name, getattr(rule.module, name)) for rule in rules for name in rule.off]
    try:
        for rule in rules:
            for name, value in rule.off.items():
                setattr(rule.module, name, value)
        _forget()
        yield
    finally:
        for module, name, value in reversed(before):
            setattr(module, name, value)
        _forget()


def _forget() -> None:
    for cached in (model.fitted_norms, model._small_norms, curves.humps, curves.falling):
        cached.cache_clear()


@dataclass(frozen=True)
class Setting:
    """One table with its noise, and what is best if everything is known."""

    law: str
    drawn: Table
    epsilon: float
    deviation: float
    noisy: tuple[float, ...]
    normal: Floats
    known_error: float
    known_width: float

    def measured(self) -> tuple[float, float, float, bool]:
        """Error and interval score over the best known, the share of intervals that cover, and whether the stated loss is about right."""
        drawn, cells = self.drawn, self.drawn.cells
        whole = 1 if cells == 1 else 2
        fit = fitted_norms(NormHistogram(tuple(edges(LARGEST)), self.noisy, self.deviation, whole=whole))
        choice = best_cap(fit, unit_noise=unit_noise(self.epsilon) / math.sqrt(1.0 - SHARE), cells=cells, total_l1=None, grain=1.0)
        truth, clipped = drawn.clipped(math.inf), drawn.clipped(choice.cap)
        answer = clipped + choice.noise * self.normal
        share = LARGEST / float(drawn.value.sum())
        extreme = min(LARGEST, UNLIKE_OTHERS * share * max(float(answer.sum()), 0.0) / (1.0 - min(choice.lost, 0.9)))
        added = np.asarray(bias_bound(fit, choice, cells=cells, beyond=BEYOND, values=list(answer), grain=1.0, extreme=extreme))
        low, high = answer - SCORE * choice.noise, answer + SCORE * choice.noise + added
        lost = float((truth - clipped).sum() / truth.sum())
        missed = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
        error = math.sqrt(choice.noise**2 + float(((truth - clipped) ** 2).mean()))
        score = float((high - low + 2.0 / BEYOND * missed).mean())
        return error / self.known_error, score / self.known_width, float((missed == 0.0).mean()), is_about(choice.lost, lost)


def is_about(stated: float, lost: float) -> bool:
    """Whether a share that is said to be missing is within a factor of 2 of what is, or both are negligible."""
    return max(stated, lost) < NEGLIGIBLE or lost / 2.0 <= stated <= 2.0 * lost


def settings(
    laws: dict[str, Callable[[int, Generator], Floats]],
    numbers: Sequence[int] = (2_000, 20_000),
    epsilons: Sequence[float] = (0.1, 0.5, 2.0),
    repetitions: int = 3,
    seed: int = 1,
) -> list[Setting]:
    """Every table with its noise; ``numbers`` are those of units."""
    random = np.random.default_rng(seed)  # noqa: TID251
    bounds = edges(LARGEST)
    found: list[Setting] = []
    for (law, rows_of), units, (cells, spread) in itertools.product(
        laws.items(), numbers, ((1, "one cell"), (12, "mixed"), (300, "mixed"))
    ):
        rows = np.clip(np.floor(rows_of(units, random)), 1, LARGEST).astype(np.int64)
        drawn = drawn_table("", units, cells, spread, random, rows=rows)
        truth = drawn.clipped(math.inf)
        losses = [(cap, truth - drawn.clipped(cap)) for edge in bounds for cap in (edge, edge * 2**0.25) if cap <= LARGEST]
        bins = np.bincount(np.searchsorted(np.asarray(bounds), drawn.norms - 1e-9), minlength=len(bounds))
        for epsilon in epsilons:
            noise = unit_noise(epsilon)
            error = min(math.sqrt((noise * cap) ** 2 + float((loss**2).mean())) for cap, loss in losses)
            width = min(2 * SCORE * noise * cap + float(loss.mean()) for cap, loss in losses)
            deviation = noise / math.sqrt(SHARE)
            for _ in range(repetitions):
                noisy = tuple(float(each) for each in bins + random.normal(0.0, deviation, size=len(bins)))
                found.append(Setting(law, drawn, epsilon, deviation, noisy, random.normal(size=cells), error, width))
    return found


@dataclass(frozen=True)
class Figures:
    """A variant over all settings."""

    error: float
    score: float
    covered: float
    worst: tuple[float, str]
    """The lowest coverage of a law."""
    stated: float
    """How often the loss that is stated is within a factor of 2 of what is lost."""

    @staticmethod
    def of(asked: Sequence[Setting]) -> Figures:
        """Measured with the rules as they are now."""
        found = [(setting.law, *setting.measured()) for setting in asked]
        laws = sorted({law for law, *_ in found})
        error = math.exp(float(np.mean([math.log(error) for _, error, *_ in found])))
        score = math.exp(float(np.mean([math.log(score) for _, _, score, *_ in found])))
        by_law = [(float(np.mean([covered for of, _, _, covered, _ in found if of == law])), law) for law in laws]
        covered, stated = (float(np.mean([one[at] for one in found])) for at in (3, 4))
        return Figures(error, score, covered, min(by_law), stated)

    def loss(self, before: Figures) -> float:
        """The mean relative rise of both figures."""
        return (self.error / before.error + self.score / before.score) / 2.0 - 1.0

    def line(self, label: str, before: Figures) -> list[str]:
        """A row of the table."""
        return [
            label,
            f"{self.error:.3f}",
            f"{self.score:.3f}",
            f"{100 * self.covered:.1f}",
            f"{100 * self.worst[0]:.1f} ({self.worst[1]})",
            f"{100 * self.stated:.0f}",
            f"{100 * self.loss(before):+.2f}",
        ]


EVERYTHING = "(all rules stand)"
HEADER = ["without", "error / best", "interval score / best", "covered %", "least of a law", "stated within 2 %", "loss %"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--units", type=int, nargs="+", default=[2_000, 20_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.5, 2.0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--eliminate", type=float, help="drop rules one after the other while they lose at most this share together")
    asked = parser.parse_args()
    tried, held = (settings(laws, asked.units, asked.epsilons, asked.repetitions, asked.seed) for laws in (LAWS, HELD_OUT))
    whole, whole_held = Figures.of(tried), Figures.of(held)
    lines, of_held = [whole.line(EVERYTHING, whole)], [whole_held.line(EVERYTHING, whole_held)]
    for rule in RULES:
        with without([rule]):
            lines.append(Figures.of(tried).line(rule.name, whole))
            of_held.append(Figures.of(held).line(rule.name, whole_held))
    table(f"Each rule switched off alone, {len(tried)} draws", HEADER, lines)
    table(f"The same on laws held out, {len(held)} draws", HEADER, of_held)
    if asked.eliminate is not None:
        eliminate(tried, held, asked.eliminate)


def eliminate(tried: Sequence[Setting], held: Sequence[Setting], most: float) -> None:
    """Drop the rule whose absence costs least, measured again after each, until the set lost more than ``most`` since it was best."""
    dropped: list[Rule] = []
    best = whole = Figures.of(tried)
    whole_held = Figures.of(held)
    lines, of_held = [whole.line(EVERYTHING, whole)], [whole_held.line(EVERYTHING, whole_held)]
    while len(dropped) < len(RULES):
        found: list[tuple[float, Rule, Figures]] = []
        for rule in RULES:
            if rule not in dropped:
                with without([*dropped, rule]):
                    figures = Figures.of(tried)
                found.append((figures.loss(best), rule, figures))
        loss, rule, figures = min(found, key=lambda each: each[0])
        if loss > most:
            break
        dropped.append(rule)
        best = figures if loss < 0.0 else best
        lines.append(figures.line(rule.name, whole))
        with without(dropped):
            of_held.append(Figures.of(held).line(rule.name, whole_held))
    table("Dropped one after the other, all measured again after each", HEADER, lines)
    table("The same on laws held out", HEADER, of_held)


if __name__ == "__main__":
    main()
