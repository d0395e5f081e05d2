"""How fast noise is drawn: our sampler beside OpenDP's and beside numpy.random, and its share of an answer with a million groups.

    python -m benchmarks.noise                                  # values a second, by law and scale
    python -m benchmarks.noise --question --rows 2_000_000      # a million groups through the whole product, in a new data set
    python -m benchmarks.noise --question --sampler opendp      # the same with OpenDP's samplers

*Values a second* are of CPU time of this process (user and system, so the operating system's random bytes count), one thread; the median
of the repetitions, in which the samplers take turns. *array* is what the sampler makes; *list* is what `add_noise` returns to `release`,
Python's integers added to a list of values, checks included. The envelope of a law is made before, and reported by itself. numpy.random
draws floats from a fast generator without a secret and is rounded here: a limit to compare with, neither exact nor safe. OpenDP draws
fewer values, because it takes longer.

*A million groups*: 1,000 days times 1,000 shops, all of them public keys, or 10^6 items that are discovered; the time is the CPU time of
`ask` and of the calls of `add_noise` in it. Nothing is asserted: figures depend on the machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from benchmarks.markdown import table

import lapwing
from lapwing.kernel import release as release_module
from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law, Sampler, loss
from lapwing.kernel.noise.additive import add_noise
from lapwing.kernel.noise.envelope import envelope
from lapwing.kernel.noise.vectors import draw_noise

SCALES = (Fraction(1, 1024), Fraction(1), *(Fraction(10**power) for power in (1, 2, 3, 4, 5, 6, 9, 12)))


def seconds(act: Callable[[], object]) -> float:
    """CPU time of one act."""
    start = time.process_time()
    act()
    return time.process_time() - start


def added(law: Law, values: list[int], sampler: Sampler) -> list[int]:
    """Noise at exactly its price."""
    account = Account.APPROXIMATE
    cost = loss(law, account, l1=1, l2_squared=1)
    return add_noise(law, values, account=account, l1=1, l2_squared=1, charged=cost, sampler=sampler)


def by_scale(*, values: int, opendp_values: int, repetitions: int) -> None:
    """Values a second of every sampler, by law and scale."""
    generator = np.random.default_rng()  # noqa: TID251
    for make in (DiscreteLaplace, DiscreteGaussian):
        body = []
        for scale in SCALES:
            law, width = make(scale), float(scale)
            envelope.cache_clear()
            built = seconds(lambda: envelope(law))  # noqa: B023
            floats = generator.laplace if make is DiscreteLaplace else generator.normal
            zeros, few = [0] * values, [0] * opendp_values
            acts: Sequence[tuple[Callable[[], object], int]] = (
                (lambda: draw_noise(law, values), values),  # noqa: B023
                (lambda: added(law, zeros, Sampler.LAPWING), values),  # noqa: B023
                (lambda: added(law, few, Sampler.OPENDP), opendp_values),  # noqa: B023
                (lambda: np.rint(floats(0.0, width, values)), values),  # noqa: B023
            )
            rounds = [[number / seconds(act) for act, number in acts] for _ in range(repetitions + 1)][1:]
            array, listed, other, rounded = (statistics.median(column) for column in zip(*rounds, strict=True))
            figures = [array / 1e6, listed / 1e6, other / 1e6, rounded / 1e6]
            body.append(
                [
                    f"{width:g}",
                    *(f"{figure:.3g}" for figure in figures),
                    f"{listed / other:.0f}",
                    f"{array / rounded:.2f}",
                    f"{built * 1e3:.1f}",
                ]
            )
        heading = ["scale", "array", "list", "OpenDP", "numpy.random, rounded", "list / OpenDP", "array / numpy", "envelope ms"]
        table(f"{make.__name__}: million values a second", heading, body)


CATALOGUE = """format = 1
[dataset]
id = "million"
unit = "user"
noise = "{sampler}"
[budget]
epsilon = 100
delta = "2^-40"
statistics_share = 0
[tables.events]
source = "events.parquet"
unit = "user_id"
rows_per_unit_max = 20
rows_max = 1_000_000_000
[tables.events.columns]
user_id = {{ type = "key" }}
item = {{ type = "integer", min = 1, max = 1_000_000, null = false }}
day = {{ type = "date", min = 2024-01-01, max = 2026-09-26, null = false }}
shop = {{ type = "text", values = {shops}, null = false }}
"""

ROWS = """COPY (SELECT (range * 7919) % ({rows} // 5) AS user_id, 1 + CAST(hash(range) % 1000000 AS INTEGER) AS item,
DATE '2024-01-01' + CAST(hash(range + 1) % 1000 AS INTEGER) AS day, 's' || (hash(range + 2) % 1000) AS shop FROM range({rows}))
TO '{path}'"""

QUESTIONS = {
    "10^6 known groups": "SELECT day, shop, COUNT(*) AS n FROM events GROUP BY day, shop",
    "10^6 discovered groups": "SELECT item, COUNT(*) AS n FROM events GROUP BY item",
}


def question(directory: Path, *, rows: int, sampler: str) -> None:
    """A million groups, asked as an analyst does, and how much of it is noise."""
    duckdb.sql(ROWS.format(rows=rows, path=directory / "events.parquet"))
    shops = [f"s{number}" for number in range(1000)]
    (directory / "lapwing.toml").write_text(CATALOGUE.format(sampler=sampler, shops=shops), encoding="utf-8")
    drawn: list[tuple[int, float]] = []
    draw = add_noise

    def timed(law: Law, values: Sequence[int], **terms: Any) -> list[int]:
        start = time.process_time()
        noisy = draw(law, values, **terms)
        drawn.append((len(values), time.process_time() - start))
        return noisy

    setattr(release_module, "add_noise", timed)  # noqa: B010
    body = []
    with lapwing.open(directory, home=directory / "home") as data:
        data.prepare(accept_losses=True)
        for name, text in QUESTIONS.items():
            drawn.clear()
            whole = seconds(lambda: data.ask(text, epsilon=1))  # noqa: B023
            cells, noise = sum(number for number, _ in drawn), sum(spent for _, spent in drawn)
            body.append([name, f"{cells:,}", f"{whole:.2f}", f"{noise:.2f}", f"{noise / whole:.0%}"])
    table(f"{rows:,} rows, noise by {sampler}", ["question", "cells with noise", "ask, CPU s", "noise, CPU s", "share"], body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=2_000_000)
    parser.add_argument("--opendp-values", type=int, default=20_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--question", action="store_true")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--sampler", choices=[sampler.value for sampler in Sampler], default=Sampler.LAPWING.value)
    options = parser.parse_args()
    if options.question:
        with tempfile.TemporaryDirectory() as directory:
            question(Path(directory), rows=options.rows, sampler=options.sampler)
    else:
        by_scale(values=options.values, opendp_values=options.opendp_values, repetitions=options.repetitions)


if __name__ == "__main__":
    main()
