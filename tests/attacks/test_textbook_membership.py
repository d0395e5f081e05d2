"""Membership (D1): the most powerful test of presence, on one count and on many. No rate lies above the trade-off curve.

Each statistical test fails by chance with at most 1e-6.
"""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from scipy import stats

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account, budget_for
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.prices import Family, law_for, statement_loss
from lapwing.spread import pmf
from lapwing.theory.attacks.bounds import alarm_at, success_max
from lapwing.theory.attacks.membership import RocPoint, evidence, roc, tracing_score
from lapwing.theory.guarantees import Guarantee
from lapwing.theory.meaning import advantage_max, power_max
from tests.attacks.street import FALSE_ALARM, Street, coins, make_street, told

HOUSES = 4_000
CLAIM = Guarantee.of_epsilon(Fraction(1))
THRESHOLDS = (-1, 0, 1, 2, 3)
"""Chosen before anything is seen."""
# ROUND shows the count as it was released; a count that is shown by itself is never below 0.
COUNTS = "SELECT house, ROUND(COUNT(*)) AS n FROM people GROUP BY house ORDER BY house"


@pytest.fixture(scope="module")
def lived_in() -> list[bool]:
    """Half of all houses have one person, who is a member; half are empty."""
    return coins(HOUSES)


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory, lived_in: list[bool]) -> Street:
    columns = {"house": f'{{ type = "integer", min = 0, max = {HOUSES - 1}, null = false }}'}
    rows = [{"house": house} for house, there in enumerate(lived_in) if there]
    return make_street(tmp_path_factory.mktemp("membership"), rows, columns)


def _points(street: Street, lived_in: list[bool], law: Law, *, epsilon: int, delta: str) -> tuple[RocPoint, ...]:
    """One test of presence per house, all from one statement: a person is in one cell, so each cell has the whole of epsilon."""
    with street.open(epsilon=epsilon, delta=delta, neighbours="unbounded") as data:
        counts = [row["n"] for row in told(data.ask(COUNTS, epsilon=epsilon))]
    assert len(counts) == HOUSES
    # The evidence of a count never falls as the count grows, so the tests "at least this count" include the most powerful ones.
    heard = [evidence([count], inside=[1], outside=[0], law=law) for count in sorted(counts)]
    assert all(before <= after for before, after in itertools.pairwise(heard))
    members = [count for count, there in zip(counts, lived_in, strict=True) if there]
    others = [count for count, there in zip(counts, lived_in, strict=True) if not there]
    return roc(members, others, thresholds=THRESHOLDS)


def _breaches(points: tuple[RocPoint, ...], claim: Guarantee) -> list[RocPoint]:
    """Points that lie above the curve for certain: by Clopper and Pearson (1934), and Bonferroni over all points and both rates."""
    risk = float(FALSE_ALARM) / (2 * len(points))
    found = []
    for point in points:
        hits, alarms = point.true_positives, point.false_positives
        rate_lower = stats.beta.ppf(risk, hits, point.members - hits + 1) if hits else 0.0
        alarm_upper = stats.beta.isf(risk, alarms + 1, point.others - alarms) if alarms < point.others else 1.0
        if rate_lower > float(power_max(claim, false_alarm=Fraction(alarm_upper))):
            found.append(point)
    return found


def _law(*, epsilon: int, delta: Fraction) -> Law:
    """The noise of one count at the price of the whole budget, which is public."""
    budget = budget_for(epsilon=Fraction(epsilon), delta=delta)
    family = Family.LAPLACE if budget.account is Account.PURE else Family.GAUSSIAN
    return law_for(budget.account, loss=statement_loss(budget, Fraction(epsilon)), l1=1, l2_squared=1, family=family)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 2**20)], ids=["pure", "approximate"])
def test_no_point_lies_above_the_trade_off_curve(street: Street, lived_in: list[bool], delta: Fraction) -> None:
    """The most powerful test, through Lapwing, at epsilon 1."""
    points = _points(street, lived_in, _law(epsilon=1, delta=delta), epsilon=1, delta='"2^-20"' if delta else "0")
    assert _breaches(points, Guarantee(CLAIM.odds, delta)) == []
    assert all(0 < point.false_positive_rate < 1 for point in points)


def test_one_count_attains_the_curve(street: Street, lived_in: list[bool]) -> None:
    """With Laplace noise the bound is not only kept but reached: the advantage of the best test is tanh(1/2) at epsilon 1."""
    points = _points(street, lived_in, _law(epsilon=1, delta=Fraction(0)), epsilon=1, delta="0")
    slack = math.sqrt(math.log(4 / FALSE_ALARM) / (2 * min(points[0].members, points[0].others)))  # Hoeffding, for both rates
    best = next(point for point in points if point.threshold == 1)  # where the evidence turns positive
    assert abs(float(best.advantage) - math.tanh(0.5)) <= 2 * slack < 0.15
    assert math.isclose(advantage_max(CLAIM), math.tanh(0.5), rel_tol=1e-12)


def test_answers_less_private_than_claimed_are_seen(street: Street, lived_in: list[bool]) -> None:
    """Answers of epsilon 2 held against a claim of 1."""
    points = _points(street, lived_in, _law(epsilon=2, delta=Fraction(0)), epsilon=2, delta="0")
    assert _breaches(points, CLAIM) != []
    assert _breaches(points, Guarantee.of_epsilon(Fraction(2))) == []


# -- many marginals --------------------------------------------------------------------------------------------------------------------

ATTRIBUTES = 448
CANDIDATES = 80
EACH = 64


@pytest.fixture(scope="module")
def population() -> list[float]:
    rng = random.Random(61)
    return [rng.uniform(0.2, 0.8) for _ in range(ATTRIBUTES)]


@pytest.fixture(scope="module")
def candidates(population: list[float]) -> list[list[bool]]:
    rng = random.Random(62)
    return [[rng.random() < share for share in population] for _ in range(CANDIDATES)]


@pytest.fixture(scope="module")
def members() -> list[bool]:
    """Who took part, the same in every run: for what must succeed."""
    rng = random.Random(63)
    return [rng.random() < 0.5 for _ in range(CANDIDATES)]


def _study(directory: Path, candidates: list[list[bool]], members: list[bool]) -> Street:
    columns = {f"a{j}": '{ type = "boolean", null = false }' for j in range(ATTRIBUTES)}
    rows = [{f"a{j}": own for j, own in enumerate(record)} for record, there in zip(candidates, members, strict=True) if there]
    return make_street(directory, rows, columns)


def _statements() -> list[str]:
    starts = range(0, ATTRIBUTES, EACH)
    return [f"SELECT {', '.join(f'COUNT_IF(a{j}) AS c{j}' for j in range(start, start + EACH))} FROM people" for start in starts]


def _guessed(published: list[float], candidates: list[list[bool]], population: list[float], size: int) -> list[bool]:
    """A member is expected to score ``sum of p (1 - p) / size``, anybody else 0: say "member" from half of it on."""
    half = sum(share * (1 - share) for share in population) / size / 2
    return [tracing_score(published, target=record, population=population) >= half for record in candidates]


def test_exact_means_of_many_attributes_give_members_away(
    tmp_path: Path, candidates: list[list[bool]], members: list[bool], population: list[float]
) -> None:
    size, study = sum(members), _study(tmp_path, candidates, members)
    published = [count / size for text in _statements() for count in study.exact(text)[0].values()]
    guessed = _guessed(published, candidates, population, size)
    assert sum(a == b for a, b in zip(guessed, members, strict=True)) >= 0.9 * CANDIDATES


def _traced(directory: Path, candidates: list[list[bool]], members: list[bool], population: list[float], *, epsilon: Fraction) -> int:
    """How many candidates are guessed right from counts that share one budget. The attacker is told the number of members besides."""
    texts = _statements()
    with _study(directory, candidates, members).open(epsilon=str(float(epsilon)), neighbours="unbounded") as data:
        counts = [count for text in texts for count in told(data.ask(text, epsilon=epsilon / len(texts)))[0].values()]
    guessed = _guessed([count / sum(members) for count in counts], candidates, population, sum(members))
    return sum(a == b for a, b in zip(guessed, members, strict=True))


TRACING_ALARM = alarm_at(Guarantee.of_epsilon(Fraction(1, 2)), people=CANDIDATES, false_alarm=FALSE_ALARM)


def test_through_lapwing_members_are_traced_no_better_than_the_budget_allows(
    tmp_path: Path, candidates: list[list[bool]], population: list[float]
) -> None:
    """All counts in one budget of 1/2: at most 62 % right. A fair coin decided who took part."""
    assert CANDIDATES * success_max(Guarantee.of_epsilon(Fraction(1, 2))) < TRACING_ALARM < 0.9 * CANDIDATES
    assert _traced(tmp_path, candidates, coins(CANDIDATES), population, epsilon=Fraction(1, 2)) < TRACING_ALARM


def test_with_a_budget_of_two_thousand_there_is_nothing_left_to_protect(
    tmp_path: Path, candidates: list[list[bool]], members: list[bool], population: list[float]
) -> None:
    """And the test above would see it."""
    assert _traced(tmp_path, candidates, members, population, epsilon=Fraction(2_000)) >= TRACING_ALARM


# -- the functions themselves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(3, 2)), DiscreteGaussian(Fraction(5, 2))])
def test_evidence_is_the_logarithm_of_the_likelihood_ratio(law: Law) -> None:
    for observed in range(-9, 12):
        ratio = pmf(law, observed - 4) / pmf(law, observed - 1)
        assert float(evidence([observed], inside=[4], outside=[1], law=law)) == pytest.approx(math.log(ratio), abs=1e-9)
    assert evidence([2, 5], inside=[2, 4], outside=[1, 4], law=law) == evidence([2], inside=[2], outside=[1], law=law)


def test_rates_are_counted_from_the_threshold_on() -> None:
    point, none = roc([3.0, 1.0, 2.0], [0.0, 2.0], thresholds=[2.0, 9.0])
    assert point == RocPoint(2.0, true_positives=2, members=3, false_positives=1, others=2)
    assert (point.true_positive_rate, point.false_positive_rate, point.advantage) == (Fraction(2, 3), Fraction(1, 2), Fraction(1, 6))
    assert none.true_positives == none.false_positives == 0


def test_a_tracing_score_is_an_inner_product() -> None:
    assert tracing_score([0.75, 0.25], target=[True, False], population=[0.5, 0.5]) == pytest.approx(0.25)


def test_senseless_input_is_refused() -> None:
    law = DiscreteLaplace(Fraction(1))
    wrong: tuple[Callable[[], object], ...] = (
        lambda: evidence([1], inside=[1, 2], outside=[0], law=law),
        lambda: tracing_score([0.5], target=[True], population=[]),
        lambda: roc([], [1.0], thresholds=[0.0]),
        lambda: roc([1.0], [], thresholds=[0.0]),
    )
    for attempt in wrong:
        with pytest.raises(LapwingError, match="attack-input"):
            attempt()


def test_importing_the_attacks_loads_no_heavy_library() -> None:
    """SciPy is loaded by the one attack that needs it, when it runs."""
    modules = ("averaging", "bounds", "differencing", "linkage", "membership", "reconstruction")
    program = f"import sys; {'; '.join(f'import lapwing.theory.attacks.{name}' for name in modules)}; print('scipy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert ran.stdout.strip() == "False"
