"""Makes the picture of the lesson about weights, from the planner of sessions and the weights themselves.

    python docs/images/weights/make_pictures.py

Needs matplotlib (the extra ``theory``). Nothing is random: the weights learn from exact counts.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes

from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import IntegerDomain
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.neighbours import Neighbours
from lapwing.releases.weights.multiplicative_weights import CellSubset, MultiplicativeWeights
from lapwing.releases.weights.plan import WeightsRequest, other_ways, planned_weights
from lapwing.theory.plots import BLACK, BLUE, GREY, RED

HERE = Path(__file__).resolve().parent
SIZES = {"education": 16, "marital": 7, "occupation": 15, "race": 5, "sex": 2, "income": 2}
ROWS, ALPHA = 48_842, Fraction(1, 100)


def prices(axes: Axes) -> None:
    """What a number of different counts costs, within 1 % of the rows of Adult."""
    columns = {name: IntegerDomain(0, size - 1, False) for name, size in SIZES.items()}
    facts = Facts("picture", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"rows": TableFacts(columns, 1, 10**6)}, {})
    request = WeightsRequest("rows", tuple(SIZES), (), ALPHA, 1, Fraction(999, 1000), ROWS)
    ways = other_ways(planned_weights(request, facts), facts)
    assert ways.release is not None
    asked = np.geomspace(1, 10_000, 50)
    axes.loglog(asked, asked * float(ways.direct), color=BLACK, label="asked directly, each once")
    axes.axhline(float(ways.release), color=BLUE, label="a release of marginals")
    for starts, style in ((1, "-"), (5, "--")):
        axes.axhline(starts * float(ways.session), color=RED, linestyle=style, label=f"weights, {starts} start{'s' * (starts > 1)}")
    axes.set_xlabel("different counts, each within 1 % of the rows")
    axes.set_ylabel(r"$\rho$")
    axes.set_title("What they cost", fontsize=10)
    axes.set_ylim(top=1)
    axes.legend(fontsize=8, loc="lower right")


def learning(axes: Axes) -> None:
    """How far the weights are off in the worst of all counts, after each update, when always the worst is asked."""
    exact, rows, alpha = np.array([57_000, 2_000, 0, 0, 1_000, 0, 0, 0]), 60_000, 0.1
    questions = [list(each) for many in range(1, 8) for each in combinations(range(8), many)]

    def cells(listed: list[int]) -> CellSubset:
        counted = np.zeros(8, dtype=np.bool_)
        counted[listed] = True
        return CellSubset((0,), counted)

    weights, worst = MultiplicativeWeights([8], rows), []
    for _ in range(16):
        errors = [abs(int(exact[each].sum()) - weights.estimate(cells(each))) for each in questions]
        far = questions[int(np.argmax(errors))]
        worst.append(max(errors) / rows)
        weights.learn(cells(far), int(exact[far].sum()), noise=0, least=int(alpha * rows / 6))
    axes.plot(worst, "o-", color=RED, markersize=4, label="the worst of all counts")
    axes.axhline(alpha, color=GREY, linestyle="--", label=r"$\alpha$")
    axes.set_xlabel("updates")
    axes.set_ylabel("off by, as a share of all rows")
    axes.set_title("How the weights learn (8 cells, 95 % of rows in one)", fontsize=10)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)


def main() -> None:
    """Writes the picture beside this file."""
    matplotlib.use("agg")
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
    prices(left)
    learning(right)
    figure.savefig(HERE / "session.png", dpi=110)


if __name__ == "__main__":
    main()
