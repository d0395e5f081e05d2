"""Weights that learn from counts: what they say, how few updates they need, and the accuracy that the lecture notes claim."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from lapwing.kernel.accounting import LOSS_UNITS, Account, rho_for
from lapwing.kernel.count_stream import CountStream, certify_stream
from lapwing.kernel.domains import IntegerDomain, Kind
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Column, Function, Literal, call
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import issue
from lapwing.releases.weights.multiplicative_weights import CellSubset, MultiplicativeWeights
from lapwing.releases.weights.plan import PlannedWeights, WeightsRequest, other_ways, planned_weights

CELLS = 16


def facts(cells: int = CELLS) -> Facts:
    columns = {"cell": IntegerDomain(0, cells - 1, False)}
    return Facts("weights", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"rows": TableFacts(columns, 1, 10**9)}, {})


def request(alpha: Fraction, *, rows: int, starts: int = 1, confidence: Fraction = Fraction(19, 20)) -> WeightsRequest:
    return WeightsRequest("rows", ("cell",), (), alpha, starts, confidence, rows)


def cells_of(listed: list[int], cells: int = CELLS) -> CellSubset:
    counted = np.zeros(cells, dtype=np.bool_)
    counted[listed] = True
    return CellSubset((0,), counted)


def test_weights_say_whole_rows_and_learn_towards_what_they_are_told() -> None:
    weights = MultiplicativeWeights([4, 2], 800)
    half = CellSubset((1,), np.array([True, False]))
    corner = CellSubset((0, 1), np.eye(4, 2, dtype=np.bool_))
    assert (weights.estimate(half), weights.estimate(corner), weights.rows) == (400, 200, 800)
    for _ in range(20):
        weights.learn(half, 600, noise=4, least=1)
    assert 590 <= weights.estimate(half) <= 610
    assert abs(weights.probabilities().sum() - 1) < 1e-9
    weights.learn(CellSubset((), np.array(True)), 1_000, noise=4, least=1)
    assert weights.rows == 1_000, "a count of all rows says how many there are"
    weights.learn(half, 10**9, noise=0, least=1)
    assert np.isfinite(weights.probabilities()).all() and weights.estimate(half) == 1_000


def test_no_more_updates_are_needed_than_the_proof_says() -> None:
    """An opponent who always asks the question that is furthest off, with noise that always misleads."""
    rows, alpha = 60_000, Fraction(1, 10)
    planned = planned_weights(request(alpha, rows=rows), facts(8))
    exact = np.array([57_000, 2_000, 0, 0, 1_000, 0, 0, 0])
    questions = [list(each) for many in range(1, 8) for each in combinations(range(8), many)]
    weights, updates = MultiplicativeWeights([8], rows), 0
    while True:
        far = max(questions, key=lambda each: abs(int(exact[each].sum()) - weights.estimate(cells_of(each, 8))))
        count, said = int(exact[far].sum()), weights.estimate(cells_of(far, 8))
        if abs(count - said) < planned.least_apart:
            break
        misled = count + (planned.fresh_error if count < said else -planned.fresh_error)
        weights.learn(cells_of(far, 8), misled, noise=planned.fresh_error, least=planned.least_apart // 2)
        updates += 1
    assert 2 < updates <= planned.updates_max
    assert planned.updates_max == math.ceil(math.log(8) / ((planned.least_apart - 1) / rows) ** 2)
    assert 9 * math.log(8) * 100 <= planned.updates_max <= 9.1 * math.log(8) * 100


def test_the_error_that_is_asked_for_is_kept() -> None:
    for alpha, rows in ((Fraction(1, 20), 3_000), (Fraction(1, 100), 48_842), (Fraction(3, 1_000), 1_000)):
        planned = planned_weights(request(alpha, rows=rows), facts())
        assert 0 < planned.fresh_error < planned.near_error <= alpha * rows
        assert planned.fresh_error <= planned.least_apart / 2 or planned.least_apart == 1
        dearer = replace(planned.stream, of_threshold=replace(planned.stream.of_threshold, scale=planned.stream.of_threshold.scale / 2))
        assert certify_stream(dearer, facts()).cost.loss > planned.certified.cost.loss


def test_the_price_is_linear_in_starts_and_quadratic_in_the_error() -> None:
    one, ten = (planned_weights(request(Fraction(1, 50), rows=10**6, starts=starts), facts()) for starts in (1, 10))
    assert abs(ten.certified.cost.loss - 10 * one.certified.cost.loss) <= 10
    half = planned_weights(request(Fraction(1, 100), rows=10**6), facts())
    assert 3.9 < half.certified.cost.loss / one.certified.cost.loss < 4.1
    ways = other_ways(ten, facts())
    assert ways.direct_counts == ways.session // ways.direct > 10_000 and ways.ways == 1
    pure = planned_weights(request(Fraction(1, 50), rows=10**6), replace(facts(), account=Account.PURE))
    assert other_ways(pure, replace(facts(), account=Account.PURE)).release is not None


# The claim of the lecture notes: with n = O(log|Q| log|X| log(1/delta) / (alpha^2 epsilon)) rows all of Q are answered within alpha.

SIZES = [
    (16, 100, Fraction(1, 5), Fraction(1), Fraction(1, 10**6)),
    (64, 1_000, Fraction(1, 10), Fraction(1), Fraction(1, 10**6)),
    (1_024, 1_000, Fraction(1, 10), Fraction(1, 2), Fraction(1, 10**9)),
    (4_096, 100_000, Fraction(1, 20), Fraction(1), Fraction(1, 10**9)),
    (1_024, 10**9, Fraction(1, 100), Fraction(1, 10), Fraction(1, 10**12)),
]


def enough_rows(cells: int, questions: int, alpha: Fraction, epsilon: Fraction, delta: Fraction) -> PlannedWeights:
    """A session with all the starts it can need, over so many rows that it costs (epsilon, delta): all questions right, at 95 %."""
    sure, rows = 1 - Fraction(1, 20 * questions), 10**8
    probe = planned_weights(request(alpha, rows=rows, confidence=sure), facts(cells))
    whole = planned_weights(request(alpha, rows=rows, starts=probe.updates_max, confidence=sure), facts(cells))
    allowed = rho_for(epsilon=epsilon, delta=delta)
    rows = math.ceil(rows * math.sqrt(Fraction(whole.certified.cost.loss, LOSS_UNITS) / allowed) * 1.01)
    starts = planned_weights(request(alpha, rows=rows, confidence=sure), facts(cells)).updates_max
    found = planned_weights(request(alpha, rows=rows, starts=starts, confidence=sure), facts(cells))
    assert Fraction(found.certified.cost.loss, LOSS_UNITS) <= allowed
    return found


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{sizes[0]} cells, {sizes[1]} questions, alpha {float(sizes[2]):g}")
def test_as_many_rows_are_enough_as_the_notes_say(sizes: tuple[int, int, Fraction, Fraction, Fraction]) -> None:
    cells, questions, alpha, epsilon, delta = sizes
    notes = math.log(questions) * math.log(cells) * math.log(1 / delta) / float(alpha**2 * epsilon)
    assert enough_rows(*sizes).request.rows <= 40 * notes, "the constant behind the O is 40 at most"


def test_at_that_size_every_question_is_answered_within_alpha() -> None:
    planned = enough_rows(*SIZES[0])
    table, rng = facts(), np.random.default_rng(20)
    histogram = np.array([round(planned.request.rows * share) for share in (0.4, 0.3, 0.1, *[0.2 / 13] * 13)])
    certified = certify_stream(planned.stream, table)
    stream = CountStream(planned.stream, table, issue(1, certified.digest, certified.cost))
    weights = MultiplicativeWeights([CELLS], int(histogram.sum()))
    far, fresh = 0, 0
    for _ in range(SIZES[0][1]):
        listed = sorted(rng.choice(CELLS, rng.integers(1, CELLS), replace=False).tolist())
        condition = call(Function.IN, Column("cell"), *(Literal(cell, Kind.INTEGER) for cell in listed))
        count = int(histogram[listed].sum())
        exact = Exact([ExactTable(groups=[()], vectors=[[count]], units=None)], certified=planned.stream.question(condition, table))
        said = weights.estimate(cells_of(listed))
        noisy = stream.tell(condition, exact, near=said)
        if noisy is not None:
            weights.learn(cells_of(listed), noisy, noise=planned.fresh_error, least=planned.least_apart // 2)
            fresh += 1
        far = max(far, abs((said if noisy is None else noisy) - count))
    assert far <= planned.request.alpha * planned.request.rows
    assert 1 <= fresh <= planned.updates_max and stream.starts_left == planned.request.starts - fresh
