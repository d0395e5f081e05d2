"""Statements about the definition itself: what epsilon and delta ask for, and what they do not."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.numbers import exp_lower, exp_upper, ln_lower
from lapwing.theory.databases import Universe, adjacent, databases, distance, neighbouring_pairs, size
from lapwing.theory.divergences import (
    kl_lower,
    kl_upper,
    max_divergence_lower,
    max_divergence_upper,
    odds_approximate,
    odds_max,
    total_variation,
)
from lapwing.theory.finite import FiniteMechanism, deterministic, randomised
from lapwing.theory.loss import exceeds_bound, loss_law, odds_of
from lapwing.theory.meaning import one_record_law, posterior, posterior_max
from lapwing.theory.verify import Claim, Verified, tight_odds, verify
from tests.theory.theorems.statement import Law, Method, laws, pairs_of_laws, private, probability, satisfies, sets_of, statement

ONE, ZERO = Fraction(1), Fraction(0)
ANSWERS = Universe(("yes", "no"))
ADDED = tuple(neighbouring_pairs(ANSWERS, Neighbours.UNBOUNDED, size_max=2))


@statement(
    says="""A database is a multiset of rows or, the same thing, the histogram that counts each record: one form gives the other, the size
    is the l1 norm, and the l1 distance is the least number of rows to add or remove on the way from one to the other.""",
    source="notes 1, 2.3; notes 3, 1 and definition 1",
    wrong={"the distance is the largest difference of two counts": {"largest": True}},
)
def histogram_form(*, largest: bool = False) -> bool:
    every = list(databases(ANSWERS, size_max=3))
    known = {x: {x: 0} for x in every}
    for x in every:  # breadth first, one row at a time; intermediate databases may have up to three rows
        front = [x]
        while front:
            reached = [(at, y) for at in front for y in every if sum(abs(a - b) for a, b in zip(at, y, strict=True)) == 1]
            front = []
            for at, y in reached:
                if y not in known[x]:
                    known[x][y] = known[x][at] + 1
                    front.append(y)

    def apart(x: tuple[int, ...], y: tuple[int, ...]) -> int:
        return max(abs(a - b) for a, b in zip(x, y, strict=True)) if largest else distance(x, y)

    round_trip = all(ANSWERS.histogram(ANSWERS.rows(x)) == x and len(ANSWERS.rows(x)) == size(x) for x in every)
    return round_trip and all(apart(x, y) == steps for x in every for y, steps in known[x].items())


@statement(
    says="""Unbounded neighbours differ by one row added or removed: distance 1. Bounded neighbours differ by one row replaced: distance 2
    and equal size.""",
    source="notes 5, 2.1.2; notes 3, definition 2 and remark 2; notes 2, 1; Kifer and Machanavajjhala 2011",
    wrong={"bounded neighbours are those at distance 2": {"equal_size": False}},
)
def neighbouring_databases(*, equal_size: bool = True) -> bool:
    every = list(databases(ANSWERS, size_max=3))
    for x, y in product(every, repeat=2):
        rows_x, rows_y = list(ANSWERS.rows(x)), list(ANSWERS.rows(y))
        # by hand: take one row away and look
        less = [sorted([*rows_x[:i], *rows_x[i + 1 :]]) for i in range(len(rows_x))]
        removed = sorted(rows_y) in less
        added = sorted(rows_x) in [sorted([*rows_y[:i], *rows_y[i + 1 :]]) for i in range(len(rows_y))]
        replaced = x != y and any(sorted([*rest, new]) == sorted(rows_y) for rest in less for new in ANSWERS.records)
        bounded = adjacent(x, y, Neighbours.BOUNDED) if equal_size else distance(x, y) == 2
        if adjacent(x, y, Neighbours.UNBOUNDED) != (removed or added) or bounded != replaced:
            return False
    return True


@statement(
    says="Epsilon 0 means that the output does not depend on the data: neighbours, and so all databases, have one and the same law.",
    source="notes 3, 3 (the role of epsilon)",
    wrong={"so does an epsilon of ln(3/2)": {"odds": Fraction(3, 2)}},
)
def epsilon_zero_ignores_the_data(*, odds: Fraction = ONE) -> bool:
    pairs = [(0, 1), (1, 2)]  # databases of 0, 1 and 2 equal rows
    for chosen in product(laws(outputs=2, parts=5), repeat=3):
        mechanism: FiniteMechanism[int, int] = FiniteMechanism("given", lambda rows, chosen=chosen: chosen[rows])  # type: ignore[misc]
        kept = isinstance(verify(mechanism, Claim(odds), pairs), Verified)
        if kept != (chosen[0] == chosen[1] == chosen[2]):
            return False
    return True


@statement(
    says="""As epsilon grows the promise becomes empty: any two laws that give positive probability to the same outputs satisfy it for some
    epsilon.""",
    source="notes 3, 3 (the role of epsilon)",
    wrong={"any two laws at all do": {"same_support": False}},
)
def epsilon_infinite_promises_nothing(*, same_support: bool = True) -> bool:
    def supported(law: Law) -> set[int]:
        return {s for s, share in law.items() if share}

    large = Fraction(10**6)
    return all(private(p, q, odds=large) for p, q in pairs_of_laws() if not same_support or supported(p) == supported(q))


@statement(
    says="A deterministic mechanism has a finite epsilon if and only if it is constant.",
    source="notes 1, 2.3; Dwork and Roth 2014, section 2.3",
    wrong={"the same is true of randomised mechanisms": {"lie": Fraction(1, 4)}},
)
def deterministic_mechanisms_are_not_private(*, lie: Fraction = ZERO) -> bool:
    every = list(databases(ANSWERS, size_max=2))
    for values in product((0, 1), repeat=len(every)):
        table = dict(zip(every, values, strict=True))
        exact = deterministic(table.__getitem__)
        mechanism = randomised(exact, lambda bit: {bit: 1 - lie, 1 - bit: lie})
        if (tight_odds(mechanism, ADDED) is not None) != (len(set(values)) == 1):
            return False
    return True


@statement(
    says="""For delta = 0 it makes no difference whether the inequality is asked of every set of outputs or of every single output.""",
    source="notes 5, 2.1.2; notes 2, 2; Dwork and Roth 2014, section 2.3",
    wrong={"nor for delta = 1/12, where notes 2 write it for single outputs too": {"delta": Fraction(1, 12)}},
)
def single_outputs_are_enough_without_delta(*, delta: Fraction = ZERO) -> bool:
    odds = Fraction(2)
    return all(
        satisfies(p, q, odds=odds, delta=delta) == all(p[s] <= odds * q[s] + delta for s in p) for p, q in pairs_of_laws(outputs=4, parts=4)
    ) and all(satisfies(p, q, odds=odds, delta=delta) == all(p[s] <= odds * q[s] + delta for s in p) for p, q in pairs_of_laws(parts=12))


@statement(
    says="An output that neither of two neighbours can produce asks for nothing: 0/0 counts as 1.",
    source="notes 5, 2.1.2",
    wrong={"so does one that only one of them can produce": {"both": False}},
)
def zero_over_zero(*, both: bool = True) -> bool:
    for p, q in pairs_of_laws(outputs=2):
        before = odds_max(p, q)
        if before is None:
            continue
        if not both:
            p = {0: p[0] / 2, 1: p[1] / 2, 2: Fraction(1, 2)}
        if odds_max({**p, 7: ZERO}, {**q, 7: ZERO}) != before:
            return False
    return True


@statement(
    says="The definition goes both ways: the probability of every set lies between exp(-epsilon) and exp(epsilon) times its neighbour's.",
    source="notes 3, 3 (symmetry)",
    wrong={"one order of each pair is enough": {"orders": 1}},
)
def the_definition_is_symmetric(*, orders: int = 2) -> bool:
    odds = Fraction(2)
    for p, q in pairs_of_laws():
        asked = all(satisfies(a, b, odds=odds) for a, b in [(p, q), (q, p)][:orders])
        between = all(probability(q, s) / odds <= probability(p, s) <= odds * probability(q, s) for s in sets_of(3))
        if asked != between:
            return False
    return True


@statement(
    says="For small epsilon, exp(epsilon) is about 1 + epsilon: between 1 + epsilon and 1 + epsilon + epsilon^2 up to epsilon = 1.",
    source="notes 1, 2.3.1; notes 3, 3",
    wrong={"up to epsilon = 2": {"largest": Fraction(2)}},
    method=Method.ENCLOSED,
)
def small_epsilon_is_a_relative_change(*, largest: Fraction = ONE) -> bool:
    steps = [largest * i / 40 for i in range(1, 41)]
    return all(1 + e <= exp_lower(e) and exp_upper(e) <= 1 + e + e**2 for e in steps)


@statement(
    says="A smaller epsilon or delta is the stronger promise: whatever keeps it keeps every larger pair.",
    source="notes 1, 1; notes 2, 2; notes 3, 3",
    wrong={"and every pair with a larger delta alone": {"odds_after": Fraction(1)}},
)
def smaller_parameters_are_stronger(*, odds_after: Fraction = Fraction(3)) -> bool:
    odds, delta = Fraction(2), Fraction(1, 6)
    return all(
        private(p, q, odds=odds_after, delta=delta + Fraction(1, 100)) for p, q in pairs_of_laws() if private(p, q, odds=odds, delta=delta)
    )


@statement(
    says="""A large epsilon says little: of two mechanisms with the same epsilon, ln 1000 and no less, one gives the secret away and the
    other gains an attacker less than 1/1000.""",
    source="notes 1, 2.3.2 (final remarks)",
    wrong={"so does a small one, ln(5/4)": {"odds": Fraction(5, 4)}},
)
def a_large_epsilon_says_little(*, odds: Fraction = Fraction(1000)) -> bool:
    likely, unlikely = odds / (1 + odds), 1 / (1 + odds)
    loud = ({0: likely, 1: unlikely, 2: ZERO}, {0: unlikely, 1: likely, 2: ZERO})
    # the same answers, but 999 times in 1000 nothing is said
    quiet = tuple({0: law[0] / 1000, 1: law[1] / 1000, 2: Fraction(999, 1000)} for law in loud)
    same = odds_max(*loud) == odds_max(quiet[0], quiet[1]) == odds
    return same and total_variation(*loud) > Fraction(99, 100) and total_variation(quiet[0], quiet[1]) < Fraction(1, 1000)


@statement(
    says="""(epsilon, delta) lets something happen on one database with probability delta that is impossible on its neighbour; and asks
    nothing at all of sets that have probability at most delta.""",
    source="notes 3, 3 (after definition 4)",
    wrong={"it lets it happen with probability 2 delta": {"times": 2}, "so does delta = 0": {"delta": ZERO}},
)
def delta_allows_the_impossible(*, delta: Fraction = Fraction(1, 10), times: int = 1) -> bool:
    happens = max(delta, Fraction(1, 20)) * times
    p, q = {0: 1 - happens, 1: happens}, {0: ONE, 1: ZERO}
    return private(p, q, odds=ONE, delta=delta) and loss_law(p, q).infinite == happens


@statement(
    says="""At delta = 1/n the promise is worthless: the mechanism that publishes one row of the n, chosen at random, keeps (0, 1/n), for
    replaced and for removed rows.""",
    source="notes 3, 3; notes 1, 2.3; notes 4, introduction (delta < 1/n)",
    wrong={"it keeps (0, 1/(n+1))": {"more": 1}},
)
def one_row_in_n_is_published(*, more: int = 0) -> bool:
    mechanism: FiniteMechanism[tuple[int, ...], str] = FiniteMechanism("a random row", lambda x: one_record_law(ANSWERS.rows(x)))
    for n in (2, 3, 4):
        claim = Claim(ONE, Fraction(1, n + more))
        replaced = [pair for pair in neighbouring_pairs(ANSWERS, Neighbours.BOUNDED, size_max=n) if size(pair[0]) == n]
        removed = [pair for pair in neighbouring_pairs(ANSWERS, Neighbours.UNBOUNDED, size_max=n) if {size(x) for x in pair} == {n - 1, n}]
        if not all(isinstance(verify(mechanism, claim, pairs), Verified) for pairs in (replaced, removed)):
            return False
    return True


@statement(
    says="""A security parameter kappa makes delta cryptographically small: 2^-kappa falls below the inverse of every polynomial.""",
    source="notes 1, 2.3.2 (final remarks)",
    wrong={"so does kappa^-3": {"negligible": False}},
)
def delta_is_negligible_in_kappa(*, negligible: bool = True) -> bool:
    def delta(kappa: int) -> Fraction:
        return Fraction(1, 2**kappa if negligible else kappa**3)

    # From kappa = 7 power on 2^kappa has overtaken kappa^power (it has for power >= 2 at 2^(7 power) > (7 power)^power).
    return all(delta(kappa) < Fraction(1, kappa**power) for power in range(2, 12) for kappa in range(7 * power, 7 * power + 200))


@statement(
    says="A mechanism is epsilon-private if and only if the max-divergence between neighbours is at most epsilon, both ways.",
    source="notes 5, 2.1.3 (definition 2.3); Dwork and Roth 2014, section 3.5.1",
    wrong={"if and only if the Kullback-Leibler divergence is": {"mean": True}},
    method=Method.ENCLOSED,
)
def max_divergence_is_epsilon(*, mean: bool = False) -> bool:
    odds = Fraction(2)
    for p, q in pairs_of_laws():
        largest = [odds_max(a, b) for a, b in ((p, q), (q, p))]
        means = [kl_upper(a, b) for a, b in ((p, q), (q, p))]
        small = all(x is not None and x <= ln_lower(odds) for x in means) if mean else all(x is not None and x <= odds for x in largest)
        if private(p, q, odds=odds) != small:
            return False
    return True


@statement(
    says="The Kullback-Leibler divergence is never negative, and 0 if and only if the two laws are the same.",
    source="notes 5, 2.1.3 (definition 2.2); Kullback and Leibler 1951",
    wrong={"and the same in both directions": {"symmetric": True}},
    method=Method.ENCLOSED,
)
def kl_divergence_is_zero_for_equal_laws(*, symmetric: bool = False) -> bool:
    for p, q in pairs_of_laws():
        low, high, back = kl_lower(p, q), kl_upper(p, q), kl_lower(q, p)
        if symmetric and high is not None and (back is None or back > high):
            return False
        if p == q and high != 0:
            return False
        if p != q and low is not None and low <= 0:
            return False
    return True


@statement(
    says="The mean privacy loss (Kullback-Leibler) is at most the largest (max-divergence).",
    source="notes 5, 2.1.3; Dwork and Roth 2014, section 3.5.1",
    wrong={"the largest is at most ten times the mean": {"times": 10}},
    method=Method.ENCLOSED,
)
def the_mean_loss_hides_the_worst(*, times: int = 0) -> bool:
    for p, q in pairs_of_laws(parts=7):
        low, high = kl_lower(p, q), kl_upper(p, q)
        worst_low, worst_high = max_divergence_lower(p, q), max_divergence_upper(p, q)
        if low is None or high is None or worst_low is None or worst_high is None:
            continue
        if low > worst_high or (times and worst_low > times * high):
            return False
    return True


@statement(
    says="A mechanism is (epsilon, delta)-private if and only if the delta-approximate max-divergence is at most epsilon, both ways.",
    source="notes 1, 2.3; Dwork and Roth 2014, section 3.5.1",
    wrong={"if and only if every single output keeps to it": {"single": True}},
)
def approximate_max_divergence_is_epsilon(*, single: bool = False) -> bool:
    odds, delta = Fraction(3, 2), Fraction(1, 5)
    for p, q in pairs_of_laws(parts=10):
        if single:
            small = all(a[s] <= odds * b[s] + delta for a, b in ((p, q), (q, p)) for s in p)
        else:
            found = [odds_approximate(a, b, delta=delta) for a, b in ((p, q), (q, p))]
            small = all(x is not None and x <= odds for x in found)
        if private(p, q, odds=odds, delta=delta) != small:
            return False
    return True


@statement(
    says="""The privacy loss of an output is positive when the first database is the likelier source and negative when the second is; under
    the first, exp(-loss) has mean 1 where both laws allow the same outputs.""",
    source="notes 1, 2.3 (privacy loss)",
    wrong={"exp(loss) has mean 1": {"power": 1}},
)
def the_sign_of_the_privacy_loss(*, power: int = -1) -> bool:
    for p, q in pairs_of_laws():
        if any((p[s] > 0) != (q[s] > 0) for s in p):
            continue
        odds = {s: odds_of(p, q, s) for s in p if p[s]}
        if any(o is None or (o > 1) != (p[s] > q[s]) or (o < 1) != (p[s] < q[s]) for s, o in odds.items()):
            return False
        if sum((share * at**power for at, share in loss_law(p, q).mass.items()), ZERO) != 1:
            return False
    return True


@statement(
    says="""If the privacy loss exceeds epsilon with probability at most delta, both ways, the mechanism is (epsilon, delta)-private.""",
    source="notes 1, 2.3; Dwork and Roth 2014, section 3.5.1; Kasiviswanathan and Smith 2014",
    wrong={"and the other way round, with the same numbers": {"converse": True}},
)
def a_bounded_loss_is_enough(*, converse: bool = False) -> bool:
    odds, delta = Fraction(3, 2), Fraction(1, 5)
    for p, q in pairs_of_laws(parts=10):
        bounded = all(loss_law(a, b).exceeds(odds=odds) <= delta for a, b in ((p, q), (q, p)))
        kept = private(p, q, odds=odds, delta=delta)
        if (kept and not bounded) if converse else (bounded and not kept):
            return False
    return True


@statement(
    says="""(epsilon, delta)-privacy bounds the loss a little further out: it exceeds ln(beyond) with probability at most
    delta / (1 - exp(epsilon) / beyond).""",
    source="notes 1, 2.3 (it says: epsilon with probability 1 - delta); Kasiviswanathan and Smith 2014",
    wrong={"with probability at most delta": {"plain": True}},
)
def what_privacy_says_of_the_loss(*, plain: bool = False) -> bool:
    odds, delta, beyond = Fraction(3, 2), Fraction(1, 5), Fraction(9, 5)
    bound = delta if plain else exceeds_bound(odds=odds, delta=delta, beyond=beyond)
    return all(loss_law(p, q).exceeds(odds=beyond) <= bound for p, q in pairs_of_laws(parts=10) if private(p, q, odds=odds, delta=delta))


@statement(
    says="""A fair guesser's belief moves by at most epsilon: whatever the prior, the posterior odds of the two databases are at most
    exp(epsilon) times the prior odds, for every output.""",
    source="notes 2, 2 (independence from the adversary's knowledge); notes 1, 2.2; Dwork et al. 2006",
    wrong={"for (epsilon, 1/10) too": {"delta": Fraction(1, 10)}},
)
def belief_moves_by_epsilon(*, delta: Fraction = ZERO) -> bool:
    odds = Fraction(2)
    for p, q in pairs_of_laws(parts=10):
        if not private(p, q, odds=odds, delta=delta):
            continue
        for prior in (Fraction(1, 100), Fraction(1, 2), Fraction(9, 10)):
            for s in p:
                if (p[s] or q[s]) and posterior(p, q, prior=prior, output=s) > posterior_max(prior=prior, odds=odds):
                    return False
    return True


STATEMENTS = [
    histogram_form,
    neighbouring_databases,
    epsilon_zero_ignores_the_data,
    epsilon_infinite_promises_nothing,
    deterministic_mechanisms_are_not_private,
    single_outputs_are_enough_without_delta,
    zero_over_zero,
    the_definition_is_symmetric,
    small_epsilon_is_a_relative_change,
    smaller_parameters_are_stronger,
    a_large_epsilon_says_little,
    delta_allows_the_impossible,
    one_row_in_n_is_published,
    delta_is_negligible_in_kappa,
    max_divergence_is_epsilon,
    kl_divergence_is_zero_for_equal_laws,
    the_mean_loss_hides_the_worst,
    approximate_max_divergence_is_epsilon,
    the_sign_of_the_privacy_loss,
    a_bounded_loss_is_enough,
    what_privacy_says_of_the_loss,
    belief_moves_by_epsilon,
]
