"""Does the planner pick well? Total error of its pick against the best parameter of every plan, on COUNT(*) by region.

    python -m benchmarks.accuracy [--rows 2500000] [--json]

Method. One table (benchmarks/visits.py), heavy-tailed rows per unit, 50 regions; filters: none, one month, one day, one product. For every
candidate (plan, parameter) the exact bounded counts are computed on the engine, so the truncation is exact, and the noise variance follows
from the certified scale: error = sqrt(mean over regions of (bounded - true)^2 + noise variance). No noise is drawn. The planner sees the
noisy histogram of rows per unit only, bought as preparation buys it, and its price is taken off the budget first. "best" is the least error
over all candidates at the price that is left.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from benchmarks.visits import write_visits

from lapwing.answers.post_processing import evaluate
from lapwing.curator.curator import Curator
from lapwing.engines.base import Snapshot
from lapwing.kernel.accounting import LOSS_UNITS
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.domains import Kind
from lapwing.kernel.expressions import Column, Expression, Function, Literal, call
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Cap, Clipped, Filter, Grouped, KnownGroups, Plan, Query, Ranked, Relation, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_query
from lapwing.planning.planned import GroupLimits, Price
from lapwing.prices import Family, law_for, statement_loss
from lapwing.spread import variance
from lapwing.statements import Aggregate, AggregateKind, PrivateQuery

PRODUCT = 158
"""The product whose share of the rows is nearest to 1/1000 (weights i^-0.9 over 1,000)."""
REGIONS = tuple(f"region_{i:02d}" for i in range(50))
CATALOGUE = """
format = 1
[dataset]
id = "visits"
unit = "user"
[budget]
epsilon = {epsilon}
delta = "1e-8"
statistics_share = 0.05
[tables.visits]
source = "visits.parquet"
unit = "user_id"
rows_per_unit_max = 1000
rows_max = {rows_max}
[tables.visits.columns]
user_id = {{ type = "key" }}
day = {{ type = "date", min = 2024-01-01, max = 2024-12-30, null = false }}
region = {{ type = "text", values = [{regions}], null = false }}
product = {{ type = "integer", min = 1, max = 1000, null = false }}
amount = {{ type = "real", min = 0, max = 100, steps = 100, null = false }}
"""


def _date(days: int) -> Literal:
    return Literal(days, Kind.DATE)


def filters() -> dict[str, Expression | None]:
    """The four filters of the table, by name."""
    march = call(
        Function.AND,
        call(Function.GREATER_EQUAL, Column("day"), _date(19783)),
        call(Function.LESS_EQUAL, Column("day"), _date(19813)),
    )
    return {
        "none": None,
        "one month": march,
        "one day": call(Function.EQUAL, Column("day"), _date(19787)),
        "one product": call(Function.EQUAL, Column("product"), Literal(PRODUCT, Kind.INTEGER)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_500_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        rows = run(Path(scratch), options.rows)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'filter':12} {'eps':>4} {'ranked':>10} {'grouped':>10} {'clipped':>10} | {'picked':>24} {'error':>10} {'ratio':>6}")
    for row in rows:
        best = row["best"]
        print(
            f"{row['filter']:12} {row['epsilon']:>4} {best['ranked'][0]:>10,.1f} {best['grouped'][0]:>10,.1f} {best['clipped'][0]:>10,.1f}"
            f" | {row['picked']:>24} {row['error']:>10,.1f} {row['ratio']:>6.3f}"
        )


def run(directory: Path, rows: int) -> list[dict[str, Any]]:
    """All rows of the table."""
    write_visits(directory / "visits.parquet", rows=rows)
    found: list[dict[str, Any]] = []
    for epsilon in ("1", "0.1"):
        text = CATALOGUE.format(epsilon=epsilon, rows_max=rows, regions=", ".join(f'"{name}"' for name in REGIONS))
        home = directory / f"eps{epsilon}"
        home.mkdir()
        (home / "visits.parquet").symlink_to(directory / "visits.parquet")
        (home / "lapwing.toml").write_text(text)
        with Curator(home, home=home / "registry") as data:
            data.prepare()
            truth = _truth(directory / "visits.parquet")
            found += [_row(data, name, predicate, truth[name], epsilon) for name, predicate in filters().items()]
    return found


def _truth(path: Path) -> dict[str, dict[str, int]]:
    where = {
        "none": "TRUE",
        "one month": "day BETWEEN DATE '1970-01-01' + 19783 AND DATE '1970-01-01' + 19813",
        "one day": "day = DATE '1970-01-01' + 19787",
        "one product": f"product = {PRODUCT}",
    }
    connection = duckdb.connect()
    return {
        name: dict(connection.execute(f"SELECT region, COUNT(*) FROM '{path}' WHERE {condition} GROUP BY 1").fetchall())
        for name, condition in where.items()
    }


def _row(curator: Curator, name: str, predicate: Expression | None, truth: dict[str, int], epsilon: str) -> dict[str, Any]:
    budget = curator.balance().budget
    loss = statement_loss(budget, Fraction(epsilon)) - Fraction(curator.balance().spent.loss, LOSS_UNITS)

    def source(k: int) -> Relation:
        scan: Relation = Scan("visits", k)
        return scan if predicate is None else Filter(scan, predicate)

    query = PrivateQuery(source(1000), (("region", Column("region")),), (Aggregate(AggregateKind.COUNT),))
    price = Price(loss, budget.delta_keys / 1024)
    planned = plan_query(
        query,
        curator.facts,
        price,
        contributions=curator.contributions(),
        units=None,
        limits=GroupLimits(1_000_000, 1000),
        finder=GroupFinder(evaluate),
    )
    error = _error(planned.certified, curator.snapshot, truth)
    best: dict[str, tuple[float, float]] = {}
    for kind, parameter, draft in candidates(source):
        certified = _noised(draft, curator.facts, loss)
        measured = _error(certified, curator.snapshot, truth)
        if kind not in best or measured < best[kind][0]:
            best[kind] = (measured, parameter)
    least = min(value for value, _ in best.values())
    picked = f"{planned.only.choice.kind.value} {planned.only.choice.limit:.3g}"
    return {
        "filter": name,
        "epsilon": epsilon,
        "best": best,
        "picked": picked,
        "error": error,
        "ratio": error / least,
        "truth": sum(truth.values()) / 50,
    }


def candidates(source: Callable[[int], Relation]) -> list[tuple[str, float, Query]]:
    """Every plan and parameter that is tried."""
    placeholder, groups = DiscreteGaussian(Fraction(1)), KnownGroups(tuple((name,) for name in REGIONS))
    keys = (("region", Column("region")),)
    found: list[tuple[str, float, Query]] = []
    for k in (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 700, 1000):
        found.append(("ranked", k, Query(source(k), keys, groups, Ranked(), (Vector("n", RowCount(), placeholder),))))
    for c in (1, 1.4, 2, 3, 4, 6, 9, 13, 20, 30, 45, 68, 100, 150, 225, 340, 500, 750):
        bounded = Vector("n", RowCount(), placeholder, Cap(int(c * 1024)))
        found.append(("clipped", c, Query(source(1000), keys, groups, Clipped(10), (bounded,))))
    for m in (1, 2, 4, 8):
        for c in (1, 2, 4, 8, 16, 40, 100):
            bounded = Vector("n", RowCount(), placeholder, Cap(c))
            found.append(("grouped", m * 1000 + c, Query(source(1000), keys, groups, Grouped(m), (bounded,))))
    return found


def _noised(draft: Query, facts: Facts, loss: Fraction) -> Certified:
    bound = certify(Plan((draft,)), facts).queries[0].vectors[0].sensitivity
    law = law_for(facts.account, loss=loss, l1=bound.l1, l2_squared=bound.l2_squared, family=Family.GAUSSIAN)
    vector = draft.vectors[0]
    plan = Plan((Query(draft.source, draft.keys, draft.groups, draft.bounding, (Vector(vector.name, vector.measure, law, vector.bound),)),))
    return certify(plan, facts)


def _error(certified: Certified, snapshot: Snapshot, truth: dict[str, int]) -> float:
    table = snapshot.run(certified)._tables[0]
    vector = certified.queries[0].vectors[0]
    exact = {group[0]: float(value * vector.step) for group, value in zip(table._groups, table._vectors[0], strict=True)}
    squares = [(exact.get(name, 0.0) - truth.get(name, 0)) ** 2 for name in REGIONS]
    return math.sqrt(sum(squares) / len(squares) + variance(vector.vector.law) * float(vector.step) ** 2)


if __name__ == "__main__":
    main()
