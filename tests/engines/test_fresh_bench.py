"""The instruments for events and releases in small: they run, compare with the truth of the source, and see what they are to see."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from benchmarks.coverage_laws import Cell, Measurement, measured, read, report, summary, written
from benchmarks.events import POSTGRES, WEB, asked, write_web
from benchmarks.fresh_laws import LAWS, QUESTIONS, bare, write_events
from benchmarks.release_quality import coverage, distances, named_world, tables, visits, wide
from benchmarks.same_answers import WORLDS, compare, write
from benchmarks.useful import beside_best

import lapwing

USERS = 150


@pytest.mark.parametrize("law", LAWS)
def test_rows_of_a_law_repeat_and_lose_nothing_when_prepared(tmp_path: Path, law: str) -> None:
    found, most = [], 0
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_events(tmp_path / name, law=law, users=USERS, copy=0)
        with bare(tmp_path / name) as rows:
            found.append(rows.execute("SELECT COUNT(*), SUM(amount), MAX(hour) FROM events").fetchall())
            most = rows.execute("SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM events GROUP BY user_id)").fetchall()[0][0]
    assert found[0] == found[1]
    with lapwing.open(tmp_path / "one", home=tmp_path / "home") as data_set:
        data_set.prepare()
        table = next(table for table in data_set.curator.declaration.tables if table.name == "events")
        assert most <= (table.rows_per_unit_max or 0)


def test_answers_are_measured_read_again_and_put_beside_the_best() -> None:
    questions = [question for question in QUESTIONS if question.name in ("count", "count by region", "median")]
    found = list(measured(law="files", users=USERS, copy=0, draws=1, epsilons=["1"], questions=questions))
    assert [one.question for one in found] == ["count", "count by region", "median"]
    assert sum(cell.truth for cell in found[0].cells) == sum(cell.truth for cell in found[1].cells)
    beside = list(beside_best(found))
    assert [one.question for one in beside] == ["count", "count by region"]
    assert all(one.error_best > 0 for one in beside)


def test_what_is_written_is_read_and_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [Cell("a", 100.0, 101.0, 95.0, 107.0), Cell("b", 100.0, 130.0, 120.0, 140.0), Cell("c", 5.0, None, None, None)]
    one = Measurement("poisson", 10, 0, "1", "count by region", cells)
    (tmp_path / "found.jsonl").write_text(written(one) + "\n", encoding="utf-8")
    assert read(tmp_path / "found.jsonl") == [one]
    assert summary([one])[:3] == ["3", "1", "50.0%"]
    report([one])
    assert "COUNT by region (12)" in capsys.readouterr().out


def test_events_are_asked_in_both_dialects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_web(tmp_path, users=200, rows=3_000)
    chosen = [question for question in (*WEB, *POSTGRES) if question.name.split()[0] in ("W9", "P2")]
    with duckdb.connect() as rows, lapwing.open(tmp_path, home=tmp_path / "home") as data_set:
        rows.execute(f"CREATE VIEW events AS SELECT * FROM '{tmp_path}/events.parquet'")
        data_set.prepare()
        asked(data_set, rows, chosen, "0.5", 2)
    said = capsys.readouterr().out
    assert "W9 views by device | views | 4 of 3" in said
    assert "P2 active by month | mau" in said


def test_releases_are_judged(capsys: pytest.CaptureFixture[str]) -> None:
    named = named_world(None, binned=True)
    assert max(distances(named.world, named.world.rows, 2)) == 0
    tables(named, epsilons=["1"], methods=["independent"], learn="")
    coverage(named, epsilons=["1"], questions=5, seed=1, columns=4)
    wide(columns=3, rows=300, values=3, epsilons=["1"], method="independent")
    visits(patients=200, epsilon="0.2")
    said = capsys.readouterr().out
    for title in ("Synthetic tables: few rows", "By sort of question", "3 columns of 3 values", "release, bound chosen"):
        assert title in said


@pytest.mark.unseeded("replaces the source itself")
def test_the_same_code_gives_the_same_answers_and_a_difference_is_seen(tmp_path: Path) -> None:
    hits = next(world for world in WORLDS if world.name == "hits")
    files = [tmp_path / "one.jsonl", tmp_path / "other.jsonl"]
    for file in files:
        write(file, data=tmp_path / "data", asked_most=4, chosen=[hits.name])
    assert compare(*files, shown=5)
    lines = [json.loads(line) for line in files[1].read_text(encoding="utf-8").splitlines()]
    next(line for line in lines if line["step"] == "ask")["exact"]["confidence"] = 0.5
    files[1].write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert not compare(*files, shown=5)
