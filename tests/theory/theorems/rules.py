"""Statements about what follows from a promise: post-processing, composition, groups, parts, samples."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

from lapwing.kernel.event import Event
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.numbers import exp_lower, exp_upper
from lapwing.theory import composition, guarantees
from lapwing.theory.broken.exact_sums import clamped
from lapwing.theory.databases import Histogram, Population, Universe, group_pairs, neighbouring_pairs, without_users
from lapwing.theory.filters import LedgerFilter, optimal_is_not_a_filter
from lapwing.theory.finite import FiniteMechanism, adaptive, composed, mixture, poisson_subsampled, randomised
from lapwing.theory.guarantees import Guarantee
from lapwing.theory.verify import Claim, Verified, tight_delta, tight_odds, verify
from tests.theory.theorems.statement import Method, laws, pairs_of_laws, private, statement

ONE, ZERO, HALF = Fraction(1), Fraction(0), Fraction(1, 2)
ANSWERS = Universe(("yes", "no"))
ADDED = tuple(neighbouring_pairs(ANSWERS, Neighbours.UNBOUNDED, size_max=3))
REPLACED = tuple(neighbouring_pairs(ANSWERS, Neighbours.BOUNDED, size_max=3))


def noisy(decay: Fraction, *, record: int = 0, high: int = 3) -> FiniteMechanism[Histogram, int]:
    """The number of rows of one kind, with geometric noise, clamped: odds ``1 / decay`` for one row added."""
    return FiniteMechanism("noisy count", lambda x: clamped(x[record], decay, low=0, high=high))


def leaky(decay: Fraction, delta: Fraction) -> FiniteMechanism[Histogram, int]:
    """The noisy count which, with probability delta, is the exact one instead (published as a number of its own)."""
    exact: FiniteMechanism[Histogram, int] = FiniteMechanism("exact", lambda x: {100 + x[0]: ONE})
    return mixture([(1 - delta, noisy(decay)), (delta, exact)])


def keeps(mechanism: FiniteMechanism[Histogram, Any], odds: Fraction, delta: Fraction = ZERO) -> bool:
    """Whether the claim holds for one row added or removed."""
    return isinstance(verify(mechanism, Claim(odds, delta), ADDED), Verified)


@statement(
    says="""Post-processing: a function of the output alone, with or without coins of its own, cannot make it less private; for every
    channel between three outputs and two.""",
    source="notes 1, 2.3; notes 4, introduction; Dwork and Roth 2014, proposition 2.1",
    wrong={"a function of the output and the data cannot": {"sees_data": True}},
)
def post_processing(*, sees_data: bool = False) -> bool:
    channels = list(product(laws(outputs=2, parts=2), repeat=3))
    odds, delta = Fraction(2), Fraction(1, 6)
    for p, q in pairs_of_laws(parts=6):
        if not private(p, q, odds=odds, delta=delta):
            continue
        for channel in channels:
            other = channels[-1] if sees_data else channel
            after_p = guarantees.post_process(p, dict(enumerate(channel)))
            after_q = guarantees.post_process(q, dict(enumerate(other)))
            if not private(after_p, after_q, odds=odds, delta=delta):
                return False
    return True


@statement(
    says="Composition: the outputs of an epsilon_1- and an epsilon_2-private mechanism together are (epsilon_1 + epsilon_2)-private.",
    source="notes 2, 2; notes 1, 2.3; Dwork et al. 2006; Dwork and Roth 2014, theorem 3.14",
    wrong={"max(epsilon_1, epsilon_2)-private": {"largest": True}},
)
def basic_composition(*, largest: bool = False) -> bool:
    first, second = Fraction(1, 2), Fraction(2, 3)
    both = composed(noisy(first), noisy(second))
    odds = max(1 / first, 1 / second) if largest else composition.basic([Guarantee(1 / first), Guarantee(1 / second)]).odds
    return keeps(both, odds) and tight_odds(both, ADDED) == odds


@statement(
    says="Composition of (epsilon_i, delta_i)-private mechanisms: the epsilons add and the deltas add.",
    source="notes 1, 2.3; Dwork and Roth 2014, theorem 3.16",
    wrong={"the epsilons add and the largest delta remains": {"add_deltas": False}},
)
def basic_composition_with_delta(*, add_deltas: bool = True) -> bool:
    decay, deltas = HALF, (Fraction(1, 10), Fraction(1, 5))
    both = composed(leaky(decay, deltas[0]), leaky(decay, deltas[1]))
    claimed = composition.basic([Guarantee(1 / decay, delta) for delta in deltas])
    return keeps(both, claimed.odds, claimed.delta if add_deltas else max(deltas))


@statement(
    says="Composition holds for adaptive choices too: which mechanism runs second may depend on what the first one said.",
    source="notes 4, composition and sequential analysis; Dwork, Rothblum and Vadhan 2010",
    wrong={"and on the data": {"sees_data": True}},
)
def adaptive_composition(*, sees_data: bool = False) -> bool:
    strong, weak = noisy(Fraction(2, 3)), noisy(Fraction(2, 3), record=1)
    if sees_data:
        peeking: FiniteMechanism[Histogram, int] = FiniteMechanism("peeking", lambda x: (strong if x[0] > 1 else weak).law(x))
        return keeps(adaptive(noisy(HALF), lambda _: peeking), Fraction(3))
    return keeps(adaptive(noisy(HALF), lambda said: strong if said > 1 else weak), Fraction(3))


@statement(
    says="""Advanced composition: k mechanisms of epsilon each are, together, private with about sqrt(2 k ln(1/delta')) epsilon, up to
    delta'. Decided on the worst mechanisms there are, for k = 10, 100 and 500.""",
    source="notes 4, composition (marked as missing there); Dwork, Rothblum and Vadhan 2010, theorem III.3",
    wrong={"with half of that": {"part": HALF}},
    method=Method.ENCLOSED,
)
def advanced_composition(*, part: Fraction = ONE) -> bool:
    slack = Fraction(1, 10**5)
    for epsilon, count in ((HALF, 10), (Fraction(1, 10), 100), (Fraction(1, 20), 500)):
        together = part * composition.advanced_epsilon_upper(epsilon=epsilon, count=count, delta_slack=slack)
        worst = Guarantee(_short(exp_upper(epsilon)))
        if composition.optimal_delta(worst, count=count, odds=_short(exp_lower(together), up=False)) > slack:
            return False
    return True


def _short(x: Fraction, *, up: bool = True) -> Fraction:
    """Rounded to 60 binary places, so that its powers stay short."""
    whole, rest = divmod(x.numerator * 2**60, x.denominator)
    return Fraction(whole + (1 if up and rest else 0), 2**60)


@statement(
    says="""Optimal composition: the least delta of k mechanisms with one guarantee is that of k randomised responses; they attain it.""",
    source="notes 4, introduction (tighter composition bounds); Kairouz, Oh and Viswanath 2015, theorem 3.3",
    wrong={"it is that of k - 1": {"fewer": 1}},
)
def optimal_composition(*, fewer: int = 0) -> bool:
    for guarantee in (Guarantee(Fraction(3, 2)), Guarantee(Fraction(3), Fraction(1, 50))):
        for count, odds in product((2, 3, 6), (Fraction(1), Fraction(2), Fraction(4))):
            attained = composition.worst_pair(guarantee).repeated(count - fewer).delta(odds=odds)
            if composition.optimal_delta(guarantee, count=count, odds=odds) != attained:
                return False
    return True


@statement(
    says="A bound that is tight for sequences fixed beforehand is no filter for charges chosen on the way.",
    source="notes 4, composition and sequential analysis; Rogers, Roth, Ullman and Vadhan 2016",
    wrong={"it is: the delta it claims is never exceeded": {"exceeded": False}},
)
def fixed_sequences_are_not_filters(*, exceeded: bool = True) -> bool:
    found = optimal_is_not_a_filter()
    return (found.delta_true > found.delta_claimed) == exceeded


@statement(
    says="A privacy budget: every answer consumes some, and once it is exhausted none is given; 1 pays for exactly ten answers of 1/10.",
    source="notes 2, 2 (privacy budget)",
    wrong={"for eleven": {"answers": 11}, "for no more than nine": {"answers": 9}},
)
def a_budget_is_exhausted(*, answers: int = 10) -> bool:
    account, count = LedgerFilter.of(epsilon=ONE), 0
    event = Event.pure(Fraction(1, 10))
    while account.admits(event):
        account, count = account.charged(event), count + 1
    return count == answers


@statement(
    says="Group privacy: for databases k rows apart an epsilon-private mechanism is k epsilon-private, and no better in general.",
    source="notes 1, 2.3; notes 5, 1.2.2; Dwork and Roth 2014, theorem 2.2",
    wrong={"epsilon-private": {"power": 1}},
)
def group_privacy(*, power: int | None = None) -> bool:
    odds = Fraction(2)
    for k in (2, 3):
        pairs = group_pairs(ANSWERS, Neighbours.UNBOUNDED, size_max=3, group_size=k)
        if tight_odds(noisy(1 / odds), pairs) != odds ** (power or k):
            return False
    return guarantees.group(Guarantee(odds), size=3) == Guarantee(odds**3)


@statement(
    says="Group privacy with delta: k rows apart, delta becomes delta (1 + exp(epsilon) + ... + exp((k-1) epsilon)).",
    source="notes 4, introduction; Dwork and Roth 2014, section 2.3",
    wrong={"delta stays as it is": {"keep_delta": True}},
)
def group_privacy_with_delta(*, keep_delta: bool = False) -> bool:
    guarantee = Guarantee(Fraction(2), Fraction(1, 20))
    by_two = guarantees.group(guarantee, size=2)
    claimed = guarantee.delta if keep_delta else by_two.delta
    every = laws(outputs=2, parts=20)
    near = {i: [j for j, q in enumerate(every) if guarantees.holds(p, q, guarantee)] for i, p in enumerate(every)}
    return all(guarantees.holds(every[i], every[k], Guarantee(by_two.odds, claimed)) for i, js in near.items() for j in js for k in near[j])


@statement(
    says="""Parallel composition: mechanisms that see disjoint parts of the rows are together as private as the least private of them, when
    the unit is a row that is added or removed.""",
    source="notes 4, introduction and flexibility; McSherry 2009",
    wrong={"when a row is replaced": {"replaced": True}, "when the unit is a user with rows in both parts": {"users": True}},
)
def parallel_composition(*, replaced: bool = False, users: bool = False) -> bool:
    decay = HALF
    both = composed(noisy(decay), noisy(decay, record=1))
    claim = Claim(exp_of_parallel([1 / decay, 1 / decay]))
    if users:
        people = Population(ANSWERS, users=1, rows_per_user_max=2)
        pairs = [(without_users(x), without_users(y)) for x, y in people.user_pairs(Neighbours.UNBOUNDED)]
        return isinstance(verify(both, claim, pairs), Verified)
    return isinstance(verify(both, claim, REPLACED if replaced else ADDED), Verified)


def exp_of_parallel(odds: list[Fraction]) -> Fraction:
    """The odds of parallel composition; the rule itself is stated in epsilons, any increasing scale gives the same largest one."""
    return composition.parallel(odds, parts_per_unit=1)


@statement(
    says="""What is (epsilon, delta)-private for a row added or removed is (2 epsilon, (1 + e^epsilon) delta)-private for one replaced.""",
    source="notes 5, 1.1.1 and 2.1.2; Dwork and Roth 2014, section 2.3",
    wrong={"(epsilon, delta)-private": {"same": True}, "and the other way round": {"converse": True}},
)
def bounded_from_unbounded(*, same: bool = False, converse: bool = False) -> bool:
    if converse:
        # the number of rows, exactly: nothing changes when a row is replaced
        counted: FiniteMechanism[Histogram, int] = FiniteMechanism("size", lambda x: guarantees.size_law(ANSWERS.rows(x)))
        assert tight_odds(counted, REPLACED) == 1
        return tight_odds(counted, ADDED) is not None
    decay, delta = HALF, Fraction(1, 10)
    vector: FiniteMechanism[Histogram, tuple[int, int]] = composed(leaky(decay, delta), noisy(decay, record=1))
    before = Guarantee(1 / decay, delta)
    assert keeps(vector, before.odds, before.delta)
    after = before if same else guarantees.bounded_from_unbounded(before)
    return isinstance(verify(vector, Claim(after.odds, after.delta), REPLACED), Verified)


@statement(
    says="A choice between private mechanisms that does not depend on the data is as private as they are.",
    source="notes 4, mechanism design (randomising between mechanisms); Kifer and Lin 2010",
    wrong={"even if it does": {"sees_data": True}},
)
def mixtures_are_private(*, sees_data: bool = False) -> bool:
    parts = [(Fraction(1, 3), noisy(HALF)), (Fraction(2, 3), randomised(noisy(HALF), lambda said: {3 - said: ONE}))]
    if not sees_data:
        return keeps(mixture(parts), Fraction(2))
    peeking: FiniteMechanism[Histogram, int] = FiniteMechanism("peeking", lambda x: parts[min(x[0], 1)][1].law(x))
    return keeps(peeking, Fraction(2))


@statement(
    says="""On a secret sample that keeps each row with probability r, exp(epsilon) becomes 1 + r (exp(epsilon) - 1), and no less in
    general.""",
    source="notes 2, 3 (sampling); Li, Qardaji and Su 2012; Balle, Barthe and Gaboardi 2018",
    wrong={"exp(epsilon) becomes exp(epsilon r^2)": {"square": True}},
)
def sampling_amplifies(*, square: bool = False) -> bool:
    odds, rate = Fraction(2), Fraction(1, 3)
    sampled = poisson_subsampled(noisy(1 / odds), rate=rate)
    claimed = exp_lower(Fraction(7, 10) * rate**2) if square else guarantees.sampled(Guarantee(odds), rate=rate).odds
    return keeps(sampled, claimed)  # ln 2 < 7/10


@statement(
    says="""Granularity: a promise for rows is not one for people. Who has m rows is protected with m epsilon.""",
    source="notes 1, 2.3.2 (final remarks)",
    wrong={"with epsilon": {"power": 1}},
)
def granularity(*, power: int = 2) -> bool:
    people = Population(ANSWERS, users=2, rows_per_user_max=2)
    mechanism: FiniteMechanism[tuple[Histogram, ...], int] = FiniteMechanism("count", lambda x: noisy(HALF, high=4).law(without_users(x)))
    by_row = tight_odds(mechanism, people.row_pairs(Neighbours.UNBOUNDED))
    by_user = tight_odds(mechanism, people.user_pairs(Neighbours.UNBOUNDED))
    return by_row == 2 and by_user == 2**power


@statement(
    says="""Delta falls as epsilon grows, so a mechanism has a whole curve of promises; the one at epsilon = 0 is the total variation.""",
    source="notes 1, 2.3; notes 4, introduction",
    wrong={"delta is the same for every epsilon": {"strictly": False}},
)
def delta_is_a_curve(*, strictly: bool = True) -> bool:
    mechanism = leaky(HALF, Fraction(1, 10))
    curve = [tight_delta(mechanism, ADDED, odds=odds) for odds in (ONE, Fraction(3, 2), Fraction(2), Fraction(4))]
    falls = curve[0] > curve[1] > curve[2] and curve[2] == curve[3] == Fraction(1, 10)
    return falls if strictly else len(set(curve)) == 1


STATEMENTS = [
    post_processing,
    basic_composition,
    basic_composition_with_delta,
    adaptive_composition,
    advanced_composition,
    optimal_composition,
    fixed_sequences_are_not_filters,
    a_budget_is_exhausted,
    group_privacy,
    group_privacy_with_delta,
    parallel_composition,
    bounded_from_unbounded,
    mixtures_are_private,
    sampling_amplifies,
    granularity,
    delta_is_a_curve,
]
