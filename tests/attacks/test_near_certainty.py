"""A confidence so near to 1 that a float is 1: it was paid for, and then no error bar could be made."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest

import lapwing
from lapwing import Marginals, RangeTree
from lapwing.catalog.confidences import CONFIDENCE_MAX
from lapwing.demo import write_demo
from lapwing.errors import LapwingError

COUNT = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"
STATEMENTS = [
    COUNT,
    "SELECT sex, AVG(birth_year) AS mean FROM patients GROUP BY sex",
    "SELECT MEDIAN(birth_year) AS middle FROM patients",
    "SELECT COUNT(*) * 1.0 / SUM(birth_year) AS ratio FROM patients",
    "SELECT region, COUNT(*) AS n FROM visits JOIN patients USING (patient_id) GROUP BY ROLLUP (region)",
]
TOO_SURE = ["0.99999999999999999999", 0.9999999999999999, Fraction(10**10 - 1, 10**10), 1]


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lapwing.DataSet]:
    base = tmp_path_factory.mktemp("sure")
    write_demo(base / "clinic", patients=100)
    with lapwing.open(base / "clinic", home=base / "home") as data_set:
        data_set.prepare(accept_losses=True)
        yield data_set


@pytest.mark.parametrize("confidence", TOO_SURE, ids=str)
def test_what_cannot_be_shown_is_not_paid_for(clinic: lapwing.DataSet, confidence: float | str | Fraction) -> None:
    before = clinic.budget.spent
    for act in (clinic.ask, clinic.explain):
        with pytest.raises(LapwingError) as refusal:
            act(COUNT, epsilon="0.01", confidence=confidence)
        assert refusal.value.code == "confidence-invalid"
    assert clinic.budget.spent == before


def test_the_most_that_can_be_asked_has_error_bars(clinic: lapwing.DataSet) -> None:
    for sql in STATEMENTS:
        answer = clinic.ask(sql, epsilon="0.01", confidence=CONFIDENCE_MAX)
        assert all(bar is None or bar.lo <= bar.hi for bars in answer.intervals.values() for bar in bars), sql


def test_nor_is_it_read_off_a_release(clinic: lapwing.DataSet) -> None:
    released = clinic.release(Marginals("sex", "region"), RangeTree("birth_year"), name="both", epsilon="0.1", table="patients").run()
    for sql in (COUNT, "SELECT MEDIAN(birth_year) AS middle FROM patients"):
        for confidence in (float("nan"), 0.0, 0.9999999999999999, 1.0, 2.0, Fraction(10**10 - 1, 10**10)):
            with pytest.raises(LapwingError) as refusal:
                released.query(sql, confidence=confidence)
            assert refusal.value.code == "confidence-invalid"
        assert released.query(sql, confidence=CONFIDENCE_MAX).confidence == float(CONFIDENCE_MAX)
