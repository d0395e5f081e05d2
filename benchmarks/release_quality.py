"""What a release is good for, through the public interface: synthetic tables, free answers, wide tables, and units with many rows.

    python -m benchmarks.release_quality tables                        # a made-up table; a minute
    python -m benchmarks.release_quality tables --adult FOLDER --bins full --epsilon 0.1 1 10 --learn income_gt_50k
    python -m benchmarks.release_quality coverage --questions 50
    python -m benchmarks.release_quality coverage --adult FOLDER --questions 1000 --epsilon 0.1 1 5
    python -m benchmarks.release_quality wide --columns 12 --rows 20_000 --values 8
    python -m benchmarks.release_quality wide --columns 60 --rows 1_000_000 --values 20
    python -m benchmarks.release_quality visits --patients 20_000

`tables`: how far a synthetic table is from the truth, in total variation of tables of one, two and three columns (mean, largest), and what
it took. With `--learn COLUMN` a logistic regression of that column of two values is learnt from the synthetic rows and tried on a part
of the real ones, beside one that was learnt from the rest of the real rows; the synthetic tables are of all rows.

`coverage`: how often the error bars of free answers hold the truth: random counts, groups, sums, averages and ratios over releases of
tables of two and of three columns.

`wide`: time, memory and distance of a synthetic table of many columns or rows, made from hidden classes.

`visits`: what the bound on the rows of a unit costs: releases at several bounds beside an ordinary question, on the demonstration. *Off* is
the sum of absolute errors over all rows, *shape* the total variation once both sum up to one.

Adult is read from a folder with `adult.csv` (codes) and `adult-domain.json` (how many values each column has), as `synthetic_tables` does.
"""

from __future__ import annotations

import argparse
import json
import random  # noqa: TID251  (which questions are asked, not noise)
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.markdown import show, table
from benchmarks.spent import Spent, spent
from benchmarks.synthetic_worlds import GENERATED, HELD_OUT, Rows, World, adult, generated

import lapwing
from lapwing.demo import write_demo
from lapwing.errors import Refused

SMALL = "few rows: 3 classes, 6 x 20, 3,000 rows"
BUDGET_EPSILON = 100
METHODS = ("auto", "pairs", "independent")
TABLES_MAX = 60
"""Of each number of columns, tables that are compared."""
TRIED_SHARE = 0.3
"""Of the real rows, those that a learnt model is tried on."""
BOUNDS = (None, 40, 20, 10, 5, 2, 1)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NamedWorld:
    """Rows of codes, whose columns have names."""

    world: World
    names: tuple[str, ...]

    @property
    def sizes(self) -> dict[str, int]:
        """How many values each column has."""
        return dict(zip(self.names, self.world.sizes, strict=True))


def named_world(folder: Path | None, *, binned: bool, made: str = SMALL) -> NamedWorld:
    """Adult from its folder, else a made-up table."""
    if folder is None:
        world = generated(made)
        return NamedWorld(world, tuple(f"c{place}" for place in range(len(world.sizes))))
    domain = json.loads((folder / "adult-domain.json").read_text(encoding="utf-8"))
    names = tuple(name.lower().replace("-", "_").replace(">", "_gt_") for name in domain)
    return NamedWorld(adult(folder, binned=binned), names)


def write_data_set(named: NamedWorld, directory: Path) -> None:
    """One table, `people`, of which each row is a person, and its catalogue."""
    rows, many = named.world.rows, len(named.world.rows)
    columns = {name: pa.array(rows[:, place]) for place, name in enumerate(named.names)}
    pq.write_table(pa.table({"person": np.arange(many), **columns}), directory / "people.parquet")
    declared = "\n".join(f'{name} = {{ type = "integer", min = 0, max = {size - 1}, null = false }}' for name, size in named.sizes.items())
    (directory / "lapwing.toml").write_text(
        f"""\
format = 1

[dataset]
id = "people"
unit = "person"
units = {many}

[budget]
epsilon = {BUDGET_EPSILON}
delta = "1e-9"

[tables.people]
source = "people.parquet"
unit = "person"
one_row_per_unit = true
rows_max = {2 * many}

[tables.people.columns]
person = {{ type = "key", null = false }}
{declared}
""",
        encoding="utf-8",
    )


def shares(rows: Rows, axes: Sequence[int], sizes: Sequence[int]) -> Floats:
    """The share of rows in each cell over these columns."""
    shape = [sizes[axis] for axis in axes]
    place = np.ravel_multi_index([rows[:, axis] for axis in axes], shape)
    counted: Floats = np.bincount(place, minlength=int(np.prod(shape))) / max(len(rows), 1)
    return counted


def distances(world: World, rows: Rows, ways: int) -> list[float]:
    """Total variation of tables of so many columns: of all, or of some that are always the same."""
    every = list(combinations(range(len(world.sizes)), ways))
    chosen = every if len(every) <= TABLES_MAX else random.Random(ways).sample(every, TABLES_MAX)
    return [float(np.abs(shares(world.rows, axes, world.sizes) - shares(rows, axes, world.sizes)).sum()) / 2 for axes in chosen]


def rows_of(made: pa.Table, names: Sequence[str]) -> Rows:
    """The codes of a synthetic table."""
    return np.stack([np.asarray(made.column(name).to_numpy(zero_copy_only=False), dtype=np.int64) for name in names], 1)


@dataclass(frozen=True, slots=True)
class Synthetic:
    """A synthetic table and what it took."""

    rows: Rows
    plan: Spent
    run: Spent
    table: Spent

    def cells(self, world: World) -> list[str]:
        """For a table of figures: distances of one to three columns, seconds, memory."""
        found = [distances(world, self.rows, ways) for ways in (1, 2, 3) if ways <= len(world.sizes)]
        far = [f"{statistics.fmean(each):.4f} / {max(each):.4f}" for each in found] + [""] * (3 - len(found))
        seconds = [f"{each.cpu_seconds:.1f}" for each in (self.plan, self.run, self.table)]
        return [*far, *seconds, f"{self.table.peak_bytes / 1e6:,.0f}"]


TAKEN = ("1-way, mean / largest", "2-way", "3-way", "plan CPU s", "run CPU s", "rows CPU s", "peak MB")


def synthetic(data_set: lapwing.DataSet, names: Sequence[str], *, name: str, epsilon: str, method: str) -> Synthetic:
    """Plan, buy and draw a synthetic table."""
    kept: dict[str, Any] = {}
    wanted = lapwing.SyntheticTable(*names, method=method)

    def plan() -> None:
        kept["plan"] = data_set.release(wanted, name=name, epsilon=epsilon)

    def run() -> None:
        kept["release"] = kept["plan"].run()

    def draw() -> None:
        kept["table"] = kept["release"].table()

    planned, ran, drawn = (spent(action) for action in (plan, run, draw))
    return Synthetic(rows_of(kept["table"], names), planned, ran, drawn)


def tables(named: NamedWorld, *, epsilons: Sequence[str], methods: Sequence[str], learn: str) -> None:
    """Distances of synthetic tables; with ``learn`` also what can be learnt from them."""
    lines, learnt = [], []
    with tempfile.TemporaryDirectory() as scratch:
        write_data_set(named, Path(scratch))
        with lapwing.open(scratch, home=Path(scratch) / "home") as data_set:
            data_set.prepare()
            for epsilon in epsilons:
                for method in methods:
                    label = f"{method}_{epsilon.replace('.', '_')}"
                    made = synthetic(data_set, named.names, name=label, epsilon=epsilon, method=method)
                    lines.append([epsilon, method, f"{len(made.rows):,}", *made.cells(named.world)])
                    show(" | ".join(lines[-1]))
                    if learn:
                        learnt.append([f"epsilon {epsilon}, {method}", *_learnt(named, made.rows, learn)])
    table(f"Synthetic tables: {named.world.name}", ("epsilon", "method", "rows", *TAKEN), lines)
    if learn:
        rest, _ = _parts(named.world.rows)
        table(f"Predicting {learn}", ("learnt from", "area", "right"), [["real rows", *_learnt(named, rest, learn)], *learnt])


def _parts(rows: Rows) -> tuple[Rows, Rows]:
    """Real rows to learn from, and those to try."""
    order = np.random.default_rng(0).permutation(len(rows))  # noqa: TID251
    tried = int(TRIED_SHARE * len(rows))
    return rows[order[tried:]], rows[order[:tried]]


def _learnt(named: NamedWorld, rows: Rows, target: str) -> tuple[str, str]:
    """Area under the curve, and the share that is told right, of real rows that were kept apart."""
    place = named.names.index(target)
    answer = rows[:, place]
    if len(np.unique(answer)) < 2:
        return ("one class", "")
    _, tried = _parts(named.world.rows)
    offsets = np.cumsum([0, *named.world.sizes[:-1]])
    others = [axis for axis in range(len(named.names)) if axis != place]
    score = _regression(rows[:, others] + offsets[others], answer, int(sum(named.world.sizes)))
    told, truth = score(tried[:, others] + offsets[others]), tried[:, place] == 1
    ranks = np.argsort(np.argsort(told)) + 1.0
    ones, zeros = int(truth.sum()), int((~truth).sum())
    area = (float(ranks[truth].sum()) - ones * (ones + 1) / 2) / max(ones * zeros, 1)
    return (f"{area:.3f}", f"{float(np.mean((told > 0) == truth)):.1%}")


def _regression(places: Rows, answer: Rows, many: int) -> Callable[[Rows], Floats]:
    """A logistic regression over indicators, by their places, a little shrunk; returns log odds of new rows."""
    from scipy.optimize import minimize

    truth = (answer == 1).astype(np.float64)

    def odds(weights: Floats, rows: Rows) -> Floats:
        told: Floats = weights[rows].sum(axis=1) + weights[-1]
        return told

    def loss(weights: Floats) -> tuple[float, Floats]:
        told = odds(weights, places)
        wrong = 1 / (1 + np.exp(-told)) - truth
        slope = np.append(np.bincount(places.ravel(), np.repeat(wrong, places.shape[1]), many), wrong.sum()) + weights
        return float(np.logaddexp(0, told).sum() - truth @ told + weights @ weights / 2), slope

    found = minimize(loss, np.zeros(many + 1), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return lambda rows: odds(np.asarray(found.x), rows)


@dataclass(frozen=True, slots=True)
class Random:
    """Random questions about some columns."""

    draw: random.Random
    sizes: Mapping[str, int]

    def condition(self, column: str) -> str:
        """On one column."""
        one, other = sorted((self.draw.randrange(self.sizes[column]), self.draw.randrange(self.sizes[column])))
        choices = (f"BETWEEN {one} AND {other}", f"= {one}", f"<> {other}", f"IN ({one}, {other})")
        return f"{column} {self.draw.choice(choices)}"

    def question(self, ways: int) -> tuple[str, str]:
        """Its sort and its text, over at most so many columns."""
        first, *others = self.draw.sample(sorted(self.sizes), self.draw.randint(1, ways))
        sort = self.draw.choice(("count", "group", "average", "ratio", "sum", "filter")) if others else "count, one column"
        rest = " AND ".join(self.condition(column) for column in others)
        match sort:
            case "group":
                return sort, f"SELECT {first} AS k, COUNT(*) AS v FROM people WHERE {rest} GROUP BY {first}"
            case "average" | "sum":
                return sort, f"SELECT {'AVG' if sort == 'average' else 'SUM'}({first}) AS v FROM people WHERE {rest}"
            case "ratio":
                part = f"COUNT(*) FILTER (WHERE {self.condition(first)})"
                return sort, f"SELECT 100.0 * {part} / COUNT(*) AS v FROM people WHERE {rest}"
            case "filter":
                return sort, f"SELECT COUNT(*) FILTER (WHERE {self.condition(first)}) AS v FROM people WHERE {rest}"
            case _:
                every = " AND ".join([self.condition(first), *([rest] if rest else [])])
                return sort, f"SELECT COUNT(*) AS v FROM people WHERE {every}"


@dataclass(slots=True)
class Held:
    """How often bars held, of one sort of question or one release."""

    held: int = 0
    bars: int = 0
    without: int = 0

    def cells(self) -> list[str]:
        """For a table."""
        return [f"{self.bars:,}", f"{self.held / self.bars:.1%}" if self.bars else "", f"{self.without:,}"]


def coverage(named: NamedWorld, *, epsilons: Sequence[str], questions: int, seed: int, columns: int) -> None:
    """Bars of free answers, by release and by sort of question."""
    by_release: dict[str, Held] = {}
    by_sort: dict[str, Held] = defaultdict(Held)
    refused, seconds = Counter[str](), []
    with tempfile.TemporaryDirectory() as scratch:
        write_data_set(named, Path(scratch))
        with duckdb.connect() as bare, lapwing.open(scratch, home=Path(scratch) / "home") as data_set:
            bare.execute(f"CREATE TABLE people AS SELECT * FROM '{scratch}/people.parquet'")
            data_set.prepare()
            for ways in (2, 3):
                chosen = named.names if ways == 2 else named.names[:columns]
                for epsilon in epsilons:
                    name = f"ways_{ways}_epsilon_{epsilon.replace('.', '_')}"
                    release = data_set.release(lapwing.Marginals(*chosen, ways=ways), name=name, epsilon=epsilon).run()
                    asked = Random(random.Random(f"{seed} {name}"), {column: named.sizes[column] for column in chosen})
                    mine = by_release[f"{ways} columns, epsilon {epsilon}, {release.cells:,} cells"] = Held()
                    for _ in range(questions):
                        sort, sql = asked.question(ways)
                        begun = time.process_time()
                        try:
                            answer = release.query(sql)
                        except Refused as error:
                            refused[error.code] += 1
                            continue
                        seconds.append(time.process_time() - begun)
                        truth = {row[:-1]: row[-1] for row in bare.execute(sql).fetchall()}
                        for held in (mine, by_sort[sort]):
                            _count(held, answer, truth, sort)
    head = ("bars", "hold", "cells without")
    table(f"Free answers: {named.world.name}", ("release", *head), [[name, *held.cells()] for name, held in by_release.items()])
    table("By sort of question", ("sort", *head), [[sort, *held.cells()] for sort, held in sorted(by_sort.items())])
    show("", f"refused: {dict(refused)}", f"CPU time of an answer: {1000 * statistics.median(seconds or [0]):.1f} ms in the median")


def _count(held: Held, answer: lapwing.Answer, truth: Mapping[tuple[Any, ...], Any], sort: str) -> None:
    bars = answer.intervals.get("v", [None] * len(answer))
    for row, bar in zip(answer.table.to_pylist(), bars, strict=True):
        true = truth.get((row["k"],), 0) if sort == "group" else truth[()]
        if bar is None or true is None:
            held.without += 1
        else:
            held.bars += 1
            held.held += float(bar.lo) <= float(true) <= float(bar.hi)


def wide(*, columns: int, rows: int, values: int, epsilons: Sequence[str], method: str) -> None:
    """A synthetic table of many columns or rows."""
    generator = np.random.default_rng(1)  # noqa: TID251
    hidden = generator.integers(0, 6, rows)
    made = []
    for _ in range(columns):
        ends = np.cumsum(generator.dirichlet(np.full(values, 0.6), 6), axis=1)
        made.append(np.minimum((generator.random(rows)[:, None] > ends[hidden]).sum(1), values - 1))
    world = World(f"{columns} columns of {values} values, {rows:,} rows", np.stack(made, 1).astype(np.int64), (values,) * columns)
    named = NamedWorld(world, tuple(f"c{place}" for place in range(columns)))
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        write_data_set(named, Path(scratch))
        with lapwing.open(scratch, home=Path(scratch) / "home") as data_set:
            prepared = spent(data_set.prepare)
            for epsilon in epsilons:
                drawn = synthetic(data_set, named.names, name=f"wide_{epsilon.replace('.', '_')}", epsilon=epsilon, method=method)
                lines.append([epsilon, f"{prepared.cpu_seconds:.1f}", *drawn.cells(world)])
    table(f"Synthetic table ({method}): {world.name}", ("epsilon", "preparation CPU s", *TAKEN), lines)


QUESTIONS_OF_VISITS = {column: f"SELECT {column} AS k, COUNT(*) AS n FROM visits GROUP BY {column}" for column in ("clinic_id", "code")}


def visits(*, patients: int, epsilon: str) -> None:
    """Releases at several bounds on a unit's rows, and an ordinary question at the same price."""
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        write_demo(Path(scratch) / "clinic", patients=patients)
        with duckdb.connect() as bare, lapwing.open(Path(scratch) / "clinic", home=Path(scratch) / "home") as data_set:
            bare.execute(f"CREATE VIEW visits AS SELECT * FROM '{scratch}/clinic/visits.parquet'")
            data_set.prepare()
            truth = {column: dict(bare.execute(sql).fetchall()) for column, sql in QUESTIONS_OF_VISITS.items()}
            for bound in BOUNDS:
                try:
                    release = data_set.release(
                        lapwing.Marginals(*QUESTIONS_OF_VISITS, ways=1),
                        name=f"bound_{bound}",
                        table="visits",
                        epsilon=epsilon,
                        rows_per_unit=bound,
                    ).run()
                except Refused as error:
                    lines.append([f"release, bound {bound}", f"refused: {error.code}", *[""] * 3])
                    continue
                for column, sql in QUESTIONS_OF_VISITS.items():
                    lines.append([f"release, bound {bound or 'chosen'}", column, *_off(release.query(sql), truth[column])])
            for column, sql in QUESTIONS_OF_VISITS.items():
                try:
                    answer = data_set.ask(sql, epsilon=epsilon, reuse="never")
                except Refused as error:
                    lines.append(["question", f"refused: {error.code}", *[""] * 3])
                else:
                    lines.append(["question", column, *_off(answer, truth[column])])
    table(f"{patients:,} patients, epsilon {epsilon} each", ("", "column", "off", "shape", "bars that hold"), lines)


def _off(answer: lapwing.Answer, truth: Mapping[Any, int]) -> Iterator[str]:
    """Sum of errors over all rows, distance in shape, and bars that hold."""
    total = sum(truth.values())
    told = {row["k"]: float(row["n"]) for row in answer.table.to_pylist() if row["n"] is not None}
    positive = {key: max(value, 0.0) for key, value in told.items()}
    scale = total / max(sum(positive.values()), 1.0)
    keys = truth.keys() | told.keys()
    yield f"{sum(abs(told.get(key, 0.0) - truth.get(key, 0)) for key in keys) / total:.3f}"
    yield f"{sum(abs(positive.get(key, 0.0) * scale - truth.get(key, 0)) for key in keys) / total / 2:.3f}"
    bars = [(row["k"], bar) for row, bar in zip(answer.table.to_pylist(), answer.intervals["n"], strict=True) if bar is not None]
    held = sum(bar.lo <= truth.get(key, 0) <= bar.hi for key, bar in bars)
    yield f"{held} of {len(bars)}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    of_tables = parts.add_parser("tables", help="distance of synthetic tables from the truth")
    of_coverage = parts.add_parser("coverage", help="how often bars of free answers hold")
    for part in (of_tables, of_coverage):
        part.add_argument("--adult", type=Path, metavar="FOLDER", help="of Adult; a made-up table without it")
        part.add_argument(
            "--bins", choices=("16", "full"), default="16", help="of Adult: numbers of many values in 16 bins, or as they are"
        )
        part.add_argument("--made", choices=sorted(GENERATED | HELD_OUT), default=SMALL, help="which made-up table")
        part.add_argument("--epsilon", nargs="+", default=["1"])
    of_tables.add_argument("--method", nargs="+", choices=METHODS, default=["auto"])
    of_tables.add_argument("--learn", default="", metavar="COLUMN", help="a column of two values to predict (needs scipy)")
    of_coverage.add_argument("--questions", type=int, default=50, help="to each release")
    of_coverage.add_argument("--columns", type=int, default=9, help="how many columns the tables of three are over")
    of_coverage.add_argument("--seed", type=int, default=1)
    of_wide = parts.add_parser("wide", help="a synthetic table of many columns or rows")
    for name, default in (("--columns", 8), ("--rows", 10_000), ("--values", 6)):
        of_wide.add_argument(name, type=int, default=default)
    of_wide.add_argument("--method", choices=METHODS, default="auto")
    of_wide.add_argument("--epsilon", nargs="+", default=["1"])
    of_visits = parts.add_parser("visits", help="bounds on the rows of a unit")
    of_visits.add_argument("--patients", type=int, default=2_000)
    of_visits.add_argument("--epsilon", default="0.2")
    asked = parser.parse_args()
    match asked.part:
        case "tables":
            named = named_world(asked.adult, binned=asked.bins == "16", made=asked.made)
            tables(named, epsilons=asked.epsilon, methods=asked.method, learn=asked.learn)
        case "coverage":
            named = named_world(asked.adult, binned=asked.bins == "16", made=asked.made)
            coverage(named, epsilons=asked.epsilon, questions=asked.questions, seed=asked.seed, columns=asked.columns)
        case "wide":
            wide(columns=asked.columns, rows=asked.rows, values=asked.values, epsilons=asked.epsilon, method=asked.method)
        case _:
            visits(patients=asked.patients, epsilon=asked.epsilon)


if __name__ == "__main__":
    main()
