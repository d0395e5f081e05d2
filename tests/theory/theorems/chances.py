"""Statements about attackers, about people who act on outputs, and about sums of random variables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

from lapwing.kernel.numbers import exp_upper, ln_lower
from lapwing.mechanisms.additive import LaplaceMechanism
from lapwing.mechanisms.response import two_coin
from lapwing.mechanisms.selection import ExponentialMechanism
from lapwing.theory import meaning, tail_bounds
from lapwing.theory.attacks.averaging import answers_needed
from lapwing.theory.attacks.differencing import guess_by_difference
from lapwing.theory.attacks.linkage import link_rows
from lapwing.theory.attacks.reconstruction import agreements, reconstruct, subset_questions
from lapwing.theory.divergences import total_variation
from lapwing.theory.guarantees import Guarantee
from tests.theory.theorems.statement import Law, Method, laws, pairs_of_laws, private, statement

ONE, ZERO, HALF = Fraction(1), Fraction(0), Fraction(1, 2)


@statement(
    says="No test between two neighbours has a power above its false-alarm rate by more than (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).",
    source="notes 1, 2.2; notes 2, 2; Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015",
    wrong={"by more than half of that": {"part": HALF}},
)
def attack_advantage(*, part: Fraction = ONE) -> bool:
    for guarantee in (Guarantee(Fraction(2)), Guarantee(Fraction(3, 2), Fraction(1, 10))):
        bound = part * meaning.advantage_max(guarantee)
        for p, q in pairs_of_laws():
            if private(p, q, odds=guarantee.odds, delta=guarantee.delta) and total_variation(p, q) > bound:
                return False
    coin = two_coin()
    return total_variation(coin.law(1), coin.law(0)) == part * meaning.advantage_max(Guarantee(Fraction(3)))


@statement(
    says="""Differencing: two exact counts that differ in one person give that person's bit away; two answers of odds o each leave a guess
    that is right with a chance of at most o^2 / (1 + o^2).""",
    source="notes 1, 1.1; notes 4, query types (differential attack)",
    wrong={"at most one half": {"bound": HALF}},
)
def differencing(*, bound: Fraction | None = None) -> bool:
    if not all(guess_by_difference(10 + bit, 10) == bool(bit) for bit in (0, 1)):
        return False
    decay = HALF
    mechanism = LaplaceMechanism(ONE, l1=1, clamp=(-40, 60))
    right = ZERO
    for bit in (0, 1):
        everybody, others = mechanism.law(10 + bit, decay=decay), mechanism.law(10, decay=decay)
        right += HALF * sum(
            (p * q for (a, p), (b, q) in product(everybody.items(), others.items()) if guess_by_difference(a, b) == bool(bit)), ZERO
        )
    return right <= (bound if bound is not None else decay**-2 / (1 + decay**-2))


@statement(
    says="Linkage: a person whose ordinary attributes are unique in a register gets their row of a table without names back.",
    source="notes 1, 1.1; Sweeney 2000; Narayanan and Shmatikov 2008",
    wrong={"so does one who shares them": {"shared": True}},
)
def linkage(*, shared: bool = False) -> bool:
    register = {"Ann": ("north", 1950), "Bob": ("south", 1950), "Cid": ("north", 1950) if shared else ("south", 1960)}
    secrets = {"Ann": "flu", "Bob": "none", "Cid": "ulcer"}
    rows = [{"place": place, "born": born, "illness": secrets[name]} for name, (place, born) in register.items()]
    return link_rows(rows, register, on=("place", "born"), secret="illness") == secrets


@statement(
    says="""Reconstruction (the "fundamental law of information recovery"): 120 exact counts of subsets of 31 people give every person's
    bit; errors of 1 do not help; errors of 8, above sqrt(31), do.""",
    source="notes 1, 1.1 and 2.1; Dinur and Nissim 2003; Dwork, McSherry and Talwar 2007",
    wrong={"errors of 8 do not": {"error": 8}},
    method=Method.RUN,
)
def reconstruction(*, error: int = 1) -> bool:
    bits = [(7 * i * i + 3 * i) % 11 < 5 for i in range(31)]
    questions = subset_questions(modulus=31, count=120)
    counts = [sum(bit for i, bit in enumerate(bits) if question.contains(i)) for question in questions]
    # errors of either sign, fixed: which way each answer errs is scattered like the bits of a square
    signs = [1 if (j * j * 5 + j) % 13 < 6 else -1 for j in range(120)]
    exact = agreements(reconstruct(questions, counts, attributes=range(31)), bits)
    blurred = [count + error * sign for count, sign in zip(counts, signs, strict=True)]
    return exact == 31 and agreements(reconstruct(questions, blurred, attributes=range(31)), bits) >= 30


@statement(
    says="""Averaging: fresh noise on the same answer cancels, so without an account 4 v / beta answers of noise variance v give the exact
    count but for a chance of beta. Decided with the exact law of the sum.""",
    source="notes 1, 2.1 (accuracy must fall with the number of queries)",
    wrong={"two answers are enough": {"answers": 2}},
)
def averaging(*, answers: int | None = None) -> bool:
    decay, beta = HALF, Fraction(1, 10)
    variance = 2 * decay / (1 - decay) ** 2
    count = answers or answers_needed(variance=variance, confidence=1 - beta)
    # the mean is off by 1/2 or more: the sum of the noise is, upwards or downwards, at least count / 2
    wrong = 2 * tail_bounds.laplace_sum_tail(count=count, decay=decay, at_least=math.ceil(Fraction(count, 2)))
    return wrong <= beta


@statement(
    says="""What a population shows is no violation: when everybody shares one trait, epsilon-private answers about many people can reveal
    it to any certainty, though no person's own row changes any output by more than a factor of exp(epsilon).""",
    source="notes 1, 2.3.1 and 2.3.2; notes 5, 1.2.1; Dwork and Roth 2014, section 2.3.2",
    wrong={"so can answers about one person": {"people": 1}},
)
def populations_may_be_learnt(*, people: int = 20) -> bool:
    mechanism = LaplaceMechanism(ONE, l1=1, clamp=(-30, 50))
    everybody, nobody, neighbour = (mechanism.law(count, decay=HALF) for count in (people, 0, people - 1))
    private_rows = all(neighbour[s] / 2 <= everybody[s] <= 2 * neighbour[s] for s in everybody)
    return private_rows and meaning.posterior(everybody, nobody, prior=HALF, output=people) > Fraction(99, 100)


@statement(
    says="""Expected utility: whatever somebody feels about outputs, as long as it is not negative, its expectation changes by a factor
    between exp(-epsilon) and exp(epsilon); and this for every such function is the definition again.""",
    source="notes 4, mechanism design; McSherry and Talwar 2007; Dwork and Roth 2014, section 10.1",
    wrong={"for utilities of either sign": {"lowest": -1}},
)
def expected_utility(*, lowest: int = 0) -> bool:
    odds = Fraction(2)
    utilities = list(product(range(lowest, 2), repeat=3))
    for p, q in pairs_of_laws():
        means = [[sum((law[s] * u[s] for s in law), ZERO) for law in (p, q)] for u in utilities]
        if private(p, q, odds=odds) != all(b / odds <= a <= odds * b for a, b in means):
            return False
    return True


@statement(
    says="With delta, the expectation of a utility between 0 and 1 becomes at most exp(epsilon) times as large, and delta more.",
    source="notes 4, mechanism design; Dwork and Roth 2014, section 10.1",
    wrong={"for utilities between 0 and 2": {"largest": 2}},
)
def expected_utility_with_delta(*, largest: int = 1) -> bool:
    guarantee = Guarantee(Fraction(2), Fraction(1, 6))
    utilities = [tuple(Fraction(v * largest, 2) for v in u) for u in product(range(3), repeat=3)]
    for p, q in pairs_of_laws():
        if not private(p, q, odds=guarantee.odds, delta=guarantee.delta):
            continue
        for u in utilities:
            here, there = (sum((law[s] * u[s] for s in law), ZERO) for law in (p, q))
            if here > guarantee.odds * there + guarantee.delta:
                return False
    return True


@statement(
    says="""Truthfulness: under an epsilon-private mechanism, epsilon at most 1, nobody gains more than 2 epsilon in expected utility, on a
    scale from 0 to 1, by reporting something else than the truth.""",
    source="notes 4, mechanism design (2 epsilon-approximately dominant strategy truthful); McSherry and Talwar 2007",
    wrong={"on a scale from 0 to 100": {"scale": 100}, "nobody gains anything": {"part": ZERO}},
    method=Method.ENCLOSED,
)
def approximate_truthfulness(*, scale: int = 1, part: Fraction = ONE) -> bool:
    # Three people report the option they like; one is chosen by the exponential mechanism on the counts.
    for decay in (Fraction(2, 3), Fraction(4, 5)):
        mechanism = ExponentialMechanism(ONE, 1, 3)
        epsilon = ln_lower(decay**-2)  # one report replaced: one count down, another up; at most the true epsilon
        for others in product(range(3), repeat=2):
            law_of = {report: mechanism.law([(*others, report).count(option) for option in range(3)], decay=decay) for report in range(3)}
            for truth, liked in product(range(3), repeat=2):  # what is liked need not be what truth means here: any utility will do
                gain = meaning.gain_from_lying(law_of, truth=truth, utility=lambda s, liked=liked: Fraction(scale * (s == liked)))  # type: ignore[misc]
                if gain > part * 2 * epsilon:
                    return False
    return True


@statement(
    says="""Under an epsilon-private mechanism no report is much better than any other: what truth gains over a lie is at most 2 epsilon
    too, so privacy alone gives nobody a reason to tell the truth.""",
    source="notes 4, mechanism design (drawback); Dwork and Roth 2014, section 10.1",
    wrong={"without noise, too": {"noise": False}},
    method=Method.ENCLOSED,
)
def any_report_is_nearly_best(*, noise: bool = True) -> bool:
    decay = Fraction(4, 5)
    epsilon = ln_lower(decay**-2)
    for others in product(range(2), repeat=2):
        laws_of = {}
        for report in range(2):
            counts = [(*others, report).count(option) for option in range(2)]
            exact = {option: Fraction(int(option == (counts[1] > counts[0]))) for option in range(2)}
            laws_of[report] = ExponentialMechanism(ONE, 1, 2).law(counts, decay=decay) if noise else exact
        for liked in range(2):  # the liar reports the other option; the truth gains this much over the lie
            gain = meaning.gain_from_lying(laws_of, truth=1 - liked, utility=lambda s, liked=liked: Fraction(int(s == liked)))  # type: ignore[misc]
            if gain > 2 * epsilon:
                return False
    return True


def _martingale_ends(strategy: int, steps: int) -> dict[int, Fraction]:
    """The law of a gambler's gain who bets at most 1 on fair coins; strategy 1 stops betting when ahead by 3 or more, 0 never stops."""
    law = {0: ONE}
    for _ in range(steps):
        after: dict[int, Fraction] = {}
        for at, share in law.items():
            bet = 0 if strategy and at >= 3 else 1
            for gain in (-bet, bet):
                after[at + gain] = after.get(at + gain, ZERO) + share / 2
        law = after
    return law


def _binomials() -> Iterator[tuple[int, Fraction, int]]:
    for samples, chance in product((10, 60), (Fraction(1, 10), Fraction(1, 3), HALF)):
        yield from ((samples, chance, k) for k in range(samples + 1))


@statement(
    says="Additive Chernoff bound: the mean of m values in [0, 1] exceeds its expectation by t with probability at most exp(-2 m t^2).",
    source="notes 1, 3.1; Hoeffding 1963; Dwork and Roth 2014, theorem 3.1",
    wrong={"at most exp(-4 m t^2)": {"times": 2}},
    method=Method.ENCLOSED,
)
def additive_chernoff(*, times: int = 1) -> bool:
    for samples, chance, k in _binomials():
        above = Fraction(k, samples) - chance
        if above > 0:
            bound = exp_upper(-4 * samples * above**2) if times == 2 else tail_bounds.hoeffding_upper(samples=samples, deviation=above)
            if tail_bounds.binomial_tail(samples=samples, chance=chance, at_least=k) > bound:
                return False
    return True


@statement(
    says="""Multiplicative Chernoff bound: the mean of m values with expectation mu is above (1 + s) mu with probability at most
    exp(-m mu s^2 / 3), and below (1 - s) mu with at most exp(-m mu s^2 / 2), for s up to 1; better than the additive one for small mu.""",
    source="notes 1, 3.1; Dwork and Roth 2014, theorem 3.2; Mitzenmacher and Upfal 2005",
    wrong={"above with at most exp(-m mu s^2)": {"three": 1}},
    method=Method.ENCLOSED,
)
def multiplicative_chernoff(*, three: int = 3) -> bool:
    for samples, chance, k in _binomials():
        share = Fraction(k, samples) / chance - 1
        tail = tail_bounds.binomial_tail(samples=samples, chance=chance, at_least=k)
        if 0 < share <= 1:
            plain = tail_bounds.multiplicative_above_upper(samples=samples, mean=chance, share=share)
            if tail > (plain if three == 3 else exp_upper(-samples * chance * share**2 / three)):
                return False
        if -1 <= share < 0:
            below = 1 - tail_bounds.binomial_tail(samples=samples, chance=chance, at_least=k + 1)
            if below > tail_bounds.multiplicative_below_upper(samples=samples, mean=chance, share=-share):
                return False
    return True


@statement(
    says="""Azuma's inequality: a martingale whose steps are at most 1 ends t or more above its start with probability at most
    exp(-t^2 / (2 n)), although its steps depend on the past.""",
    source="notes 1, 3.1; Azuma 1967; Dwork and Roth 2014, theorem 3.3",
    wrong={"at most exp(-t^2 / n)": {"times": 2}},
    method=Method.ENCLOSED,
)
def azuma(*, times: int = 1) -> bool:
    for strategy, steps in product((0, 1), (4, 16, 40)):
        ends = _martingale_ends(strategy, steps)
        for t in range(1, steps + 1):
            above = sum((share for at, share in ends.items() if at >= t), ZERO)
            bound = (
                exp_upper(-Fraction(t * t, steps)) if times == 2 else tail_bounds.azuma_upper(steps=[ONE] * steps, deviation=Fraction(t))
            )
            if above > bound:
                return False
    return True


@statement(
    says="Stirling: n! lies between sqrt(2 pi n) (n/e)^n times exp(1/(12 n + 1)) and times exp(1/(12 n)).",
    source="notes 1, 3.1; Robbins 1955; Dwork and Roth 2014, theorem 3.4",
    wrong={"and is at most sqrt(2 pi n) (n/e)^n": {"corrected": False}},
    method=Method.ENCLOSED,
)
def stirling(*, corrected: bool = True) -> bool:
    for n in (1, 2, 5, 20, 100):
        upper = tail_bounds.factorial_upper(n)
        if not corrected:
            upper *= exp_upper(-Fraction(1, 12 * n))
        if not tail_bounds.factorial_lower(n) <= math.factorial(n) <= upper:
            return False
        if tail_bounds.factorial_upper(n) / tail_bounds.factorial_lower(n) > exp_upper(Fraction(1, 12 * n) - Fraction(1, 12 * n + 1)) / (
            1 - Fraction(1, 10**20)
        ):
            return False
    return True


def _curve(p: Law, q: Law) -> bool:
    """Whether the best tests between two laws stay under the curve of a guarantee, at every corner."""
    guarantee = Guarantee(Fraction(2), Fraction(1, 10))
    return all(power <= meaning.power_max(guarantee, false_alarm=alarm) for alarm, power in meaning.roc(p, q))


@statement(
    says="""The promise is a statement about tests: two laws keep (epsilon, delta), both ways, if and only if no test has more power at any
    false-alarm rate than the curve of (epsilon, delta) allows.""",
    source="notes 3, 3 (the outcome S as a bad event); Wasserman and Zhou 2010; Dong, Roth and Su 2022",
    wrong={"if and only if the best guess of a fair coin is right as often as allowed": {"guess_only": True}},
)
def tests_and_privacy(*, guess_only: bool = False) -> bool:
    guarantee = Guarantee(Fraction(2), Fraction(1, 10))
    for p, q in product(laws(parts=10), repeat=2):
        kept = private(p, q, odds=guarantee.odds, delta=guarantee.delta)
        small = total_variation(p, q) <= meaning.advantage_max(guarantee) if guess_only else _curve(p, q)
        if kept != small:
            return False
    return True


STATEMENTS = [
    attack_advantage,
    tests_and_privacy,
    differencing,
    linkage,
    averaging,
    reconstruction,
    populations_may_be_learnt,
    expected_utility,
    expected_utility_with_delta,
    approximate_truthfulness,
    any_report_is_nearly_best,
    additive_chernoff,
    multiplicative_chernoff,
    azuma,
    stirling,
]
