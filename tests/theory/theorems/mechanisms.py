"""Statements about sensitivity and about the mechanisms of the notes."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

from lapwing.kernel.accounting import Account
from lapwing.kernel.laws import DiscreteLaplace, tail_upper
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.numbers import exp_upper, ln_upper, sqrt_upper
from lapwing.mechanisms.above_threshold import AboveThreshold
from lapwing.mechanisms.additive import LaplaceMechanism, laplace_for
from lapwing.mechanisms.calibration import gaussian_delta, gaussian_sigma, gaussian_sigma_classic
from lapwing.mechanisms.mechanism import Mechanism
from lapwing.mechanisms.noisy_max import NoisyMax
from lapwing.mechanisms.response import RandomisedResponse, two_coin
from lapwing.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, exponential_for
from lapwing.theory import gaussian
from lapwing.theory.broken.counts import suppressed_small_counts
from lapwing.theory.broken.selection import exact_maximum_published
from lapwing.theory.broken.sparse_vector import no_cut_off
from lapwing.theory.databases import Histogram, Universe, neighbouring_pairs
from lapwing.theory.divergences import hockey_stick
from lapwing.theory.finite import FiniteMechanism, from_kernel
from lapwing.theory.sensitivity import Norm, difference, sensitivity
from lapwing.theory.verify import Claim, Verified, tight_odds, verify
from tests.theory.theorems.statement import Method, statement

ONE, HALF = Fraction(1), Fraction(1, 2)
DECAYS = (HALF, Fraction(2, 3))
PEOPLE = Universe((("m", 0), ("m", 1), ("f", 0), ("f", 1)))
ANSWERS = Universe(("yes", "no"))
ADDED = tuple(neighbouring_pairs(ANSWERS, Neighbours.UNBOUNDED, size_max=3))
SCORES = tuple(product(range(3), repeat=3))


def score_pairs(*, monotone: bool) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Scores that move by at most 1 each; all the same way if monotone."""
    steps = (0, 1) if monotone else (-1, 0, 1)
    moves = list(product(steps, repeat=3))
    return [(s, tuple(a + b for a, b in zip(s, move, strict=True))) for s in SCORES for move in moves if any(move)]


def counting(x: Histogram) -> int:
    """How many have the attribute."""
    return sum(count for (_, attribute), count in zip(PEOPLE.records, x, strict=True) if attribute)


def marginals(x: Histogram) -> tuple[int, ...]:
    """Both one-way marginals: by sex, and by attribute."""
    rows = list(zip(PEOPLE.records, x, strict=True))
    by_sex = [sum(count for (sex, _), count in rows if sex == value) for value in ("m", "f")]
    by_attribute = [sum(count for (_, attribute), count in rows if attribute == value) for value in (0, 1)]
    return (*by_sex, *by_attribute)


@statement(
    says="A counting query has sensitivity 1, whether a row is added, removed or replaced.",
    source="notes 2, 3; notes 4, query types; Dwork and Roth 2014, section 3.3",
    wrong={"a count of rows that weigh 2 has": {"weight": 2}},
)
def counting_queries(*, weight: int = 1) -> bool:
    return all(
        sensitivity(lambda x: weight * counting(x), PEOPLE, relation, size_max=3, norm=Norm.L1).value == 1 for relation in Neighbours
    )


@statement(
    says="""A histogram has l1 sensitivity 1 when a row is added or removed; when one is replaced, two cells move: l1 sensitivity 2, l2
    sensitivity sqrt(2).""",
    source="notes 4, query types (it says 1, for one relation); Dwork and Roth 2014, section 3.3",
    wrong={"1 when a row is replaced": {"replaced": 1}},
)
def histogram_queries(*, replaced: int = 2) -> bool:
    found = {
        (relation, norm): sensitivity(lambda x: x, PEOPLE, relation, size_max=3, norm=norm).value
        for relation in Neighbours
        for norm in (Norm.L1, Norm.L2_SQUARED)
    }
    return (
        all(found[Neighbours.UNBOUNDED, norm] == 1 for norm in (Norm.L1, Norm.L2_SQUARED))
        and found[Neighbours.BOUNDED, Norm.L1] == replaced
        and found[Neighbours.BOUNDED, Norm.L2_SQUARED] == 2
    )


@statement(
    says="m marginals released together have l1 sensitivity m for a row added or removed: each is a histogram of its own.",
    source="notes 4, query types (k-marginals); Barak et al. 2007",
    wrong={"1": {"claimed": 1}},
)
def marginal_queries(*, claimed: int = 2) -> bool:
    return sensitivity(marginals, PEOPLE, Neighbours.UNBOUNDED, size_max=3, norm=Norm.L1).value == claimed


@statement(
    says="For vectors of d answers the l2 norm is at most the l1 norm, and that at most sqrt(d) times the l2 norm; both are attained.",
    source="notes 4, Gaussian mechanism; Dwork and Roth 2014, section 3.5",
    wrong={"at most sqrt(d - 1) times": {"less": 1}},
)
def l2_and_l1(*, less: int = 0) -> bool:
    for d in (2, 3, 4):
        origin = (0,) * d
        ratios = []
        for vector in product(range(-2, 3), repeat=d):
            l1, l2_squared = (difference(vector, origin, norm) for norm in (Norm.L1, Norm.L2_SQUARED))
            if not l2_squared <= l1**2 <= (d - less) * l2_squared:
                return False
            ratios += [l1**2 / l2_squared] if l2_squared else []
        if min(ratios) != 1 or max(ratios) != d:
            return False
    return True


@statement(
    says="Randomised response with two fair coins is ln 3-private: the truth is told with probability 3/4, the lie with 1/4.",
    source="notes 1, 2.3; Warner 1965; Dwork and Roth 2014, claim 3.5",
    wrong={"with a truth of 7/8 too": {"truth": Fraction(7, 8)}},
)
def randomised_response(*, truth: Fraction | None = None) -> bool:
    response = two_coin() if truth is None else RandomisedResponse(categories=2, truth=truth)
    coins = {(first, second): Fraction(1, 4) for first in "HT" for second in "HT"}
    for answer in (0, 1):  # by hand: tails, the truth; heads, the second coin says yes (1) or no (0)
        said = {0: Fraction(0), 1: Fraction(0)}
        for (first, second), chance in coins.items():
            said[answer if first == "T" else int(second == "H")] += chance
        if response.law(answer) != said:
            return False
    mechanism: FiniteMechanism[int, int] = FiniteMechanism("two coins", lambda answer: response.law(answer))
    return tight_odds(mechanism, [(0, 1)]) == 3


@statement(
    says="The number of people with the attribute can be estimated from randomised answers without bias.",
    source="notes 1, 2.3 (plausible deniability); Warner 1965",
    wrong={"by the count of yes itself": {"correct": False}},
)
def the_response_estimate_is_unbiased(*, correct: bool = True) -> bool:
    response = two_coin()
    for people in product((0, 1), repeat=4):
        mean = Fraction(0)
        for said, chance in response.law(people).items():
            yes = sum(said)
            mean += chance * (response.estimate([len(said) - yes, yes])[1] if correct else yes)
        if mean != sum(people):
            return False
    return True


@statement(
    says="The Laplace mechanism with noise of scale sensitivity/epsilon is epsilon-private, and no better.",
    source="notes 2, 3; Dwork et al. 2006; Dwork and Roth 2014, theorem 3.6",
    wrong={"with half of that noise": {"power": 2}},
)
def laplace_mechanism(*, power: int = 1) -> bool:
    for decay, weight in product(DECAYS, (1, 2)):
        mechanism = LaplaceMechanism(Fraction(1), l1=weight, clamp=(-2, 8))
        counts: FiniteMechanism[Histogram, Any] = from_kernel(mechanism, lambda x, w=weight: w * x[0], decay=decay**power)  # type: ignore[misc]
        if tight_odds(counts, ADDED) != decay**-weight:
            return False
    return True


@statement(
    says="The Laplace mechanism for vectors needs noise in proportion to the l1 sensitivity.",
    source="notes 4, Gaussian mechanism; Dwork and Roth 2014, theorem 3.6",
    wrong={"to the largest movement of one entry": {"largest": True}},
)
def laplace_uses_l1(*, largest: bool = False) -> bool:
    mechanism: Mechanism[tuple[int, ...], tuple[int, ...]] = LaplaceMechanism(Fraction(1), l1=2, clamp=(-1, 3))
    # two overlapping counts: everybody, and those who say yes
    vector: FiniteMechanism[Histogram, tuple[int, ...]] = from_kernel(mechanism, lambda x: (x[0] + x[1], x[0]), decay=HALF)
    claim = Claim(1 / HALF if largest else mechanism.odds(decay=HALF))
    pairs = neighbouring_pairs(ANSWERS, Neighbours.UNBOUNDED, size_max=2)
    return isinstance(verify(vector, claim, pairs), Verified)


@statement(
    says="Stronger privacy or a larger sensitivity needs more noise: the scale is sensitivity/epsilon.",
    source="notes 2, 3 (trade-off)",
    wrong={"the scale is 1/epsilon": {"ignore_sensitivity": True}},
    method=Method.ENCLOSED,
)
def noise_is_sensitivity_over_epsilon(*, ignore_sensitivity: bool = False) -> bool:
    for epsilon, l1 in product((Fraction(1, 10), HALF, Fraction(2)), (1, 3)):
        needed = (1 if ignore_sensitivity else l1) / epsilon
        if not needed <= laplace_for(epsilon=epsilon, l1=l1).scale <= needed * (1 + Fraction(1, 10**9)):
            return False
    return True


@statement(
    says="Laplace noise stays within ln(1/beta) times its scale, but for a probability of beta (discrete noise: and one more).",
    source="notes 2, 3; Dwork and Roth 2014, theorem 3.8",
    wrong={"within half of that": {"part": HALF}},
    method=Method.ENCLOSED,
)
def laplace_error(*, part: Fraction = ONE) -> bool:
    for scale, beta in product((Fraction(2), Fraction(10)), (Fraction(1, 20), Fraction(1, 1000))):
        law = DiscreteLaplace(scale)
        reach = part * scale * ln_upper(1 / beta) + 1
        beyond = reach.__floor__() + 1
        if 2 * tail_upper(law, beyond) > beta:
            return False
    return True


@statement(
    says="""The Gaussian mechanism with variance 2 ln(1.25/delta) D^2 / epsilon^2 is (epsilon, delta)-private, for epsilon below 1, as a
    normal law on the reals and as the discrete one that is drawn.""",
    source="notes 4, Gaussian mechanism and key findings; Dwork and Roth 2014, theorem 3.22",
    wrong={"for epsilon = 12": {"epsilons": (Fraction(12),)}, "with half the variance": {"variance": HALF}},
    method=Method.ENCLOSED,
)
def gaussian_mechanism(*, epsilons: tuple[Fraction, ...] = (Fraction(1, 10), HALF, Fraction(99, 100)), variance: Fraction = ONE) -> bool:
    for epsilon, delta in product(epsilons, (Fraction(1, 100), Fraction(1, 10**6))):
        square = variance * 2 * ln_upper(Fraction(5, 4) / delta) / epsilon**2
        if gaussian.delta_upper(mu_squared=1 / square, epsilon=epsilon) > delta:
            return False
        if epsilon < 1 and variance == 1:
            drawn = gaussian_sigma_classic(epsilon=epsilon, delta=delta, sensitivity=1)
            if drawn.scale < sqrt_upper(square) * (1 - Fraction(1, 10**9)) or gaussian_delta(drawn, sensitivity=1, epsilon=epsilon) > delta:
                return False
    return True


@statement(
    says="Gaussian noise is never epsilon-private, for no epsilon: delta is always above 0. Laplace noise is.",
    source="notes 2, 3 (limitation of the Gaussian mechanism)",
    wrong={"neither is Laplace noise of scale 1": {"laplace": True}},
    method=Method.ENCLOSED,
)
def gaussian_noise_is_never_pure(*, laplace: bool = False) -> bool:
    for epsilon in range(1, 21):
        if laplace:
            mechanism = LaplaceMechanism(Fraction(1), l1=1, clamp=(-30, 30))
            p, q = (mechanism.law(value, decay=HALF) for value in (0, 1))
            excess = sum((max(Fraction(0), p[s] - 2**epsilon * q[s]) for s in p), Fraction(0))
        else:
            excess = gaussian.delta_lower(mu_squared=Fraction(4), epsilon=Fraction(epsilon))
        if excess <= 0:
            return False
    return True


@statement(
    says="The textbook's variance is more than is needed: the least sigma with the same promise is smaller.",
    source="notes 4, Gaussian mechanism; Balle and Wang 2018",
    wrong={"it is less than half": {"part": HALF}},
    method=Method.ENCLOSED,
)
def the_textbook_gaussian_is_not_tight(*, part: Fraction = ONE) -> bool:
    for epsilon, delta in product((Fraction(1, 10), Fraction(9, 10)), (Fraction(1, 1000), Fraction(1, 10**6))):
        classic = gaussian_sigma_classic(epsilon=epsilon, delta=delta, sensitivity=1).scale
        if gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1).scale >= part * classic:
            return False
    return True


@statement(
    says="""A delta need not mean a catastrophe: a Gaussian mechanism that is (epsilon, delta)-private is (2 epsilon, delta/1000)-private as
    well.""",
    source="notes 4, introduction (catastrophes do not occur in practice)",
    wrong={"so is one that gives everything away with probability delta": {"leaky": True}},
    method=Method.ENCLOSED,
)
def delta_of_the_gaussian(*, leaky: bool = False) -> bool:
    for epsilon, delta in product((HALF, ONE), (Fraction(1, 10**6), Fraction(1, 10**9))):
        sigma = gaussian.sigma_analytic(epsilon=epsilon, delta=delta, sensitivity=ONE)
        at_twice = gaussian.delta_upper(mu_squared=1 / sigma**2, epsilon=2 * epsilon)
        if leaky:
            p, q = {0: 1 - delta, 1: delta}, {0: 1 - delta, 2: delta}
            at_twice = hockey_stick(p, q, odds=exp_upper(2 * epsilon))
        if at_twice > delta / 1000:
            return False
    return True


@statement(
    says="""Accuracy must fall with the number of queries: with one epsilon for all of them, k counts need k times the Laplace noise, or at
    least sqrt(k) times the Gaussian noise.""",
    source="notes 1, 2.1 (interactive model)",
    wrong={"the same noise is enough": {"same": True}},
    method=Method.ENCLOSED,
)
def accuracy_falls_with_the_number_of_queries(*, same: bool = False) -> bool:
    epsilon, delta = HALF, Fraction(1, 10**6)
    one = laplace_for(epsilon=epsilon, l1=1).scale
    sigma = gaussian.sigma_analytic(epsilon=epsilon, delta=delta, sensitivity=ONE)
    for k in (4, 25, 100):
        many = one if same else laplace_for(epsilon=epsilon, l1=k).scale
        if not abs(many / one - k) < Fraction(1, 10**9):
            return False
        root = gaussian.sigma_analytic(epsilon=epsilon, delta=delta, sensitivity=sqrt_upper(Fraction(k)))
        if not abs((root / sigma) ** 2 - k) < Fraction(1, 10**6):
            return False
    return True


@statement(
    says="A refusal is an answer: to refuse exact counts below 2, and publish the others with noise, is less private than noise alone.",
    source="notes 1, 1.1 (refusing a query can itself be disclosive)",
    wrong={"it is as private": {"as_private": True}},
)
def a_refusal_is_an_answer(*, as_private: bool = False) -> bool:
    planted = suppressed_small_counts(HALF)
    assert isinstance(verify(planted.right, planted.claim, planted.pairs), Verified)
    return isinstance(verify(planted.wrong, planted.claim, planted.pairs), Verified) == as_private


def gaussian_wins(*, answers: int, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether d counts, each moved by 1, get less noise (standard deviation) from the Gaussian mechanism than from Laplace."""
    sigma = gaussian.sigma_analytic(epsilon=epsilon, delta=delta, sensitivity=sqrt_upper(Fraction(answers)))
    return sigma**2 < 2 * (answers / epsilon) ** 2


@statement(
    says="""Gaussian noise grows with sqrt(d) and Laplace noise with d, for d answers: with many answers the Gaussian mechanism has the
    smaller error, with one the Laplace mechanism has.""",
    source="notes 4, Gaussian mechanism",
    wrong={"the Gaussian mechanism always has": {"few": 100}},
    method=Method.ENCLOSED,
)
def gaussian_for_many_answers(*, few: int = 1) -> bool:
    epsilon, delta = HALF, Fraction(1, 10**6)
    return gaussian_wins(answers=100, epsilon=epsilon, delta=delta) and not gaussian_wins(answers=few, epsilon=epsilon, delta=delta)


@statement(
    says="""The exponential mechanism, which picks h with probability proportional to exp(epsilon s(h) / (2 D)), is epsilon-private when
    scores move by at most D.""",
    source="notes 4, exponential mechanism; McSherry and Talwar 2007; Dwork and Roth 2014, theorem 3.10",
    wrong={"so is the one without the 2": {"halved": False}},
)
def exponential_mechanism(*, halved: bool = True) -> bool:
    for decay in DECAYS:  # the decay of one unit of score: exp(-epsilon / (2 D)) is its square root of exp(-epsilon)
        mechanism = from_kernel(ExponentialMechanism(Fraction(2), 1, 3), lambda scores: scores, decay=decay)
        claim = Claim(decay**-2 if halved else 1 / decay)
        if not isinstance(verify(mechanism, claim, score_pairs(monotone=False)), Verified):
            return False
    return True


@statement(
    says="When all scores move the same way, as counts do, the 2 is not needed.",
    source="notes 4, exponential mechanism; Dwork and Roth 2014, section 3.4",
    wrong={"nor when they do not": {"monotone": False}},
)
def monotone_scores(*, monotone: bool = True) -> bool:
    mechanism = from_kernel(ExponentialMechanism(Fraction(2), 1, 3, monotone=True), lambda scores: scores, decay=HALF)
    return isinstance(verify(mechanism, Claim(1 / HALF), score_pairs(monotone=monotone)), Verified)


@statement(
    says="""What the exponential mechanism picks is nearly the best: the probability to lose t or more of score is at most
    (|H| - 1) exp(-epsilon t / (2 D)).""",
    source="notes 4, exponential mechanism; McSherry and Talwar 2007; Dwork and Roth 2014, theorem 3.11",
    wrong={"at most exp(-epsilon t / (2 D))": {"candidates": False}},
)
def exponential_utility(*, candidates: bool = True) -> bool:
    mechanism = ExponentialMechanism(Fraction(2), 1, 4)
    for decay, scores in product(DECAYS, product(range(5), repeat=4)):
        law, best = mechanism.law(scores, decay=decay), max(scores)
        for lost in range(1, 5):
            chance = sum((share for h, share in law.items() if best - scores[h] >= lost), Fraction(0))
            if chance > (3 if candidates else 1) * decay**lost:
                return False
    return True


@statement(
    says="The loss that the exponential mechanism states for itself holds with the confidence it states.",
    source="notes 4, exponential mechanism (small loss); Dwork and Roth 2014, corollary 3.12",
    wrong={"half of it does": {"part": HALF}},
    method=Method.ENCLOSED,
)
def exponential_error(*, part: Fraction = ONE) -> bool:
    mechanism = exponential_for(Account.PURE, loss=HALF, score_sensitivity=1, candidates=50)
    for confidence in (Fraction(9, 10), Fraction(99, 100)):
        reach = (part * mechanism.error(confidence=confidence)).__floor__()
        # the worst case: one best candidate and all others just too bad
        weight = 49 * exp_upper(-(reach + 1) / mechanism.scale)
        if weight / (1 + weight) > 1 - confidence:
            return False
    return True


@statement(
    says="Report noisy max: the index of the largest noisy score is epsilon-private however many candidates there are.",
    source="notes 4, exponential mechanism (marked as missing there); Dwork and Roth 2014, claim 3.9",
    wrong={"and the exact score may be published with it": {"score_too": True}},
)
def report_noisy_max(*, score_too: bool = False) -> bool:
    if score_too:
        planted = exact_maximum_published(HALF)
        return isinstance(verify(planted.wrong, planted.claim, planted.pairs), Verified)
    mechanism = from_kernel(NoisyMax(Fraction(2), 1, 3), lambda scores: scores, decay=HALF)
    return isinstance(verify(mechanism, Claim(HALF**-2), score_pairs(monotone=False)), Verified)


@statement(
    says="Permute-and-flip has the privacy of the exponential mechanism and never a smaller expected score.",
    source="notes 4, exponential mechanism; McKenna and Sheldon 2020",
    wrong={"always a larger one": {"strictly": True}},
)
def permute_and_flip(*, strictly: bool = False) -> bool:
    flip, exponential = PermuteAndFlip(Fraction(2), 1, 3), ExponentialMechanism(Fraction(2), 1, 3)
    if not isinstance(verify(from_kernel(flip, lambda s: s, decay=HALF), Claim(HALF**-2), score_pairs(monotone=False)), Verified):
        return False
    for scores in SCORES:
        gains = [sum(share * scores[h] for h, share in m.law(scores, decay=HALF).items()) for m in (flip, exponential)]
        if gains[0] < gains[1] or (strictly and gains[0] == gains[1]):
            return False
    return True


@statement(
    says="Above threshold: however many values are said to be below, the first one above costs the same epsilon.",
    source="notes 4, private multiplicative weights (checking the error); Dwork and Roth 2014, theorem 3.23",
    wrong={"so do all that follow it, without a new start": {"cut_off": False}},
)
def above_threshold(*, cut_off: bool = True) -> bool:
    if not cut_off:
        planted = no_cut_off(HALF)
        return isinstance(verify(planted.wrong, planted.claim, planted.pairs), Verified)
    mechanism = AboveThreshold(1, 1, Fraction(1), Fraction(2))
    for length in (1, 2, 3, 4):
        streams = list(product((0, 1), repeat=length))
        run = from_kernel(mechanism, lambda stream: stream, decay=HALF)
        if not isinstance(verify(run, Claim(mechanism.odds(decay=HALF)), [(a, b) for a in streams for b in streams if a < b]), Verified):
            return False
    return True


STATEMENTS = [
    counting_queries,
    histogram_queries,
    marginal_queries,
    l2_and_l1,
    randomised_response,
    the_response_estimate_is_unbiased,
    laplace_mechanism,
    laplace_uses_l1,
    noise_is_sensitivity_over_epsilon,
    laplace_error,
    gaussian_mechanism,
    gaussian_noise_is_never_pure,
    the_textbook_gaussian_is_not_tight,
    delta_of_the_gaussian,
    accuracy_falls_with_the_number_of_queries,
    a_refusal_is_an_answer,
    gaussian_for_many_answers,
    exponential_mechanism,
    monotone_scores,
    exponential_utility,
    exponential_error,
    report_noisy_max,
    permute_and_flip,
    above_threshold,
]
