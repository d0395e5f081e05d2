"""The best bound known: least error and width that a cap on each unit's Euclidean norm allows, chosen with sight of the rows.

No system can choose it, since choosing reads the rows for nothing; it is what choosing well would give. The whole price goes to the answer,
in equal parts to what is measured, and nothing to statistics or histograms. A unit's vector over the groups is scaled down to length C
where it is longer, as the kernel's clipping does; the noise is Gaussian of deviation C / sqrt(2 rho). For every C of a fine grid

    error^2 = mean over cells of (what was cut)^2 + C^2 / (2 rho)

and the least is taken; the width of a cell's error bar at that C is 2 * 1.96 C / sqrt(2 rho) + what was cut. Where even the best error is
as large as half of what is asked for, nothing useful can be said at the price: the best is then close to answering 0.

An average is a sum over a count: either both are scaled by the factor of the count, or each by its own, and values are taken as they are or
as distances from the middle of their range, whichever is best. Sub-totals of ROLLUP are added up from the finest cells at the whole price,
or bounded on their own at an equal share of it, whichever is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
from benchmarks.reliability.statements import AskedStatement, Measured, Output

NORMAL_95 = 1.959964
CAPS = 60
Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Key: TypeAlias = tuple[str | None, ...]


def _summed(places: Integers, values: Floats, many: int) -> Floats:
    summed: Floats = np.bincount(places, values, many).astype(np.float64)
    return summed


@dataclass(frozen=True, slots=True)
class Contributions:
    """What each unit adds to each finest cell: one entry for a unit and a cell it is in."""

    units: Integers
    keys: list[Key]
    """Of every entry, the finest group."""
    rows: Floats
    values: dict[str, Floats]
    """By output with a value: the sum over the entry's rows."""

    def at_level(self, kept: int) -> LevelContributions:
        """The same over the groups of the first ``kept`` keys."""
        groups: dict[Key, int] = {}
        places = np.array([groups.setdefault(key[:kept] + (None,) * (len(key) - kept), len(groups)) for key in self.keys], dtype=np.int64)
        pairs, entry = np.unique(np.stack([self.units, places]), axis=1, return_inverse=True)
        entry, many = entry.reshape(-1), pairs.shape[1]
        rows = _summed(entry, self.rows, many)
        values = {name: _summed(entry, value, many) for name, value in self.values.items()}
        terms = np.zeros(len(groups))
        for key in set(self.keys):
            terms[groups[key[:kept] + (None,) * (len(key) - kept)]] += 1
        return LevelContributions(pairs[0], pairs[1], list(groups), rows, values, terms)


@dataclass(frozen=True, slots=True)
class LevelContributions:
    """Entries of one level."""

    units: Integers
    cells: Integers
    groups: list[Key]
    rows: Floats
    values: dict[str, Floats]
    terms: Floats = field(default_factory=lambda: np.zeros(0))
    """How many finest cells that hold anything are in each group."""

    def totals(self, values: Floats) -> Floats:
        """Summed over units, by cell."""
        return _summed(self.cells, values, len(self.groups))

    def truth(self, output: Output) -> dict[Key, float]:
        """The output of every group that holds anything."""
        match output.measured:
            case Measured.COUNT:
                found = self.totals(self.rows)
            case Measured.UNITS:
                found = self.totals(np.ones(len(self.rows)))
            case Measured.SUM:
                found = self.totals(self.values[output.name])
            case Measured.AVERAGE:
                found = self.totals(self.values[output.name]) / self.totals(self.rows)
            case _:
                assert_never(output.measured)
        return dict(zip(self.groups, found.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class BestBound:
    """What the best cap gives: an error over the cells, and of each group the width of its error bar."""

    error: float
    cap: float
    widths: dict[Key, float]
    other_width: float
    """Width for groups that hold nothing."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    cap: float
    bias: Floats
    deviations: Floats
    empty: float
    """Deviation of a cell that holds nothing."""


def best_bound(
    statement: AskedStatement, output: Output, levels: Sequence[LevelContributions], level: int, weights: dict[Key, float], *, rho: float
) -> BestBound:
    """The best bound of one output on one level. ``weights`` says how often each group was answered; ``rho`` is the statement's."""
    share = rho / vectors_of(statement)
    here = levels[level]
    weighed = np.array([weights.get(group, 0.0) for group in here.groups])
    empty = sum(weight for group, weight in weights.items() if group not in set(here.groups))
    least: tuple[float, _Candidate] | None = None
    for candidate in _candidates(output, levels, level, share):
        squares = float(weighed @ (candidate.bias**2 + candidate.deviations**2)) + empty * candidate.empty**2
        error = math.sqrt(squares / max(float(weighed.sum()) + empty, 1e-9))
        if least is None or error < least[0]:
            least = (error, candidate)
    assert least is not None
    chosen = least[1]
    widths = 2 * NORMAL_95 * chosen.deviations + np.abs(chosen.bias)
    return BestBound(least[0], chosen.cap, dict(zip(here.groups, widths.tolist(), strict=True)), 2 * NORMAL_95 * chosen.empty)


def vectors_of(statement: AskedStatement) -> int:
    """Among how many things the price is shared: counts, sums, and the finding of groups."""
    names = {name for output in statement.outputs for name in _vectors(output)}
    return len(names) + (0 if statement.known else 1)


def _vectors(output: Output) -> tuple[str, ...]:
    match output.measured:
        case Measured.COUNT:
            return ("rows",)
        case Measured.UNITS:
            return ("units",)
        case Measured.SUM:
            return (f"sum {output.value}",)
        case Measured.AVERAGE:
            return ("rows", f"sum {output.value}")


def _candidates(output: Output, levels: Sequence[LevelContributions], level: int, share: float) -> Iterator[_Candidate]:
    here = levels[level]
    if output.measured is Measured.AVERAGE:
        yield from _average_candidates(here, output, share)
        return
    values = _values(here, output)
    truth = here.totals(values)
    if len(levels) > 1:
        finest = levels[0]
        fine = _values(finest, output)
        width = len(here.groups[0])
        kept = width - level
        place = {group: number for number, group in enumerate(here.groups)}
        up = np.array([place[group[:kept] + (None,) * (width - kept)] for group in finest.groups])
        for cap in _caps(finest, fine):
            cut = finest.totals(fine) - finest.totals(_scaled(finest, fine, cap))
            deviation = cap / math.sqrt(2 * share)
            yield _Candidate(cap, _summed(up, cut, len(here.groups)), deviation * np.sqrt(here.terms), deviation)
        share /= len(levels)
    for cap in _caps(here, values):
        deviation = cap / math.sqrt(2 * share)
        cut = truth - here.totals(_scaled(here, values, cap))
        yield _Candidate(cap, cut, np.full(len(truth), deviation), deviation)


def _values(level: LevelContributions, output: Output) -> Floats:
    match output.measured:
        case Measured.COUNT:
            return level.rows
        case Measured.UNITS:
            return np.ones(len(level.rows))
        case _:
            return level.values[output.name]


def _norms(level: LevelContributions, values: Floats) -> Floats:
    """Of every entry, the norm of its unit's vector."""
    return np.sqrt(np.bincount(level.units, values**2))[level.units]


def _scaled(level: LevelContributions, values: Floats, cap: float) -> Floats:
    return values * np.minimum(1, cap / np.maximum(_norms(level, values), 1e-9))


def _caps(level: LevelContributions, values: Floats) -> Floats:
    norms = _norms(level, values)
    most = float(norms.max(initial=1e-6))
    return np.geomspace(max(float(np.quantile(norms, 0.05)) if len(norms) else most, most / 1e4), most, CAPS)


def _average_candidates(level: LevelContributions, output: Output, share: float) -> Iterator[_Candidate]:
    rows, values = level.rows, level.values[output.name]
    true_rows = level.totals(rows)
    truth = level.totals(values) / true_rows
    half = output.most / 2
    unit = 1 / math.sqrt(2 * share)

    def made(cap: float, kept: Floats, summed: Floats, offset: float, sum_cap: float, count_cap: float) -> _Candidate:
        counted = np.maximum(level.totals(kept), 1e-9)
        ratio = level.totals(summed) / counted + offset
        noise = unit * np.hypot(sum_cap, (ratio - offset) * count_cap) / counted
        return _Candidate(cap, truth - np.clip(ratio, 0, output.most), np.minimum(noise, half), half)

    for cap in _caps(level, rows):
        factor = np.minimum(1, cap / np.maximum(_norms(level, rows), 1e-9))
        for offset in (0.0, half):
            yield made(cap, rows * factor, (values - offset * rows) * factor, offset, cap * max(output.most - offset, offset), cap)
    for offset in (0.0, half):
        shifted = values - offset * rows
        for count_cap in _caps(level, rows)[::5]:
            kept = _scaled(level, rows, count_cap)
            for sum_cap in _caps(level, shifted)[::3]:
                yield made(count_cap, kept, _scaled(level, shifted, sum_cap), offset, sum_cap, count_cap)
