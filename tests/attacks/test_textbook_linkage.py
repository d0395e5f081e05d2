"""Linkage (D1): names come back by joining on ordinary attributes; through Lapwing small cells are hidden, or drowned in noise.

Each statistical test fails by chance with at most 1e-6.
"""

from __future__ import annotations

import math
import random
import secrets
from fractions import Fraction

import pytest

from lapwing.errors import LapwingError
from lapwing.theory.attacks.bounds import alarm_at, success_max
from lapwing.theory.attacks.linkage import Quasi, link_counts, link_rows, unique_people
from lapwing.theory.guarantees import Guarantee
from tests.attacks.street import FALSE_ALARM, Record, Street, make_street, told

PEOPLE = 500
DIAGNOSES = ("asthma", "diabetes", "none", "ulcer")
ON = ("postcode", "born", "sex")
CELLS = "SELECT postcode, born, sex, diagnosis, ROUND(COUNT(*)) AS n FROM people GROUP BY postcode, born, sex, diagnosis"

_KNOWN = {
    "postcode": '{ type = "integer", min = 1, max = 20, null = false }',
    "born": '{ type = "integer", min = 1930, max = 2009, null = false }',
    "sex": '{ type = "text", values = ["f", "m"], null = false }',
}
DECLARED = {**_KNOWN, "diagnosis": '{ type = "text", values = ["asthma", "diabetes", "none", "ulcer"], null = false }'}
OPEN = {**_KNOWN, "diagnosis": '{ type = "text" }'}


def _rows() -> list[Record]:
    rng = random.Random(40)
    return [
        {"postcode": rng.randint(1, 20), "born": rng.randint(1930, 2009), "sex": rng.choice("fm"), "diagnosis": secrets.choice(DIAGNOSES)}
        for _ in range(PEOPLE)
    ]


@pytest.fixture(scope="module")
def rows() -> list[Record]:
    return _rows()


@pytest.fixture(scope="module")
def register(rows: list[Record]) -> dict[str, Quasi]:
    """What everybody knows: names and where, when and as what they were born. The diagnosis is not in it."""
    return {f"name {i}": tuple(row[column] for column in ON) for i, row in enumerate(rows)}


@pytest.fixture(scope="module")
def truth(rows: list[Record]) -> dict[str, str]:
    return {f"name {i}": row["diagnosis"] for i, row in enumerate(rows)}


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory, rows: list[Record]) -> Street:
    return make_street(tmp_path_factory.mktemp("declared"), rows, DECLARED)


def _table(answered: list[Record]) -> dict[tuple[Quasi, str], int]:
    return {(tuple(row[column] for column in ON), row["diagnosis"]): row["n"] for row in answered}


def _right(linked: dict[str, str], truth: dict[str, str]) -> int:
    return sum(truth[name] == diagnosis for name, diagnosis in linked.items())


def test_rows_without_names_get_them_back(rows: list[Record], register: dict[str, Quasi], truth: dict[str, str]) -> None:
    linked = link_rows(rows, register, on=ON, secret="diagnosis")
    assert len(linked) > 0.8 * PEOPLE and linked == {name: truth[name] for name in unique_people(register)}


def test_exact_counts_of_small_cells_are_no_better(declared: Street, register: dict[str, Quasi], truth: dict[str, str]) -> None:
    linked = link_counts(_table(declared.exact(CELLS)), register)
    assert linked == {name: truth[name] for name in unique_people(register)}
    assert len(linked) > 0.8 * PEOPLE


def test_through_lapwing_cells_with_open_keys_are_hidden(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Record], register: dict[str, Quasi]
) -> None:
    """A cell of one person is shown with a chance of at most 2^-40 in all, so 500 of them with at most 5e-10."""
    street = make_street(tmp_path_factory.mktemp("open"), rows, OPEN)
    with street.open(epsilon=1, delta='"2^-40"') as data:
        answer = data.ask(CELLS, epsilon=1)
    assert answer.table.column_names == [*ON, "diagnosis", "n"]
    assert link_counts(_table(told(answer)), register, least=-math.inf) == {}


def _right_through_lapwing(street: Street, register: dict[str, Quasi], truth: dict[str, str], *, epsilon: int) -> int:
    with street.open(epsilon=epsilon) as data:
        cells = _table(told(data.ask(CELLS, epsilon=epsilon)))
    assert len(cells) == 20 * 80 * 2 * len(DIAGNOSES), "every declared cell is there, the empty ones too"
    linked = link_counts(cells, register, least=-math.inf)
    assert linked.keys() == unique_people(register).keys()
    return _right(linked, truth)


def test_through_lapwing_the_largest_noisy_cell_is_a_guess_within_the_bound(
    declared: Street, register: dict[str, Quasi], truth: dict[str, str]
) -> None:
    """Four diagnoses, all as likely, and epsilon 1: at most e / (e + 3), 48 %, for any attack."""
    people = len(unique_people(register))
    allowed = alarm_at(Guarantee.of_epsilon(Fraction(1)), people=people, false_alarm=FALSE_ALARM, choices=4)
    assert people * success_max(Guarantee.of_epsilon(Fraction(1)), choices=4) < allowed < people
    assert _right_through_lapwing(declared, register, truth, epsilon=1) < allowed


def test_the_same_test_sees_too_little_noise(declared: Street, register: dict[str, Quasi], truth: dict[str, str]) -> None:
    people = len(unique_people(register))
    allowed = alarm_at(Guarantee.of_epsilon(Fraction(1)), people=people, false_alarm=FALSE_ALARM, choices=4)
    assert _right_through_lapwing(declared, register, truth, epsilon=8) >= allowed


def test_people_who_share_their_attributes_are_not_linked() -> None:
    register: dict[str, Quasi] = {"a": (1, "f"), "b": (1, "f"), "c": (2, "m"), "d": (3, "m"), "e": (4, "f")}
    rows = [{"p": 2, "s": "m", "x": "red"}, {"p": 3, "s": "m", "x": "blue"}, {"p": 3, "s": "m", "x": "red"}, {"p": 1, "s": "f", "x": "red"}]
    assert link_rows(rows, register, on=("p", "s"), secret="x") == {"c": "red"}
    counts: dict[tuple[Quasi, str], float] = {((2, "m"), "red"): 0.4, ((2, "m"), "blue"): 0.9, ((1, "f"), "red"): 1, ((3, "m"), "red"): 0.1}
    assert link_counts(counts, register) == {"c": "blue"}
    assert link_counts(counts, register, least=-math.inf) == {"c": "blue", "d": "red"}
    with pytest.raises(LapwingError, match="attack-input"):
        link_rows([{"p": 2}], register, on=("p", "s"), secret="x")
