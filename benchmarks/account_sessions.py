"""What an account with an order gives over whole sessions of questions, beside one that adds up rho alone.

    python -m benchmarks.account_sessions
    python -m benchmarks.account_sessions --data few --sessions 5 50

A session asks so many different questions, each for the same share of what preparation left. Both accounts have the same epsilon and
delta; the order is the best one for them (`lapwing.prices.best_order`). *Bar* is the ratio of the lengths of the error bars, with an order
over without, in the median over a session's questions; *shorter* and *longer* are the shares of questions with bars at least a tenth
shorter or longer; *unpaid* is how many questions of the session each account refuses.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from benchmarks.markdown import table
from benchmarks.price_laws import DATA, USERS, write

import lapwing
from lapwing.curator.curator import CATALOGUE_FILE
from lapwing.errors import BudgetRefused
from lapwing.kernel.accounting import LOSS_UNITS
from lapwing.prices import best_order

KINDS = {
    "counts": ("SELECT COUNT(*) AS v FROM events WHERE p <= {p}", "SELECT COUNT(DISTINCT user_id) AS v FROM events WHERE p <= {p}"),
    "mixed": (
        "SELECT COUNT(*) AS v FROM events WHERE p <= {p}",
        "SELECT SUM(minutes) AS v FROM events WHERE p <= {p}",
        "SELECT region, COUNT(DISTINCT user_id) AS v FROM events WHERE p <= {p} GROUP BY region",
        "SELECT AVG(amount) AS v FROM events WHERE p <= {p}",
        "SELECT region, COUNT(*) AS v FROM events WHERE p <= {p} GROUP BY region",
    ),
}
ACCOUNTS = ((Fraction(1), "1e-8", Fraction(1, 10**8)), (Fraction(3), "2^-40", Fraction(1, 2**40)))
"""Epsilon, and delta as it is declared and as a number."""
CLEARLY = 0.1


def session(data: str, users: int, epsilon: Fraction, delta: str, order: int | None, statements: Sequence[str]) -> list[float | None]:
    """The length of each answer's bars, in the median over its groups; None where it is not paid for."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        write(directory, data, users)
        catalogue = (directory / CATALOGUE_FILE).read_text(encoding="utf-8")
        budget = f'epsilon = {float(epsilon)}\ndelta = "{delta}"\n' + (f"order = {order}\n" if order else "")
        (directory / CATALOGUE_FILE).write_text(catalogue.replace('epsilon = 3\ndelta = "2^-40"\n', budget), encoding="utf-8")
        with lapwing.open(directory, home=directory / "home") as asked:
            asked.prepare(accept_losses=True)
            balance = asked.curator.balance()
            each = Fraction(balance.budget.loss_total - balance.spent.loss, len(statements) * LOSS_UNITS) * Fraction(98, 100)
            return [_bar(asked, f"{sql} WITH PRIVACY (rho = {float(each):.12f})") for sql in statements]


def _bar(asked: lapwing.DataSet, sql: str) -> float | None:
    try:
        answer = asked.ask(sql)
    except BudgetRefused:
        return None
    bars = [bar.hi - bar.lo for bar in answer.intervals["v"] if bar is not None]
    return statistics.median(bars) if bars else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=[name for name in DATA if name != "visits"], default=["single", "few", "amounts"])
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 5, 20, 80])
    asked = parser.parse_args()
    lines = []
    for epsilon, delta, exact in ACCOUNTS:
        order = best_order(epsilon=epsilon, delta=exact / 2)
        for kind, templates in KINDS.items():
            for number in asked.sessions:
                without: list[float | None] = []
                with_order: list[float | None] = []
                for data in asked.data:
                    statements = [templates[i % len(templates)].format(p=99 - i) for i in range(number)]
                    without += session(data, USERS[data], epsilon, delta, None, statements)
                    with_order += session(data, USERS[data], epsilon, delta, order, statements)
                lines.append([f"{float(epsilon):g}, {delta}", str(order), kind, str(number), *_beside(with_order, without)])
    header = ["account", "order", "questions", "in a session", "bar", "shorter", "longer", "unpaid, order", "unpaid, without"]
    table("Sessions with an order beside sessions without", header, lines)


def _beside(with_order: Sequence[float | None], without: Sequence[float | None]) -> list[str]:
    ratios = [one / other for one, other in zip(with_order, without, strict=True) if one is not None and other]
    shorter, longer = (sum(bound(ratio) for ratio in ratios) / len(ratios) for bound in (_is_shorter, _is_longer))
    unpaid = (str(sum(bar is None for bar in bars)) for bars in (with_order, without))
    return [f"{statistics.median(ratios):.2f}", f"{shorter:.0%}", f"{longer:.0%}", *unpaid]


def _is_shorter(ratio: float) -> bool:
    return ratio <= 1.0 - CLEARLY


def _is_longer(ratio: float) -> bool:
    return ratio >= 1.0 + CLEARLY


if __name__ == "__main__":
    main()
