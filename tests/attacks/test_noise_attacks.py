"""Attacks on the noise itself: low bits (F1, F2), forks (R1), rare keys (G1), differencing (D1).

Each statistical test fails by chance with a probability of at most 1e-6.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from scipy import stats

from lapwing.answers.post_processing import evaluate
from lapwing.catalog import Settings, load
from lapwing.engines.base import Snapshot
from lapwing.engines.duckdb import DuckDBSnapshot
from lapwing.kernel import certify as certify_module
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact
from lapwing.kernel.ir import DiscoveredGroups
from lapwing.kernel.laws import Law
from lapwing.kernel.permit import issue
from lapwing.kernel.release import NoisyTable, release
from lapwing.kernel.thresholds import least_spread_threshold, spread_weight
from lapwing.planning.group_enumeration.groups import GroupFinder
from lapwing.planning.plan import plan_query
from lapwing.planning.planned import GroupLimits, Price
from lapwing.spread import pmf
from lapwing.sql import bind
from tests.attacks.pair import CANARY, HOSTILE, open_world, write_world

FALSE_ALARM = 1e-6
RANKING_KEY = b"two worlds" * 3 + b"!!"


class Both:
    """Snapshots of both worlds, in memory, for many releases of one plan."""

    def __init__(self, directory: Path, *, delta: str) -> None:
        self.snapshots: list[Snapshot] = []
        for name, hostile in (("w1", HOSTILE[0]), ("w0", None)):
            write_world(directory / name, hostile=hostile, delta=delta)
            declaration = load(directory / name / "lapwing.toml")
            self.snapshots.append(DuckDBSnapshot.in_memory(declaration, version=1, ranking_key=RANKING_KEY))

    def plan(self, sql: str, *, loss: Fraction, delta: Fraction = Fraction(0)) -> Certified:
        """The statement at a price; the same in both worlds."""
        facts = self.snapshots[0].facts
        assert facts == self.snapshots[1].facts
        statement = bind(sql, facts, settings=Settings(), unit_columns={"people": "id", "events": "id"})
        limits = GroupLimits(1_000_000, 1_000)
        return plan_query(
            statement.private, facts, Price(loss, delta), contributions={}, units=None, limits=limits, finder=GroupFinder(evaluate)
        ).certified

    def exact(self, certified: Certified) -> list[Exact]:
        """Exact figures with the target and without."""
        return [snapshot.run(certified) for snapshot in self.snapshots]


def released(certified: Certified, exact: Exact) -> NoisyTable:
    """One release."""
    return release(certified, issue(1, certified.digest, certified.cost), exact).tables[0]


@pytest.fixture(scope="module")
def pure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield Both(tmp_path_factory.mktemp("pure"), delta="0")


@pytest.fixture(scope="module")
def approximate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    yield Both(tmp_path_factory.mktemp("approximate"), delta='"2^-20"')


# -- F1, F2: low bits ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", ["0", '"2^-40"'])
def test_every_output_lies_on_the_public_grid(tmp_path: Path, delta: str) -> None:
    """11,000 noisy sums of reals, sums of integers and counts per mechanism: each is the double of k / steps, whatever the noise."""
    write_world(tmp_path / "w1", hostile=HOSTILE[0], delta=delta)
    with open_world(tmp_path / "w1") as data:
        answer = data.ask("SELECT d, SUM(x) AS s, COUNT(*) AS n, SUM(num) AS m FROM people GROUP BY d", epsilon="0.731")
    sums = answer.table.column("s").to_pylist()
    assert len(sums) > 11_000
    assert all(value == float(Fraction(round(value * 100), 100)) for value in sums)
    assert len(set(sums)) > 5_000, "the noise is far above the grid, or the test would be idle"
    for name in ("n", "m"):
        assert all(type(value) is int for value in answer.table.column(name).to_pylist())


# -- R1: forks -------------------------------------------------------------------------------------------------------------------------


def _streams() -> dict[str, list[list[int]]]:
    script = Path(__file__).with_name("forked_noise.py")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=script.parents[2])
    found: dict[str, list[list[int]]] = json.loads(ran.stdout)
    return found


def test_processes_never_share_noise() -> None:
    """Parent, forked children and a second process: of noise this wide, two equal values anywhere have a chance below 1e-6."""
    runs = [_streams(), _streams()]
    for family in ("gaussian", "laplace"):
        streams = [stream for run in runs for stream in run[family]]
        values = [value for stream in streams for value in stream]
        assert len(streams) == 10 and len(values) == 320
        # 320^2 / 2 pairs, each equal with probability at most 1 / (2 * 2^40)
        assert len(set(values)) == len(values)


# -- G1: rare keys ---------------------------------------------------------------------------------------------------------------------

RARE = "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind"
KEY_DELTA = Fraction(1, 20)
KEY_RUNS = 1_500
ALARM = int(stats.binom.isf(FALSE_ALARM, KEY_RUNS, float(KEY_DELTA)))
"""More runs with a rare key than this have a chance below 1e-6 if the chance of each is at most ``KEY_DELTA``."""


def _times_shown(certified: Certified, exact: Exact, *, runs: int = KEY_RUNS) -> int:
    """In how many runs any key of the target alone was shown."""
    tables = (released(certified, exact) for _ in range(runs))
    return sum(any(CANARY in str(group[0]) for group in table.groups) for table in tables)


@pytest.mark.parametrize("loss", [Fraction(1, 50), Fraction(1, 2)])
def test_a_rare_key_is_shown_no_more_often_than_delta_allows(approximate: Both, loss: Fraction) -> None:
    certified = approximate.plan(RARE, loss=loss, delta=KEY_DELTA)
    assert isinstance(certified.queries[0].query.groups, DiscoveredGroups) and certified.queries[0].groups_per_unit > 1
    with_target, without = approximate.exact(certified)
    assert _times_shown(certified, without, runs=100) == 0, "a key that nobody has is never shown"
    shown = _times_shown(certified, with_target)
    assert shown <= ALARM, f"{shown} of {KEY_RUNS} runs"


def test_the_same_test_sees_a_threshold_that_is_one_too_low(approximate: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """At this loss one unit less means many times the rate, so the alarm is missed with a chance below 1e-6."""

    def lower(law: Law, *, bits: int, groups_per_unit: int, delta: Fraction) -> int:
        return least_spread_threshold(law, bits=bits, groups_per_unit=groups_per_unit, delta=delta) - (1 << bits)

    monkeypatch.setattr(certify_module, "least_spread_threshold", lower)
    certified = approximate.plan(RARE, loss=Fraction(6), delta=KEY_DELTA)
    query = certified.queries[0]
    assert isinstance(query.query.groups, DiscoveredGroups) and query.keys is not None
    groups, bits = query.query.groups, query.query.groups.spread_bits
    assert bits is not None
    # A unit with as many groups as it may have weighs least in each of them; one of them shows at least this often.
    missing = query.keys.threshold - spread_weight(bits, query.groups_per_unit)
    rate = stats.norm.sf(missing / float(groups.law.scale))
    assert stats.binom.cdf(ALARM, KEY_RUNS, rate * 0.99) < FALSE_ALARM
    assert _times_shown(certified, approximate.exact(certified)[0]) > ALARM


# -- D1: differencing ------------------------------------------------------------------------------------------------------------------

RUNS = 2_500
SLACK = math.sqrt(math.log(2 / FALSE_ALARM) / RUNS)
"""By Hoeffding, the difference of two shares of ``RUNS`` runs is off by more than this with a chance below 1e-6."""


def _advantage(guess: Callable[[int], bool], runs: int = RUNS) -> float:
    """P[says w1 | w1] - P[says w1 | w0]."""
    return (sum(guess(0) for _ in range(runs)) - sum(guess(1) for _ in range(runs))) / runs


def test_counting_with_one_statement_gains_what_the_bound_says_and_no_more(pure: Both) -> None:
    """The best test for presence from one count at epsilon 1 reaches (e - 1) / (e + 1), and cannot exceed it."""
    certified = pure.plan("SELECT COUNT(*) AS n FROM people", loss=Fraction(1))
    exact = pure.exact(certified)
    truth = exact[0]._tables[0]._vectors[0][0]

    def guess(world: int) -> bool:
        return released(certified, exact[world]).columns[0].values[0] >= truth

    bound = math.tanh(0.5)
    assert bound - SLACK <= _advantage(guess) <= bound + SLACK


def test_differencing_two_statements_gains_no_more_than_their_epsilons_together(pure: Both) -> None:
    """All people, minus all people but the target: two statements of epsilon 1/2 each, and side knowledge of everybody else."""
    texts = ("SELECT COUNT(*) AS n FROM people", "SELECT COUNT(*) AS n FROM people WHERE num <> 777 OR num IS NULL")
    plans = [pure.plan(sql, loss=Fraction(1, 2)) for sql in texts]
    exact = [pure.exact(certified) for certified in plans]
    assert [e[0]._tables[0]._vectors[0][0] - e[1]._tables[0]._vectors[0][0] for e in exact] == [1, 0]

    def guess(world: int) -> bool:
        values = [released(plan, found[world]).columns[0].values[0] for plan, found in zip(plans, exact, strict=True)]
        return values[0] - values[1] >= 1

    assert _advantage(guess) <= math.tanh(0.5) + SLACK


def test_combining_several_aggregates_gains_no_more_than_epsilon(pure: Both) -> None:
    """One statement of three aggregates that all move with the target; the attacker adds up what each says."""
    sql = "SELECT COUNT(*) AS n, SUM(big) AS b, COUNT(*) FILTER (WHERE num = 777) AS t FROM people"
    certified = pure.plan(sql, loss=Fraction(1))
    exact = pure.exact(certified)
    sides = [[vector[0] for vector in found._tables[0]._vectors] for found in exact]
    scales = [float(vector.vector.law.scale) for vector in certified.queries[0].vectors]

    def score(values: list[int]) -> float:
        """The likelihood ratio of the two worlds, which is the best there is."""
        return sum((abs(v - b) - abs(v - a)) / s for v, a, b, s in zip(values, sides[0], sides[1], scales, strict=True))

    def guess(world: int) -> bool:
        return score([column.values[0] for column in released(certified, exact[world]).columns]) > 0

    assert _advantage(guess) <= math.tanh(0.5) + SLACK


def test_the_same_on_an_approximate_data_set(approximate: Both) -> None:
    """rho = 1/8 is sigma = 2 for a count: the advantage of the best test, 2 Phi(1/4) - 1, is below that of (epsilon, delta)."""
    certified = approximate.plan("SELECT COUNT(*) AS n FROM people", loss=Fraction(1, 8))
    exact = approximate.exact(certified)
    truth = exact[0]._tables[0]._vectors[0][0]

    def guess(world: int) -> bool:
        return released(certified, exact[world]).columns[0].values[0] >= truth

    # the two worlds differ in the chance of no noise
    expected = pmf(certified.queries[0].vectors[0].vector.law, 0)
    assert abs(_advantage(guess) - expected) <= SLACK
