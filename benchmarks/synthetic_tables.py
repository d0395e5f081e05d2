"""Synthetic tables beside the truth and beside peers: mean total variation over all pairs and triples of columns.

    python -m benchmarks.synthetic_tables own                       # generators of our own: is `auto` the best of its methods?
    python -m benchmarks.synthetic_tables adult --adult FOLDER      # errors at epsilon 0.1, 1 and 10
    python -m benchmarks.synthetic_tables peers --adult FOLDER --peer NAME=PYTHON ... [--limit 900]
    python -m benchmarks.synthetic_tables size                      # 15 columns of 100 values: CPU seconds and memory

FOLDER holds `adult.csv` (48,842 rows of codes) and `adult-domain.json` (values of each column), as in the `data` folder of
github.com/ryan112358/mbi; the project does not carry them. Neighbours differ in one row, delta is 1e-9, rho follows from epsilon, figures
are means of five runs (`--runs`). Noise is drawn by the kernel's own sampler, from the law that the kernel certifies for each table's
share; `method = "auto"` is told the number of rows, as if it were declared.

Peers run in environments of their own, one process for each table, stopped after `--limit` seconds (`benchmarks/synthetic_peers.py`):

    python -m venv peers/mbi && peers/mbi/bin/pip install mbi networkx                    # mbi-mst=PYTHON: MST with mbi's estimation
    python -m venv peers/smartnoise && peers/smartnoise/bin/pip install smartnoise-synth  # smartnoise-mst=PYTHON, smartnoise-aim=PYTHON
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
from benchmarks.markdown import show, table
from benchmarks.synthetic_worlds import CHECKED, GENERATED, HELD_OUT, Rows, World, adult, generated

from lapwing.kernel.accounting import Account, rho_for
from lapwing.kernel.noise.vectors import draw_noise
from lapwing.prices import Family, law_for
from lapwing.releases.marginals.synopsis import MeasuredMarginal, Synopsis
from lapwing.releases.synthetic.method import SyntheticMethod, SyntheticPlan, chosen
from lapwing.releases.synthetic.mixture import Mixture
from lapwing.releases.synthetic.public_numbers import PublicNumbers
from lapwing.releases.synthetic.table import model_of

DELTA = Fraction(1, 10**9)
EPSILONS = ("0.1", "1", "10")
OWN_EPSILONS = ("0.05", "0.2", "1", "4")
HEAD = ("table", "epsilon", "method", "2-way", "3-way", "CPU s")
NEAR = 1.1
"""`auto` is as good as the best where its error is at most this many times as large."""


def counts(rows: Rows, axes: Sequence[int], sizes: Sequence[int]) -> Rows:
    """How many rows each cell over these columns has."""
    shape = [sizes[axis] for axis in axes]
    place = np.ravel_multi_index([rows[:, axis] for axis in axes], shape)
    return np.bincount(place, minlength=int(np.prod(shape))).reshape(shape)


def measured(world: World, plan: SyntheticPlan, rho: Fraction) -> list[MeasuredMarginal]:
    """The tables of a plan with noise of the kernel, each with the law that its share of rho buys."""
    noisy = []
    for axes, share in plan.shares.items():
        law = law_for(Account.APPROXIMATE, loss=rho * Fraction(share), l1=1, l2_squared=1, family=Family.GAUSSIAN)
        exact = counts(world.rows, axes, world.sizes)
        noise = draw_noise(law, exact.size).reshape(exact.shape)
        noisy.append(MeasuredMarginal(axes, exact + noise, float(law.scale) ** 2))
    return noisy


def planned(world: World, epsilon: str, method: SyntheticMethod) -> tuple[SyntheticPlan, Fraction]:
    rho = rho_for(epsilon=Fraction(epsilon), delta=DELTA)
    return chosen(world.sizes, loss=float(rho), rows=len(world.rows), family=Family.GAUSSIAN, method=method), rho


def made(world: World, plan: SyntheticPlan, rho: Fraction, run: int) -> tuple[Rows, Mixture]:
    """One synthetic table, as rows of bins."""
    released = measured(world, plan, rho)
    digest = repr((world.name, run)).encode()
    model = model_of(world.sizes, released, digest)
    total = max(1, round(float(Synopsis(world.sizes, released).marginal(()))))
    return model.rows(total, PublicNumbers(digest, "rows")), model


def distance(world: World, rows: Rows, ways: int) -> float:
    """Total variation between true and synthetic marginals of so many columns, in the mean over all of them."""
    return statistics.fmean(
        float(np.abs(counts(world.rows, axes, world.sizes) / len(world.rows) - counts(rows, axes, world.sizes) / len(rows)).sum()) / 2
        for axes in combinations(range(len(world.sizes)), ways)
    )


def own(runs: int) -> None:
    """Both methods and `auto` on made-up tables."""
    _compared("Tables that the rule was made with", list(GENERATED), runs)
    _compared("Tables that it had not seen", list(HELD_OUT), runs)
    _compared("Tables made after the misses on these had been looked at", list(CHECKED), runs)


def _compared(title: str, names: Sequence[str], runs: int) -> None:
    lines, near = [], 0
    for name in names:
        world = generated(name)
        for epsilon in OWN_EPSILONS:
            errors = {}
            for method in (SyntheticMethod.PAIRS, SyntheticMethod.INDEPENDENT):
                plan, rho = planned(world, epsilon, method)
                errors[method] = statistics.fmean(distance(world, made(world, plan, rho, run)[0], 2) for run in range(runs))
            plan, _ = planned(world, epsilon, SyntheticMethod.AUTO)
            worse = errors[plan.method] / min(errors.values())
            near += worse <= NEAR
            figures = (f"{errors[SyntheticMethod.PAIRS]:.4f}", f"{errors[SyntheticMethod.INDEPENDENT]:.4f}")
            lines.append((name, epsilon, f"{plan.noise or 0:.3f}", *figures, plan.method.value, f"{worse:.2f}"))
            show(" | ".join(lines[-1]))
    head = ("table", "epsilon", "noise", "pairs", "independent", "auto", "auto / best")
    table(f"{title}: mean total variation of pairs, {runs} runs", head, lines)
    show("", f"`auto` is within {NEAR} of the best at {near} of {len(lines)} points.")


def on_adult(folder: Path, runs: int) -> None:
    """Adult in both forms: pairs and triples, CPU seconds."""
    lines = []
    for binned in (True, False):
        world = adult(folder, binned=binned)
        for epsilon in EPSILONS:
            plan, rho = planned(world, epsilon, SyntheticMethod.AUTO)
            begun = time.process_time()
            tables = [made(world, plan, rho, run) for run in range(runs)]
            seconds = (time.process_time() - begun) / runs
            lines.append((world.name, epsilon, f"Lapwing, {plan.method}", *_errors(world, [rows for rows, _ in tables]), f"{seconds:.1f}"))
            show(" | ".join(lines[-1]))
    table(f"Adult, means of {runs} runs", HEAD, lines)


def peers_on_adult(folder: Path, runs: int, peers: Sequence[tuple[str, str]], limit: int, epsilons: Sequence[str]) -> None:
    """The same by peers."""
    lines = []
    for name, python in peers:
        for binned in (True, False):
            world = adult(folder, binned=binned)
            for epsilon in epsilons:
                lines.append((world.name, epsilon, name, *_of_peer(world, epsilon, name, python, limit, runs)))
                show(" | ".join(lines[-1]))
    table(f"Peers on Adult, means of {runs} runs", HEAD, lines)


def _errors(world: World, tables: Sequence[Rows]) -> Iterator[str]:
    for ways in (2, 3):
        yield f"{statistics.fmean(distance(world, rows, ways) for rows in tables):.4f}"


def _of_peer(world: World, epsilon: str, name: str, python: str, limit: int, runs: int) -> tuple[str, ...]:
    tables, seconds = [], []
    script = Path(__file__).with_name("synthetic_peers.py")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "rows.npy", Path(folder) / "made.npy"
        np.save(source, world.rows)
        job = json.dumps({"sizes": world.sizes, "epsilon": float(epsilon), "delta": float(DELTA), "peer": name})
        for _ in range(runs):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            try:
                ran = subprocess.run([python, str(script), job, str(source), str(target)], timeout=limit, capture_output=True, text=True)
            except subprocess.TimeoutExpired:
                return ("-", "-", f"stopped after {limit} s")
            if ran.returncode:
                return ("-", "-", f"failed: {(ran.stderr.strip().splitlines() or ['?'])[-1][:80]}")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            tables.append(np.load(target))
    return (*_errors(world, tables), f"{statistics.fmean(seconds):.1f}")


def size() -> None:
    """The largest fit that is promised: 15 columns of 100 values, little noise."""
    generator = PublicNumbers(b"size", "benchmark")
    rows, columns, values, classes = 50_000, 15, 100, 20
    hidden = (generator.uniform(rows) * classes).astype(np.int64)
    starts = generator.uniform(classes * columns).reshape(classes, columns) * values
    drawn = [(starts[hidden, column] + 12 * generator.normal(rows)).astype(np.int64) % values for column in range(columns)]
    world = World("15 x 100", np.stack(drawn, 1), (values,) * columns)
    lines = []
    for epsilon in (*EPSILONS, "1000"):  # the last for a fit that takes all steps there are
        plan, rho = planned(world, epsilon, SyntheticMethod.PAIRS)
        released = measured(world, plan, rho)
        begun, wall = time.process_time(), time.perf_counter()
        model = model_of(world.sizes, released, b"size")
        spent, wall = time.process_time() - begun, time.perf_counter() - wall
        fit = model.fit
        assert fit is not None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        error = distance(world, model.rows(rows, PublicNumbers(b"size", "rows")), 2)
        lines.append((epsilon, f"{fit.steps}", f"{fit.residual:.2f}", f"{error:.3f}", f"{spent:.1f}", f"{wall:.1f}", f"{peak:,.0f}"))
    table("15 columns of 100 values", ("epsilon", "steps", "residual", "2-way", "CPU s", "wall s", "peak MB of the process"), lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=("own", "adult", "peers", "size"))
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--peer", action="append", default=[], help="NAME=PYTHON")
    parser.add_argument("--epsilon", action="append", choices=EPSILONS, help="for peers; all three if none is named")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=int, default=900)
    asked = parser.parse_args()
    match asked.part:
        case "own":
            own(asked.runs)
        case "size":
            size()
        case _:
            if asked.adult is None:
                parser.error("--adult FOLDER is needed")
            if asked.part == "adult":
                on_adult(asked.adult, asked.runs)
            else:
                named = [each.partition("=") for each in asked.peer]
                peers_on_adult(
                    asked.adult, asked.runs, [(name, python) for name, _, python in named], asked.limit, asked.epsilon or EPSILONS
                )


if __name__ == "__main__":
    main()
