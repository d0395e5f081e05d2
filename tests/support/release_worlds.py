"""A table of rows at random, its declared facts, and marginals of it with noise of our own choice: for tests of free answers."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lapwing.catalog.settings import Settings
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.neighbours import Neighbours
from lapwing.releases.marginals.axes import Axis, axis_of
from lapwing.releases.marginals.synopsis import MeasuredMarginal
from lapwing.releases.serving.answers import ServedMarginals
from lapwing.sql import bind
from lapwing.statements import Statement

DAY = 19_723  # 2024-01-01
COLUMNS: dict[str, Domain] = {
    "sex": TextDomain(("F", "M"), False),
    "region": TextDomain(("north", "south", "east", "west"), True),
    "smoker": BooleanDomain(True),
    "age": IntegerDomain(0, 99, True),
    "visits": IntegerDomain(-2, 5, True),
    "day": DateDomain(DAY, DAY + 59, False),
    "weight": RealDomain(Fraction(0), Fraction(200), True, 10),
    "seen": TimestampDomain(DAY * 86_400_000_000, (DAY + 30) * 86_400_000_000 - 1, False),
    "income": IntegerDomain(0, 10_000_000, True),
}
BINS: dict[str, int | Sequence[Fraction]] = {
    "age": 10,
    "weight": [Fraction(50), Fraction(75), Fraction(100)],
    "seen": 30,
    "income": [Fraction(10_000), Fraction(50_000), Fraction(1_000_000)],
}
FACTS = Facts(
    "release",
    1,
    Neighbours.UNBOUNDED,
    Account.APPROXIMATE,
    {"people": TableFacts(COLUMNS, 1, 10**6), "other": TableFacts(COLUMNS, 1, 10)},
    {},
)
AXES = tuple(axis_of(name, domain, bins=BINS.get(name)) for name, domain in COLUMNS.items())


def bound(sql: str) -> Statement:
    return bind(sql, FACTS, settings=Settings(), unit_columns={})


@dataclass(frozen=True)
class Rows:
    """Rows of the table: values as declared, and the bin of each on every axis."""

    values: dict[str, list[Value]]
    bins: npt.NDArray[np.int64]

    def arrow(self) -> pa.Table:
        """As an engine has them."""
        kinds = {
            "day": pa.date32(),
            "seen": pa.timestamp("us"),
            "weight": pa.float64(),
            "sex": pa.string(),
            "region": pa.string(),
            "smoker": pa.bool_(),
        }
        columns = {}
        for name, values in self.values.items():
            plain = [float(value) if isinstance(value, Fraction) else value for value in values]
            kind = kinds.get(name, pa.int64())
            columns[name] = pa.array(plain, pa.int32()).cast(kind) if name == "day" else pa.array(plain).cast(kind)
        return pa.table(columns)


def random_rows(count: int, seed: int) -> Rows:
    draw = random.Random(seed)
    values = {name: [_value(domain, draw) for _ in range(count)] for name, domain in COLUMNS.items()}
    return Rows(values, np.array([_bins_of(axis, values[axis.column]) for axis in AXES]))


def _value(domain: Domain, draw: random.Random) -> Value:
    if domain.nullable and draw.random() < 0.1:
        return None
    match domain:
        case BooleanDomain():
            return draw.random() < 0.3
        case TextDomain(values):
            assert values is not None
            return draw.choices(values, [2**-i for i in range(len(values))])[0]
        case RealDomain():
            return Fraction(draw.randrange(2001), 10)
        case IntegerDomain(lo, hi) if hi > 1000:
            return int(min(draw.expovariate(1 / 40_000), hi))
        case IntegerDomain(lo, hi) | DateDomain(lo, hi) | TimestampDomain(lo, hi):
            return draw.randint(lo, hi)
        case _:
            raise AssertionError(domain)


def _bins_of(axis: Axis, values: Sequence[Value]) -> list[int]:
    if axis.values is not None:
        places = {value: number for number, value in enumerate(axis.cells())}
        return [places[value] for value in values]
    lows = [low for low, _ in axis.spans()]
    return [axis.size - 1 if value is None else bisect_right(lows, Fraction(value)) - 1 for value in values]


def sets(ways: int, axes: Sequence[int] | None = None) -> list[tuple[int, ...]]:
    """All sets of up to so many axes."""
    chosen = range(len(AXES)) if axes is None else axes
    return [each for many in range(ways + 1) for each in combinations(chosen, many)]


def exact(rows: Rows, axes: Sequence[int]) -> npt.NDArray[np.int64]:
    sizes = [AXES[axis].size for axis in axes]
    codes = np.zeros(rows.bins.shape[1], dtype=np.int64)
    for axis, size in zip(axes, sizes, strict=True):
        codes = codes * size + rows.bins[axis]
    return np.bincount(codes, minlength=int(np.prod(sizes, dtype=np.int64))).reshape(sizes)


def served(
    rows: Rows,
    measured: Sequence[tuple[int, ...]],
    noise: Callable[[tuple[int, ...], int], tuple[npt.NDArray[np.int64], float]] | None = None,
    *,
    laplace: bool = False,
) -> ServedMarginals:
    """Marginals over these sets; ``noise`` gives whole numbers for each and their variance, none where there is none."""
    tables = []
    for axes in measured:
        counts = exact(rows, axes)
        added, variance = (np.zeros(counts.size, dtype=np.int64), 0.0) if noise is None else noise(axes, counts.size)
        tables.append(MeasuredMarginal(axes, counts + added.reshape(counts.shape), variance))
    return ServedMarginals.of("people", AXES, tables, laplace=laplace)
