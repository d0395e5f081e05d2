"""Marks on real data: groups without rows, with one and with three, beside groups of thousands; asked for little, through every face.

What is noise and what is not is random, so most tests compare marks with the error bars beside them, which holds whatever was drawn. Groups
of thousands stand hundreds of standard deviations clear of their noise.
"""

from __future__ import annotations

import csv
import io
import json
import random
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lapwing as lw
from lapwing.answers.answer import Answer
from lapwing.answers.suppression import MARK_CONFIDENCE
from lapwing.curator.stored_tables import decode, encode
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.spread import half_width, pmf
from lapwing.statements import CellMark
from tests.support.promises import coverage

EMPTY = [f"e{number:02}" for number in range(25)]
LARGE = {"l0": 10_000, "l1": 10_000} | {f"m{number:02}": 1_000 for number in range(23)}
SMALL = {"one": 1, "three": 3}
EXCLUDED = {"shut": 5_000}
"""Has rows, none of which the statements count."""
TEAMS = sorted([*EMPTY, *LARGE, *SMALL, *EXCLUDED])


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> lw.DataSet:
    rng = random.Random(14)
    names = [name for name, rows in {**LARGE, **SMALL, **EXCLUDED}.items() for _ in range(rows)]
    rng.shuffle(names)
    scores = [None if rng.random() < 0.05 else round(min(max(rng.gauss(60, 15), 0), 100), 2) for _ in names]
    people = {
        "person": range(len(names)),
        "team": names,
        "town": [f"town {ord(name[0])}" for name in names],
        "shut": [name in EXCLUDED for name in names],
        "score": scores,
        "gain": [rng.randint(-10, 10) for _ in names],
    }
    directory = tmp_path_factory.mktemp("marks")
    file = directory / "people.parquet"
    parquet.write_table(pa.table({name: pa.array(column) for name, column in people.items()}), file)
    columns: dict[str, dict[str, Any]] = {
        "person": {"type": "key", "of": "integer"},
        "team": {"type": "text", "values": TEAMS, "null": False},
        "town": {"type": "text", "null": False},
        "shut": {"type": "boolean", "null": False},
        "score": {"type": "real", "min": 0, "max": 100, "steps": 100},
        "gain": {"type": "integer", "min": -10, "max": 10, "null": False},
    }
    return lw.open(file, unit="person", columns=columns, epsilon=10**5, rows_max=10**6, home=directory / "home")


BY_TEAM = """SELECT team, COUNT(*) AS n, SUM(score) AS total, AVG(score) AS mean, STDDEV(score) AS spread, MEDIAN(score) AS middle,
    SUM(score) / COUNT(*) AS ratio FROM people WHERE NOT shut GROUP BY team"""


def rows_of(answer: Answer) -> list[dict[str, Any]]:
    """The rows, each with the mark of every column beside it."""
    rows: list[dict[str, Any]] = answer.table.to_pylist()
    for name, marks in answer.marks.items():
        for row, mark in zip(rows, marks, strict=True):
            row[f"{name}?"] = mark
    return rows


def is_sorted(values: list[Any], *, descending: bool = False) -> bool:
    return values == sorted(values, reverse=descending)


# -- which cells are marked ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_a_count_is_marked_where_its_bar_reaches_nothing_and_its_value_is_kept(teams: lw.DataSet, epsilon: str) -> None:
    answer = teams.ask(BY_TEAM, epsilon=epsilon)
    assert set(answer.marks) == {"n", "total", "mean", "spread", "middle", "ratio"}
    for row, bar in zip(rows_of(answer), answer.intervals["n"], strict=True):
        assert bar is not None and row["n"] is not None
        assert (row["n?"] is CellMark.NOISE_ONLY) == (bar.lo <= 0), "at 95 %, the confidence of marks"


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_what_is_computed_from_noise_is_withheld_and_has_no_bar(teams: lw.DataSet, epsilon: str) -> None:
    answer = teams.ask(BY_TEAM, epsilon=epsilon)
    for place, row in enumerate(rows_of(answer)):
        for name in ("mean", "spread", "middle", "ratio"):
            assert (row[name] is None) == (row[f"{name}?"] is CellMark.MEANINGLESS), name
            if row[name] is None and name in answer.intervals:
                assert answer.intervals[name][place] is None
        if row["n?"] is CellMark.NOISE_ONLY:
            assert row["total?"] is CellMark.NOISE_ONLY and row["total"] is not None
            assert row["mean"] is row["spread"] is row["middle"] is row["ratio"] is None


def test_groups_of_thousands_are_never_marked(teams: lw.DataSet) -> None:
    for row in rows_of(teams.ask(BY_TEAM, epsilon="2")):
        if row["team"] in LARGE:
            assert [row[f"{name}?"] for name in ("n", "total", "mean", "spread", "middle", "ratio")] == [None] * 6
            assert 50 < row["mean"] < 70 and 50 < row["middle"] < 70 and 10 < row["spread"] < 20


def test_nearly_all_groups_without_rows_are_noise_only(teams: lw.DataSet) -> None:
    """Each is with a chance of at least 97.5 % (below)."""
    marks = []
    for epsilon in ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.8"):
        answer = teams.ask("SELECT team, COUNT(*) AS n FROM people WHERE NOT shut GROUP BY team", epsilon=epsilon)
        marks += [row["n?"] for row in rows_of(answer) if row["team"] in (*EMPTY, *EXCLUDED)]
    coverage("marks of empty groups").require(marks.count(CellMark.NOISE_ONLY), of=len(marks))


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(3)), DiscreteLaplace(Fraction(70)), DiscreteGaussian(Fraction(17, 2))])
def test_noise_alone_is_marked_with_a_chance_of_at_least_97_5_per_cent(law: Law) -> None:
    width = half_width(law, confidence=MARK_CONFIDENCE)
    reach = 60 * int(law.scale)
    chances = {value: pmf(law, value) for value in range(-reach, reach + 1)}
    assert sum(chance for value, chance in chances.items() if value <= width) >= 0.975
    assert sum(chance for value, chance in chances.items() if abs(value) <= width) >= 0.95, "sums of values that may be negative"


def test_a_sum_of_either_sign_is_marked_by_its_size(teams: lw.DataSet) -> None:
    answer = teams.ask("SELECT team, SUM(gain) AS gain FROM people GROUP BY team", epsilon="0.5")
    assert answer.stored is not None
    (column,) = decode(answer.stored).tables[0].columns
    width = half_width(column.law, confidence=MARK_CONFIDENCE)
    assert [mark is CellMark.NOISE_ONLY for mark in answer.marks["gain"]] == [abs(value) <= width for value in column.values]


def test_a_quantile_whose_noise_in_ranks_takes_all_ranks_is_withheld(teams: lw.DataSet) -> None:
    text = "SELECT team, COUNT(score) AS n, MEDIAN(score) AS middle, MAX(score) AS most FROM people WHERE NOT shut GROUP BY team"
    for row in rows_of(teams.ask(text, epsilon="0.02")):
        if row["team"] not in LARGE or LARGE[row["team"]] == 1_000:
            assert row["middle"] is None and row["most"] is None, "thousands of ranks"
    for row in rows_of(teams.ask(text, epsilon="4")):
        if row["team"] in LARGE:
            assert 55 < row["middle"] < 65 and 70 < row["most"] <= 100


def test_a_quantile_counts_its_rows_itself(teams: lw.DataSet) -> None:
    answer = teams.ask("SELECT team, MEDIAN(score) AS middle FROM people GROUP BY team", epsilon="1")
    assert CellMark.SIZE_UNKNOWN not in answer.marks["middle"]
    for row, bar in zip(rows_of(answer), answer.intervals["middle"], strict=True):
        assert (row["middle"] is None) == (bar is None) == (row["middle?"] is CellMark.MEANINGLESS)
        assert row["team"] not in EMPTY or row["middle"] is None
        assert row["team"] not in ("l0", "l1") or (bar is not None and bar.lo <= 60 <= bar.hi < 100)


def test_a_discovered_group_has_units_enough(teams: lw.DataSet) -> None:
    answer = teams.ask("SELECT town, MEDIAN(score) AS middle FROM people GROUP BY town", epsilon="4")
    assert answer.table.num_rows > 0 and set(answer.marks["middle"]) == {None}


def test_totals_of_many_groups_may_stand_clear_of_noise_where_the_groups_do_not(teams: lw.DataSet) -> None:
    text = "SELECT team, COUNT(*) AS n, AVG(score) AS mean FROM people GROUP BY ROLLUP (team)"
    (total,) = [row for row in rows_of(teams.ask(text, epsilon="0.5")) if row["team"] is None]
    assert total["n?"] is None and total["mean?"] is None and 50 < total["mean"] < 70


# -- what is done with them ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["n", "total", "mean", "spread", "middle", "ratio", "1000 * n", "ROUND(mean, 1)"])
@pytest.mark.parametrize("way", ["ASC", "DESC NULLS FIRST"])
def test_marked_cells_are_sorted_last_whichever_the_direction(teams: lw.DataSet, name: str, way: str) -> None:
    written = {"1000 * n": "1000 * COUNT(*)", "ROUND(mean, 1)": "ROUND(AVG(score), 1)"}.get(name, name)
    rows = rows_of(teams.ask(f"{BY_TEAM} ORDER BY {written} {way}", epsilon="0.5"))
    column = {"1000 * n": "n", "ROUND(mean, 1)": "mean"}.get(name, name)
    marked = [row[f"{column}?"] is not None for row in rows]
    assert is_sorted(marked) and True in marked and False in marked
    clear = [round(row[column], 1) for row in rows if row[f"{column}?"] is None]
    assert is_sorted(clear, descending=way != "ASC")
    assert is_sorted([row["team"] for row in rows if row[f"{column}?"] is not None]), "by their keys, not by their noise"


def test_the_other_dialect_sorts_them_last_too(teams: lw.DataSet) -> None:
    answer = teams.ask(f"{BY_TEAM} ORDER BY mean DESC LIMIT 20", epsilon="0.5", dialect="postgres")
    assert answer.marks["mean"] == [None] * 20, "where DESC puts NULL first; 25 groups are large"


def test_having_leaves_out_what_is_withheld_and_compares_what_is_kept(teams: lw.DataSet) -> None:
    rows = rows_of(teams.ask(BY_TEAM, epsilon="0.5"))
    of_mean = rows_of(teams.ask(f"{BY_TEAM} HAVING AVG(score) >= 0", epsilon="0.5"))
    assert [row["team"] for row in of_mean] == [row["team"] for row in rows if row["mean?"] is None]
    of_count = rows_of(teams.ask(f"{BY_TEAM} HAVING COUNT(*) > 0", epsilon="0.5"))
    assert [row["team"] for row in of_count] == [row["team"] for row in rows if row["n"] > 0]


def test_windows_rank_marked_cells_last_and_together(teams: lw.DataSet) -> None:
    text = """SELECT team, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place, LAG(COUNT(*)) OVER (ORDER BY team) AS before,
        COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM people WHERE NOT shut GROUP BY team ORDER BY team"""
    rows = rows_of(teams.ask(text, epsilon="0.5"))
    clear = [row for row in rows if row["n?"] is None]
    assert all(row["place"] == 1 + sum(other["n"] > row["n"] for other in clear) for row in clear)
    assert {row["place"] for row in rows if row["n?"] is not None} == {len(clear) + 1}
    assert [row["before?"] for row in rows[1:]] == [row["n?"] for row in rows[:-1]] and rows[0]["before?"] is None
    assert "place?" not in rows[0] and [row["share?"] for row in rows] == [row["n?"] for row in rows]


def test_a_subquery_a_join_and_a_union_keep_marks(teams: lw.DataSet) -> None:
    one = "SELECT team, ROUND(COUNT(*)) AS n, AVG(score) AS mean FROM people WHERE NOT shut GROUP BY team"
    plain = {row["team"]: row for row in rows_of(teams.ask(one, epsilon="0.5"))}
    nested = rows_of(teams.ask(f"SELECT * FROM ({one}) AS t ORDER BY n", epsilon="0.5"))
    assert is_sorted([row["n?"] is not None for row in nested])
    for row in nested:
        assert row == plain[row["team"]]
    other = "SELECT team, COUNT(*) AS n FROM people GROUP BY team"
    two = f"SELECT a.team, a.n * 1.0 / b.n AS share FROM ({one}) AS a JOIN ({other}) AS b USING (team)"
    rows = {row["team"]: row for row in rows_of(teams.ask(two, epsilon="1"))}
    assert all((row["share"] is None) == (row["share?"] is CellMark.MEANINGLESS) for row in rows.values())
    assert rows["shut"]["share?"] in (CellMark.NOISE_ONLY, None) and 0.9 < rows["l0"]["share"] < 1.1
    both = rows_of(teams.ask(f"{one} UNION ALL SELECT town, COUNT(*), AVG(gain) FROM people GROUP BY town", epsilon="1"))
    assert {row["n?"] for row in both} == {None, CellMark.NOISE_ONLY}


def test_aggregates_over_answers_leave_out_what_is_withheld(teams: lw.DataSet) -> None:
    one = "SELECT team, ROUND(COUNT(*)) AS n, AVG(score) AS mean FROM people WHERE NOT shut GROUP BY team"
    shown = rows_of(teams.ask(one, epsilon="0.5"))
    means = [row["mean"] for row in shown if row["mean"] is not None]
    (row,) = rows_of(teams.ask(f"SELECT AVG(mean) AS mean, MAX(mean) AS most, SUM(n) AS n FROM ({one}) AS t", epsilon="0.5"))
    assert row["mean"] == pytest.approx(sum(means) / len(means)) and row["most"] == max(means)
    assert row["n"] == sum(row["n"] for row in shown) and row["mean?"] is row["most?"] is row["n?"] is None
    by_sign = f"SELECT mean > 60 AS high, COUNT(*) AS teams, AVG(n) AS size FROM ({one}) AS t GROUP BY mean > 60"
    assert len(rows_of(teams.ask(by_sign, epsilon="0.5"))) in (2, 3)
    by_value = rows_of(teams.ask(f"SELECT n, COUNT(*) AS teams FROM ({one}) AS t GROUP BY n ORDER BY n", epsilon="0.5"))
    assert is_sorted([row["n"] for row in by_value]), "a key of a group is no cell of one row"


def test_what_stands_for_a_missing_value_is_marked_like_it(teams: lw.DataSet) -> None:
    text = """SELECT team, AVG(score) AS mean, COALESCE(AVG(score), 0) AS filled,
        CASE WHEN COUNT(*) > 500 THEN 'large' ELSE 'small' END AS size, CASE WHEN COUNT(*) > 500 THEN AVG(score) END AS of_large,
        LEAST(AVG(score), 99) AS least
        FROM people WHERE NOT shut GROUP BY team"""
    answer = teams.ask(text, epsilon="0.5")
    for place, row in enumerate(rows_of(answer)):
        assert row["filled?"] is row["mean?"] and (row["filled"] == 0) == (row["mean"] is None)
        if row["filled?"] is not None and "filled" in answer.intervals:
            assert answer.intervals["filled"][place] is None
        assert row["least?"] is row["mean?"] and (row["least"] is None) == (row["mean"] is None)
        assert "size?" not in row and row["size"] in ("large", "small")
    assert set(answer.marks["of_large"]) <= {None, CellMark.MEANINGLESS}


def test_sums_of_noise_may_stand_clear_of_it(teams: lw.DataSet) -> None:
    text = "SELECT team, COUNT(*) AS n, COUNT(*) + COUNT(score) AS both, 5 + COUNT(*) AS more FROM people WHERE NOT shut GROUP BY team"
    rows = rows_of(teams.ask(text, epsilon="0.5"))
    assert {row["both?"] for row in rows} == {None} and [row["more?"] for row in rows] == [row["n?"] for row in rows]


def test_a_ratio_of_two_single_values(teams: lw.DataSet) -> None:
    counted = "(SELECT COUNT(*) FROM people WHERE team = '{}')"
    # At epsilon 0.5 one in forty has bounds that were chosen from norms lost in noise: its bar is right, and far too long.
    (row,) = rows_of(teams.ask(f"SELECT {counted.format('l0')} * 1.0 / {counted.format('l1')} AS r", epsilon="20"))
    assert row["r?"] is None and 0.9 < row["r"] < 1.1
    (row,) = rows_of(teams.ask(f"SELECT {counted.format('l0')} * 1.0 / {counted.format('e00')} AS r", epsilon="0.5"))
    assert (row["r?"] is CellMark.MEANINGLESS) == (row["r"] is None)


# -- every face ---------------------------------------------------------------------------------------------------------------------------


def test_marks_do_not_depend_on_the_confidence_of_the_bars_nor_on_when_they_are_read(teams: lw.DataSet) -> None:
    text = f"{BY_TEAM} ORDER BY mean DESC"
    first, narrow = teams.ask(text, epsilon="0.5"), teams.ask(text, epsilon="0.5", confidence="0.5")
    assert narrow.cost.free and narrow.marks == first.marks and narrow.table == first.table and narrow.intervals != first.intervals
    assert first.stored is not None and b"mark" not in first.stored, (
        "marks are computed from what is stored, so older answers have them too"
    )
    assert encode(decode(first.stored)) == first.stored


def test_every_face_shows_them(teams: lw.DataSet) -> None:
    answer = teams.ask(BY_TEAM, epsilon="0.5")
    place = answer.marks["mean"].index(CellMark.MEANINGLESS)
    values = json.loads(json.dumps(answer.to_dict()))
    assert values["marks"]["mean"][place] == "meaningless" and values["rows"][place][3] is None
    assert "noise_only" in values["marks"]["n"] and None in values["marks"]["n"]
    frame = answer.to_pandas()
    assert list(frame.columns)[:8] == ["team", "n", "n_lo", "n_hi", "n_mark", "total", "total_lo", "total_hi"]
    assert frame["mean_mark"][place] == "meaningless" and frame["mean"].isna()[place] and frame["n_mark"].isna().any()
    listed = list(csv.DictReader(io.StringIO(answer.to_csv())))
    assert list(listed[0])[:6] == ["team", "n", "n_lo", "n_hi", "n_mark", "total"]
    assert [row["n_mark"] or None for row in listed] == values["marks"]["n"] and listed[place]["mean"] == ""
    printed = str(answer).splitlines()
    assert "NULL !" in printed[2 + place] and " ~ " in "".join(printed)
    assert any(line.startswith("~ ") for line in printed) and any(line.startswith("! ") for line in printed)
    page = answer._repr_html_()
    assert page.count("NULL !") == sum(mark is CellMark.MEANINGLESS for name in answer.marks for mark in answer.marks[name])
    assert "opacity:.5" in page


def test_a_chart_has_hollow_bars_for_noise_which_have_no_part_in_the_scale(teams: lw.DataSet) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    answer = teams.ask(f"{BY_TEAM} ORDER BY total", epsilon="0.5")
    axes: Any = answer.plot(value="total")
    for name, drawn in (("total", axes), ("mean", answer.plot(value="mean"))):
        bars = zip(answer.intervals[name], answer.marks[name], strict=True)
        highest = max(bar.hi for bar, mark in bars if bar is not None and mark is None)
        assert highest < drawn.get_ylim()[1] < 1.1 * highest
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert [label.endswith(" ~") for label in labels] == [mark is not None for mark in answer.marks["total"]]
    assert "~ too small to tell from noise" in axes.get_xlabel()
    hollow = [patch for patch in axes.patches if patch.get_facecolor()[3] == 0]
    assert len(hollow) == sum(mark is not None for mark in answer.marks["total"])
