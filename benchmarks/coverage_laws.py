"""How often error bars hold, and how useful answers are, on events under five laws that no bound was made with (`fresh_laws`).

    python -m benchmarks.coverage_laws                                                  # 1,000 users, one copy of each law: some minutes
    python -m benchmarks.coverage_laws --users 2000 20000 200000 --copies 2 --draws 4   # in full: hours
    python -m benchmarks.coverage_laws --law "zipf bot" --question "sum by region" --epsilon 0.5 --json measured.jsonl
    python -m benchmarks.coverage_laws --read measured.jsonl                            # only the tables

Every cell is compared with the truth of the source, with nothing cut, through the ordinary path of a question, each asked as if for the
first time. Groups that hold nothing have the truth 0 for counts and sums, and are left out for other values.

*Withheld* are cells without a value, or without an error bar. *Covered* is the share of bars that hold the truth. *Error* is that of the
value as a share of the truth, its median; *tilt* is the same with its sign. *Bar / error* is half the length of the bar over the error.
*Useful* is the share of all cells whose bar reaches at most a tenth of the truth to each side.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.fresh_laws import LAWS, QUESTIONS, Question, bare, write_events
from benchmarks.markdown import show, table
from benchmarks.reliability.repeated import make_repeatable

from lapwing.asking.ask import ask
from lapwing.asking.options import AskOptions, AskRequest
from lapwing.curator.curator import Curator
from lapwing.errors import Refused

CONFIDENCE = "0.95"
EPSILONS = ("0.1", "0.5", "2")
USEFUL = 0.1
ROUNDING = 1e-6
"""A truth is a sum of floats: an end of a bar is not missed by less than this share of it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of one answer; what is None was withheld."""

    group: str
    truth: float
    value: float | None
    lo: float | None
    hi: float | None

    @property
    def error(self) -> float:
        """Of the value."""
        return 0.0 if self.value is None else self.value - self.truth

    @property
    def half(self) -> float:
        """Half of the length of the bar."""
        return 0.0 if self.lo is None or self.hi is None else (self.hi - self.lo) / 2

    @property
    def covered(self) -> bool:
        """Whether the bar holds the truth."""
        slack = ROUNDING * abs(self.truth)
        return self.lo is not None and self.hi is not None and self.lo - slack <= self.truth <= self.hi + slack


@dataclass(frozen=True, slots=True)
class Measurement:
    """One answer, or one refusal."""

    law: str
    users: int
    copy: int
    epsilon: str
    question: str
    cells: list[Cell] = field(default_factory=list)
    refused: str = ""
    cpu_seconds: float = 0.0


def measured(
    *, law: str, users: int, copy: int, draws: int, epsilons: Sequence[str], questions: Sequence[Question]
) -> Iterator[Measurement]:
    """All answers about one copy of a law."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        write_events(directory, law=law, users=users, copy=copy)
        with bare(directory) as rows, Curator(directory, home=directory / "home") as curator:
            curator.prepare(accept_losses=False)
            make_repeatable(curator)
            for question in questions:
                truth = {str(row[0]) if question.group else "": row[-1] for row in rows.execute(question.sql).fetchall()}
                for epsilon in epsilons:
                    for _ in range(draws):
                        found = _answered(curator, question, truth, law=law, users=users, copy=copy, epsilon=epsilon)
                        yield found
                        if found.refused:
                            break


def _answered(
    curator: Curator, question: Question, truth: dict[str, float | None], *, law: str, users: int, copy: int, epsilon: str
) -> Measurement:
    begun = time.process_time()
    try:
        options = AskOptions(epsilon=epsilon, confidence=CONFIDENCE)
        answer = ask(curator, AskRequest(question.sql, options, curator.analyst_default))
    except Refused as error:
        return Measurement(law, users, copy, epsilon, question.name, refused=error.code)
    spent = time.process_time() - begun
    bars = answer.intervals.get("v", [None] * len(answer))
    empty = 0.0 if question.value.startswith(("COUNT", "SUM(")) and "/" not in question.value else None
    cells = []
    for row, bar in zip(answer.table.to_pylist(), bars, strict=True):
        group = str(row[question.group]) if question.group else ""
        true, value = truth.get(group, empty), row["v"]
        if true is not None:
            ends = (None, None) if bar is None else (float(bar.lo), float(bar.hi))
            cells.append(Cell(group, float(true), None if value is None else float(value), *ends))
    return Measurement(law, users, copy, epsilon, question.name, cells, cpu_seconds=spent)


HEAD = ("", "cells", "withheld", "covered", "error", "tilt", "bar / error", "useful", "half bar", "refused")


def summary(found: Sequence[Measurement]) -> list[str]:
    """A row of a table, without its name."""
    every = [cell for one in found for cell in one.cells]
    cells = [cell for cell in every if cell.value is not None and cell.lo is not None]
    true = [cell for cell in cells if cell.truth]
    refused = sum(bool(one.refused) for one in found)
    if not true:
        return [f"{len(every):,}", f"{len(every) - len(cells):,}", *[""] * 6, str(refused or "")]
    useful = sum(cell.half <= USEFUL * abs(cell.truth) for cell in true)
    return [
        f"{len(every):,}",
        f"{len(every) - len(cells):,}",
        f"{statistics.fmean(cell.covered for cell in cells):.1%}",
        f"{statistics.median(abs(cell.error / cell.truth) for cell in true):.1%}",
        f"{statistics.median(cell.error / abs(cell.truth) for cell in true):+.1%}",
        f"{statistics.median(cell.half / max(abs(cell.error), 1e-9) for cell in cells):.2g}",
        f"{useful / len(every):.0%}",
        f"{statistics.median(cell.half / abs(cell.truth) for cell in true):.1%}",
        str(refused or ""),
    ]


def report(found: Sequence[Measurement]) -> None:
    """The tables: by family of question, law, number of users, price, and both of these."""
    family = {question.name: question.family for question in QUESTIONS}
    ways: tuple[tuple[str, Callable[[Measurement], str]], ...] = (
        ("By family", lambda one: family[one.question]),
        ("By law", lambda one: one.law),
        ("By number of users", lambda one: f"{one.users:,}"),
        ("By price (epsilon)", lambda one: one.epsilon),
        ("By users and price", lambda one: f"{one.users:,}, {one.epsilon}"),
    )
    for title, key in ways:
        groups: dict[str, list[Measurement]] = {}
        for one in found:
            groups.setdefault(key(one), []).append(one)
        table(f"**{title}**", HEAD, [*([name, *summary(group)] for name, group in groups.items()), ["all", *summary(found)]])
    spent = [one.cpu_seconds for one in found if not one.refused]
    if spent:
        show("", f"{len(spent):,} answers; CPU time of one: {1000 * statistics.median(spent):.0f} ms in the median")


def written(found: Measurement) -> str:
    """As a line of JSON."""
    return json.dumps(asdict(found))


def read(path: Path) -> list[Measurement]:
    """What was written, a line each."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Measurement(**{**record, "cells": [Cell(**cell) for cell in record["cells"]]}) for record in records]


def add_options(parser: argparse.ArgumentParser) -> None:
    """What is asked, of whom, and how often."""
    parser.add_argument("--law", action="append", choices=LAWS)
    parser.add_argument("--users", type=int, nargs="+", default=[1_000])
    parser.add_argument("--copies", type=int, default=1, help="data sets of each law and number of users")
    parser.add_argument("--draws", type=int, default=1, help="answers to each question at each price")
    parser.add_argument("--epsilon", nargs="+", default=list(EPSILONS))
    parser.add_argument("--question", action="append", choices=[question.name for question in QUESTIONS])
    parser.add_argument("--json", type=Path, help="also write every answer here, a line each")
    parser.add_argument("--read", type=Path, help="measure nothing, read such a file")


def asked(options: argparse.Namespace, questions: Sequence[Question] = QUESTIONS) -> list[Measurement]:
    """What the options ask for, measured or read."""
    if options.read is not None:
        return read(options.read)
    chosen = [question for question in questions if not options.question or question.name in options.question]
    found, begun = [], time.monotonic()
    for law in options.law or LAWS:
        for users in options.users:
            for copy in range(options.copies):
                for one in measured(law=law, users=users, copy=copy, draws=options.draws, epsilons=options.epsilon, questions=chosen):
                    found.append(one)
                    if options.json is not None:
                        with options.json.open("a", encoding="utf-8") as lines:
                            lines.write(written(one) + "\n")
                show(f"{law}, {users:,} users, copy {copy}: {time.monotonic() - begun:.0f} s")
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    report(asked(parser.parse_args()))


if __name__ == "__main__":
    main()
