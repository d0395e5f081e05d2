"""The second list: what becomes of every statement is as it says. Differences are named; LAPWING_WRITE_GOLDEN=1 writes them down."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from lapwing.audit.lists.conformance import Worlds
from lapwing.audit.lists.second_list import FILE, second_list
from lapwing.audit.lists.written_lists import ANSWERED, KNOWN_WRONG, ListedStatement, WrittenOutcome, WrittenScore, as_found, run_written
from lapwing.data_set import open as open_data_set
from lapwing.demo.write import write_demo
from lapwing.errors import LapwingError
from tests.meta.tree import SOURCE
from tests.support.sizes import spread
from tests.unit.cli.support import run

LIST = SOURCE / "demo" / FILE
AT_LEAST = {"bi": 57, "idioms": 119, "introspection": 20}
"""How many of each kind are answered; more is better, fewer is a fault."""


def test_every_entry_is_read() -> None:
    listed = second_list()
    assert len(listed) == LIST.read_text(encoding="utf-8").count(";\n") == 210
    assert len({item.name for item in listed}) == len(listed) and {item.kind for item in listed} == AT_LEAST.keys()


@pytest.mark.slow
def test_every_statement_is_accepted_or_refused_as_written_down(tmp_path: Path) -> None:
    write_demo(tmp_path / "clinic", patients=500)
    with open_data_set(tmp_path / "clinic", home=tmp_path / "registry") as data_set:
        data_set.prepare()
        found = {}
        for listed in second_list():
            try:
                data_set.explain(listed.sql)
                found[listed.name] = ANSWERED
            except LapwingError as error:
                found[listed.name] = error.code
    assert found == {listed.name: ANSWERED if listed.expected == KNOWN_WRONG else listed.expected for listed in second_list()}


@pytest.mark.slow
def test_statements_become_what_is_written_down(tmp_path: Path) -> None:
    with closing(Worlds(tmp_path)) as worlds:
        score = WrittenScore(tuple(run_written(worlds, spread(second_list(), "second list, statements"), postgres=None)))
    if os.environ.get("LAPWING_WRITE_GOLDEN"):
        LIST.write_text(as_found(LIST.read_text(encoding="utf-8"), score.outcomes), encoding="utf-8")
    else:
        assert {item.listed.name: (item.listed.expected, item.found, item.detail) for item in score.unlike} == {}


def test_no_fewer_are_answered() -> None:
    answered = Counter(item.kind for item in second_list() if item.expected in (ANSWERED, KNOWN_WRONG))
    assert {kind: many for kind, many in answered.items() if many < AT_LEAST[kind]} == {}


def _outcomes() -> tuple[WrittenOutcome, ...]:
    return (
        WrittenOutcome(ListedStatement("bi", "a", ANSWERED, "SELECT 1"), ANSWERED),
        WrittenOutcome(ListedStatement("bi", "b", "join-private", "SELECT 2"), ANSWERED),
    )


def test_a_difference_is_counted_and_can_be_written_down() -> None:
    score = WrittenScore(_outcomes())
    assert score.to_dict() == {
        "kinds": {"bi": {"answered": 2, "of": 2}},
        "compared": 2,
        "not_compared": {},
        "known_wrong": {},
        "refused": {},
        "different": ["b"],
    }
    text = "-- bi a: answered\nSELECT 1;\n\n-- bi b: join-private\nSELECT 2;\n"
    assert as_found(text, score.outcomes) == text.replace("join-private", "answered")


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_command_prints_counts_and_fails_on_a_difference(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.audit.lists.second_list.run_second_list", lambda _, postgres: iter(_outcomes()))
    ran = run("conformance", "--list", "second", "--format", form, home=tmp_path)
    assert ran.status == 1
    if form == "json":
        assert json.loads(ran.out)["different"] == ["b"]
    else:
        assert "2 of 2" in ran.out and "join-private" in ran.out
    monkeypatch.setattr("lapwing.audit.lists.second_list.run_second_list", lambda _, postgres: iter(_outcomes()[:1]))
    assert run("conformance", "--list", "second", "--format", form, home=tmp_path).status == 0
