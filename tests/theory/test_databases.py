"""Databases, their distance, and complete lists of neighbours."""

from __future__ import annotations

import math
from collections import deque
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import LapwingError
from lapwing.kernel.neighbours import Neighbours
from lapwing.theory.databases import (
    DATABASES_MAX,
    Histogram,
    Population,
    Universe,
    adjacent,
    databases,
    distance,
    group_pairs,
    neighbouring_pairs,
    neighbours,
    size,
    without_users,
)

COLOURS = Universe(("red", "green", "blue"))


@given(st.lists(st.sampled_from(COLOURS.records), max_size=12))
def test_the_two_forms_of_a_database_convert_into_each_other(rows: list[str]) -> None:
    histogram = COLOURS.histogram(rows)
    assert sorted(COLOURS.rows(histogram)) == sorted(rows)
    assert COLOURS.histogram(COLOURS.rows(histogram)) == histogram
    assert COLOURS.histogram(reversed(rows)) == histogram
    assert size(histogram) == len(rows)


def test_the_textbooks_example_of_a_histogram() -> None:
    answers = Universe(("+", "-"))
    assert answers.histogram(["-", "+", "-"]) == (1, 2)
    assert adjacent((2, 3), (2, 2), Neighbours.UNBOUNDED)
    assert not adjacent((2, 3), (3, 2), Neighbours.UNBOUNDED)
    assert adjacent((2, 3), (3, 2), Neighbours.BOUNDED)
    assert not adjacent((2, 3), (2, 1), Neighbours.BOUNDED), "at distance 2, but of another size"


@pytest.mark.parametrize("relation", Neighbours)
def test_no_database_is_its_own_neighbour(relation: Neighbours) -> None:
    for database in databases(COLOURS, size_max=3):
        assert not adjacent(database, database, relation)
        assert database not in set(neighbours(database, relation, size_max=3))


def test_all_databases_are_listed_once() -> None:
    listed = list(databases(COLOURS, size_max=4))
    assert len(listed) == len(set(listed)) == math.comb(4 + 3, 3)
    assert set(listed) == {counts for counts in product(range(5), repeat=3) if sum(counts) <= 4}


@pytest.mark.parametrize("relation", Neighbours)
def test_all_pairs_of_neighbours_are_listed_once(relation: Neighbours) -> None:
    everything = list(databases(COLOURS, size_max=3))
    by_definition = {frozenset(pair) for pair in combinations(everything, 2) if adjacent(*pair, relation)}
    listed = list(neighbouring_pairs(COLOURS, relation, size_max=3))
    assert len(listed) == len(by_definition)
    assert {frozenset(pair) for pair in listed} == by_definition
    for x in everything:
        assert sorted(neighbours(x, relation, size_max=3)) == sorted(y for y in everything if adjacent(x, y, relation))


def _links(start: Histogram, relation: Neighbours) -> dict[Histogram, int]:
    """How many links the shortest chain of neighbours to each database has, breadth first."""
    links, waiting = {start: 0}, deque([start])
    while waiting:
        x = waiting.popleft()
        for y in neighbours(x, relation, size_max=3):
            if y not in links:
                links[y] = links[x] + 1
                waiting.append(y)
    return links


@pytest.mark.parametrize("relation", Neighbours)
def test_a_group_of_k_is_a_shortest_chain_of_k_neighbours(relation: Neighbours) -> None:
    chains = {x: _links(x, relation) for x in databases(COLOURS, size_max=3)}
    for k in (1, 2, 3):
        expected = {frozenset((x, y)) for x, links in chains.items() for y, count in links.items() if count == k}
        assert expected
        assert {frozenset(pair) for pair in group_pairs(COLOURS, relation, size_max=3, group_size=k)} == expected


def test_users_and_rows_are_different_units() -> None:
    population = Population(Universe(("Monday", "Tuesday")), users=2, rows_per_user_max=2)
    everything = list(population.databases())
    assert len(everything) == len(set(everything)) == 6**2
    for relation in Neighbours:
        users, rows = list(population.user_pairs(relation)), list(population.row_pairs(relation))
        assert len({frozenset(pair) for pair in users}) == len(users)
        assert len({frozenset(pair) for pair in rows}) == len(rows)
        for x, y in (*users, *rows):
            assert sum(a != b for a, b in zip(x, y, strict=True)) == 1
        assert all(adjacent(without_users(x), without_users(y), relation) for x, y in rows)
        assert max(distance(without_users(x), without_users(y)) for x, y in users) == (2 if relation is Neighbours.UNBOUNDED else 4)
    assert {frozenset(pair) for pair in population.user_pairs(Neighbours.UNBOUNDED)} < {
        frozenset(pair) for pair in population.user_pairs(Neighbours.BOUNDED)
    }


def test_what_is_no_database_is_refused() -> None:
    with pytest.raises(LapwingError) as caught:
        Universe(("a", "a"))
    assert caught.value.code == "universe-invalid"
    with pytest.raises(LapwingError) as caught:
        Population(COLOURS, users=0, rows_per_user_max=1)
    assert caught.value.code == "universe-invalid"
    for histogram in ((1, 2), (1, 2, -1), (1, 2, True)):
        with pytest.raises(LapwingError) as caught:
            COLOURS.rows(histogram)
        assert caught.value.code == "database-invalid"
    with pytest.raises(LapwingError) as caught:
        next(databases(COLOURS, size_max=-9))
    assert caught.value.code == "database-invalid"
    with pytest.raises(LapwingError) as caught:
        COLOURS.histogram(["white"])
    assert caught.value.code == "database-invalid"
    assert "white" not in str(caught.value)
    with pytest.raises(LapwingError) as caught:
        distance((1, 2), (1, 2, 3))
    assert caught.value.code == "database-invalid"


def test_an_enumeration_has_a_limit() -> None:
    rows = 1
    while math.comb(rows + 3, 3) <= DATABASES_MAX:
        rows += 1
    assert next(databases(COLOURS, size_max=rows - 1)) == (0, 0, 0)
    for too_many in (
        databases(COLOURS, size_max=rows),
        group_pairs(COLOURS, Neighbours.BOUNDED, size_max=rows // 2, group_size=1),
        Population(COLOURS, users=12, rows_per_user_max=2).databases(),
    ):
        with pytest.raises(LapwingError) as caught:
            next(iter(too_many))
        assert caught.value.code == "enumeration-too-large"
