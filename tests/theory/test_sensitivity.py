"""Sensitivities found by enumeration agree with what the textbook proves, and refute what it does not."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lapwing.errors import LapwingError
from lapwing.kernel.neighbours import Neighbours
from lapwing.theory.databases import Histogram, Population, Universe, adjacent, databases, size, without_users
from lapwing.theory.sensitivity import Norm, difference, local_sensitivity, sensitivity, sensitivity_over

VALUES = Universe((-2, 1, 3))
ROWS_MAX = 3


def histogram(database: Histogram) -> Histogram:
    return database


def total(database: Histogram) -> int:
    return sum(VALUES.rows(database))


def mean(database: Histogram) -> Fraction:
    return Fraction(total(database), size(database)) if size(database) else Fraction(0)


@pytest.mark.parametrize(
    ("relation", "l1", "l2_squared", "linf"), [(Neighbours.UNBOUNDED, 1, 1, 1), (Neighbours.BOUNDED, 2, 2, 1)], ids=["unbounded", "bounded"]
)
def test_a_histogram_moves_by_one_or_two(relation: Neighbours, l1: int, l2_squared: int, linf: int) -> None:
    for norm, expected in ((Norm.L1, l1), (Norm.L2_SQUARED, l2_squared), (Norm.LINF, linf)):
        found = sensitivity(histogram, VALUES, relation, size_max=ROWS_MAX, norm=norm)
        assert found.value == expected
        assert found.witness is not None
        assert adjacent(*found.witness, relation)
        assert difference(*found.witness, norm) == expected
        assert norm.value in str(found)


def test_a_sum_moves_by_the_largest_value_or_by_the_range() -> None:
    assert sensitivity(total, VALUES, Neighbours.UNBOUNDED, size_max=ROWS_MAX, norm=Norm.L1).value == 3
    assert sensitivity(total, VALUES, Neighbours.BOUNDED, size_max=ROWS_MAX, norm=Norm.L1).value == 5


def test_a_mean_moves_by_the_range_over_n_when_n_is_fixed() -> None:
    found = sensitivity_over(
        mean,
        (
            (x, y)
            for x in databases(VALUES, size_max=3)
            for y in databases(VALUES, size_max=3)
            if size(x) == 3 and adjacent(x, y, Neighbours.BOUNDED)
        ),
        norm=Norm.L1,
    )
    assert found.value == Fraction(5, 3)


def test_the_local_sensitivity_is_at_most_the_global_one_and_attains_it() -> None:
    whole = sensitivity(mean, VALUES, Neighbours.UNBOUNDED, size_max=ROWS_MAX, norm=Norm.L1)
    local = [
        local_sensitivity(mean, x, Neighbours.UNBOUNDED, size_max=ROWS_MAX, norm=Norm.L1).value
        for x in databases(VALUES, size_max=ROWS_MAX)
    ]
    assert max(local) == whole.value
    assert min(local) < whole.value


def test_a_users_sensitivity_is_that_of_all_their_rows() -> None:
    population = Population(Universe(("visit",)), users=2, rows_per_user_max=3)
    by_row = sensitivity_over(without_users, population.row_pairs(Neighbours.UNBOUNDED), norm=Norm.L1)
    by_user = sensitivity_over(without_users, population.user_pairs(Neighbours.UNBOUNDED), norm=Norm.L1)
    assert by_row.value == 1
    assert by_user.value == 3


def test_a_constant_has_no_witness() -> None:
    found = sensitivity(lambda _: 7, VALUES, Neighbours.UNBOUNDED, size_max=2, norm=Norm.LINF)
    assert found.value == 0
    assert found.witness is None
    assert "no pair" in str(found)


def test_inexact_or_ragged_answers_are_refused() -> None:
    with pytest.raises(LapwingError) as caught:
        sensitivity(lambda x: 0.5, VALUES, Neighbours.UNBOUNDED, size_max=1, norm=Norm.L1)  # type: ignore[arg-type,return-value]
    assert caught.value.code == "number-invalid"
    with pytest.raises(LapwingError) as caught:
        sensitivity(VALUES.rows, VALUES, Neighbours.UNBOUNDED, size_max=1, norm=Norm.L1)
    assert caught.value.code == "query-invalid"
