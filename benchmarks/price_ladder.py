"""Whether more budget ever makes an answer worse: bars and noise at each step of a ladder of prices, for the statements of `price_laws`.

    python -m benchmarks.price_ladder --draws 5 --json measured.jsonl     # all statements: some minutes
    python -m benchmarks.price_ladder --data visits --question sum --draws 15
    python -m benchmarks.price_ladder --read measured.jsonl               # only the table

Every draw buys the statistics of preparation anew and asks every statement at every price as if for the first time. *Width* is that of the
error bar: of a grouped answer the median over its largest groups by the truth. A hidden group has none and counts as infinite.
*Noise* is the standard deviation of the noise that the plan has. Both are medians over the draws. A step is marked with ``!`` if either is
above that of the price before by more than the sampling error of both medians.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from benchmarks.markdown import show, table
from benchmarks.price_laws import DATA, QUESTIONS, USERS, Question, bare, write
from benchmarks.reliability.repeated import make_repeatable

from lapwing.answers.assembly import assemble
from lapwing.answers.shown_values import PossibleOutputs, shown
from lapwing.asking.bound_request import BoundRequest
from lapwing.asking.bound_statement import bound_statement
from lapwing.asking.options import AskOptions, AskRequest, terms_of
from lapwing.asking.purchase import Purchase
from lapwing.curator.curator import Curator
from lapwing.curator.statistics import buy_statistics
from lapwing.ledger.purchases import PurchaseKind, PurchaseRecord
from lapwing.planning.measures import AverageMeasure, CountMeasure, SumMeasure
from lapwing.spread import variance
from lapwing.sql.text.privacy_words import Question as Words

LADDER = ("0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "100", "1000", "100000")
GROUPS = 10
"""The largest groups of an answer, by the truth, whose bars are measured."""
SCORE = 3.0
"""A median has risen if it did by this many standard errors of the difference."""
SLACK = 1.01
"""... and by more than this factor."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One answer at one price."""

    data: str
    question: str
    epsilon: str
    draw: int
    width: float
    """Of the bar; infinite if it was withheld."""
    noise: float
    error: float
    """Of the value, without its sign."""
    covered: float
    """The share of groups whose bar holds the truth."""
    truth: float = 0.0


def measured(data: str, questions: Sequence[Question], prices: Sequence[str], *, draws: int, users: int) -> Iterator[Measured]:
    """All answers about one data set."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        write(directory, data, users)
        with bare(directory) as rows, Curator(directory, home=directory / "home") as curator:
            curator.prepare(accept_losses=True)
            make_repeatable(curator)
            truths = {question: _truth(rows.execute(question.sql).fetchall()) for question in questions}
            for draw in range(draws):
                buy_again(curator)
                for question in questions:
                    for epsilon in prices:
                        yield _measured(curator, question, truths[question], epsilon, draw)


def buy_again(curator: Curator) -> None:
    """Buy what preparation bought once more."""
    curator.state.save_statistics({})
    buy_statistics(curator, anew=True)


def _truth(rows: Sequence[Sequence[object]]) -> dict[str, float]:
    """By group; the largest ones."""
    found = {str(row[0]) if len(row) > 1 else "": float(str(row[-1])) for row in rows}
    return dict(sorted(found.items(), key=lambda item: -abs(item[1]))[:GROUPS])


def bought(curator: Curator, sql: str, epsilon: str) -> tuple[BoundRequest, Purchase]:
    """A request and what was bought for it."""
    options = AskOptions(epsilon=epsilon)
    words = Words(sql, None, explain=False)
    bound = bound_statement(curator, words, dialect="duckdb")
    terms = terms_of(None, options, declaration=curator.declaration, budget=bound.budget)
    request = AskRequest(sql, options, curator.analyst_default)
    whole = BoundRequest(curator, request, words, bound, terms, PurchaseRecord(PurchaseKind.STATEMENT))
    return whole, whole.bought()


def _measured(curator: Curator, question: Question, truth: Mapping[str, float], epsilon: str, draw: int) -> Measured:
    request, found = bought(curator, question.sql, epsilon)
    assert found.answered is not None
    statement = request.bound.statement
    assembled = assemble(found.planned, found.answered.released, statement.post, confidence=Fraction(95, 100))
    possible = PossibleOutputs.of(statement, found.planned.facts, units=curator.prepared.dataset.units, confidence=Fraction(95, 100))
    seen = shown(assembled, statement, found.planned.facts, possible).assembled
    bars = dict(
        zip(_groups(seen.table.to_pylist(), question), zip(seen.table["v"].to_pylist(), seen.intervals["v"], strict=True), strict=True)
    )
    widths, errors, covered = [], [], []
    for group, true in truth.items():
        value, bar = bars.get(group, (None, None))
        widths.append(math.inf if bar is None else bar.hi - bar.lo)
        if value is not None and bar is not None:
            errors.append(abs(float(value) - true))
            covered.append(bar.lo - 1e-6 * abs(true) <= true <= bar.hi + 1e-6 * abs(true))
    return Measured(
        question.data,
        question.name,
        epsilon,
        draw,
        statistics.median(widths),
        _noise(found, statistics.median(truth.values())),
        statistics.median(errors) if errors else math.inf,
        statistics.fmean(covered) if covered else 1.0,
        abs(statistics.median(truth.values())),
    )


def _groups(rows: Sequence[Mapping[str, object]], question: Question) -> list[str]:
    return [str(next(iter(row.values()))) if question.grouped else "" for row in rows]


def _noise(found: Purchase, truth: float) -> float:
    """The standard deviation of the noise of a cell; of an average to first order, at its truth and in the largest group."""
    assert found.answered is not None
    (recipe,), (released, *_) = found.planned.parts[0].recipes, found.answered.released.tables
    spread = {column.name: float(column.step) * math.sqrt(variance(column.law)) for column in released.columns}
    if isinstance(recipe, CountMeasure | SumMeasure):
        return spread[recipe.vector]
    assert isinstance(recipe, AverageMeasure)
    count = released.column(recipe.count)
    rows = max(statistics.median(sorted(count.values)[-GROUPS:]) * float(count.step), 1.0)
    return math.hypot(spread[recipe.total], (truth - recipe.offset / recipe.steps) * spread[recipe.count]) / rows


def risen(before: Sequence[float], after: Sequence[float]) -> bool:
    """Whether the median is higher by more than the sampling error of both medians."""
    low, high = statistics.median(before), statistics.median(after)
    if math.isinf(high) or math.isinf(low):
        return math.isinf(high) and not math.isinf(low)
    return high > SLACK * low + SCORE * math.hypot(_error_of_median(before), _error_of_median(after))


def _error_of_median(values: Sequence[float]) -> float:
    """A quarter of what holds half of the values is 0.67 standard deviations; the median's error is 1.25 of these over the root of n."""
    if len(values) < 3:
        return 0.0
    below, _, above = statistics.quantiles(values, n=4, method="inclusive")
    return 1.25 * (above - below) / 1.35 / math.sqrt(len(values)) if math.isfinite(above) else 0.0


def rises(found: Sequence[Measured], prices: Sequence[str]) -> dict[tuple[str, str], list[tuple[str, bool, bool]]]:
    """By data set and statement: each step with whether the width, and the noise, rose above the step before."""
    steps: dict[tuple[str, str], list[tuple[str, bool, bool]]] = {}
    for (data, name), by_price in _by_statement(found).items():
        pairs = [(by_price[low], by_price[high], high) for low, high in pairwise(prices)]
        steps[data, name] = [
            (
                price,
                risen([one.width for one in low], [one.width for one in high]),
                risen([one.noise for one in low], [one.noise for one in high]),
            )
            for low, high, price in pairs
        ]
    return steps


def _by_statement(found: Sequence[Measured]) -> dict[tuple[str, str], dict[str, list[Measured]]]:
    by_statement: dict[tuple[str, str], dict[str, list[Measured]]] = {}
    for one in found:
        by_statement.setdefault((one.data, one.question), {}).setdefault(one.epsilon, []).append(one)
    return by_statement


def report(found: Sequence[Measured]) -> None:
    """The table, and the number of marks."""
    prices = sorted({one.epsilon for one in found}, key=float)
    marks = rises(found, prices)
    lines, total = [], 0
    for (data, name), by_price in _by_statement(found).items():
        up = {price: (width, noise) for price, width, noise in marks[data, name]}
        total += sum(width + noise for width, noise in up.values())
        for which, what in enumerate(("width", "noise")):
            medians = {price: statistics.median(getattr(one, what) for one in by_price[price]) for price in prices}
            marked = {price for price, rose in up.items() if rose[which]}
            cells = [f"{medians[price]:.4g}{' !' if price in marked else ''}" for price in prices]
            lines.append([f"{data}: {name}", what, *cells])
    table("Median width of the bar and standard deviation of the noise", ["statement", "", *prices], lines)
    steps = sum(len(each) for each in marks.values())
    covered = [one.covered for one in found]
    show("", f"{total} rises in {2 * steps} steps; {statistics.fmean(covered):.1%} of bars hold the truth")
    for price in prices:
        here = [one.covered for one in found if one.epsilon == price]
        show(f"- epsilon {price}: {statistics.fmean(here):.1%}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", choices=DATA)
    parser.add_argument("--question", action="append")
    parser.add_argument("--epsilon", nargs="+", default=list(LADDER))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write every answer here, a line each")
    parser.add_argument("--read", type=Path, nargs="+", help="measure nothing, read such files")
    options = parser.parse_args()
    found: list[Measured] = []
    for path in options.read or []:
        found += [Measured(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    begun = time.monotonic()
    for data in () if options.read else options.data or DATA:
        chosen = [one for one in QUESTIONS if one.data == data and (not options.question or one.name in options.question)]
        for one in measured(data, chosen, options.epsilon, draws=options.draws, users=USERS[data]):
            found.append(one)
            if options.json is not None:
                with options.json.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(asdict(one)) + "\n")
        show(f"{data}: {time.monotonic() - begun:.0f} s")
    report(found)


if __name__ == "__main__":
    main()
