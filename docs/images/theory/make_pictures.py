"""Makes the pictures of the lessons, from :mod:`lapwing.theory.plots`.

    python docs/images/theory/make_pictures.py

Needs the extra ``theory``. Only the picture of reconstruction is random: it shows attacks on answers drawn anew.
"""

from __future__ import annotations

import secrets
from fractions import Fraction
from pathlib import Path
from statistics import mean

import matplotlib

from lapwing.kernel.accounting import Account
from lapwing.mechanisms.additive import LaplaceMechanism, laplace_for
from lapwing.mechanisms.draw import draw
from lapwing.theory import plots
from lapwing.theory.attacks.reconstruction import agreements, reconstruct, subset_questions
from lapwing.theory.guarantees import Guarantee
from lapwing.theory.meaning import roc

HERE = Path(__file__).resolve().parent
PEOPLE, QUESTIONS, RUNS = 101, 256, 10
EPSILONS = [
    Fraction(1, 10),
    Fraction(3, 10),
    Fraction(1),
    Fraction(2),
    Fraction(3),
    Fraction(10),
    Fraction(30),
    Fraction(100),
    Fraction(300),
    Fraction(1000),
]


def noisy(mechanism: LaplaceMechanism, values: list[int]) -> tuple[int, ...]:
    """The values with noise that is paid for in full."""
    return draw(mechanism, tuple(values), account=Account.PURE, charged=mechanism.event().cost(Account.PURE))


def reconstructed() -> dict[str, list[plots.Reconstructed]]:
    """Two attacks on the bits of 101 people: 256 counts of half of them, and one count for each."""
    questions = subset_questions(modulus=PEOPLE, count=QUESTIONS)
    # a person's bit moves every count of a set they belong to
    moved = max(sum(question.contains(person) for question in questions) for person in range(PEOPLE))
    found: dict[str, list[plots.Reconstructed]] = {"256 counts, linear program": [], "one count per person": []}
    for epsilon in EPSILONS:
        shares: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(RUNS):
            bits = [secrets.randbelow(2) == 1 for _ in range(PEOPLE)]
            counts = [sum(bits[i] for i in range(PEOPLE) if question.contains(i)) for question in questions]
            answers = noisy(laplace_for(epsilon=epsilon, l1=moved), counts)
            guessed = reconstruct(questions, answers, attributes=range(PEOPLE))
            shares["256 counts, linear program"].append(agreements(guessed, bits) / PEOPLE)
            singles = noisy(laplace_for(epsilon=epsilon, l1=1), [int(bit) for bit in bits])
            shares["one count per person"].append(agreements([count >= 1 for count in singles], bits) / PEOPLE)
        for name, values in shares.items():
            found[name].append(plots.Reconstructed(epsilon, mean(values)))
    return found


def main() -> None:
    """Make all of them."""
    matplotlib.use("agg")
    tenth, tiny = Fraction(1, 10), Fraction(1, 10**6)
    mechanism = LaplaceMechanism(Fraction(1), l1=1, clamp=(-2, 3))
    test = roc(mechanism.law(0, decay=Fraction(1, 3)), mechanism.law(1, decay=Fraction(1, 3)))
    pictures = {
        "epsilon-band": plots.epsilon_band(epsilon=Fraction(1, 2)),
        "noise": plots.noise_against_accuracy(delta=tiny, people=10_000),
        "composition": plots.composition_curves(each_epsilon=tenth, delta=tiny, count_max=200, points=24),
        "trade-off": plots.trade_off_curves(
            [Guarantee(Fraction(3)), Guarantee(Fraction(3, 2)), Guarantee(Fraction(3, 2), tenth)],
            tests={"best test, Laplace noise": test},
        ),
        "reconstruction": plots.reconstruction_curve(reconstructed()),
    }
    figures = {name: axes.get_figure(root=True) for name, axes in pictures.items()}
    figures["privacy-loss"] = plots.loss_distributions(epsilon=Fraction(1), delta=Fraction(1, 100))
    for name, figure in figures.items():
        assert figure is not None
        figure.savefig(str(HERE / f"{name}.png"), dpi=130)


if __name__ == "__main__":
    main()
