"""Releases serve statements that are asked, where they cover them and are as accurate as what would be bought."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lapwing
from lapwing import Marginals
from lapwing.demo import write_demo
from lapwing.errors import LapwingError, Refused

COUNT = "SELECT sex, COUNT(*) AS n FROM patients WHERE birth_year >= 1980 GROUP BY sex ORDER BY sex"
WANTED = Marginals("sex", "region", "smoker", "birth_year", ways=2, bins={"birth_year": 10})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("reuse")
    write_demo(base / "clinic", patients=3_000)
    with lapwing.open(base / "clinic", home=base / "home") as data_set:
        data_set.prepare(accept_losses=True)
        data_set.release(WANTED, name="people", epsilon="0.5").run()
    return base


@pytest.fixture
def clinic(place: Path) -> Iterator[lapwing.DataSet]:
    with lapwing.open(place / "clinic", home=place / "home") as data_set:
        yield data_set


def is_served(answer: lapwing.Answer) -> bool:
    return answer.cost.free and any("served by the release 'people'" in note for note in answer.notes)


def test_a_release_serves_what_would_be_bought_with_more_noise(clinic: lapwing.DataSet) -> None:
    spent = clinic.budget.spent
    explained = clinic.explain(COUNT, epsilon="0.01")
    assert "free: the release 'people' serves it" in str(explained) and explained.to_dict()["served_by"] == "people"
    answer = clinic.ask(COUNT, epsilon="0.01")
    assert is_served(answer) and clinic.budget.spent == spent
    released = clinic.release_named("people")
    assert answer.to_arrow() == released.query(COUNT).to_arrow()
    assert answer.stored == released.terms.stored, "the receipt is for these bytes"
    assert is_served(clinic.replay(COUNT, epsilon="0.01")), "what costs nothing needs no earlier answer"


def test_sub_totals_have_to_be_as_accurate_too(clinic: lapwing.DataSet) -> None:
    """The total of a release of pairs is the mean over few tables; a fresh one is measured apart."""
    cube = "SELECT region, smoker, COUNT(*) AS n FROM patients GROUP BY CUBE(region, smoker)"
    assert clinic.explain(cube, epsilon="0.1").cost.free
    assert not clinic.explain(cube, epsilon="0.24").cost.free
    assert clinic.explain(cube, epsilon="0.24", reuse="only").cost.free


def test_the_words_and_the_argument_say_who_may_serve(clinic: lapwing.DataSet) -> None:
    spent = clinic.budget.spent
    for sql, reuse in ((COUNT, "only"), (f"{COUNT} WITH PRIVACY (reuse = only)", None), (f"{COUNT} WITH PRIVACY (reuse = only)", "only")):
        assert is_served(clinic.ask(sql, epsilon=None if reuse is None else "2", reuse=reuse))
    explained = clinic.ask(f"EXPLAIN PRIVACY {COUNT} WITH PRIVACY (reuse = only)").table.to_pylist()
    assert any("the release 'people' serves it" in str(row) for row in explained)
    assert clinic.budget.spent == spent
    with pytest.raises(Refused) as refusal:
        clinic.ask(f"{COUNT} WITH PRIVACY (reuse = only)", reuse="never")
    assert refusal.value.code == "privacy-contradiction"
    with pytest.raises(Refused) as refusal:
        clinic.ask(COUNT, reuse="sometimes")
    assert refusal.value.code == "privacy-words"


def test_what_is_replayed_says_as_well_who_may_serve(clinic: lapwing.DataSet) -> None:
    assert is_served(clinic.replay(COUNT, epsilon="2", reuse="only")), "though a fresh answer would be more accurate"
    with pytest.raises(LapwingError) as refusal:
        clinic.replay(COUNT, epsilon="0.01", reuse="never")
    assert refusal.value.code == "not-answered-before"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT COUNT(*) FROM patients WHERE birth_year = 1981", "distinguishes what the release does not"),
        ("SELECT COUNT(*) FROM patients WHERE sex = 'f' AND smoker AND region = 'north'", "no measured table has"),
        ("SELECT MAX(birth_year) FROM patients", "MAX cannot be computed from counts and sums of cells"),
        ("SELECT COUNT(*) FROM visits", "no release of this version answers it"),
        (
            "SELECT COUNT(*) FROM patients WHERE region IN (SELECT region FROM patients GROUP BY region ORDER BY COUNT(*) DESC LIMIT 1)",
            "another answer decides which rows count",
        ),
    ],
)
def test_only_refuses_what_no_release_covers_with_the_reason(clinic: lapwing.DataSet, sql: str, reason: str) -> None:
    spent = clinic.budget.spent
    with pytest.raises(Refused) as refusal:
        clinic.ask(sql, reuse="only")
    assert refusal.value.code == "release-not-covered" and reason in refusal.value.message
    assert clinic.budget.spent == spent


def test_a_more_accurate_answer_is_bought_and_comes_first_from_then_on(clinic: lapwing.DataSet) -> None:
    sql, spent = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region", clinic.budget.spent
    never = clinic.ask(sql, epsilon="0.02", reuse="never")
    assert not never.cost.free and clinic.budget.spent != spent
    again = clinic.ask(sql, epsilon="0.02")
    assert again.table == never.table and not is_served(again), "what was bought before comes first"
    assert "serves it" not in str(clinic.explain(sql, epsilon="0.02"))
    assert is_served(clinic.ask(sql, epsilon="0.01"))
    fresh = clinic.ask(sql, epsilon="1.25")
    assert not fresh.cost.free and not is_served(fresh), "it has less noise than the release"


def test_a_target_error_is_served_where_the_bars_are_short_enough(clinic: lapwing.DataSet) -> None:
    spent = clinic.budget.spent
    bars = clinic.ask("SELECT smoker, COUNT(*) AS n FROM patients GROUP BY smoker", reuse="only").intervals["n"]
    longest = max((bar.hi - bar.lo) / 2 for bar in bars if bar is not None)
    asked = "SELECT smoker, COUNT(*) AS n FROM patients GROUP BY smoker WITH PRIVACY (error = {error})"
    assert is_served(clinic.ask(asked.format(error=round(longest + 2))))
    assert "serves it" in str(clinic.explain(asked.format(error=round(longest + 2))))
    assert clinic.budget.spent == spent
    assert "serves it" not in str(clinic.explain(asked.format(error=max(round(longest / 3), 1))))


def test_scaled_groups_and_other_tables_are_bought_as_before(clinic: lapwing.DataSet) -> None:
    assert "serves it" not in str(clinic.explain(COUNT, epsilon="0.01", scaled_groups=True))
    assert "serves it" not in str(clinic.explain("SELECT COUNT(*) FROM visits", epsilon="0.01"))
