"""Statements about lies, equilibria and many questions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from lapwing.games import (
    CommitmentMixture,
    DigitalGoodsAuction,
    EquilibriumSelection,
    ExactNumber,
    FacilityLocation,
    GameHolds,
    LiesGainAtMost,
    LiesMultiplyBy,
    PrivateFor,
    RoadGame,
    certify,
    expected_gap,
    largest_cost_gap,
    least_share,
)
from lapwing.games.equilibria import is_equilibrium, regret
from lapwing.games.exponentials import power_of_e
from lapwing.kernel.numbers import ln_lower
from lapwing.theory.iterated_weights import LinearQuery, Model, answered, uniform, updated, updates_max
from tests.theory.theorems.statement import Method, laws, statement

HALF, ONE = Fraction(1, 2), Fraction(1)
PRICES = (Fraction(1, 4), HALF, ONE)
SPOTS = tuple(Fraction(spot, 5) for spot in range(6))
GAME = RoadGame({"west": (Fraction(0), Fraction(1, 4)), "east": (Fraction(1, 4), Fraction(0))}, slope=HALF)


@statement(
    says="""Under a mechanism that is epsilon-private for replaced reports, no lie multiplies an expected utility that is not negative by
    more than exp(epsilon).""",
    source="notes 4, mechanism design; McSherry and Talwar 2007, section 3",
    wrong={"by more than exp(epsilon / 8)": {"share": Fraction(1, 8)}},
)
def lies_multiply_by_no_more_than_odds(*, share: Fraction = ONE) -> bool:
    for epsilon in (HALF, Fraction(2)):
        for mechanism, types in (
            (DigitalGoodsAuction(PRICES, epsilon=epsilon), PRICES),
            (FacilityLocation(SPOTS[::2], facilities=1, epsilon=epsilon), SPOTS[::2]),
        ):
            found = certify(mechanism, types, 3)
            if not isinstance(found.check(PrivateFor(epsilon)), GameHolds):
                return False
            if not isinstance(found.check(LiesMultiplyBy(share * epsilon)), GameHolds):
                return False
    return True


@statement(
    says="Of t people who lie together, none multiplies an expected utility by more than exp(t epsilon).",
    source="notes 4, mechanism design (group privacy); Dwork and Roth 2014, section 10.1",
    wrong={"by more than the best that one of them could alone": {"alone": True}},
)
def liars_together_multiply_by_a_power(*, alone: bool = False) -> bool:
    auction = DigitalGoodsAuction(PRICES, epsilon=ONE)
    together, one = certify(auction, PRICES, 3, liars=2), certify(auction, PRICES, 3)
    if together.lie_ratio is None or one.lie_ratio is None:
        return False
    if alone:
        return together.lie_ratio <= one.lie_ratio
    return isinstance(together.check(LiesMultiplyBy(ONE)), GameHolds)


@statement(
    says="""A profile of actions is an alpha-approximate Nash equilibrium if and only if nobody's regret is above alpha; with alpha = 0,
    if and only if everybody plays a best response.""",
    source="notes 4, equilibrium selection; Dwork and Roth 2014, section 10.2",
    wrong={"every profile is one for some alpha below the largest utility": {"alpha_max": HALF}},
)
def approximate_equilibria(*, alpha_max: Fraction = ONE) -> bool:
    for types in product(("west", "east"), repeat=3):
        actions = [(0, 1)] * 3

        def payoff(player: int, roads: tuple[int, ...], types: tuple[str, ...] = types) -> Fraction:
            return GAME.payoff(types, player, roads)

        for profile in product((0, 1), repeat=3):
            best = all(
                payoff(player, profile) >= payoff(player, (*profile[:player], road, *profile[player + 1 :]))
                for player, own in enumerate(actions)
                for road in own
            )
            found = regret(payoff, actions, profile)
            if is_equilibrium(payoff, actions, profile) != best or not is_equilibrium(payoff, actions, profile, slack=found):
                return False
            if found > alpha_max or (found and is_equilibrium(payoff, actions, profile, slack=found * 99 / 100)):
                return False
    return True


@statement(
    says="""If an equilibrium is chosen privately, telling the truth and then doing as suggested is an approximate equilibrium: a player who
    lies and disobeys has at most exp(epsilon) times what disobedience alone would give.""",
    source="notes 4, equilibrium selection; Dwork and Roth 2014, section 10.2.1",
    wrong={"at most what disobedience alone would give": {"epsilon_claimed": Fraction(0)}},
)
def truth_and_obedience(*, epsilon_claimed: Fraction = HALF) -> bool:
    factor = ExactNumber.of(power_of_e(epsilon_claimed))
    for n in (2, 4):
        selection = EquilibriumSelection(GAME, n, epsilon=HALF)
        lie = certify(selection, selection.types, n).best_lie
        disobedient = lie.law_honest.expected(selection.lying(lie.liars[0], lie.liars[0], lie.others))
        if lie.expected_lying > factor * disobedient:
            return False
    return True


@statement(
    says="""Under the commitment mechanism every lie costs at least gap / |outcomes| in expectation, gap being the least over truths and
    lies of the largest cost over outcomes.""",
    source="notes 4, equilibrium selection (commitment mechanism); Nissim and others 2012",
    wrong={"at least the gap": {"divided": False}},
)
def the_gap_is_paid_with_a_chance(*, divided: bool = True) -> bool:
    for facilities in (1, 2, 3):
        game = FacilityLocation(SPOTS, facilities=facilities, epsilon=ONE)
        expected, largest = expected_gap(game, SPOTS).amount, largest_cost_gap(game, SPOTS).amount
        if expected < largest / (len(game.outcomes) if divided else 1):
            return False
    return True


@statement(
    says="""If the commitment mechanism is run with a probability q for which q gap >= (1 - q) gain, and a mechanism in which lies gain
    at most gain otherwise, then no lie gains anything.""",
    source="notes 4, equilibrium selection (exact truthfulness); Nissim and others 2012",
    wrong={"also with half of that probability": {"times": HALF}},
)
def a_mixture_is_truthful(*, times: Fraction = ONE) -> bool:
    game = FacilityLocation(SPOTS, facilities=2, epsilon=ONE)
    gain = certify(game, SPOTS, 3).largest_gain
    share = least_share(gap=expected_gap(game, SPOTS).amount, gain=gain).bounds()[1] * times
    return isinstance(certify(CommitmentMixture(game, share=share), SPOTS, 3).check(LiesGainAtMost(Fraction(0))), GameHolds)


SUBSETS: list[LinearQuery] = [query for query in product((0, 1), repeat=3) if any(query) and not all(query)]


def _drop_lower(data: Model, before: Model, after: Model) -> Fraction:
    """A lower bound of how much nearer, in divergence, the model is to the data."""
    pairs = ((share, new / old) for share, old, new in zip(data, before, after, strict=True) if share)
    return sum((share * ln_lower(ratio) for share, ratio in pairs), Fraction(0))


@statement(
    says="""If a model answers a linear query with an error of at least alpha, a multiplicative update at the rate alpha / 2 brings it
    nearer to the data: the divergence falls by at least alpha^2 / 4.""",
    source="notes 4, private multiplicative weights; Hardt and Rothblum 2010",
    method=Method.ENCLOSED,
    wrong={"also if the weights are moved the other way": {"turned": True}, "by at least alpha^2": {"fall": ONE}},
)
def an_update_brings_the_model_nearer(*, turned: bool = False, fall: Fraction = Fraction(1, 4)) -> bool:
    models = [tuple(law[s] for s in range(3)) for law in laws(parts=5) if all(law.values())]
    for data in (tuple(law[s] for s in range(3)) for law in laws(parts=4)):
        for model in models:
            for query in SUBSETS:
                error = answered(model, query) - answered(data, query)
                alpha = abs(error)
                if alpha:
                    after = updated(model, query, above=(error > 0) != turned, rate=alpha / 2)
                    if _drop_lower(data, model, after) < fall * alpha**2:
                        return False
    return True


@statement(
    says="""However many linear queries there are, a model that starts uniform and is updated where it errs by more than alpha answers
    all of them within alpha after at most 4 ln |X| / alpha^2 updates.""",
    source="notes 4, private multiplicative weights; Hardt and Rothblum 2010",
    wrong={"after at most a tenth of that": {"tenths": 1}},
)
def few_updates_are_enough(*, tenths: int = 10) -> bool:
    alpha = Fraction(1, 4)
    most = updates_max(3, alpha=alpha) * tenths // 10
    for data in (tuple(law[s] for s in range(3)) for law in laws(parts=4)):
        model, updates = uniform(3), 0
        while True:
            errors = [answered(model, query) - answered(data, query) for query in SUBSETS]
            worst = max(range(len(SUBSETS)), key=lambda place: abs(errors[place]))
            if abs(errors[worst]) <= alpha:
                break
            updates += 1
            if updates > most:
                return False
            model = updated(model, SUBSETS[worst], above=errors[worst] > 0, rate=alpha / 2)
    return True


STATEMENTS = [
    lies_multiply_by_no_more_than_odds,
    liars_together_multiply_by_a_power,
    approximate_equilibria,
    truth_and_obedience,
    the_gap_is_paid_with_a_chance,
    a_mixture_is_truthful,
    an_update_brings_the_model_nearer,
    few_updates_are_enough,
]
