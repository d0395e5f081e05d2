"""Makes the pictures of the lessons about games, from :mod:`lapwing.games`.

    python docs/images/games/make_pictures.py

Needs matplotlib (the extra ``theory``). Nothing is random. Takes a few minutes, most of them for the third picture.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import matplotlib
from matplotlib import pyplot
from matplotlib.figure import Figure

from lapwing.games import CommitmentMixture, DigitalGoodsAuction, EquilibriumSelection, FacilityLocation, RoadGame, certify, expected_gap
from lapwing.games import least_share as least_share_of
from lapwing.theory.plots import BLACK, BLUE, GREY, PALE, RED

HERE = Path(__file__).resolve().parent
TENTHS = tuple(Fraction(tenth, 10) for tenth in range(1, 11))
SPOTS = tuple(Fraction(spot, 5) for spot in range(6))
DETOURS = {"west": (Fraction(0), Fraction(1, 4)), "east": (Fraction(1, 4), Fraction(0))}


def auction() -> Figure:
    """Left: the law of the price with and without the lie that multiplies most. Right: that factor against exp(epsilon)."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
    lie = certify(DigitalGoodsAuction(TENTHS, epsilon=Fraction(2)), TENTHS, 4).worst_ratio
    assert lie is not None
    prices = [float(price) for price in TENTHS]
    left.bar(prices, [float(chance) for chance in lie.law_honest.chances()], width=0.08, color=PALE, edgecolor=GREY, label="honest")
    left.plot(prices, [float(chance) for chance in lie.law_lying.chances()], "D", color=RED, fillstyle="none", label="lying")
    truth, told = float(lie.liars[0]), float(lie.reports[0])
    others = ", ".join(str(float(other)) for other in lie.others)
    left.set_title(f"Worth {truth} to them, they say {told}\n(the others say {others}; $\\varepsilon$ = 2)", fontsize=10)
    left.set_xlabel("price")
    left.set_ylabel("probability of the price")
    left.legend(frameon=False)
    epsilons = [Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(3, 2), Fraction(2)]
    ratios = []
    for epsilon in epsilons:
        ratio = certify(DigitalGoodsAuction(TENTHS, epsilon=epsilon), TENTHS, 4).lie_ratio
        assert ratio is not None
        ratios.append(float(ratio))
    shown = [float(epsilon) for epsilon in epsilons]
    right.plot(shown, [math.exp(epsilon) for epsilon in shown], "--", color=GREY, label=r"$e^{\varepsilon}$, the promise")
    right.plot(shown, [math.exp(epsilon / 2) for epsilon in shown], ":", color=BLACK, label=r"$e^{\varepsilon/2}$, true of this auction")
    right.plot(shown, ratios, "o-", color=BLUE, label="best lie, exactly")
    right.set_yscale("log")
    right.set_yticks([1, 1.5, 2, 3, 5, 7], ["1", "1.5", "2", "3", "5", "7"])
    right.minorticks_off()
    right.set_xlabel(r"$\varepsilon$")
    right.set_ylabel("factor on the liar's utility")
    right.set_title("What the best lie multiplies", fontsize=10)
    right.legend(frameon=False)
    return figure


def facility() -> Figure:
    """The gain of the best lie against the share of the commitment mechanism."""
    figure, axes = pyplot.subplots(figsize=(6.8, 4.2), layout="constrained")
    for epsilon, colour, mark in ((Fraction(1, 5), BLUE, "o-"), (Fraction(1), RED, "D--")):
        game = FacilityLocation(SPOTS, facilities=2, epsilon=epsilon)
        shares = [Fraction(step, 100) for step in (0, 1, 2, 3, 4, 5, 6, 8, 10, 12)]
        gains = [certify(CommitmentMixture(game, share=share), SPOTS, 5).best_lie.gain for share in shares]
        axes.plot(
            [float(share) for share in shares],
            [1000 * float(gain) for gain in gains],
            mark,
            color=colour,
            label=f"$\\varepsilon$ = {float(epsilon):g}",
        )
        enough = float(least_share_of(gap=expected_gap(game, SPOTS).amount, gain=gains[0]))
        axes.axvline(enough, color=colour, linewidth=0.9, linestyle=":")
        axes.annotate(f"enough: {enough:.1%}", (enough, -1.35), color=colour, rotation=90, va="bottom", ha="right", fontsize=9)
    axes.axhline(0, color=BLACK, linewidth=0.8)
    axes.set_xlabel("share of the commitment mechanism")
    axes.set_ylabel("gain of the best lie, in thousandths")
    axes.set_title("Below the line, every lie costs", fontsize=10)
    axes.legend(frameon=False)
    return figure


def roads() -> Figure:
    """Regret of truth and obedience against the number of people."""
    figure, axes = pyplot.subplots(figsize=(6.8, 4.2), layout="constrained")
    game, people = RoadGame(DETOURS, slope=Fraction(1, 2)), [2, 3, 4, 6, 8, 12, 16, 24, 32]
    for epsilon, colour, mark in ((Fraction(1, 2), BLUE, "o"), (Fraction(2), RED, "D")):
        for obedient, dashes, kind in ((False, "-", "lying, and driving as one likes"), (True, ":", "lying alone")):
            gains = []
            for n in people:
                selection = EquilibriumSelection(game, n, epsilon=epsilon, steps=4, obedient=obedient)
                gains.append(float(certify(selection, selection.types, n).largest_gain))
            axes.plot(
                people,
                gains,
                mark + dashes,
                color=colour,
                fillstyle="full" if not obedient else "none",
                label=f"$\\varepsilon$ = {float(epsilon):g}, {kind}",
            )
    axes.set_xlabel("people")
    axes.set_ylabel("largest gain, on a scale from 0 to 1")
    axes.set_ylim(bottom=0)
    axes.set_title("What truth and obedience leave to regret", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    return figure


def main() -> None:
    """Make all of them."""
    matplotlib.use("agg")
    for name, figure in {"auction": auction(), "facility": facility(), "roads": roads()}.items():
        figure.savefig(str(HERE / f"{name}.png"), dpi=130)


if __name__ == "__main__":
    main()
