"""Lapwing and its peers on the same questions: error to the untruncated truth, coverage of stated intervals, keys and time.

    python -m benchmarks.peers.environments build/peers
    python -m benchmarks.peers build/peers measured.jsonl [--rows 100_000] [--law pareto ...] [--peer opendp ...] [--question Q4 ...]

Every system has (1, 1e-8) for one question of one user's privacy, Lapwing's statistics included. A peer is asked with the bound that a
caller guesses (20 rows) and with the best bound set by hand (`hand_set`); Lapwing is asked the plain statement. One line of JSON for every
output; lines are appended, so that parts can be measured at different times, and the newest of each counts.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import REQUIREMENTS, python_of
from benchmarks.peers.hand_set import Bound, bounds_by_hand
from benchmarks.peers.peer_jobs import RHO
from benchmarks.peers.questions import QUESTIONS, Cell, Question, read_cells, truth_of
from benchmarks.peers.visits_by_law import AMOUNT_MAX, catalogue, write_visits_of_law
from benchmarks.reliability.best_bound import best_bound
from benchmarks.reliability.measure import Truth
from benchmarks.reliability.repeated import make_repeatable
from benchmarks.reliability.shop import LAWS
from benchmarks.reliability.statements import AskedStatement, Measured, Output

import lapwing
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.errors import Refused
from lapwing.kernel.accounting import LOSS_UNITS
from lapwing.prices import epsilon_for

DRAWS = {"Q1": 3, "Q2": 3, "Q3": 3}
"""Answers of a peer to questions of one cell; the others have many cells, and are asked once. Lapwing is asked five times as often."""
BOUND_IN_GROUPS = ("pipeline_dp", "tumult")
"""Peers that can bound rows in each of some groups. OpenDP 0.16 has words for it too, and fails on them."""
SCALED = "lapwing, scaled groups"
OWN: dict[str, int | None] = {"lapwing": None, "lapwing, few questions": 32, SCALED: None}
"""Lapwing as it is, with an account for few questions (of this Rényi order), and asked to scale groups to a total, by a model."""
SCALABLE = ("Q4", "Q5")
"""Questions whose groups can be scaled: counts and sums of groups that are known."""
PEER_SECONDS_MAX = 1_500


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("environments", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--law", action="append", choices=sorted(LAWS))
    parser.add_argument("--peer", action="append", choices=[*OWN, *REQUIREMENTS])
    parser.add_argument("--question", action="append", choices=sorted(QUESTIONS))
    parser.add_argument("--guess-only", action="store_true", help="leave out the best bounds set by hand")
    options = parser.parse_args()
    for law in options.law or LAWS:
        with tempfile.TemporaryDirectory() as scratch:
            directory = Path(scratch)
            write_visits_of_law(directory, law=law, rows=options.rows)
            for peer in options.peer or [*OWN, *REQUIREMENTS]:
                questions = options.question or list(QUESTIONS)
                if peer in OWN:
                    asked = [name for name in questions if peer != SCALED or name in SCALABLE]
                    found = _lapwing(directory, asked, order=OWN[peer], scaled=peer == SCALED)
                else:
                    found = _peer(options.environments, peer, directory, questions, guess_only=options.guess_only)
                with options.target.open("a", encoding="utf-8") as file:
                    for record in found:
                        file.write(json.dumps({"law": law, "table_rows": options.rows, "peer": peer, **record}) + "\n")
                        file.flush()


def _lapwing(directory: Path, questions: Sequence[str], *, order: int | None, scaled: bool = False) -> Iterator[dict[str, Any]]:
    place = directory / f"order-{order}-{scaled}"
    place.mkdir()
    (place / "visits.parquet").symlink_to(directory / "visits.parquet")
    (place / "lapwing.toml").write_text(catalogue(order=order), encoding="utf-8")
    with Curator(place, home=place / "registry") as curator:
        curator.prepare(accept_losses=False)
        balance = curator.balance()
        share = Fraction(balance.remaining.loss, balance.budget.loss_total)
        if balance.budget.pure_total is not None and balance.spent.pure is not None:
            share = min(share, 1 - Fraction(balance.spent.pure, balance.budget.pure_total))
        rho = share * Fraction(balance.budget.loss_total, LOSS_UNITS)
        left = epsilon_for(rho=rho, delta=balance.budget.delta_conversion)
        epsilon = str(math.floor(left * 10**6) / 10**6)  # what preparation left of 1
        make_repeatable(curator)
        for name in questions:
            question = QUESTIONS[name]
            answers, seconds = [], []
            for _ in range(5 * DRAWS.get(name, 1)):
                started = time.perf_counter()
                try:
                    answer = DataSet(curator).ask(question.sql, epsilon=epsilon, scaled_groups=scaled)
                except Refused as refused:
                    yield {"question": name, "bound": "chosen", "cannot": str(refused), "version": lapwing.__version__}
                    break
                seconds.append(time.perf_counter() - started)
                values: dict[Cell, float] = {}
                bars: dict[Cell, tuple[float, float]] = {}
                for number, row in enumerate(answer.table.to_pylist()):
                    key = tuple(str(row[column]) for column in question.keys)
                    for output in question.outputs:
                        bar = answer.intervals[output][number] if output in answer.intervals else None
                        if row[output] is not None:
                            values[(key, output)] = float(row[output])
                        if bar is not None:
                            bars[(key, output)] = (bar.lo, bar.hi)
                answers.append((values, bars))
            if answers:
                head = {"question": name, "bound": "chosen", "version": lapwing.__version__, "seconds": seconds[0]}
                for record in _compared(question, truth_of(question, directory / "visits.parquet"), answers, head):
                    yield {**record, **_reachable(directory, question, record["output"])}


def _reachable(directory: Path, question: Question, output: str) -> dict[str, float]:
    """The error with the best bound known at the whole price, where the questions are counts, sums and averages of known groups."""
    known = {
        "n": Output("n", Measured.COUNT),
        "total": Output("total", Measured.SUM, "amount", AMOUNT_MAX),
        "average": Output("average", Measured.AVERAGE, "amount", AMOUNT_MAX),
    }
    if output not in known or len(question.keys) > 1:
        return {}
    outputs = tuple(known[name] for name in question.outputs)
    statement = AskedStatement("peers", "visits", "user_id", outputs, tuple((key, key) for key in question.keys))
    levels = Truth(directory, ("visits",)).contributions(statement)
    weights = dict.fromkeys(levels[0].groups, 1.0)
    return {"best_error": best_bound(statement, known[output], levels, 0, weights, rho=RHO).error}


def _peer(environments: Path, peer: str, directory: Path, questions: Iterable[str], *, guess_only: bool) -> Iterator[dict[str, Any]]:
    source = directory / "visits.parquet"
    jobs: list[dict[str, Any]] = []
    kinds: dict[tuple[str, Bound], str] = {}
    for name in questions:
        for kind, bounds in bounds_by_hand(name, source, has_groups=peer in BOUND_IN_GROUPS).items():
            for bound in bounds if kind == "guess" or not guess_only else ():
                if (name, bound) not in kinds:
                    jobs.append({"question": name, "rows": bound.rows, "groups": bound.groups, "draws": DRAWS.get(name, 1)})
                kinds.setdefault((name, bound), kind)
    command = [str(python_of(environments, peer)), "-m", f"benchmarks.peers.with_{peer}", str(source)]
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        try:
            subprocess.run(
                command, input=lines, stdout=printed, stderr=subprocess.DEVNULL, text=True, check=False, timeout=PEER_SECONDS_MAX
            )
        except subprocess.TimeoutExpired:
            yield {"question": "", "bound": "", "failed": f"stopped after {PEER_SECONDS_MAX} seconds"}
        printed.seek(0)
        answered = [read_cells(line.removeprefix("ANSWER ")) for line in printed if line.startswith("ANSWER ")]
    for (name, bound), kind in kinds.items():
        mine = [item for item in answered if (item[0]["question"], item[0]["rows"], item[0]["groups"]) == (name, bound.rows, bound.groups)]
        head: dict[str, Any] = {"question": name, "bound": kind, "bound_rows": bound.rows, "bound_groups": bound.groups}
        for words, _, _ in mine:
            head |= {key: words[key] for key in ("version", "cannot", "failed") if key in words}
        timed = [words["seconds"] for words, _, _ in mine if isinstance(words.get("seconds"), float)]
        if not timed:
            yield {**head, **({} if mine else {"failed": "no answer"})}
            continue
        head["seconds"] = statistics.median(item for item in timed if isinstance(item, float))
        answers = [(values, bars) for words, values, bars in mine if "seconds" in words]
        yield from _compared(QUESTIONS[name], truth_of(QUESTIONS[name], source), answers, head)


def _compared(
    question: Question,
    truth: dict[Cell, float],
    answers: Sequence[tuple[dict[Cell, float], dict[Cell, tuple[float, float]]]],
    head: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """One record for each output. A public group that an answer leaves out counts as answered by 0; an unknown key does not."""
    unknown = len(question.keys) > 1
    for output in question.outputs:
        cells = {cell: value for cell, value in truth.items() if cell[1] == output}
        errors: list[float] = []
        relative: list[float] = []
        covered = stated = keys = 0
        for values, bars in answers:
            shown = {cell for cell in values if cell[1] == output}
            keys += len(shown)
            errors += [values.get(cell, 0.0) - cells.get(cell, 0.0) for cell in (shown if unknown else shown | cells.keys())]
            relative += [cells.get(cell, 0.0) for cell in shown]
            for cell, (low, high) in bars.items():
                if cell[1] == output:
                    stated += 1
                    covered += low - 1e-6 <= cells.get(cell, 0.0) <= high + 1e-6
        yield {
            **head,
            "output": output,
            "draws": len(answers),
            "error": math.sqrt(statistics.fmean(error**2 for error in errors)) if errors else None,
            "mean_truth": statistics.fmean(relative) if relative else None,
            "intervals": stated,
            "covered": covered,
            "keys": keys / len(answers),
            "keys_true": len(cells),
        }


if __name__ == "__main__":
    main()
