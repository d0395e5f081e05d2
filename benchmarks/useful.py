"""How much of what could be said usefully is said: answers beside the best bound known, which is chosen with sight of the rows.

    python -m benchmarks.useful                                          # 1,000 users: some minutes
    python -m benchmarks.useful --users 2000 20000 200000 --copies 2     # in full: hours
    python -m benchmarks.useful --read measured.jsonl                    # of what `coverage_laws --json` has written

The data and the questions are those of `coverage_laws`, as far as a best bound is known (`reliability/best_bound.py`): counts, sums, users
and averages. The best bound spends the whole price on the answer, with the cap that has the least error; nothing that may not look at the
rows can do as well everywhere. *Useful* is the share of cells whose bar reaches at most a tenth of the truth to each side. *Error* is the
ratio of the root of the mean square of errors, in the median over data sets, and its largest; *bar* that of the lengths of the bars;
errors as shares are of the mean truth.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from benchmarks.coverage_laws import USEFUL, Cell, Measurement, add_options, asked
from benchmarks.fresh_laws import QUESTIONS, Question, write_events
from benchmarks.markdown import show, table
from benchmarks.reliability.best_bound import LevelContributions, best_bound
from benchmarks.reliability.measure import Truth

from lapwing.curator.curator import Curator
from lapwing.prices import statement_loss

KNOWN = tuple(question for question in QUESTIONS if question.in_parts("poisson") is not None)


@dataclass(frozen=True, slots=True)
class Beside:
    """One question on one data set at one price: what was answered and what the best bound gives."""

    question: str
    law: str
    users: int
    epsilon: str
    useful: float
    useful_best: float
    error: float
    error_best: float
    bar_ratio: float
    mean_truth: float


def beside_best(found: Sequence[Measurement]) -> Iterator[Beside]:
    """Each question that has a best bound, with it."""
    questions = {question.name: question for question in KNOWN}
    by_data: dict[tuple[str, int, int], list[Measurement]] = defaultdict(list)
    for one in found:
        if one.question in questions and not one.refused:
            by_data[one.law, one.users, one.copy].append(one)
    for (law, users, copy), measurements in by_data.items():
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(scratch)
            write_events(directory, law=law, users=users, copy=copy)
            truth = Truth(directory, ("events",))
            with Curator(directory, home=directory / "home") as curator:
                budget = curator.declaration.budget()
            grouped: dict[tuple[str, str], list[Cell]] = defaultdict(list)
            for one in measurements:
                grouped[one.question, one.epsilon] += [cell for cell in one.cells if cell.value is not None and cell.lo is not None]
            levels: dict[str, list[LevelContributions]] = {}
            for (name, epsilon), cells in grouped.items():
                statement = questions[name].in_parts(law)
                if statement is None or not cells:
                    continue
                if name not in levels:
                    levels[name] = truth.contributions(statement)
                rho = float(statement_loss(budget, Fraction(epsilon)))
                yield _beside(questions[name], law, users, epsilon, cells, levels[name], rho)


def _beside(
    question: Question, law: str, users: int, epsilon: str, cells: Sequence[Cell], levels: Sequence[LevelContributions], rho: float
) -> Beside:
    statement = question.in_parts(law)
    assert statement is not None
    keys = [(cell.group,) if question.key else () for cell in cells]
    weights: dict[tuple[str | None, ...], float] = defaultdict(float)
    for key in keys:
        weights[key] += 1
    best = best_bound(statement, statement.outputs[0], levels, 0, weights, rho=rho)
    halves = [best.widths.get(key, best.other_width) / 2 for key in keys]
    return Beside(
        question.name,
        law,
        users,
        epsilon,
        useful=statistics.fmean(cell.half <= USEFUL * abs(cell.truth) for cell in cells),
        useful_best=statistics.fmean(half <= USEFUL * abs(cell.truth) for half, cell in zip(halves, cells, strict=True)),
        error=math.sqrt(statistics.fmean(cell.error**2 for cell in cells)),
        error_best=best.error,
        bar_ratio=statistics.median(cell.half / max(half, 1e-9) for half, cell in zip(halves, cells, strict=True)),
        mean_truth=max(statistics.fmean(abs(cell.truth) for cell in cells), 1e-9),
    )


HEAD = ("", "data sets", "useful", "useful at best", "error", "largest", "bar", "error of truth", "at best")


def summary(found: Sequence[Beside]) -> list[str]:
    """A row of a table, without its name."""
    ratios = [one.error / max(one.error_best, 1e-9) for one in found]
    return [
        f"{len(found):,}",
        f"{statistics.fmean(one.useful for one in found):.0%}",
        f"{statistics.fmean(one.useful_best for one in found):.0%}",
        f"{statistics.median(ratios):.2f}",
        f"{max(ratios):.1f}",
        f"{statistics.median(one.bar_ratio for one in found):.2f}",
        f"{statistics.median(one.error / one.mean_truth for one in found):.1%}",
        f"{statistics.median(one.error_best / one.mean_truth for one in found):.1%}",
    ]


def report(found: Sequence[Beside], *, worst: int) -> None:
    """The tables, and where answers are furthest from the best."""
    ways: tuple[tuple[str, Callable[[Beside], str]], ...] = (
        ("By question", lambda one: one.question),
        ("By law", lambda one: one.law),
        ("By users and price", lambda one: f"{one.users:,}, {one.epsilon}"),
    )
    for title, key in ways:
        groups: dict[str, list[Beside]] = defaultdict(list)
        for one in found:
            groups[key(one)].append(one)
        table(f"**{title}**", HEAD, [*([name, *summary(group)] for name, group in groups.items()), ["all", *summary(found)]])
    show("")
    for one in sorted(found, key=lambda one: -one.error / max(one.error_best, 1e-9))[:worst]:
        where = f"{one.law}, {one.users:,} users, {one.question}, epsilon {one.epsilon}"
        show(f"- {where}: error {one.error:.4g}, best {one.error_best:.4g}, of {one.mean_truth:.4g}; bar {one.bar_ratio:.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--worst", type=int, default=10, help="how many of the largest ratios are shown")
    options = parser.parse_args()
    found = list(beside_best(asked(options, KNOWN)))
    if found:
        report(found, worst=options.worst)
    else:
        show("no question with a known best bound was answered")


if __name__ == "__main__":
    main()
