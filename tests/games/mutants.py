"""Deliberate mistakes in the games, each of which the comparison with the oracle must see.

A mutant changes one piece of :mod:`lapwing.games`. It is seen when some figure of some subject differs from the oracle's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest

from lapwing.games import auction, certification, commitment, facility, mechanism, roads

Mutant = Callable[[pytest.MonkeyPatch], None]


def rewritten(module: ModuleType, old: str, new: str) -> Mutant:
    """The module with one piece of its text replaced, at the places where the subjects look."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        path = module.__file__
        assert path is not None
        text = Path(path).read_text(encoding="utf-8")
        assert text.count(old) == 1, (module.__name__, old, text.count(old))
        planted = ModuleType(module.__name__)
        planted.__file__ = path
        exec(compile(re.sub(re.escape(old), lambda _: new, text), path, "exec"), vars(planted))
        for name in NAMES[module.__name__]:
            patch.setattr(f"tests.games.subjects.{name}", getattr(planted, name))

    return plant


NAMES = {
    "lapwing.games.auction": ["DigitalGoodsAuction"],
    "lapwing.games.certification": ["certify"],
    "lapwing.games.commitment": ["CommitmentMixture"],
    "lapwing.games.facility": ["FacilityLocation"],
    "lapwing.games.roads": ["EquilibriumSelection", "RoadGame"],
}


def sensitivity_halved(patch: pytest.MonkeyPatch) -> None:
    """The 2 in the exponent is forgotten."""
    weigh = mechanism.exponential_weights
    patch.setattr(mechanism, "exponential_weights", lambda scores, *, rate: weigh(scores, rate=2 * rate))


def best_score_left_out(patch: pytest.MonkeyPatch) -> None:
    """The weight of the best candidate is 1, whatever its score."""
    weigh = mechanism.exponential_weights

    def wrong(scores: Sequence[Fraction], *, rate: Fraction) -> object:
        return weigh([Fraction(0) if score == max(scores) else score for score in scores], rate=rate)

    patch.setattr(mechanism, "exponential_weights", wrong)


MUTANTS: dict[str, Mutant] = {
    "sensitivity halved": sensitivity_halved,
    "weight of the best candidate lost": best_score_left_out,
    "auction: price must be below the report": rewritten(auction, "if report >= price", "if report > price"),
    "auction: sensitivity of a price of 1": rewritten(auction, "sensitivity=max(self.outcomes)", "sensitivity=Fraction(1)"),
    "auction: buyers do not pay": rewritten(auction, "max(Fraction(0), type_ - price)", "(type_ if type_ >= price else Fraction(0))"),
    "facility: people walk to the farthest": rewritten(facility, "return min(outcome,", "return max(outcome,"),
    "facility: one facility less": rewritten(facility, "combinations(self.spots, facilities)", "combinations(self.spots, facilities - 1)"),
    "facility: score is an average": rewritten(
        facility, "scores if self.choice.factor is None", "[s / len(reports) for s in scores] if self.choice.factor is None"
    ),
    "mixture: shares exchanged": rewritten(commitment, "total(free).times(self.share)", "total(free).times(1 - self.share)"),
    "mixture: wrong normalisation": rewritten(commitment, "number = Fraction(len(free))", "number = Fraction(1)"),
    "mixture: nobody is held": rewritten(
        commitment,
        "game.worth(type_, outcome, game.reaction(report, outcome)) for",
        "game.worth(type_, outcome, game.reaction(type_, outcome)) for",
    ),
    "mixture: held by a lie's own utility": rewritten(
        commitment,
        "game.worth(type_, outcome, game.reaction(report, outcome)) for",
        "game.worth(report, outcome, game.reaction(report, outcome)) for",
    ),
    "roads: sensitivity of one average": rewritten(roads, "sensitivity = 2 * game.slope / n", "sensitivity = game.slope / n"),
    "roads: honest people take the best road": rewritten(
        roads, "self._followed(type_, rule, worths) for rule, worths in zip(", "max(worths) for rule, worths in zip("
    ),
    "roads: liars obey": rewritten(roads, "if self.obedient else max(worths)", "if not self.obedient else max(worths)"),
    "roads: regret of the first type only": rewritten(
        roads, "for type_ in self.types:\n            for place", "for type_ in self.types[:1]:\n            for place"
    ),
    "roads: the crowd is one larger": rewritten(roads, "max(1, len(people))", "len(people) + 1"),
    "lies are only higher": rewritten(
        certification, "for lie in product(range(types), repeat=liars):", "for lie in product(range(truth[0], types), repeat=liars):"
    ),
    "lies are only lower": rewritten(
        certification, "for lie in product(range(types), repeat=liars):", "for lie in product(range(truth[0] + 1), repeat=liars):"
    ),
    "the last type never lies": rewritten(
        certification,
        "for truth in combinations_with_replacement(range(types), liars):",
        "for truth in combinations_with_replacement(range(types - 1), liars):",
    ),
    "others all report the same": rewritten(
        certification,
        "for others in combinations_with_replacement(range(types), n - liars):\n        for truth",
        "for others in ((type_,) * (n - liars) for type_ in range(types)):\n        for truth",
    ),
    "one person less": rewritten(
        certification,
        "for others in combinations_with_replacement(range(types), n - liars):\n        for truth",
        "for others in combinations_with_replacement(range(types), n - liars - 1):\n        for truth",
    ),
    "the lie is weighed by the honest law": rewritten(certification, "= (law_honest, law_lying),", "= (law_honest, law_honest),"),
    "utilities exchanged": rewritten(certification, "(honest, lying),\n", "(lying, honest),\n"),
    "the total of another profile": rewritten(
        certification,
        "whole = (sum(low), sum(high))",
        "whole = (len(low) << BITS, len(low) << BITS)",
    ),
    "the law changes one way only": rewritten(certification, "if first == second or upper", "if first >= second or upper"),
    "the first outcome is not looked at": rewritten(
        certification, "in enumerate(tables.outcomes):", "in list(enumerate(tables.outcomes))[1:]:"
    ),
    "loss against the average": rewritten(
        certification, "most = max(objective.integers) << BITS", "most = sum(objective.integers) * (1 << BITS) // len(objective.integers)"
    ),
    "the last case wins": rewritten(
        certification, "elif bounds is None or bounds[0] > self._bounds[1]:", "elif bounds is None or bounds[0] != self._bounds[1]:"
    ),
}
