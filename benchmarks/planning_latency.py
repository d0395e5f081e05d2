"""How long a statement takes from its text to its quoted price: wide statements as a BI tool writes them, on the demonstration.

    python -m benchmarks.planning_latency                       # 646 statements, a minute
    python -m benchmarks.planning_latency --statements 100 --slowest 5

Each statement is explained (``DataSet.explain``): parsed, bound, its groups found, planned, certified, its price and errors told.
Nothing is asked, so nothing is measured on rows. Time is that of the processor; the wall's is shown beside it. A first statement is not
counted: it loads what is loaded lazily.
"""

from __future__ import annotations

import argparse
import random  # noqa: TID251  (which statements are asked, not noise)
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import lapwing
from lapwing.demo import write_demo
from lapwing.errors import Refused

KEYS = {
    "code": '"visits"."code"',
    "clinic": '"visits"."clinic_id"',
    "city": '"clinics"."city"',
    "kind": '"clinics"."kind"',
    "month": 'DATE_TRUNC(\'MONTH\', CAST("visits"."day" AS DATE))',
    "year": 'CAST(TRUNC(EXTRACT(YEAR FROM "visits"."day")) AS INTEGER)',
    "weekday": 'CAST(EXTRACT(DOW FROM "visits"."day") + 1 AS INTEGER)',
    "group": "(CASE WHEN \"visits\".\"code\" IN ('E11', 'I10') THEN 'long' WHEN \"visits\".\"code\" = 'J45' THEN 'lungs' ELSE 'other' END)",
}
MEASURES = {
    "sum:cost:ok": 'SUM("visits"."cost")',
    "avg:cost:ok": 'AVG("visits"."cost")',
    "cnt:visits:ok": "SUM(1)",
    "ctd:patient:ok": 'COUNT(DISTINCT "visits"."patient_id")',
    "sum:minutes:ok": 'SUM("visits"."minutes")',
    "avg:minutes:ok": 'AVG(CAST("visits"."minutes" AS DOUBLE PRECISION))',
    "sum:dear:ok": 'SUM((CASE WHEN ("visits"."cost" > 500) THEN 1 ELSE 0 END))',
    "sum:weekend:ok": 'SUM((CASE WHEN EXTRACT(DOW FROM "visits"."day") IN (0, 6) THEN "visits"."cost" ELSE 0 END))',
    "usr:rate:ok": 'SUM((CASE WHEN "visits"."minutes" > 30 THEN 1 ELSE 0 END)) / NULLIF(SUM(1), 0)',
    "usr:per visit:ok": 'SUM("visits"."cost") / NULLIF(COUNT(1), 0)',
}
FILTERS = (
    "(\"visits\".\"code\" IN ('E11', 'I10', 'J45'))",
    '("visits"."day" >= DATE \'2024-03-01\') AND ("visits"."day" < DATE \'2025-03-01\')',
    '(CAST(TRUNC(EXTRACT(YEAR FROM "visits"."day")) AS INTEGER) = 2025)',
    '("visits"."cost" BETWEEN 10 AND 2000)',
    '(NOT ("visits"."minutes" IS NULL))',
    '("visits"."clinic_id" IN (1, 2, 3, 4, 5, 6, 7, 8))',
    '(CASE WHEN ("clinics"."kind" = \'hospital\') THEN TRUE WHEN NOT ("clinics"."kind" = \'hospital\') THEN FALSE ELSE NULL END)',
)
JOIN = 'INNER JOIN "public"."clinics" "clinics" ON ("visits"."clinic_id" = "clinics"."clinic_id")'


def statements(count: int, seed: int) -> Iterator[str]:
    """Statements with 0 to 3 keys, 1 to 10 measures and 0 to 4 filters."""
    draw = random.Random(seed)
    for _ in range(count):
        keys = draw.sample(sorted(KEYS), k=draw.choice((0, 1, 1, 2, 2, 3)))
        measures = draw.sample(sorted(MEASURES), k=draw.randint(1, len(MEASURES)))
        filters = draw.sample(FILTERS, k=draw.randint(0, 4))
        columns = [f'{KEYS[key]} AS "{key}"' for key in keys] + [f'{MEASURES[name]} AS "{name}"' for name in measures]
        text = "SELECT " + ",\n  ".join(columns) + '\nFROM "public"."visits" "visits"'
        if "clinics" in text or any("clinics" in item for item in filters):
            text += f"\n  {JOIN}"
        if filters:
            text += "\nWHERE (" + " AND ".join(filters) + ")"
        if keys:
            text += "\nGROUP BY " + ",\n  ".join(str(number + 1) for number in range(len(keys)))
        if draw.random() < 0.3:
            text += "\nHAVING (COUNT(1) > 0)"
        yield text


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--statements", type=int, default=646)
    arguments.add_argument("--seed", type=int, default=646)
    arguments.add_argument("--slowest", type=int, default=0, help="print so many of the slowest statements")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        write_demo(Path(scratch) / "clinic", patients=2_000)
        with lapwing.open(Path(scratch) / "clinic", home=Path(scratch) / "home") as clinic:
            clinic.prepare()
            texts = list(statements(given.statements, given.seed))
            clinic.explain("SELECT COUNT(*) FROM visits")
            took: list[tuple[float, float, str]] = []
            why = Counter[str]()
            for text in texts:
                wall, cpu = time.perf_counter(), time.process_time()
                try:
                    clinic.explain(text)
                except Refused as error:
                    why[error.code] += 1
                took.append((time.process_time() - cpu, time.perf_counter() - wall, text))
    refused = sum(why.values())
    if refused:
        print(f"refused: {dict(why)}", file=sys.stderr)
    print("| statements | refused | | median | 95 % | largest |\n|---|---|---|---|---|---|")
    for number, name in enumerate(("processor", "wall")):
        times = sorted(1000 * (cpu, wall)[number] for cpu, wall, _ in took)
        print(
            f"| {len(texts)} | {refused} | {name}, ms | {median(times):.1f} | {times[int(0.95 * (len(times) - 1))]:.1f} | {times[-1]:.0f} |"
        )
    for cpu, wall, text in sorted(took, reverse=True)[: given.slowest]:
        print(f"\n{1000 * cpu:.0f} ms ({1000 * wall:.0f} on the wall):\n{text}")


if __name__ == "__main__":
    main()
