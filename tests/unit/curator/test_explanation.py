"""EXPLAIN PRIVACY reads well: names instead of numbers of vectors, no exponents, lines that fit; and notes say what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.answers.display.number_format import figure, share_text, shortened
from lapwing.demo import write_demo
from lapwing.errors import Refused
from tests.unit.sql.accepted import ACCEPTED

LINE_LENGTH_MAX = 120
LISTED = {name: text for name, text in ACCEPTED.items() if re.fullmatch(r"c\d\d", name)}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> lw.DataSet:
    directory: Path = tmp_path_factory.mktemp("explained")
    write_demo(directory / "clinic", patients=1_000)
    opened = lw.open(directory / "clinic", home=directory / "home")
    opened.prepare()
    return opened


@pytest.mark.parametrize(
    ("value", "text"),
    [(16_412.7, "16,410"), (0.04321, "0.04321"), (12.0, "12"), (0.0, "0"), (1.25e7, "12,500,000"), (-3.14159, "-3.142"), (1e20, "1e+20")],
)
def test_figures(value: float, text: str) -> None:
    assert figure(value) == text


def test_small_shares_are_not_nothing() -> None:
    assert (share_text(0.0), share_text(0.000_013), share_text(0.0014)) == ("0.00%", "less than 0.01%", "0.14%")


def test_long_texts_are_cut() -> None:
    assert shortened("a\n  b", 5) == "a b" and shortened("abcdefgh", 5) == "abcd…"


def test_every_statement_of_the_list_reads_well(clinic: lw.DataSet) -> None:
    assert len(LISTED) >= 45
    for name, text in LISTED.items():
        explained = clinic.explain(text)
        for label, line in explained.lines:
            assert len(line) + 11 <= LINE_LENGTH_MAX, (name, line)
            assert not re.search(r"\bv\d\b|\de[+-]\d", line.replace("rho ", "")) or label == "price", (name, line)
            assert "aggregate 1" not in line, (name, line)


def test_parts_are_named_by_their_subqueries(clinic: lw.DataSet) -> None:
    lines = clinic.explain("SELECT (SELECT COUNT(*) FROM patients WHERE smoker) * 1.0 / (SELECT COUNT(*) FROM patients) AS share").lines
    named = [line for line in lines if line[0].startswith("part")]
    assert named == [("part 1", "SELECT COUNT(*) FROM patients WHERE smoker"), ("part 2", "SELECT COUNT(*) FROM patients")]


def test_units_that_are_counted_are_not_said_to_be_bounded_by_rows(clinic: lw.DataSet) -> None:
    (bounding,) = [line for label, line in clinic.explain("SELECT COUNT(DISTINCT patient_id) FROM visits").lines if label == "bounding"]
    assert "rows it has" in bounding and "ranked" not in bounding


def test_a_predicted_loss_is_never_more_than_there_is(clinic: lw.DataSet) -> None:
    """On a small data set the bought histogram is mostly noise; what is predicted from it must still make sense."""
    answer = clinic.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.01")
    shares = [float(share) for note in answer.notes if "above the bound" in note for share in re.findall(r"([\d.]+)%", note)]
    assert len(shares) == 2 and 0 <= shares[0] <= shares[1] <= 100


def test_totals_of_discovered_groups_say_what_they_add_up(clinic: lw.DataSet) -> None:
    text = "SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY ROLLUP (drug)"
    assert any(label == "totals" and "hidden" in line for label, line in clinic.explain(text).lines)
    assert any("not those that stay hidden" in note for note in clinic.ask(text, epsilon=1).notes)


@pytest.mark.parametrize(
    ("text", "code", "pointed"),
    [
        ("SELECT income / 3 AS third, COUNT(*) FROM patients GROUP BY third", "groups-by-real", "income / 3"),
        ("SELECT SUM(cost * cost * cost * cost * cost) FROM visits", "range-too-wide", "SUM(cost * cost * cost * cost * cost)"),
    ],
)
def test_a_refusal_of_planning_points_into_the_text(clinic: lw.DataSet, text: str, code: str, pointed: str) -> None:
    with pytest.raises(Refused) as caught:
        clinic.explain(text)
    span = caught.value.span
    assert caught.value.code == code and span is not None and text[span.start : span.end] == pointed


def test_a_clamped_sum_of_units_is_said(clinic: lw.DataSet) -> None:
    text = "SELECT AVG(total) AS a FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) AS s"
    (clamping,) = [line for label, line in clinic.explain(text, epsilon="0.2").lines if label == "clamping"]
    end = re.search(r"at most ([\d,]+)", clamping)
    assert end and int(end[1].replace(",", "")) < 1_000_000
    assert any(f"above {end[1]} count as that much" in note for note in clinic.ask(text, epsilon="0.2").notes)


def test_the_bound_of_a_sum_is_in_its_own_units(clinic: lw.DataSet) -> None:
    """Not in the finer units of the grid on which it is summed."""
    explained = clinic.explain("SELECT SUM(cost) FROM visits")
    (bounding,) = [line for label, line in explained.lines if label == "bounding"]
    found = re.fullmatch(r"clipped: each patient adds at most ([\d,.]+) to the sum; one with more is scaled down", bounding)
    assert found is not None, bounding
    (bound,) = explained.to_dict()["parts"][0]["caps"].values()
    assert float(found[1].replace(",", "")) == pytest.approx(bound, rel=0.001)
