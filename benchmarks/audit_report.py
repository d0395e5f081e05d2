"""The audit of a release: ``make audit``, and the page that is made from it.

    python -m benchmarks.audit_report --samples 1_000_000     measures; can be stopped, and goes on where it was
    python -m benchmarks.audit_report --page                  prints the page from what was measured

Measure with few runs first and with more afterwards: the page shows for each line the largest number it was measured with.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

from docs.paragraphs import wrapped

from lapwing.audit.auditor import CONFIDENCE
from lapwing.audit.report import (
    TESTS,
    WHOLE_RELEASES,
    Line,
    claim_text,
    headline,
    is_wrong,
    measured,
    mechanism_items,
    mistake_items,
    plan_items,
    read_state,
    verdict,
)

STATE = Path("build/audit.json")
RUNS_AIMED_AT = 1_000_000
FACTOR = Fraction(11, 10)
"""How much more than they claim the planted mechanisms reveal."""


def main() -> int:
    """Measure or print; 1 if a claim is refuted, or a planted mistake is not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=RUNS_AIMED_AT, help="runs on each side of each pair")
    parser.add_argument("--state", type=Path, default=STATE, help="where results are kept")
    parser.add_argument("--only", default="", help="items whose key contains this text")
    parser.add_argument("--whole", type=int, default=WHOLE_RELEASES, help="whole releases of each plan, compared with the tiled ones")
    parser.add_argument("--note", default="", help="on the page: what a reader should know of how it was measured")
    parser.add_argument("--page", action="store_true", help="print the page; measure nothing")
    given = parser.parse_args()
    if given.page:
        sys.stdout.write(page(list(read_state(given.state).values()), note=given.note))
        return 0
    items = [*mechanism_items(), *mistake_items(FACTOR), *plan_items(whole_releases_each=given.whole)]
    wrong = 0
    for line in measured(items, samples=given.samples, state=given.state, wanted=lambda item: given.only in item.key()):
        wrong += is_wrong(line)
        sys.stdout.write(f"{line.key()}: {claim_text(line)}; at least {line.lower_bound:.4f} from {line.samples:,} runs: {verdict(line)}\n")
        sys.stdout.flush()
    return 1 if wrong else 0


def _lengths(lines: list[Line]) -> str:
    """How far the measurements are from the million runs that are aimed at."""
    full = sum(line.samples >= RUNS_AIMED_AT for line in lines)
    fewest = min((line.samples for line in lines), default=0)
    return f"{full} of {len(lines)} lines have the {RUNS_AIMED_AT:,} runs that are aimed at; the fewest is {fewest:,}."


def page(lines: list[Line], *, note: str = "") -> str:
    """The report as a page of the reference; ``note`` says what a reader should know of how it was measured."""
    summary = (
        f"**{headline(lines)}** Each line gives what is claimed and the largest value that the runs refute, at a confidence of "
        f"{float(CONFIDENCE):.0%} for the whole page (each test is corrected for {TESTS:,} tests). A claim is refuted if that value is "
        "above it. A value well below the claim says that these neighbours, or this number of runs, show no more; it proves nothing. "
        f"*Runs* are those on each of the two data sets. {_lengths(lines)}{f' {note}' if note else ''}"
    )
    first = f"""# Audit report

Version {version("lapwing")}. Made by `benchmarks/audit_report.py`. How to read and repeat it: {{doc}}`../how-to/audit`; why it is sound:
{{doc}}`../proofs/audit`.

{wrapped(summary)}
"""
    parts = [("mechanism", MECHANISMS), ("plan", PLANS), ("mistake", MISTAKES)]
    return first + "".join(text + _table([line for line in lines if line.area == area]) for area, text in parts)


MECHANISMS = """
## Mechanisms

"""
PLANS = """
## Plans

Every shape of plan that the kernel certifies, on the worst pair of neighbours found among random hostile data sets, which were prepared and
run on the engine.

"""
MISTAKES = """
## Planted mistakes

Mechanisms that reveal more than they claim. If one of these stood, the audit would be too weak to be of use.

"""


def _table(lines: list[Line]) -> str:
    rows = [[line.name, line.setting, claim_text(line), f"{line.lower_bound:.3f}", f"{line.samples:,}", verdict(line)] for line in lines]
    head = [["audited", "setting", "claimed", "at least", "runs", "the claim"], ["---", "---", "---", "---:", "---:", "---"]]
    return "".join(f"| {' | '.join(row)} |\n" for row in [*head, *rows])


if __name__ == "__main__":
    raise SystemExit(main())
