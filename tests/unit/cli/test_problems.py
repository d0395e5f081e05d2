"""``--format json``: a refusal is one object for programs, on standard error, and ends with the status that the text ends with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from lapwing.audit.lists import conformance
from lapwing.curator.curator import Curator
from lapwing.errors import PreparationError
from lapwing.interfaces.cli.app import app
from tests.unit.cli.conftest import Clinic

ROWS = "SELECT * FROM patients"
NOWHERE = "nowhere"
REFUSED = {
    "ask": (("ask", ROWS), "rows-not-aggregates"),
    "explain": (("explain", ROWS), "rows-not-aggregates"),
    "describe": (("describe", NOWHERE), "unknown-table"),
    "budget": (("-C", NOWHERE, "budget"), "catalogue-unreadable"),
    "history": (("-C", NOWHERE, "history"), "catalogue-unreadable"),
    "audit": (("-C", NOWHERE, "audit"), "catalogue-unreadable"),
    "conformance": (("conformance",), "engine-unreachable"),
    "ledger status": (("-C", NOWHERE, "ledger", "status"), "catalogue-unreadable"),
    "access list": (("access", "list", "--home", NOWHERE), "server-configuration"),
    "release query": (("release", "query", NOWHERE, ROWS), "release-unknown"),
}
"""Of each command that has ``--format``, a call that is refused."""


def _with_format(command: Any, words: str = "") -> Iterator[str]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _with_format(inner, f"{words} {name}".strip())
    if any("--format" in parameter.opts for parameter in command.params):
        yield words


def test_each_command_that_has_a_format_is_tried_below() -> None:
    assert sorted(_with_format(get_command(app))) == sorted(REFUSED)


@pytest.mark.parametrize("command", REFUSED)
def test_a_refusal_is_one_object_with_the_code_and_the_status_of_the_text(
    clinic: Clinic, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(_directory: Path) -> None:
        raise PreparationError("engine-unreachable", "the server cannot be reached")

    monkeypatch.setattr(conformance, "run_list", refusing)  # it has no call that is refused at once
    arguments, code = REFUSED[command]
    as_text, as_object = clinic.run(*arguments), clinic.run(*arguments, "--format", "json")
    assert as_object.status == as_text.status != 0 and as_object.out == ""
    told = json.loads(as_object.err)
    assert as_text.err.startswith(f"[{code}] {told['title']}\n")
    assert (told["type"], told["code"], told["exit_status"]) == (f"urn:lapwing:error:{code}", code, as_text.status)


def test_the_place_and_the_hint_are_those_of_the_text(clinic: Clinic) -> None:
    told = json.loads(clinic.run("ask", "SELECT COUNT(*)\nFROM vists", "--format", "json").err)
    assert told["span"] == {"start": 21, "end": 26, "line": 2, "column": 6} and told["hint"]
    assert f"hint: {told['hint']}" in clinic.run("ask", "SELECT COUNT(*)\nFROM vists").err


def test_a_statement_for_a_release_is_quoted_where_it_is_refused(clinic: Clinic) -> None:
    bought = clinic.run("release", "run", "sexes", "sex", "--epsilon", "0.1")
    assert bought.status == 0, bought.err
    refused = clinic.run("release", "query", "sexes", ROWS)
    assert refused.status == 3 and "   1 | SELECT * FROM patients\n     |        ^" in refused.err


def test_wrong_usage_that_a_command_finds_is_an_object_too(clinic: Clinic) -> None:
    ran = clinic.run("ask", "SELECT COUNT(*) FROM visits", "--answer", str(clinic.directory / "lapwing.toml"), "--format", "json")
    told = json.loads(ran.err)
    assert ran.status == told["exit_status"] == 2 and told["code"] == "usage" and told["title"].endswith("already exists")


def test_a_fault_is_an_object_without_its_message(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_curator: Curator) -> None:
        raise ValueError("Ann Smith")

    monkeypatch.setattr(Curator, "latest", broken)
    ran = clinic.run("budget", "--format", "json")
    told = json.loads(ran.err)
    assert (
        ran.status == told["exit_status"] == 1
        and told["code"] == "internal"
        and told["title"].startswith("ValueError at lapwing/interfaces/cli/")
    )
    assert "Ann" not in ran.err + ran.out
