"""The second list: what becomes of every statement is as it says. Differences are named; LAPWING_WRITE_GOLDEN=1 writes them down."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lapwing.audit.second_list import ANSWERED, FILE, SecondListed, SecondOutcome, SecondScore, as_found, run_second_list, second_list
from tests.meta.tree import SOURCE
from tests.unit.cli.support import run

LIST = SOURCE / "demo" / FILE
AT_LEAST = {"bi": 57, "idioms": 119, "introspection": 20}
"""How many of each kind are answered; more is better, fewer is a fault."""


def test_every_entry_is_read() -> None:
    listed = second_list()
    assert len(listed) == LIST.read_text(encoding="utf-8").count(";\n") == 210
    assert len({item.name for item in listed}) == len(listed) and {item.kind for item in listed} == AT_LEAST.keys()


@pytest.mark.slow
def test_what_becomes_of_every_statement(tmp_path: Path) -> None:
    score = SecondScore(tuple(run_second_list(tmp_path)))
    if os.environ.get("LAPWING_WRITE_GOLDEN"):
        LIST.write_text(as_found(LIST.read_text(encoding="utf-8"), score.outcomes), encoding="utf-8")
    else:
        assert {outcome.listed.name: (outcome.listed.expected, outcome.found) for outcome in score.different} == {}
    assert {kind: answered for kind, (answered, _) in score.counts().items() if answered < AT_LEAST[kind]} == {}


def _outcomes() -> tuple[SecondOutcome, ...]:
    return (
        SecondOutcome(SecondListed("bi", "a", ANSWERED, "SELECT 1"), ANSWERED),
        SecondOutcome(SecondListed("bi", "b", "join-private", "SELECT 2"), ANSWERED),
    )


def test_a_difference_is_counted_and_can_be_written_down() -> None:
    score = SecondScore(_outcomes())
    assert score.to_dict() == {"kinds": {"bi": {"answered": 2, "of": 2}}, "refused": {}, "different": ["b"]}
    text = "-- bi a: answered\nSELECT 1;\n\n-- bi b: join-private\nSELECT 2;\n"
    assert as_found(text, score.outcomes) == text.replace("join-private", "answered")


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_command_prints_counts_and_fails_on_a_difference(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.audit.second_list.run_second_list", lambda _: iter(_outcomes()))
    ran = run("conformance", "--list", "second", "--format", form, home=tmp_path)
    assert ran.status == 1
    if form == "json":
        assert json.loads(ran.out)["different"] == ["b"]
    else:
        assert "2 of 2" in ran.out and "join-private" in ran.out
    monkeypatch.setattr("lapwing.audit.second_list.run_second_list", lambda _: iter(_outcomes()[:1]))
    assert run("conformance", "--list", "second", "--format", form, home=tmp_path).status == 0
