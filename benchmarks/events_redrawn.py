"""Questions of a new user and their follow-ups, asked many times over: how often is the answer useful, and could it be?

    python -m benchmarks.events_redrawn --redraws 20                       # 20,000 users, epsilon 0.5: about half a minute each

The questions of `events`, fifteen in DuckDB's dialect (W) and fifteen in PostgreSQL's (P), and fifteen follow-ups (F): what one asks next,
of coarser groups, over a shorter time, or for a larger part of the budget. Each redraw has a data set of its own, so that nothing was asked
before. A cell is useful where its bar holds the truth and reaches at most a tenth of it to each side; an answer is useful where half the
cells of each of its columns are; a question is useful where its answers are in at least three redraws of four.

*Best* is the bar at the cap on each unit's norm that is best with sight of the rows, at the same price: the noise to 95% and what the cap
cuts, in the median over the groups, at the cap where that is least. It is there for counts and sums, which are one vector a unit.
"""

from __future__ import annotations

import argparse
import math
import shutil
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from benchmarks.events import POSTGRES, WEB, Question, chosen, keyed, write_web
from benchmarks.markdown import show, table
from benchmarks.reliability.best_bound import CAPS, NORMAL_95

import lapwing
from lapwing.curator.curator import Curator
from lapwing.errors import LapwingError
from lapwing.prices import statement_loss

HEAD = ("question", "columns", "useful", "covered", "bar", "best")
USEFUL = 0.1
OFTEN = 0.75
_MAY = "ts >= '2025-05-01' AND ts < '2025-06-01'"
_OF_DEVICE = "FROM events WHERE device = 'mobile'"
FOLLOW_UPS = (
    Question(
        "F1 active by week", "SELECT DATE_TRUNC('week', ts) AS w, COUNT(DISTINCT user_id) AS wau FROM events GROUP BY w ORDER BY w", 1
    ),
    Question("F2 active in a month", f"SELECT COUNT(DISTINCT user_id) AS mau FROM events WHERE {_MAY}"),
    Question(
        "F3 active by day, ISO",
        f"SELECT ts::DATE AS day, COUNT(DISTINCT user_id) AS dau FROM events WHERE {_MAY} GROUP BY day ORDER BY dau DESC",
        1,
    ),
    Question("F4 revenue in all", "SELECT SUM(revenue) AS revenue FROM events"),
    Question("F5 revenue by device", "SELECT device, SUM(revenue) AS revenue FROM events GROUP BY device ORDER BY device", 1),
    Question(
        "F6 revenue by quarter",
        "SELECT DATE_TRUNC('quarter', ts) AS q, SUM(LEAST(revenue, 100)) AS revenue FROM events GROUP BY q ORDER BY q",
        1,
    ),
    Question(
        "F7 paying users by country",
        "SELECT country, COUNT(DISTINCT user_id) AS payers FROM events WHERE revenue > 0 GROUP BY country ORDER BY country",
        1,
    ),
    Question(
        "F8 views of three pages", "SELECT url, COUNT(*) AS views FROM events WHERE url IN ('/', '/login', '/product') GROUP BY url", 1
    ),
    Question(
        "F9 users of ten pages",
        "SELECT url, COUNT(DISTINCT user_id) AS users FROM events WHERE url IN"
        " ('/', '/login', '/product', '/cart', '/checkout', '/thank-you', '/search', '/account', '/pricing', '/blog') GROUP BY url",
        1,
    ),
    Question("F10 all views", "SELECT COUNT(*) AS views FROM events"),
    Question("F11 views of mobiles", f"SELECT COUNT(*) AS views {_OF_DEVICE}"),
    Question("F12 views by year", "SELECT YEAR(ts) AS y, COUNT(*) AS views FROM events GROUP BY y ORDER BY y", 1),
    Question("F13 users by country", "SELECT country, COUNT(DISTINCT user_id) AS users FROM events GROUP BY country ORDER BY country", 1),
    Question("F14 average order", "SELECT AVG(revenue) AS average FROM events WHERE revenue > 0"),
    Question(
        "F15 median revenue of payers",
        "SELECT MEDIAN(r) AS m FROM (SELECT user_id, SUM(revenue) AS r FROM events WHERE revenue > 0 GROUP BY user_id) u",
    ),
)
_USERS = "SELECT DISTINCT user_id, {}, 1 FROM events"
VECTORS: Mapping[str, str] = {
    "W1": _USERS.format("ts::DATE || country") + " WHERE ts >= '2025-06-02' AND ts < '2025-06-09'",
    "W2": _USERS.format("ts::DATE") + " WHERE ts >= '2025-06-01' AND ts < '2025-07-01'",
    "W3": "SELECT user_id, country, SUM(revenue) FROM events GROUP BY ALL",
    "W4": "SELECT user_id, url, COUNT(*) FROM events GROUP BY ALL",
    "W9": "SELECT user_id, device, COUNT(*) FROM events GROUP BY ALL",
    "W11": "SELECT user_id, QUARTER(ts) || '/' || YEAR(ts), COUNT(*) FROM events GROUP BY ALL",
    "P1": _USERS.format("country") + " WHERE ts::DATE = '2025-06-02'",
    "P2": _USERS.format("strftime(ts, '%Y-%m')"),
    "P3": "SELECT user_id, country, SUM(LEAST(revenue, 200)) FROM events GROUP BY ALL",
    "P4": _USERS.format("url"),
    "P12": _USERS.format("device"),
    "P15": "SELECT user_id, EXTRACT(HOUR FROM ts), COUNT(*) FROM events GROUP BY ALL",
    "F1": _USERS.format("DATE_TRUNC('week', ts)"),
    "F3": _USERS.format("ts::DATE") + f" WHERE {_MAY}",
    "F4": "SELECT user_id, '', SUM(revenue) FROM events GROUP BY ALL",
    "F5": "SELECT user_id, device, SUM(revenue) FROM events GROUP BY ALL",
    "F6": "SELECT user_id, DATE_TRUNC('quarter', ts), SUM(LEAST(revenue, 100)) FROM events GROUP BY ALL",
    "F7": _USERS.format("country") + " WHERE revenue > 0",
    "F8": "SELECT user_id, url, COUNT(*) FROM events WHERE url IN ('/', '/login', '/product') GROUP BY ALL",
    "F10": "SELECT user_id, '', COUNT(*) FROM events GROUP BY ALL",
    "F11": f"SELECT user_id, '', COUNT(*) {_OF_DEVICE} GROUP BY ALL",
    "F12": "SELECT user_id, YEAR(ts), COUNT(*) FROM events GROUP BY ALL",
    "F13": _USERS.format("country"),
}
"""Of a question about one count or sum: what each user adds to each group. W11 is both its counts as one vector."""


def best_bar(bare: duckdb.DuckDBPyConnection, vectors: str, shown: int | None, rho: float) -> float:
    """At the best cap: to how large a part of the truth the bar reaches, in the median over the groups, the ``shown`` largest of them."""
    found = bare.execute(f"WITH v(u, k, x) AS ({vectors}) SELECT dense_rank() OVER (ORDER BY u), dense_rank() OVER (ORDER BY k), x FROM v")
    users, groups, values = (np.asarray(column) for column in found.fetchnumpy().values())
    values = values.astype(np.float64)
    norms = np.sqrt(np.bincount(users, values**2))[users]
    truth = np.bincount(groups, values)
    largest = np.argsort(truth)[::-1][: min(shown or len(truth), np.count_nonzero(truth))]
    least = math.inf
    for cap in np.geomspace(norms.max() / 1e4, norms.max(), 3 * CAPS):
        cut = truth - np.bincount(groups, values * np.minimum(1, cap / np.maximum(norms, 1e-9)))
        reach = NORMAL_95 * cap / math.sqrt(2 * rho) + cut
        least = min(least, float(np.median(reach[largest] / truth[largest])))
    return least


@dataclass(frozen=True, slots=True)
class Column:
    """Of one column of one answer: the share of its bars that hold the truth, how far they reach, the share of cells that are useful."""

    covered: float
    reach: float
    useful: float


REFUSED = Column(math.nan, math.inf, 0)


def columns_of(answer: lapwing.Answer, truth: Sequence[Mapping[str, Any]], question: Question) -> Iterator[tuple[str, Column]]:
    """Each column that is no key. A group that has no bar, or whose truth is 0 or missing, is not useful."""
    keys = answer.table.column_names[: question.keys]
    by_key = {keyed(row, keys): row for row in truth}
    rows = answer.table.to_pylist()
    for name in answer.table.column_names[question.keys :]:
        held, reach = [], []
        bars = answer.intervals.get(name, [None] * len(rows))
        with_bar = [(row, bar) for row, bar in zip(rows, bars, strict=True) if row[name] is not None and bar is not None]
        for row, bar in with_bar:
            true = float(by_key.get(keyed(row, keys), {}).get(name) or 0)
            low, value, high = float(bar.lo), float(row[name]), float(bar.hi)
            held.append(low <= true <= high)
            reach.append(max(high - value, value - low) / abs(true) if true else math.inf)
        useful = sum(covers and each <= USEFUL for covers, each in zip(held, reach, strict=True))
        reach += [math.inf] * max(len(rows) - len(with_bar), 1 - len(reach))
        yield name, Column(_mean(held), statistics.median(reach), useful / max(len(rows), 1))


class Redraws:
    """One folder of made-up events, the truth of every question, and what each redraw answered."""

    def __init__(self, directory: Path, bare: duckdb.DuckDBPyConnection, epsilon: str, lists: Sequence[Sequence[Question]]) -> None:
        self._directory, self._bare, self._epsilon = directory, bare, epsilon
        self.lists = lists
        bare.execute(f"CREATE VIEW events AS SELECT * FROM '{directory}/events.parquet'")
        self._truths: dict[str, list[dict[str, Any]]] = {}
        self.found: dict[str, list[dict[str, Column]]] = defaultdict(list)

    def _truth(self, question: Question) -> list[dict[str, Any]]:
        if question.name not in self._truths:
            found = self._bare.execute(question.truth_sql)
            names = [column[0] for column in found.description or []]
            self._truths[question.name] = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        return self._truths[question.name]

    def draw(self) -> None:
        """Ask every question once, each list of a data set of its own."""
        for questions in self.lists:
            with tempfile.TemporaryDirectory() as scratch:
                shutil.copytree(self._directory, scratch, dirs_exist_ok=True)
                with lapwing.open(scratch, home=Path(scratch) / "home") as data_set:
                    data_set.prepare()
                    for question in questions:
                        self.found[question.name].append(self._asked(data_set, question))

    def _asked(self, data_set: lapwing.DataSet, question: Question) -> dict[str, Column]:
        try:
            answer = data_set.ask(question.sql, epsilon=self._epsilon, dialect=question.dialect)
        except LapwingError as error:
            return {error.code: REFUSED}
        return dict(columns_of(answer, self._truth(question), question))

    def line(self, question: Question, rho: float) -> tuple[bool, list[str]]:
        """Whether the question is useful, and its row of the table."""
        answers = self.found[question.name]
        times = sum(all(column.useful >= 0.5 for column in answer.values()) for answer in answers)
        names = list(dict.fromkeys(name for answer in answers for name in answer))
        columns = [[answer[name] for answer in answers if name in answer] for name in names]
        vectors = VECTORS.get(question.name.split()[0])
        best = "" if vectors is None else f"{best_bar(self._bare, vectors, 20 if 'LIMIT' in question.sql else None, rho):.1%}"
        return times >= OFTEN * len(answers), [
            question.name,
            ", ".join(names),
            f"{times} of {len(answers)}",
            _listed([_mean([each.covered for each in column]) for column in columns]),
            _listed([statistics.median(each.reach for each in column) for column in columns]),
            best,
        ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--epsilon", default="0.5")
    parser.add_argument("--redraws", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=[], help="the first words of questions, such as W1")
    given = parser.parse_args()
    lists = [chosen(questions, given.only) for questions in (WEB, POSTGRES, FOLLOW_UPS)]
    with tempfile.TemporaryDirectory() as scratch, duckdb.connect() as bare:
        directory = Path(scratch)
        write_web(directory, users=given.users, rows=given.rows)
        with tempfile.TemporaryDirectory() as home, Curator(directory, home=Path(home) / "home") as curator:
            rho = float(statement_loss(curator.declaration.budget(), Fraction(given.epsilon)))
        redraws = Redraws(directory, bare, given.epsilon, [questions for questions in lists if questions])
        for _ in range(given.redraws):
            redraws.draw()
        show(f"{given.users:,} users, {given.rows:,} rows, epsilon {given.epsilon}, {given.redraws} redraws")
        for questions in redraws.lists:
            lines = [redraws.line(question, rho) for question in questions]
            useful = sum(is_useful for is_useful, _ in lines)
            table(f"{useful} of {len(lines)} are useful", HEAD, [cells for _, cells in lines])


def _mean(parts: Sequence[float]) -> float:
    """Of those that there are."""
    found = [part for part in parts if not math.isnan(part)]
    return statistics.fmean(found) if found else math.nan


def _listed(parts: Sequence[float]) -> str:
    """A part of each column; a dash where there is none."""
    return ", ".join("-" if not math.isfinite(part) else f"{part:.1%}" for part in parts)


if __name__ == "__main__":
    main()
