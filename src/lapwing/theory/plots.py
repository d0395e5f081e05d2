"""Plots of laws and curves, for slides and lessons (needs matplotlib: the extra ``theory``).

Each function takes the parameters of its plot, draws into ``ax`` or into a new figure, and returns it. Lines differ in their dashes
and markers as well as in their colour, so that they can be distinguished in black and white and by the colour-blind. The data come
from the exact functions of this package and are converted to floats last; no decision depends on a plot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import exp_upper, ln_upper, require_exact
from lapwing.mechanisms.additive import laplace_for
from lapwing.mechanisms.calibration import gaussian_sigma
from lapwing.mechanisms.response import response_for
from lapwing.prices import epsilon_for
from lapwing.spread import half_width, pmf
from lapwing.theory import composition, gaussian, meaning
from lapwing.theory.guarantees import Guarantee
from lapwing.theory.loss import LossLaw, loss_law

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, BLUE, RED, GREEN, GREY, PALE = "#000000", "#0072b2", "#d55e00", "#007a5a", "#6b6b6b", "#d9d9d9"
"""Colours that can be distinguished by people with the common kinds of colour blindness (after Okabe and Ito 2008), and two greys."""

LINES = ((BLACK, "-"), (BLUE, "--"), (RED, "-."), (GREEN, (0, (1, 1.2))), (GREY, (0, (5, 1, 1, 1, 1, 1))))
"""Colour and dashes of the first, second, ... line of a picture."""

BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
"""The background of text that lines cross."""

POINTS_MAX = 400
"""Most points of a curve."""


def epsilon_band(*, epsilon: Fraction, count: int = 20, ax: Axes | None = None) -> Axes:
    """Where the law of a neighbour must lie: between ``exp(-epsilon)`` and ``exp(epsilon)`` times the law on the database itself.

    The mechanism is a count with discrete Laplace noise of scale ``1 / epsilon``; the neighbour has one row fewer. Its law touches both
    edges of the band: the noise is not larger than necessary.
    """
    _require_positive(epsilon)
    axes = _axes(ax)
    law = laplace_for(epsilon=epsilon, l1=1).noise()
    reach = max(6, math.ceil(3 / epsilon))
    outputs = list(range(count - reach, count + reach + 1))
    here, there = ([pmf(law, z - value) for z in outputs] for value in (count, count - 1))
    factor = math.exp(epsilon)
    # A step for each output, the first and the last as wide as the others.
    edges = [outputs[0] - 0.5, *(z + 0.5 for z in outputs)]
    low, high = ([p * times for p in here] for times in (1 / factor, factor))
    axes.stairs(high, edges, baseline=low, fill=True, color=PALE, label="allowed for a neighbour")
    axes.plot(outputs, here, "o", color=BLACK, markersize=5, label=f"$M(x)$: {count} rows")
    axes.plot(outputs, there, "D", color=RED, markersize=5, fillstyle="none", label=f"$M(y)$: {count - 1} rows")
    axes.set_xlabel("output (noisy number of rows)")
    axes.set_ylabel("probability of the output")
    axes.set_ylim(bottom=0)
    axes.set_title(rf"Every output within a factor $e^{{\varepsilon}}$ = {factor:.2f} ($\varepsilon$ = {_short(epsilon)})")
    axes.legend(frameon=False)
    return axes


def privacy_loss(law: LossLaw, *, label: str | None = None, ax: Axes | None = None) -> Axes:
    """The law of the privacy loss, one stem for each value; the probability of an infinite loss is written beside it."""
    axes = _axes(ax)
    losses = sorted((math.log(odds), float(share)) for odds, share in law.mass.items())
    axes.vlines([at for at, _ in losses], 0, [share for _, share in losses], color=BLACK, linewidth=2)
    axes.plot([at for at, _ in losses], [share for _, share in losses], "o", color=BLACK, markersize=5, label=label)
    axes.set_xlabel("privacy loss (natural logarithm of the odds)")
    axes.set_ylabel("probability")
    axes.set_ylim(bottom=0)
    if law.infinite:
        axes.annotate(f"infinite: {float(law.infinite):.3g}", (0.98, 0.95), xycoords="axes fraction", ha="right", va="top", color=RED)
    if label:
        axes.set_title(label)
    return axes


def loss_distributions(*, epsilon: Fraction, delta: Fraction) -> Figure:
    """The privacy loss of three mechanisms with the same epsilon, one below the other: randomised response, Laplace and Gaussian noise.

    Laplace noise is that on a count of sensitivity 12, so that its loss takes 13 values; the Gaussian is the continuous one with the least
    sigma for (epsilon, delta), its loss counted in cells as wide as the steps of the others.
    """
    _require_positive(epsilon)
    _require_probability(delta)
    plt = _pyplot()
    figure: Figure
    figure, panels = plt.subplots(3, 1, figsize=(6.4, 5.4), sharex=True, layout="constrained")
    e, steps = float(epsilon), 12
    odds = exp_upper(epsilon)
    responses = {"yes": odds / (1 + odds), "no": 1 / (1 + odds)}
    response = loss_law(responses, {"yes": responses["no"], "no": responses["yes"]})
    decay = math.exp(-e / steps)
    # The loss of the output z is (steps - 2 z) epsilon / steps inside, and +-epsilon outside (docs/proofs/discrete-laplace.md).
    end = 1 / (1 + decay)
    laplace = {e: end, -e: decay**steps * end}
    laplace |= {e * (steps - 2 * z) / steps: (1 - decay) / (1 + decay) * decay**z for z in range(1, steps)}
    mu = float(1 / gaussian.sigma_analytic(epsilon=epsilon, delta=delta, sensitivity=Fraction(1)))
    width = 2 * e / steps
    normal = NormalDist(mu**2 / 2, mu)
    span = 2.2 * e
    # cells that end at plus and minus epsilon, so that each lies on one side
    cells = [width * (i + 0.5) for i in range(math.floor(-span / width), math.ceil(span / width))]
    bell = {at: normal.cdf(at + width / 2) - normal.cdf(at - width / 2) for at in cells}
    shown = (
        ("randomised response: all or nothing", {math.log(at): float(share) for at, share in response.mass.items()}),
        ("Laplace noise: never beyond", laplace),
        (rf"Gaussian noise: sometimes beyond ($\delta$ = {_short(delta)})", bell),
    )
    for panel, (title, law) in zip(panels, shown, strict=True):
        _plain(panel)
        inside = {at: share for at, share in law.items() if abs(at) <= e + 1e-9}
        beyond = {at: share for at, share in law.items() if at not in inside}
        panel.bar(list(inside), list(inside.values()), width=0.8 * width, color=GREY)
        panel.bar(list(beyond), list(beyond.values()), width=0.8 * width, color="white", edgecolor=RED, hatch="////", linewidth=0.8)
        panel.set_title(title, loc="left", fontsize="medium")
        panel.set_ylabel("probability")
        for at in (-e, e):
            panel.axvline(at, color=BLACK, linestyle=(0, (4, 3)), linewidth=1)
    panels[-1].set_xlabel("privacy loss")
    panels[-1].set_xticks([-2 * e, -e, 0, e, 2 * e], [r"$-2\varepsilon$", r"$-\varepsilon$", "0", r"$\varepsilon$", r"$2\varepsilon$"])
    panels[-1].set_xlim(-span, span)
    return figure


def composition_curves(*, each_epsilon: Fraction, delta: Fraction, count_max: int, points: int = 12, ax: Axes | None = None) -> Axes:
    """The epsilon of k mechanisms of ``each_epsilon``, by every rule: basic, advanced, optimal, zCDP, and Gaussian noise instead.

    The Gaussian line is for counts with normal noise of the same variance as their Laplace noise, by Gaussian privacy.
    """
    _require_positive(each_epsilon)
    _require_probability(delta)
    if not 2 <= points <= min(count_max, POINTS_MAX):
        raise LapwingError("theory-argument", f"a curve must have 2 to {POINTS_MAX} points, at most one for each count")
    axes = _axes(ax, size=(8.2, 4.2))
    # closer together at the start, where the curves bend
    counts = sorted({max(1, round(count_max * (i / points) ** 2)) for i in range(1, points + 1)} | {1})
    one = Guarantee(_rounded_up(exp_upper(each_epsilon)))
    rho = composition.pure_to_rho(each_epsilon)
    curves: dict[str, list[float]] = {
        "basic: epsilons add": [float(k * each_epsilon) for k in counts],
        "advanced": [float(composition.advanced_epsilon_upper(epsilon=each_epsilon, count=k, delta_slack=delta)) for k in counts],
        "zCDP (Lapwing's ledger)": [float(epsilon_for(rho=k * rho, delta=delta)) for k in counts],
        "optimal": [float(ln_upper(composition.optimal_odds(one, count=k, delta=delta))) for k in counts],
        "Gaussian noise, Gaussian DP": [_gaussian_epsilon(math.sqrt(float(k * rho)), float(delta)) for k in counts],
    }
    _lines(axes, counts, curves)
    axes.set_xlabel(rf"number of answers, each of $\varepsilon$ = {_short(each_epsilon)}")
    axes.set_ylabel(r"$\varepsilon$ of all together")
    axes.set_ylim(0, 1.15 * max(values[-1] for name, values in curves.items() if not name.startswith("basic")))
    axes.set_xlim(0, count_max)
    axes.set_title(rf"What many answers cost ($\delta$ = {_short(delta)})")
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


def noise_against_accuracy(
    *,
    delta: Fraction,
    people: int,
    confidence: Fraction = Fraction(95, 100),
    epsilons: Sequence[Fraction] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The error of a count of people, by epsilon: Laplace noise, Gaussian noise, and randomised response without a curator."""
    _require_probability(delta)
    axes = _axes(ax, size=(8.2, 4.2))
    chosen = list(epsilons) if epsilons is not None else [Fraction(round(10**6 * 10 ** (i / 8)), 10**8) for i in range(20)]
    curves: dict[str, list[float]] = {
        f"randomised response, {people:,} people": [
            float(response_for(epsilon=e, categories=2).error(confidence=confidence, people=people)) for e in chosen
        ],
        rf"Gaussian noise ($\delta$ = {_short(delta)})": [
            float(half_width(gaussian_sigma(epsilon=e, delta=delta, sensitivity=1), confidence=confidence)) for e in chosen
        ],
        "Laplace noise": [float(laplace_for(epsilon=e, l1=1).error(confidence=confidence)) for e in chosen],
    }
    # a logarithmic axis cannot show an error of 0: the line ends
    _lines(axes, [float(e) for e in chosen], {name: [value or math.nan for value in values] for name, values in curves.items()})
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(r"$\varepsilon$ (smaller is more private)")
    axes.set_ylabel(f"error of a count, in people\n(bound at {float(confidence):.0%} confidence)")
    axes.set_title("Privacy has a price, and a curator lowers it")
    axes.axhline(people, color=GREY, linewidth=0.8)
    axes.annotate("everybody", (float(chosen[-1]), people), ha="right", va="bottom", color=GREY)
    axes.legend(frameon=False, loc="lower left")
    return axes


def trade_off_curves(
    guarantees: Sequence[Guarantee], *, tests: Mapping[str, Sequence[tuple[Fraction, Fraction]]] | None = None, ax: Axes | None = None
) -> Axes:
    """The largest power of a test for one person's presence at each false-alarm rate, under each guarantee.

    ``tests``: curves of actual tests by name, as (false-alarm rate, power), such as those of :func:`lapwing.theory.meaning.roc`. The
    arrow is the largest advantage of the first guarantee.
    """
    if not 1 <= len(guarantees) <= len(LINES):
        raise LapwingError("theory-argument", f"a plot can show 1 to {len(LINES)} guarantees")
    axes = _axes(ax, size=(5.2, 5.2))
    alarms = [Fraction(i, 100) for i in range(101)]
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    axes.annotate(
        "guessing",
        (0.8, 0.8),
        rotation=45,
        rotation_mode="anchor",
        ha="center",
        va="top",
        color=GREY,
        xytext=(4, -4),
        textcoords="offset points",
    )
    for guarantee, (colour, dashes) in zip(guarantees, LINES, strict=False):
        best = Fraction(1, 1) * (1 - guarantee.delta) / (1 + guarantee.odds)  # the corner, where the advantage is largest
        at = sorted({*alarms, best})
        power = [float(meaning.power_max(guarantee, false_alarm=alarm)) for alarm in at]
        axes.plot([float(alarm) for alarm in at], power, color=colour, linestyle=dashes, label=_promise(guarantee))
    first = guarantees[0]
    corner = float((1 - first.delta) / (1 + first.odds))
    top = float(meaning.power_max(first, false_alarm=(1 - first.delta) / (1 + first.odds)))
    axes.annotate("", (corner, top), (corner, corner), arrowprops={"arrowstyle": "<->", "color": BLACK})
    axes.annotate(
        f"advantage {top - corner:.2f}",
        (corner, top - 0.07 * (top - corner)),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        fontsize="small",
        bbox=BEHIND,
    )
    for (name, corners), marker in zip((tests or {}).items(), "osD^v", strict=False):
        axes.plot(
            [float(a) for a, _ in corners], [float(p) for _, p in corners], marker, color=BLACK, fillstyle="none", clip_on=False, label=name
        )
    axes.set_xlabel("false-alarm rate (the absent who are accused)")
    axes.set_ylabel("power (the present who are found)")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_title("What any attacker can do, at most")
    axes.legend(frameon=False, loc="lower right")
    return axes


@dataclass(frozen=True, slots=True)
class Reconstructed:
    """The result of an attack at one epsilon: the share of secret bits guessed right, as a mean over some runs."""

    epsilon: Fraction
    share: float


def reconstruction_curve(attacks: Mapping[str, Sequence[Reconstructed]], *, ax: Axes | None = None) -> Axes:
    """The share of secret bits that attacks recovered, by the epsilon of all answers together, and the bound for any attack."""
    axes = _axes(ax)
    every = sorted({point.epsilon for points in attacks.values() for point in points})
    if len(every) < 2:
        raise LapwingError("theory-argument", "a curve needs at least two values of epsilon")
    low, high = math.log(every[0]), math.log(every[-1])
    grid = [math.exp(low + (high - low) * i / 100) for i in range(101)]
    axes.plot(grid, [1 / (1 + math.exp(-e)) for e in grid], color=GREY, label="bound for any attack")
    for (name, points), (colour, dashes), marker in zip(attacks.items(), LINES[1:], "osD^", strict=False):
        ordered = sorted(points, key=lambda point: point.epsilon)
        epsilons = [float(point.epsilon) for point in ordered]
        axes.plot(epsilons, [point.share for point in ordered], color=colour, linestyle=dashes, marker=marker, label=name)
    axes.axhline(0.5, color=GREY, linewidth=0.8)
    axes.annotate("coin tosses", (grid[-1], 0.5), ha="right", va="bottom", color=GREY)
    axes.set_xscale("log")
    axes.set_ylim(0.25, 1.03)
    axes.set_xlabel(r"$\varepsilon$ of all answers together")
    axes.set_ylabel("share of secret bits guessed right")
    axes.set_title("Too many accurate answers give the data away")
    axes.legend(frameon=False, loc="lower right")
    return axes


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon at which mu-GDP has this delta: for a plot, in floats, by bisection."""
    normal = NormalDist()

    def delta_at(epsilon: float) -> float:
        return normal.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal.cdf(-mu / 2 - epsilon / mu)

    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high


def _lines(axes: Axes, at: Sequence[float], curves: Mapping[str, Sequence[float]]) -> None:
    for (name, values), (colour, dashes) in zip(curves.items(), LINES, strict=False):
        axes.plot(at, values, color=colour, linestyle=dashes, linewidth=2, label=name)


def _rounded_up(x: Fraction) -> Fraction:
    """Round up to 40 binary places: its powers stay short, and the resulting promise is slightly weaker."""
    return Fraction(math.ceil(x * 2**40), 2**40)


def _promise(guarantee: Guarantee) -> str:
    text = rf"$\varepsilon$ = {math.log(guarantee.odds):.2f}"
    return text + (rf", $\delta$ = {_short(guarantee.delta)}" if guarantee.delta else "")


def _short(x: Fraction) -> str:
    """A number in its usual notation: 0.5, 10^-6, 2^-40."""
    for base in (10, 2):
        power = round(math.log(1 / x, base)) if 0 < x < Fraction(1, 1000) else 0
        if power and x == Fraction(1, base**power):
            return f"$ {base}^{{-{power}}} $".replace(" ", "")
    return f"{float(x):.3g}"


def _pyplot() -> Any:
    import matplotlib.pyplot as plt

    return plt


def _axes(ax: Axes | None, *, size: tuple[float, float] = (6.4, 4.2)) -> Axes:
    axes: Axes = ax if ax is not None else _pyplot().subplots(figsize=size, layout="constrained")[1]
    _plain(axes)
    return axes


def _plain(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _require_positive(epsilon: Fraction) -> None:
    require_exact(epsilon)
    if epsilon <= 0:
        raise LapwingError("theory-argument", "epsilon must be positive")


def _require_probability(delta: Fraction) -> None:
    require_exact(delta)
    if not 0 < delta < 1:
        raise LapwingError("theory-argument", "delta must be above 0 and below 1")
