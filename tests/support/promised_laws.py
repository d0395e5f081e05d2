"""Promises about laws, keys and attacks: their power follows from the cases of the tests themselves, which are looked at only for that.

A law is broken by a scale that is off by a tenth, or by a chance that is off by ten points: moved between the two likeliest outputs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lapwing.kernel import rank_line
from lapwing.kernel.laws import DiscreteLaplace
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.noise.quantile_tree import badness
from lapwing.kernel.quantile_tree import AtShare, FromLeast, QuantileTree
from lapwing.kernel.rank_line import Cut, CutCandidates, Segment, ValueCandidates
from lapwing.kernel.thresholds import threshold_delta
from lapwing.mechanisms.above_threshold import SparseVector
from lapwing.mechanisms.selection import PermuteAndFlip
from lapwing.theory.attacks.bounds import alarm_at
from lapwing.theory.guarantees import Guarantee
from tests.statistical.samples import MILLION, MILLION_LAWS
from tests.support.power import TEN_POINTS, Chances, Computed, Promise, chi_squared_miss
from tests.support.sizes import SIZES
from tests.unit.kernel.quantile_laws import choices, line_of, log_law

TENTHS = (Fraction(9, 10), Fraction(11, 10))
ALARM = 1e-6


def moved(kept: Chances) -> list[float]:
    """Ten points of chance, from the likeliest output to the next."""
    first, second = sorted(range(len(kept)), key=lambda place: -kept[place])[:2]
    broken = list(kept)
    broken[first] -= TEN_POINTS
    broken[second] += TEN_POINTS
    return broken


def in_order(kept: Mapping[Any, Fraction], broken: Mapping[Any, Fraction]) -> tuple[list[float], list[float]]:
    """Chances of the same outputs."""
    outputs: Iterable[Hashable] = kept.keys()
    return [float(chance) for chance in kept.values()], [float(broken.get(output, Fraction(0))) for output in outputs]


def gate_laws() -> float:
    from tests.statistical import test_mechanisms as tests

    worst = 0.0
    for mechanism, value, scale, runs in tests.CASES:
        law = mechanism.law(value, decay=tests.decay_of(scale))
        others = [mechanism.law(value, decay=tests.decay_of(scale * factor)) for factor in TENTHS]
        for other in others:
            kept, broken = in_order(law, other)
            worst = max(worst, chi_squared_miss(kept, moved(kept) if kept == broken else broken, runs=runs, alarm=ALARM))
    return worst


def session_law() -> float:
    from tests.statistical import test_mechanisms as tests

    law = SparseVector(tests.ABOVE, 2).law((0, 2, 1, 4), decay=tests.decay_of(Fraction(2)))
    kept = [float(chance) for chance in law.values()]
    return chi_squared_miss(kept, moved(kept), runs=1_000, alarm=ALARM)


def selection_laws() -> float:
    from tests.statistical import test_selection as tests

    return max(
        chi_squared_miss(
            *in_order(tests.law_at(mechanism, value, tests.SCALE), tests.law_at(mechanism, value, tests.SCALE * factor)),
            runs=tests.RUNS,
            alarm=ALARM,
        )
        for mechanism, value in tests.CASES
        for factor in TENTHS
    )


def candidate_laws() -> float:
    from tests.statistical import test_quantiles as tests

    worst = 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_line, "SHARES", 3)
        line = line_of(tests.ROWS, lower=0, upper=12)
        for kind in (ValueCandidates, CutCandidates):
            for part in (Segment.whole(line), Segment.between(line, Cut(2, 1), Cut(9, 2))):
                for scale in (Fraction(1, 3), Fraction(2), Fraction(40)):
                    kept = [math.exp(chance) for chance in choices(kind(part), Fraction(17, 5), scale)]
                    worst = max(worst, chi_squared_miss(kept, moved(kept), runs=tests.RUNS, alarm=ALARM / 10, expected=5.0))
    return worst


def flipped_laws() -> float:
    from tests.statistical import test_quantiles as tests

    values = ValueCandidates(Segment.whole(line_of(tests.ROWS, lower=0, upper=12)))
    scores = [-int(badness(values, index, Fraction(17, 5)) * 60) for index in range(values.size)]
    worst = 0.0
    for scale in (20, 120, 2_400):
        law = PermuteAndFlip(Fraction(scale), 1, values.size).law(scores, decay=Fraction(math.exp(-1 / scale)))
        kept = [float(law[index]) for index in range(values.size)]
        worst = max(worst, chi_squared_miss(kept, moved(kept), runs=tests.RUNS, alarm=ALARM / 10, expected=5.0))
    return worst


def tree_law() -> float:
    from tests.statistical import test_quantiles as tests

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_line, "SHARES", 2)
        targets = (FromLeast(2), AtShare(Fraction(1, 2)), AtShare(Fraction(3, 4)))
        mechanism = QuantileTree(0, 5, targets, 1, Neighbours.UNBOUNDED, Fraction(1))
        law: dict[tuple[int, ...], float] = {}
        for outcome, chance in log_law(mechanism, (1, 1, 3, 4, 4, 5)).items():
            values = {number: item.value if isinstance(item, Cut) else item for number, item in outcome}
            key = tuple(values[number] for number in range(3))
            law[key] = law.get(key, 0.0) + math.exp(chance)
    kept = list(law.values())
    return chi_squared_miss(kept, moved(kept), runs=tests.RUNS, alarm=ALARM / 10, expected=5.0)


def coins() -> float:
    from tests.statistical import test_quantiles as tests

    def miss(chance: float) -> float:
        low, high = stats.binom.ppf([ALARM / 20, 1 - ALARM / 20], tests.RUNS, chance)
        broken = chance - TEN_POINTS
        return float(stats.binom.cdf(high, tests.RUNS, broken) - stats.binom.cdf(low - 1, tests.RUNS, broken))

    return max(miss(chance) for chance in (math.exp(-1 / 3), math.exp(-1), math.exp(-9 / 4), 2 / math.e))


def heads() -> float:
    from tests.statistical import test_quantiles as tests

    def law(number: int, chance: float) -> list[float]:
        return [float(stats.binom.pmf(many, number, chance)) for many in range(number + 1)]

    laws = [law(number, 0.5**halvings) for number, halvings in ((5, 1), (7, 2), (40, 4))]
    return max(chi_squared_miss(kept, moved(kept), runs=tests.RUNS, alarm=ALARM / 10, expected=5.0) for kept in laws)


def cut(kept: Chances, broken: Chances, least: float) -> tuple[list[float], list[float]]:
    """Cells of neighbouring outputs, from the left, each at least this likely."""
    cells: list[list[float]] = [[0.0, 0.0]]
    for one, other in zip(kept, broken, strict=True):
        if cells[-1][0] >= least:
            cells.append([0.0, 0.0])
        cells[-1][0] += one
        cells[-1][1] += other
    if len(cells) > 1 and cells[-1][0] < least:
        last = cells.pop()
        cells[-1] = [cells[-1][0] + last[0], cells[-1][1] + last[1]]
    return [cell[0] for cell in cells], [cell[1] for cell in cells]


def sampled_laws() -> float:
    from tests.statistical import test_noise as tests

    worst = 0.0
    for law in tests.LAWS:
        runs, reach = (1_000_000 if law in MILLION_LAWS else 100_000), 20 * math.ceil(law.scale)
        for factor in TENTHS:
            kept, broken = (tests.probabilities(law, reach, scale_factor=float(each)).tolist() for each in (Fraction(1), factor))
            worst = max(worst, chi_squared_miss(*cut(kept, broken, 1 / 80), runs=runs, alarm=ALARM / 2))
    return worst


def correlations() -> float:
    """A correlation of a tenth, of the fewest draws."""
    limit = float(stats.norm.isf(ALARM / 6)) * 1.05
    return float(stats.norm.cdf(limit - TEN_POINTS * math.sqrt(100_000 - 7)))


def drawn_laws() -> float:
    from tests.statistical import test_drawn_laws as tests
    from tests.support.sizes import SIZES

    runs, worst = SIZES["draws of noise"].check, 0.0
    for law in tests.LAWS:
        edges = tests.cuts(law, runs)
        for factor in TENTHS:
            kept, broken = (tests.expected_cells(each, edges) for each in (law, type(law)(Fraction(float(law.scale * factor)))))
            worst = max(worst, chi_squared_miss(kept.tolist(), np.maximum(broken, 0.0).tolist(), runs=runs, alarm=ALARM / 2))
    return worst


def keys_of_lone_units() -> float:
    """A threshold that is one too low, or too high."""
    worst = 0.0
    for law in MILLION_LAWS:
        for groups in (1, 4):
            threshold, units = (11 if isinstance(law, DiscreteLaplace) else 8), MILLION // groups
            rates = [float(threshold_delta(law, groups_per_unit=groups, threshold=threshold + off)) for off in (-1, 0, 1)]
            low, high = stats.binom.ppf([ALARM / 2, 1 - ALARM / 2], units, rates[1])
            for rate in (rates[0], rates[2]):
                worst = max(worst, float(stats.binom.cdf(high, units, rate) - stats.binom.cdf(low - 1, units, rate)))
    return worst


def rare_keys() -> float:
    from tests.attacks import test_noise_attacks as tests

    return float(stats.binom.cdf(tests.ALARM, tests.KEY_RUNS, float(tests.KEY_DELTA) + TEN_POINTS))


def advantage(gain: float, slack: float) -> float:
    """The chance that a gain of ten points more, from as many runs in either world, is within the slack of what is allowed."""
    from tests.attacks import test_noise_attacks as tests

    hit, alarm = 0.5 + (gain + TEN_POINTS) / 2, 0.5 - (gain + TEN_POINTS) / 2
    deviation = math.sqrt((hit * (1 - hit) + alarm * (1 - alarm)) / tests.RUNS)
    return float(stats.norm.cdf((slack - TEN_POINTS) / deviation))


def gaussian_advantage(more: float) -> float:
    from tests.attacks import test_noise_attacks as tests

    return advantage(float(stats.norm.cdf(0.25) * 2 - 1), tests.SLACK + more)


def pure_advantage() -> float:
    from tests.attacks import test_noise_attacks as tests

    return advantage(math.tanh(0.5), tests.SLACK)


def guesses(people: int, broken: float, *, choices: int = 2) -> float:
    """The chance that so many people, each guessed right with this chance, stay below the alarm of an epsilon of 1."""
    from tests.attacks.street import FALSE_ALARM

    alarm = alarm_at(Guarantee.of_epsilon(Fraction(1)), people=people, false_alarm=FALSE_ALARM, choices=choices)
    return float(stats.binom.cdf(alarm - 1, people, broken))


def matched_filter(deviations: float) -> float:
    """A tenth more than was charged (a rho of 1), in deviations of a difference of means of 4,000 runs."""
    return float(stats.norm.cdf(deviations - TEN_POINTS / (math.sqrt(2 / 4_000) / math.sqrt(2))))


SCALE = "the law, not a scale off by a tenth"
POINTS = "the law, not a chance off by ten points"
PURE_GAIN = "a gain of tanh(1/2), not ten points more"
RIGHT = 1 / (1 + math.exp(-1))
"""Of guesses between two, at an epsilon of 1, at most."""
GUESSES = "73 % of guesses, not ten points more"
NOBODY = "73 % of guesses, not 95 % (nobody is protected)"
BELOW = "below the alarm at 1e-6"
ATTACKS = "attacks/test_noise_attacks.py::"
LAWS: Mapping[str, Promise] = {
    name: Computed(where, what, number, states, rule, missed, alarms)
    for name, (where, what, number, states, rule, missed, alarms) in {
        "laws at the gate": (
            "statistical/test_mechanisms.py::test_the_gate_draws_the_stated_law",
            "mechanisms draw their law",
            20_000,
            "the law, not a scale off by a tenth, or a response ten points truer",
            "p > 1e-6",
            gate_laws,
            1e-6,
        ),
        "laws of single draws": (
            "statistical/test_mechanisms.py::test_single_draws_and_a_session_have_the_same_law",
            "single draws and sessions have the law",
            1_000,
            POINTS,
            "p > 1e-6",
            session_law,
            2e-6,
        ),
        "laws of selections": (
            "statistical/test_selection.py::test_what_is_drawn_is_the_law",
            "selections draw their law",
            20_000,
            SCALE,
            "p > 1e-6",
            selection_laws,
            1e-6,
        ),
        "coins": (
            "statistical/test_quantiles.py::test_a_coin_has_its_chance",
            "coins fall as often as they say",
            SIZES["draws of quantiles"].check,
            POINTS,
            "p > 1e-7",
            coins,
            1e-7,
        ),
        "many coins": (
            "statistical/test_quantiles.py::test_as_many_coins_fall_as_a_binomial_law_says",
            "so do many at once",
            SIZES["draws of quantiles"].check,
            POINTS,
            "p > 1e-7",
            heads,
            1e-7,
        ),
        "candidates of quantiles": (
            "statistical/test_quantiles.py::test_a_candidate_is_drawn_from_the_exact_law",
            "candidates of quantiles are drawn from their law",
            SIZES["draws of quantiles"].check,
            POINTS,
            "p > 1e-7",
            candidate_laws,
            2e-7,
        ),
        "values by permute-and-flip": (
            "statistical/test_quantiles.py::test_on_a_pure_account_a_value_is_drawn_by_permute_and_flip",
            "values are drawn by permute-and-flip on a pure account",
            SIZES["draws of quantiles"].check,
            POINTS,
            "p > 1e-7",
            flipped_laws,
            1e-7,
        ),
        "whole trees of quantiles": (
            "statistical/test_quantiles.py::test_a_whole_tree_is_drawn_from_the_exact_law",
            "whole trees of quantiles are drawn from their law",
            SIZES["draws of quantiles"].check,
            POINTS,
            "p > 1e-7",
            tree_law,
            1e-7,
        ),
        "laws of the sampler": (
            "statistical/test_noise.py::test_the_sampler_draws_the_certified_law",
            "noise follows the certified law",
            100_000,
            SCALE,
            "p > 5e-7, twice",
            sampled_laws,
            1e-6,
        ),
        "draws of one vector": (
            "statistical/test_noise.py::test_draws_of_one_vector_are_independent_of_their_neighbours",
            "draws are independent",
            100_000,
            "no correlation, not one of a tenth",
            "4.97 * 1.05 deviations",
            correlations,
            1e-6,
        ),
        "laws of drawn noise": (
            "statistical/test_drawn_laws.py::test_draws_follow_the_law",
            "noise follows the law, at scales up to 10^12",
            500_000,
            SCALE,
            "p > 5e-7, twice",
            drawn_laws,
            1e-6,
        ),
        "keys of lone units": (
            "statistical/test_threshold.py::test_a_lone_unit_shows_a_key_as_often_as_delta_says",
            "a key of one unit is shown as often as delta says",
            250_000,
            "the threshold, not one less or more",
            "p > 1e-6",
            keys_of_lone_units,
            1e-6,
        ),
        "rare keys": (
            f"{ATTACKS}test_a_rare_key_is_shown_no_more_often_than_delta_allows",
            "a rare key is shown no more often than delta (1/20) allows",
            1_500,
            "0.05, not 0.15",
            "at most the quantile of 1 - 1e-6",
            rare_keys,
            1e-6,
        ),
        "gain of one count": (
            f"{ATTACKS}test_counting_with_one_statement_gains_what_the_bound_says_and_no_more",
            "a count gains what the bound says",
            2_500,
            PURE_GAIN,
            "0.0762 off",
            pure_advantage,
            1e-6,
        ),
        "gain of two counts": (
            f"{ATTACKS}test_differencing_two_statements_gains_no_more_than_their_epsilons_together",
            "two counts gain no more than their epsilons together",
            2_500,
            PURE_GAIN,
            "0.0762 more",
            pure_advantage,
            1e-6,
        ),
        "gain of several aggregates": (
            f"{ATTACKS}test_combining_several_aggregates_gains_no_more_than_epsilon",
            "several aggregates gain no more than their epsilon",
            2_500,
            PURE_GAIN,
            "0.0762 more",
            pure_advantage,
            1e-6,
        ),
        "fresh answers": (
            "attacks/test_textbook_averaging.py::test_fresh_answers_are_paid_for_until_they_are_refused_and_gain_no_more_than_the_budget",
            "fresh answers gain no more than the budget allows",
            1_000,
            GUESSES,
            BELOW,
            lambda: guesses(1_000, RIGHT + TEN_POINTS),
            1e-6,
        ),
        "differencing": (
            "attacks/test_textbook_differencing.py::test_through_lapwing_no_more_targets_are_guessed_than_the_budget_allows",
            "differencing gains no more than the budget allows",
            1_000,
            GUESSES,
            BELOW,
            lambda: guesses(1_000, RIGHT + TEN_POINTS),
            1e-6,
        ),
        "linkage": (
            "attacks/test_textbook_linkage.py::test_through_lapwing_the_largest_noisy_cell_is_a_guess_within_the_bound",
            "linkage gains no more than the budget allows",
            400,
            "48 % of guesses among four, not 80 % (who is linked without noise)",
            BELOW,
            lambda: guesses(400, 0.8, choices=4),
            1e-6,
        ),
        "reconstruction": (
            "attacks/test_textbook_reconstruction.py::test_through_lapwing_the_same_statements_give_no_more_than_the_budget_allows",
            "reconstruction gains no more than the budget allows",
            211,
            NOBODY,
            BELOW,
            lambda: guesses(211, 0.95),
            1e-6,
        ),
        "reconstruction by persons": (
            "attacks/test_textbook_reconstruction.py::test_asking_for_each_person_is_accepted_and_gains_no_more_either",
            "asking for each person gains no more than the budget allows",
            211,
            NOBODY,
            BELOW,
            lambda: guesses(211, 0.95),
            1e-6,
        ),
    }.items()
} | {
    "gain at rho 1/8": Computed(
        f"{ATTACKS}test_the_same_on_an_approximate_data_set",
        "a count gains what its law says",
        2_500,
        "a gain of 0.2, not ten points more",
        "0.0762 off",
        lambda: gaussian_advantage(0.0),
        1e-6,
        lambda: gaussian_advantage(0.01),
        "0.0862 off",
    ),
    "matched filter": Computed(
        "attacks/test_releases.py::test_the_matched_filter_reaches_what_was_charged_and_does_not_pass_it",
        "the best test of whole releases reaches no more than was charged",
        4_000,
        "what was charged, not a tenth more",
        "4 deviations",
        lambda: matched_filter(4.0),
        float(stats.norm.sf(4.0)),
        lambda: matched_filter(6.0),
        "6 deviations",
    ),
}
