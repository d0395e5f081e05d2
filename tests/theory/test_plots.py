"""The pictures show what the exact functions say: the points and lines themselves are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lapwing.errors import LapwingError
from lapwing.mechanisms.additive import LaplaceMechanism
from lapwing.theory import composition, gaussian, meaning, plots
from lapwing.theory.guarantees import Guarantee
from lapwing.theory.loss import loss_law

if TYPE_CHECKING:
    from matplotlib.axes import Axes

matplotlib = pytest.importorskip("matplotlib")
HALF, TINY = Fraction(1, 2), Fraction(1, 10**6)


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    import matplotlib.pyplot as plt

    matplotlib.use("agg")
    yield
    plt.close("all")


def line(axes: Axes, label: str) -> tuple[list[float], list[float]]:
    """The points of the line whose label starts like this."""
    (found,) = [drawn for drawn in axes.get_lines() if str(drawn.get_label()).startswith(label)]
    points = np.asarray(found.get_xydata(), dtype=float)
    return points[:, 0].tolist(), points[:, 1].tolist()


def test_the_neighbour_lies_in_the_band_and_touches_both_edges() -> None:
    axes = plots.epsilon_band(epsilon=HALF, count=20)
    here, there = line(axes, "$M(x)$"), line(axes, "$M(y)$")
    ratios = [q / p for p, q in zip(here[1], there[1], strict=True)]
    assert here[0] == there[0]
    assert max(ratios) == pytest.approx(math.exp(0.5)) and min(ratios) == pytest.approx(math.exp(-0.5))
    (band,) = axes.patches
    values, _, baseline = band.get_data()  # type: ignore[attr-defined]
    assert values == pytest.approx([p * math.exp(0.5) for p in here[1]])
    assert baseline == pytest.approx([p * math.exp(-0.5) for p in here[1]])


def test_the_stems_are_the_law_of_the_loss() -> None:
    law = loss_law({"a": Fraction(1, 2), "b": Fraction(1, 4), "c": Fraction(1, 4)}, {"a": Fraction(1, 4), "b": Fraction(3, 4)})
    axes = plots.privacy_loss(law, label="planted")
    losses, shares = line(axes, "planted")
    assert losses == pytest.approx([math.log(1 / 3), math.log(2)]) and shares == [0.25, 0.5]
    assert [text.get_text() for text in axes.texts] == ["infinite: 0.25"]


def test_the_losses_of_three_mechanisms_each_sum_to_one_and_only_the_gaussian_passes_epsilon() -> None:
    figure = plots.loss_distributions(epsilon=Fraction(1), delta=Fraction(1, 100))
    panels = figure.axes
    assert len(panels) == 3
    for panel in panels:
        inside, beyond = (sum(bar.get_height() for bar in bars) for bars in panel.containers)
        assert inside + beyond == pytest.approx(1, abs=2e-3)  # the Gaussian's tails are cut off
        assert (beyond > 0.01) == (panel is panels[2])
    # the mean of exp(-loss) is 1 for Laplace noise, exactly: the picture has the right bars
    bars = panels[1].containers[0]
    mean = sum(bar.get_height() * math.exp(-(bar.get_x() + bar.get_width() / 2)) for bar in bars)
    assert mean == pytest.approx(1)


def test_the_curves_of_composition() -> None:
    axes = plots.composition_curves(each_epsilon=Fraction(1, 10), delta=TINY, count_max=100, points=5)
    counts, basic = line(axes, "basic")
    assert counts == [1, 4, 16, 36, 64, 100] and basic == pytest.approx([k / 10 for k in counts])
    advanced, concentrated, optimal, normal = (line(axes, name)[1] for name in ("advanced", "zCDP", "optimal", "Gaussian"))
    assert basic[-1] > advanced[-1] > concentrated[-1] > optimal[-1] > normal[-1]
    assert optimal[1] == pytest.approx(basic[1], rel=1e-4), "for few answers nothing is better than adding"
    exact = composition.advanced_epsilon_upper(epsilon=Fraction(1, 10), count=100, delta_slack=TINY)
    assert advanced[-1] == pytest.approx(float(exact))


def test_the_gaussian_line_is_the_epsilon_of_its_delta() -> None:
    axes = plots.composition_curves(each_epsilon=Fraction(1, 10), delta=TINY, count_max=4, points=2)
    epsilon = line(axes, "Gaussian")[1][-1]
    delta = gaussian.delta_upper(mu_squared=4 * Fraction(1, 200), epsilon=Fraction(epsilon))
    assert float(delta) == pytest.approx(float(TINY), rel=1e-6)


def test_errors_fall_with_epsilon_and_randomised_response_costs_most() -> None:
    axes = plots.noise_against_accuracy(delta=TINY, people=1000, epsilons=[Fraction(1, 10), Fraction(1)])
    response, normal, laplace = (line(axes, name)[1] for name in ("randomised", "Gaussian", "Laplace"))
    assert response[0] > response[1] and normal[0] > normal[1] and laplace[0] > laplace[1]
    assert all(a > b > c for a, b, c in zip(response, normal, laplace, strict=True))
    assert laplace == [30, 3], "ln(20) times the scale, in whole people"


def test_a_curve_of_tests_has_its_corner_where_the_advantage_is_largest() -> None:
    mechanism = LaplaceMechanism(Fraction(1), l1=1, clamp=(-3, 4))
    corners = meaning.roc(*(mechanism.law(value, decay=Fraction(1, 3)) for value in (0, 1)))
    guarantee = Guarantee(Fraction(3))
    axes = plots.trade_off_curves([guarantee], tests={"test": corners})
    alarms, power = line(axes, r"$\varepsilon$ = 1.10")
    assert max(y - x for x, y in zip(alarms, power, strict=True)) == pytest.approx(float(meaning.advantage_max(guarantee)))
    assert line(axes, "test") == ([float(a) for a, _ in corners], [float(p) for _, p in corners])
    assert any("0.50" in text.get_text() for text in axes.texts)


def test_reconstruction_is_drawn_under_its_bound() -> None:
    points = [plots.Reconstructed(Fraction(e), share) for e, share in ((1, 0.7), (10, 0.99), (4, 0.9))]
    axes = plots.reconstruction_curve({"attack": points})
    assert line(axes, "attack") == ([1, 4, 10], [0.7, 0.9, 0.99])
    epsilons, bound = line(axes, "bound")
    assert bound == pytest.approx([math.exp(e) / (1 + math.exp(e)) for e in epsilons])


def test_a_picture_is_drawn_where_one_asks() -> None:
    import matplotlib.pyplot as plt

    _, axes = plt.subplots()
    assert plots.epsilon_band(epsilon=HALF, ax=axes) is axes


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.epsilon_band(epsilon=Fraction(0)),
        lambda: plots.loss_distributions(epsilon=HALF, delta=Fraction(1)),
        lambda: plots.composition_curves(each_epsilon=HALF, delta=TINY, count_max=3, points=9),
        lambda: plots.trade_off_curves([]),
        lambda: plots.reconstruction_curve({"one": [plots.Reconstructed(HALF, 0.5)]}),
    ],
    ids=["epsilon", "delta", "points", "guarantees", "epsilons"],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[[], object]) -> None:
    with pytest.raises(LapwingError) as refused:
        draw()
    assert refused.value.code == "theory-argument"
