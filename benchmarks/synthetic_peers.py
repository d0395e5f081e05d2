"""One synthetic table by a peer, in the peer's own environment: rows of codes in, rows of codes out.

    PYTHON benchmarks/synthetic_peers.py '{"peer": "mbi-mst", "sizes": [...], "epsilon": 1.0, "delta": 1e-9}' rows.npy made.npy

Imports nothing of Lapwing. The domain of every column is public, as it is for Lapwing, and nothing is spent on finding it.

*mbi-mst* is the mechanism of McKenna, Miklau and Sheldon (2021), written here over mbi's own estimation, since mbi 2 no longer carries its
mechanisms: a third of rho for columns, a third for choosing a tree of pairs with the exponential mechanism, a third for its pairs; values
below three deviations are merged. *smartnoise-mst* and *smartnoise-aim* are what `snsynth.Synthesizer.create` gives.
"""

from __future__ import annotations

import json
import math
import os
import sys
from itertools import combinations
from typing import Any

import numpy as np

os.environ.setdefault("JAX_PLATFORMS", "cpu")


def main() -> None:
    job, source, target = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
    rows = np.load(source)
    peer = job["peer"]
    if peer == "mbi-mst":
        made = mbi_mst(rows, job["sizes"], rho_of(job["epsilon"], job["delta"]))
    else:
        made = smartnoise(rows, job["sizes"], job["epsilon"], job["delta"], peer.removeprefix("smartnoise-"))
    np.save(target, np.asarray(made, dtype=np.int64))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose (epsilon, delta) is no larger (Canonne, Kamath and Steinke, 2020), on a fine grid of orders."""
    over = np.exp(np.linspace(-10, 10, 20_001))
    return float(np.max((epsilon + np.log1p(1 / over) + (math.log(delta) + np.log1p(over)) / over) / (1 + over)))


def counts(rows: Any, axes: tuple[int, ...], sizes: list[int]) -> Any:
    shape = [sizes[axis] for axis in axes]
    place = np.ravel_multi_index([rows[:, axis] for axis in axes], shape)
    return np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(float)


def mbi_mst(rows: Any, sizes: list[int], rho: float) -> Any:
    import jax
    import networkx

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    from mbi import Domain, LinearMeasurement, estimation
    from mbi.marginal_loss import WeightedQuery

    generator = np.random.default_rng()  # noqa: TID251  (a peer's noise)
    columns = len(sizes)
    deviation = math.sqrt(columns / (2 * rho / 3))
    ones = [counts(rows, (axis,), sizes) + generator.normal(0, deviation, sizes[axis]) for axis in range(columns)]
    places, merged_sizes = [], []
    for one in ones:
        kept = one >= 3 * deviation
        if kept.sum() >= len(kept) - 1:
            kept[:] = True
        places.append(np.where(kept, np.cumsum(kept) - 1, kept.sum()))
        merged_sizes.append(int(places[-1].max()) + 1)
    merged = np.stack([place[rows[:, axis]] for axis, place in enumerate(places)], 1)
    small = [np.bincount(place, weights=one, minlength=size) for place, one, size in zip(places, ones, merged_sizes, strict=True)]
    members = [np.bincount(place, minlength=size) for place, size in zip(places, merged_sizes, strict=True)]
    total = max(1.0, float(np.mean([one.sum() for one in ones])))
    shares = [np.maximum(one, 0) / max(np.maximum(one, 0).sum(), 1e-9) for one in small]
    score = {
        (a, b): float(np.abs(counts(merged, (a, b), merged_sizes) - total * np.outer(shares[a], shares[b])).sum())
        for a, b in combinations(range(columns), 2)
    }
    epsilon = math.sqrt(8 * rho / 3 / (columns - 1))
    graph = networkx.Graph()
    graph.add_nodes_from(range(columns))
    for _ in range(columns - 1):
        open_pairs = [pair for pair in score if not networkx.has_path(graph, *pair)]
        noisy = np.array([score[pair] for pair in open_pairs]) * epsilon / 2 + generator.gumbel(size=len(open_pairs))
        graph.add_edge(*open_pairs[int(noisy.argmax())])
    spread = math.sqrt((columns - 1) / (2 * rho / 3))
    tree = [tuple(sorted(edge)) for edge in graph.edges]
    names = [f"c{axis}" for axis in range(columns)]
    facts = []
    for axis, one in enumerate(small):
        spreads = deviation * np.sqrt(members[axis])  # a merged value adds up the noise of all that it stands for
        facts.append(LinearMeasurement(one / spreads, (names[axis],), stddev=1.0, query=WeightedQuery(1 / spreads)))
    for pair in tree:
        noisy_pair = counts(merged, pair, merged_sizes) + generator.normal(0, spread, [merged_sizes[axis] for axis in pair])
        facts.append(LinearMeasurement(noisy_pair.ravel(), tuple(names[axis] for axis in pair), stddev=spread))
    model = estimation.MirrorDescent().estimate(Domain(names, merged_sizes), facts, known_total=total, iters=2_000)
    drawn = model.synthetic_data().to_dict()
    made = np.stack([np.asarray(drawn[name]) for name in names], 1).astype(np.int64)
    for axis, place in enumerate(places):
        choices = [np.flatnonzero(place == value) for value in range(merged_sizes[axis])]
        made[:, axis] = [choices[value][generator.integers(len(choices[value]))] for value in made[:, axis]]
    return made


def smartnoise(rows: Any, sizes: list[int], epsilon: float, delta: float, name: str) -> Any:
    import pandas
    from snsynth import Synthesizer

    columns = [f"c{axis}" for axis in range(len(sizes))]
    # Every declared value once, so that the domain is public and complete; the rows that this adds are few beside the table.
    listed = np.stack([np.arange(max(sizes)) % size for size in sizes], 1)
    frame = pandas.DataFrame(np.concatenate([rows, listed]), columns=columns)
    synthesizer = Synthesizer.create(name, epsilon=epsilon, delta=delta)
    made = synthesizer.fit_sample(frame, categorical_columns=columns, preprocessor_eps=0.0)
    return made[columns].to_numpy()


if __name__ == "__main__":
    main()
