"""Quantiles as an analyst sees them: one charge for many, a bar in values, a note in ranks, the same answer again for nothing."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.answers.notes.quantiles import answered_as
from lapwing.asking.bound_statement import bound_statement
from lapwing.curator.stored_tables import decode, encode
from lapwing.errors import LapwingError, Refused
from lapwing.kernel.certify import certify
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.ir import Grouped, Plan, QuantileSet
from lapwing.kernel.quantile_tree import AtShare, FromGreatest, FromLeast, Target
from lapwing.kernel.release import ChosenQuantiles, NoisyTable, Released, rank_line
from tests.properties import limit_world


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> lw.DataSet:
    directory: Path = tmp_path_factory.mktemp("quantiles")
    limit_world.write(directory / "data", neighbours="unbounded", delta='"2^-40"', seed=2)
    opened = lw.open(directory / "data", home=directory / "home")
    opened.prepare()
    return opened


NINE = ", ".join(f"QUANTILE_CONT(cost, 0.{number})" for number in range(1, 10))


def test_nine_quantiles_cost_what_one_does(people: lw.DataSet) -> None:
    one, nine = people.ask("SELECT MEDIAN(cost) FROM visits", epsilon=10**6), people.ask(f"SELECT {NINE} FROM visits", epsilon=10**6)
    assert one.cost.epsilon == nine.cost.epsilon
    (row,) = nine.table.to_pylist()
    assert list(row.values()) == sorted(row.values()) and all(0 <= value <= 4 for value in row.values())


def test_an_answer_asked_again_is_the_same_and_free(people: lw.DataSet) -> None:
    text = "SELECT sex, MEDIAN(weight), MAX(grade), COUNT(*) FROM people GROUP BY sex"
    first, second = people.ask(text, epsilon=3), people.ask(text, epsilon=3)
    assert first.table.equals(second.table) and second.cost.free and not first.cost.free


def test_there_is_a_note_in_ranks_and_an_error_bar(people: lw.DataSet) -> None:
    answer = people.ask("SELECT sex, MEDIAN(weight) AS m, COUNT(*) AS n FROM people GROUP BY sex", epsilon=10**6)
    assert None not in answer.intervals["m"]
    for row, bar in zip(answer.table.to_pylist(), answer.intervals["m"], strict=True):
        assert bar is not None and bar.lo <= row["m"] <= bar.hi
    (note,) = [note for note in answer.notes if "ranks" in note]
    assert note.startswith("MEDIAN(weight) is answered as the 50 % quantile of each group, within ")
    assert "selection" in str(people.explain("SELECT MIN(cost) FROM visits", epsilon=5))


def test_an_extreme_says_which_rank_it_is(people: lw.DataSet) -> None:
    notes = [people.ask("SELECT MIN(cost) FROM visits", epsilon=epsilon).notes for epsilon in (10**8, 1)]
    dear, cheap = (next(note for note in of if "answered as" in note) for of in notes)
    assert "answered as the 1st smallest value," in dear
    assert "1st smallest" not in cheap and "smallest value" in cheap


def test_the_error_cannot_be_asked_for(people: lw.DataSet) -> None:
    with pytest.raises(Refused) as refused:
        people.ask("SELECT MEDIAN(cost) FROM visits WITH PRIVACY (error = 0.1)")
    assert refused.value.code == "error-no-bar"


def test_days_and_moments_keep_their_type(people: lw.DataSet) -> None:
    (row,) = people.ask("SELECT MIN(day), MEDIAN(day), MAX(started) FROM visits", epsilon=100).table.to_pylist()
    least, middle, greatest = row.values()
    assert type(least) is datetime.date and type(middle) is datetime.datetime and type(greatest) is datetime.datetime
    assert datetime.date(2024, 1, 1) <= least <= middle.date() <= datetime.date(2024, 6, 30)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (AtShare(Fraction(1, 40)), "the 2.5 % quantile"),
        (FromLeast(1), "the 1st smallest value"),
        (FromLeast(22), "the 22nd smallest value"),
        (FromGreatest(1_013), "the 1,013th largest value"),
        (FromGreatest(103), "the 103rd largest value"),
    ],
    ids=str,
)
def test_targets_in_words(target: Target, words: str) -> None:
    assert answered_as(target) == words


def test_stored_quantiles_are_read_back_as_they_were() -> None:
    chosen = ChosenQuantiles("s0", ((1, -2), (3, 4)), Fraction(1, 100))
    released = Released("d", (NoisyTable(("k",), (("a",), (None,)), (), None, 10, (chosen,)),))
    assert decode(encode(released)) == released


def test_rows_beyond_the_bounds_lie_at_the_ends() -> None:
    line = rank_line([(-5, 2), (3, 1), (99, 1), (0, 1)], lower=0, upper=9)
    assert line.mass == 6 and line.through(0) == 3 and line.below(9) == 5


def _certified_with(people: lw.DataSet, **changes: object) -> None:
    text = "SELECT MEDIAN(cost) FROM visits"
    planned = bound_statement(people.curator, text, dialect="duckdb").plan_at(Fraction(1))
    (query,) = planned.certified.plan.queries
    item: QuantileSet = replace(query.quantiles[0], **changes)  # type: ignore[arg-type]
    certify(Plan((replace(query, quantiles=(item,)),)), people.curator.facts)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"steps": 0}, "quantile-invalid"),
        ({"lower": Fraction(5), "upper": Fraction(4)}, "quantile-invalid"),
        ({"targets": ()}, "quantile-invalid"),
        ({"scale": Fraction(1, 3)}, "scale-invalid"),
        ({"upper": Fraction(2**60)}, "range-too-wide"),
    ],
    ids=str,
)
def test_a_set_that_makes_no_sense_is_not_certified(people: lw.DataSet, changes: dict[str, object], code: str) -> None:
    with pytest.raises(Refused) as refused:
        _certified_with(people, **changes)
    assert refused.value.code == code


def test_quantiles_need_a_limit_on_rows(people: lw.DataSet) -> None:
    (query,) = (
        bound_statement(people.curator, "SELECT MEDIAN(cost) FROM visits", dialect="duckdb").plan_at(Fraction(1)).certified.plan.queries
    )
    with pytest.raises(Refused) as refused:
        certify(Plan((replace(query, bounding=Grouped(1), vectors=()),)), people.curator.facts)
    assert refused.value.code == "measure-unsupported"


def test_exact_rows_show_nothing_of_themselves(people: lw.DataSet) -> None:
    planned = bound_statement(people.curator, "SELECT MEDIAN(cost) FROM visits", dialect="duckdb").plan_at(Fraction(1))
    table = ExactTable(groups=[], vectors=[], units=None, quantiles=[{(): [(4711, 1)]}])
    assert "4711" not in repr(table) + repr(Exact([table], certified=planned.certified))


def test_an_engine_that_leaves_out_a_set_is_an_error(people: lw.DataSet) -> None:
    from lapwing.kernel.release import HowDrawn, _release_query

    certified = bound_statement(people.curator, "SELECT MEDIAN(cost) FROM visits", dialect="duckdb").plan_at(Fraction(1)).certified
    with pytest.raises(LapwingError) as refused:
        _release_query(certified.queries[0], HowDrawn(certified.facts), ExactTable(groups=[], vectors=[], units=None))
    assert refused.value.code == "engine-result"
