"""What private multiplicative weights cost on a stream of counts, beside other ways to the same counts.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.weights [folder with adult.csv and adult-domain.json] [--questions 4000] [--asked 400]

Six columns of Adult (education, marital status, occupation, race, sex, income: 33,600 combinations, 48,842 rows; without the folder, rows
of the same sizes are made up), rows as units, delta 1e-9. A stream of 4,000 counts over ranges of one to three columns is drawn from 2,000
different ones, the k-th with a chance in proportion to 1/k. Each count is to be within alpha of all rows at 99.9 %.

First the price of the whole stream, in rho: asked afresh each time; each different one once (what `ask` does); one noisy histogram of all
cells, for counts of half of them; marginals of three columns, as a release plans them; and one start of a sparse vector at its cheapest
(threshold and noise half of alpha each). Then sessions are opened on the real data set, on DuckDB, and asked the first 400 of the stream,
or until their starts are used up: how many questions each served, how many of these freshly, and how many times as much as direct counts
that was. The exact counts are known here and are compared: the worst error, as a share of alpha.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.markdown import table
from benchmarks.synthetic_worlds import Rows, adult

import lapwing
from lapwing.asking.weights_session import WeightsSession
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, loss
from lapwing.prices import epsilon_for
from lapwing.releases.weights.weights_log import CountSource
from lapwing.spread import half_width

NAMES = ("education", "marital", "occupation", "race", "sex", "income")
PLACES = (3, 4, 5, 7, 8, 13)
SIZES = (16, 7, 15, 5, 2, 2)
SURE, DELTA = Fraction(999, 1000), Fraction(1, 10**9)
DIFFERENT = 2_000
SESSIONS = ((Fraction(1, 100), 3), (Fraction(1, 20), 60), (Fraction(1, 10), 60))


def rows_of(folder: Path | None) -> Rows:
    """Six columns of Adult, or made-up ones that are about as skewed."""
    if folder is not None:
        return adult(folder, binned=False).rows[:, PLACES]
    draw = np.random.default_rng(3)  # noqa: TID251  (made-up rows, not noise)
    latent = draw.normal(size=48_842)
    ranks = [np.clip(((latent + draw.normal(size=len(latent))) / 5 + 0.4) * size, 0, size - 1) for size in SIZES]
    return np.stack(ranks, 1).astype(np.int64)


def stream(questions: int) -> list[dict[int, list[int]]]:
    """Questions as the bins of some columns that they count."""
    draw = np.random.default_rng(4)  # noqa: TID251  (made-up questions, not noise)
    different: list[dict[int, list[int]]] = []
    while len(different) < DIFFERENT:
        question: dict[int, list[int]] = {}
        for axis in draw.choice(len(SIZES), draw.integers(1, 4), replace=False):
            bins = draw.integers(SIZES[axis]) + np.arange(draw.integers(1, max(2, SIZES[axis] // 2 + 1)))
            question[int(axis)] = sorted(int(each) for each in bins % SIZES[axis])
        if question not in different:
            different.append(question)
    chances = 1 / np.arange(1, DIFFERENT + 1)
    return [different[int(number)] for number in draw.choice(DIFFERENT, questions, p=chances / chances.sum())]


def sql_of(question: dict[int, list[int]]) -> str:
    """The question as a statement."""
    conditions = (f"{NAMES[axis]} IN ({', '.join(map(str, bins))})" for axis, bins in question.items())
    return f"SELECT COUNT(*) FROM rows WHERE {' AND '.join(conditions)}"


def widest(fits: Callable[[Fraction], bool]) -> Fraction:
    """Nearly the largest scale that fits."""
    low, high = 2.0**-10, 2.0**40
    while high > low * 1.0001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(Fraction(middle)) else (low, middle)
    return Fraction(low)


def direct_rho(error: float) -> Fraction:
    """One count with Gaussian noise within an error."""
    scale = widest(lambda each: half_width(DiscreteGaussian(each), confidence=SURE) <= error)
    return loss(DiscreteGaussian(scale), Account.APPROXIMATE, l1=1, l2_squared=1)


def cheapest_start(error: float) -> Fraction:
    """One start of a sparse vector, whose threshold is half of the error and whose noise the other half."""
    sure = 1 - (1 - SURE) / 2

    def fits(scale: Fraction) -> bool:
        return half_width(DiscreteLaplace(scale), confidence=sure) + half_width(DiscreteLaplace(2 * scale), confidence=sure) <= error / 2

    return (2 / widest(fits)) ** 2 / 2


def prices(rows: int, asked: list[dict[int, list[int]]], session: WeightsSession, alpha: Fraction) -> None:
    """The table of what the whole stream costs."""
    one, different = direct_rho(float(alpha * rows)), len({sql_of(question) for question in asked})
    release = session.other_ways.release
    assert release is not None
    listed = {
        "afresh each time": len(asked) * one,
        f"each of {different:,} different ones once": different * one,
        "one noisy histogram of all cells": math.prod(SIZES) // 2 * one,
        "marginals of three columns": release,
        "one start of a sparse vector, at its cheapest": cheapest_start(float(alpha * rows)),
        "one start of a session": session.other_ways.session / session.planned.request.starts,
    }
    title = f"The whole stream within {float(alpha):g} of {rows:,} rows; one direct count costs rho {float(one):.3g}:"
    priced = [
        [name, f"{float(rho):.3g}", f"{float(epsilon_for(rho=rho, delta=DELTA)):.2f}", f"{float(rho / one):,.0f}"]
        for name, rho in listed.items()
    ]
    table(title, ["way", "rho", "epsilon", "in direct counts"], priced)


@contextmanager
def opened(rows: Rows) -> Iterator[lapwing.DataSet]:
    """The rows as a data set of its own: sessions share what was told."""
    columns = {name: {"type": "integer", "min": 0, "max": size - 1, "null": False} for name, size in zip(NAMES, SIZES, strict=True)}
    with tempfile.TemporaryDirectory() as scratch:
        file, home = Path(scratch) / "rows.parquet", Path(scratch) / "home"
        pq.write_table(pa.table({name: rows[:, place] for place, name in enumerate(NAMES)}), file)
        with lapwing.open(file, unit="row", columns=columns, epsilon=10**6, delta="1e-9", rows_max=10**6, home=home) as data:
            yield data


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--questions", type=int, default=4_000)
    parser.add_argument("--asked", type=int, default=400)
    options = parser.parse_args()
    rows, asked = rows_of(options.folder), stream(options.questions)
    with opened(rows) as data:
        one = data.weights(*NAMES, alpha="0.01", starts=1, rows=len(rows), confidence="0.999")
        prices(len(rows), asked, one, Fraction(1, 100))
    lines = []
    for alpha, starts in SESSIONS:
        for from_release in (False, True):
            with opened(rows) as data:
                start = data.release(lapwing.Marginals(*NAMES, ways=2), name="pairs", epsilon="0.1").run() if from_release else None
                session = data.weights(*NAMES, alpha=alpha, starts=starts, start=start, rows=len(rows), confidence="0.999")
                lines.append(line_of(session, asked[: options.asked], rows))
    heads = ["alpha", "starts from", "starts", "rho", "epsilon", "questions", "fresh", "direct counts cost", "times as much", "worst error"]
    table(f"Sessions, asked the first {options.asked} of the stream or until their starts are used up:", heads, lines)


def line_of(session: WeightsSession, asked: list[dict[int, list[int]]], rows: Rows) -> list[str]:
    """A session on the stream."""
    worst, alpha = 0.0, float(session.planned.request.alpha) * len(rows)
    with session:
        for question in asked:
            if session.starts_left == 0:
                break
            exact = int(np.logical_and.reduce([np.isin(rows[:, axis], bins) for axis, bins in question.items()]).sum())
            worst = max(worst, abs(session.ask(sql_of(question)).value - exact) / alpha)
    told = list(session.answers.values())
    fresh = sum(count.served_by is CountSource.FRESH for count in told)
    request, paid = session.planned.request, session.other_ways.session
    direct = len(told) * session.other_ways.direct
    return [
        f"{float(request.alpha):g}",
        "a release of pairs" if request.start else "nothing",
        f"{request.starts}",
        f"{float(paid):.3g}",
        f"{float(epsilon_for(rho=paid, delta=DELTA)):.2f}",
        f"{len(told):,}",
        f"{fresh:,}",
        f"{float(direct):.3g}",
        f"{float(paid / direct):,.0f}",
        f"{worst:.2f}",
    ]


if __name__ == "__main__":
    main()
