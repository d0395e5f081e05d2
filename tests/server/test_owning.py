"""What owners and auditors get over HTTP: a report that adds up, progress of a preparation, and who sees stored answers."""

from __future__ import annotations

import asyncio
import json
import time
from decimal import Decimal
from typing import Any

import pytest

from lapwing.errors import PreparationError
from lapwing.interfaces.http import progress_events
from lapwing.interfaces.http.progress_events import Step, events
from lapwing.owner.spending_report import entries_digest
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: owning")
VERSIONS = "/v1/data-sets/{d}/versions"


def _events(text: str) -> list[tuple[str, dict[str, Any]]]:
    told = [block.split("\n", 1) for block in text.split("\n\n") if block and not block.startswith(":")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in told]


def test_a_report_can_be_added_up_again(server: ServerUnderTest) -> None:
    for number in (30, 31):
        server.ask(f"SELECT COUNT(*) AS n FROM visits WHERE minutes > {number}", epsilon="0.02")
    told = server.call("GET", "/v1/data-sets/{d}/report", by="aude").json()
    entries = server.call("GET", "/v1/data-sets/{d}/history?limit=1000", by="aude").json()["entries"]
    unit = told["loss_unit"]
    assert (told["complete"], told["adds_up"], told["entries"]) == (True, True, len(entries))
    assert sum(Decimal(entry[unit]) for entry in entries) == Decimal(told["spent_by_the_ledger"][unit])
    of_ada = next(part for part in told["by_analyst"] if part["analyst"] == "ada")
    assert sum(Decimal(entry[unit]) for entry in entries if entry["analyst"] == "ada") == Decimal(of_ada[unit]) > 0
    assert told["entries_sha256"] == entries_digest(entries)
    changed = [entries[0] | {"analyst": "bo"}, *entries[1:]]
    assert told["entries_sha256"] != entries_digest(changed)
    assert server.call("GET", "/v1/data-sets/{d}/report").status_code == 403


def test_a_preparation_tells_how_far_it_is_to_owners_alone(server: ServerUnderTest) -> None:
    accept = {"Accept": "text/event-stream"}
    for who in ("ada", "aude", "ops"):
        refused = server.call("POST", VERSIONS, by=who, headers=accept, json={})
        assert (refused.status_code, refused.headers["content-type"]) == (403, "application/problem+json")
    reply = server.call("POST", VERSIONS, by="olga", headers=accept, json={})
    assert (reply.status_code, reply.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
    assert reply.headers["cache-control"] == "no-store"
    told = _events(reply.text)
    steps = [fields for name, fields in told if name == "progress"]
    assert {step["what"] for step in steps} >= {"patients", "visits", "prescriptions"}
    assert [step["done"] for step in steps] == sorted(step["done"] for step in steps)
    assert told[-1][0] == "done"
    assert told[-1][1]["version"] == server.call("GET", VERSIONS).json()["versions"][-1]


def test_a_raised_budget_and_another_default_are_served_without_a_restart_or_a_version(server: ServerUnderTest) -> None:
    sql = "SELECT COUNT(*) AS n FROM patients WHERE vaccinated"
    first = server.ask(sql, epsilon="0.02").json()
    versions = server.call("GET", VERSIONS).json()
    catalogue = server.home / "clinic" / "lapwing.toml"
    text = catalogue.read_text(encoding="utf-8")
    catalogue.write_text(text.replace("epsilon = 3  ", "epsilon = 4  ").replace("epsilon = 0.1 ", "epsilon = 0.01 "), encoding="utf-8")
    try:
        # Reading the file raises nothing: analysts have the ledger's budget until an owner prepares.
        assert server.call("GET", "/v1/data-sets/{d}/budget").json()["epsilon"] == 3
        assert server.call("POST", VERSIONS, by="ada", json={}).status_code == 403
        made = server.call("POST", VERSIONS, by="olga", json={})
        assert (made.status_code, made.json()["version"]) == (201, versions["versions"][-1]), made.text
        assert server.call("GET", VERSIONS).json() == versions
        assert server.call("GET", "/v1/data-sets/{d}/budget").json()["epsilon"] == 4
        again = server.ask(sql, epsilon="0.02").json()
        assert again["rows"] == first["rows"] and "free" in " ".join(again["notes"])
        unpriced = server.ask("SELECT COUNT(*) AS n FROM patients WHERE NOT vaccinated").json()
        assert unpriced["cost"]["epsilon"] == pytest.approx(0.01, rel=1e-3)
    finally:
        catalogue.write_text(text, encoding="utf-8")
        server.call("POST", VERSIONS, by="olga", json={})


def test_what_goes_wrong_is_the_last_event_and_no_value_is_in_it() -> None:
    async def told(error: Exception) -> list[tuple[str, dict[str, Any]]]:
        def work(step: Step) -> dict[str, Any]:
            step("patients", 0, 2)
            time.sleep(0.2)
            raise error

        return _events("".join([event async for event in events(work, silence=0.05)]))

    ours = asyncio.run(told(PreparationError("rows-lost", "a tenth is lost")))
    assert [name for name, _ in ours] == ["progress", "problem"]
    assert (ours[1][1]["code"], ours[1][1]["title"]) == ("rows-lost", "a tenth is lost")
    strange = asyncio.run(told(ValueError("could not convert 'Mrs Smith'")))
    assert strange[1][1]["code"] == "internal"
    assert "Smith" not in str(strange)


def test_silence_is_filled_with_comments() -> None:
    async def sent() -> list[str]:
        def work(_: Step) -> dict[str, Any]:
            time.sleep(0.3)
            return {"version": 1}

        return [event async for event in events(work, silence=0.05)]

    heard = asyncio.run(sent())
    assert heard[0].startswith(":")
    assert heard[-1] == 'event: done\ndata: {"version": 1}\n\n'
    assert progress_events.SILENCE_SECONDS < 60
