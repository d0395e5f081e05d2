"""How many counts of a small epsilon fit into one budget, by each composition rule.

    python -m benchmarks.how_many [--check]

Prints the table of ``docs/reference/how-many-fit.md``. Nothing is measured: every figure is decided with directed rounding, so it is the
same on every machine. ``--check`` compares with the page and says which rows differ.
"""

from __future__ import annotations

import argparse
import sys
import time
from fractions import Fraction
from pathlib import Path

from benchmarks.markdown import show, table

from lapwing.theory.composition import Rule, how_many

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "how-many-fit.md"

BUDGETS = [
    (Fraction(1, 100), Fraction(1), Fraction(1, 10**6)),
    (Fraction(1, 100), Fraction(1), Fraction(1, 2**40)),
    (Fraction(1, 100), Fraction(1, 2), Fraction(1, 10**6)),
    (Fraction(1, 10), Fraction(1), Fraction(1, 10**6)),
    (Fraction(1, 10), Fraction(3), Fraction(1, 2**40)),
    (Fraction(1, 10), Fraction(10), Fraction(1, 2**40)),
    (Fraction(1, 2), Fraction(10), Fraction(1, 2**40)),
]
"""(epsilon of one count, epsilon and delta of the whole)."""


def row(each: Fraction, epsilon: Fraction, delta: Fraction) -> list[str]:
    """One row of the table: the budget, then the number by each rule."""
    shown_delta = "2^-40" if delta == Fraction(1, 2**40) else f"1e-{len(str(delta.denominator)) - 1}"
    numbers = [f"{how_many(rule, each_epsilon=each, epsilon=epsilon, delta=delta):,}" for rule in Rule]
    return [f"{float(each):g}", f"{float(epsilon):g}", shown_delta, *numbers]


def main() -> None:
    """Print, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the page instead of printing")
    check = parser.parse_args().check
    start = time.perf_counter()
    rows = [row(*budget) for budget in BUDGETS]
    if check:
        page = PAGE.read_text(encoding="utf-8")
        missing = [" | ".join(cells) for cells in rows if f"| {' | '.join(cells)} |" not in page]
        show(*(f"not on the page: {line}" for line in missing))
        sys.exit(1 if missing else 0)
    head = ["each epsilon", "epsilon", "delta", *(rule.value for rule in Rule)]
    table("Counts that fit", head, rows)
    show("", f"{time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
