"""The owner's commands: demo, check, prepare, budget, history, retire, reopen, and the exit statuses they end with."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from lapwing.curator.curator import Curator
from lapwing.errors import BudgetRefused, CatalogueError, Incident, LapwingError, LedgerError, PreparationError, Refused
from lapwing.interfaces.cli.exits import ExitStatus, error_text, status_of
from tests.unit.cli.conftest import Clinic, make_clinic
from tests.unit.cli.support import run


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (LapwingError("x", "y"), 1),
        (LedgerError("x", "y"), 1),
        (Refused("x", "y"), 3),
        (BudgetRefused("x", "y"), 4),
        (CatalogueError("x", "y"), 5),
        (PreparationError("x", "y"), 5),
        (Incident(), 5),
    ],
)
def test_the_status_says_who_must_act(error: LapwingError, status: int) -> None:
    assert status_of(error) == status


def test_further_problems_are_shown_below_the_first() -> None:
    error = CatalogueError("first", "one", hint="do this")
    error.add_note("[second] two")
    assert error_text(error) == "[first] one\nhint: do this\n\n[second] two"


def test_demo_says_what_to_do_next_and_each_line_works(tmp_path: Path) -> None:
    directory = tmp_path / "with space"
    made = run("demo", directory, "--patients", "20", home=tmp_path / "home")
    assert made.status == 0 and "20 made-up patients" in made.out
    commands = [line.strip() for line in made.out.splitlines() if line.startswith("  lapwing ")]
    assert len(commands) == 5
    for command in commands:
        ran = run(*shlex.split(command)[1:], home=tmp_path / "home")
        assert ran.status == 0, (command, ran.err)


@pytest.mark.parametrize("patients", ["0", "1000001", "many"])
def test_demo_refuses_numbers_it_cannot_make(tmp_path: Path, patients: str) -> None:
    ran = run("demo", tmp_path / "x", "--patients", patients, home=tmp_path)
    assert ran.status == ExitStatus.USAGE and not (tmp_path / "x").exists()


def test_demo_never_overwrites(own_clinic: Clinic, tmp_path: Path) -> None:
    before = (own_clinic.directory / "lapwing.toml").read_bytes()
    again = run("demo", own_clinic.directory, home=own_clinic.home)
    assert again.status == 2 and "already there" in again.err
    assert (own_clinic.directory / "lapwing.toml").read_bytes() == before
    (tmp_path / "file").write_text("")
    assert run("demo", tmp_path / "file", "--patients", "5", home=tmp_path).status == 2


def test_check_summarises_what_can_be_prepared(own_clinic: Clinic) -> None:
    ran = own_clinic.run("check")
    assert ran.status == 0 and ran.err == ""
    assert "protects one patient" in ran.out and ran.out.rstrip().endswith("The catalogue can be prepared.")
    by_file = run("-C", own_clinic.directory / "lapwing.toml", "check", home=own_clinic.home)
    assert by_file == ran
    assert not (own_clinic.directory / ".lapwing").exists() and not own_clinic.home.exists(), "checking leaves no trace"


def test_check_compares_with_the_sources(own_clinic: Clinic) -> None:
    (own_clinic.directory / "visits.parquet").unlink()
    (own_clinic.directory / "patients.parquet").write_text("no")
    catalogue = own_clinic.directory / "lapwing.toml"
    catalogue.write_text(catalogue.read_text().replace('city = { type = "text"', 'city = { type = "text", from = "town"'))
    ran = own_clinic.run("check")
    assert ran.status == 5 and ran.out == ""
    assert "visits: its source 'visits.parquet' names no file" in ran.err
    assert "patients: patients.parquet: this is not a Parquet file" in ran.err
    assert "clinics.city: clinics.parquet has no column 'town'" in ran.err
    assert ran.err.count("problem:") == 3


def test_check_shows_every_mistake_and_warnings(own_clinic: Clinic) -> None:
    catalogue = own_clinic.directory / "lapwing.toml"
    good = catalogue.read_text()
    catalogue.write_text(good.replace('delta = "2^-40"', "delta = 0.01"))
    warned = own_clinic.run("check")
    assert warned.status == 0 and "warning: [delta-large]" in warned.err and "can be prepared" in warned.out
    catalogue.write_text(good.replace("max = 480", "maxx = 480").replace("epsilon = 3 ", "epsilon = -3 "))
    wrong = own_clinic.run("check")
    assert wrong.status == 5 and "maxx" in wrong.err and "^^^^" in wrong.err
    assert run("-C", own_clinic.directory / "nowhere", "check", home=own_clinic.home).status == 5


def test_prepare_then_budget_and_history(own_clinic: Clinic) -> None:
    for command in ("budget", "history"):
        early = own_clinic.run(command)
        assert early.status == 5 and "not-prepared" in early.err
    assert not (own_clinic.directory / ".lapwing" / "ledger.sqlite").exists(), "looking makes no ledger"
    first = own_clinic.run("prepare")
    assert first.status == 0 and first.out.startswith("Version 1 of clinic-") and "% is left" in first.out
    assert own_clinic.run("prepare").out.startswith("Version 2 of clinic-")
    shown = own_clinic.run("budget")
    assert shown.status == 0 and "epsilon 3" in shown.out and "can be raised to epsilon 6" in shown.out
    values = json.loads(own_clinic.run("budget", "--format", "json").out)
    assert values["account"] == "approximate" and values["closed"] is False and values["dataset"].startswith("clinic-")
    loss = {name: float(amount) for name, amount in values["loss"].items()}
    assert loss["spent"] + loss["remaining"] == pytest.approx(loss["total"]) and values["share_spent"] == pytest.approx(
        loss["spent"] / loss["total"]
    )
    entries = json.loads(own_clinic.run("history", "--limit", "1000", "--format", "json").out)
    assert [entry["kind"] for entry in entries].count("version") == 2 and entries[-1]["kind"] == "register"
    assert sum(float(entry["rho"]) for entry in entries) == pytest.approx(loss["spent"])
    assert len(json.loads(own_clinic.run("history", "--limit", "2", "--format", "json").out)) == 2
    lines = own_clinic.run("history", "--limit", "1").out.splitlines()
    assert len(lines) == 3 and "version 2 prepared" in lines[2]


def test_preparing_says_nothing_about_the_rows(tmp_path: Path) -> None:
    """Owner's words depend on the declaration, not on how many rows there are."""
    texts = set()
    for patients in (5, 50):
        made = make_clinic(tmp_path / str(patients), patients=patients)
        out = made.run("prepare").out.split(" tables in ")
        texts.add((out[0].split("clinic-")[0], out[0].split(":")[1], out[1].split(" s.")[1]))
    assert len(texts) == 1


def test_prepare_failures_are_the_owners(own_clinic: Clinic) -> None:
    (own_clinic.directory / "visits.parquet").unlink()
    failed = own_clinic.run("prepare")
    assert failed.status == 5 and "source-missing" in failed.err


def test_what_the_unit_is_changes_only_with_a_reason(own_clinic: Clinic) -> None:
    own_clinic.run("prepare")
    catalogue = own_clinic.directory / "lapwing.toml"
    catalogue.write_text(catalogue.read_text().replace('unit = "patient" ', 'unit = "person" '))
    refused = own_clinic.run("prepare")
    assert refused.status == 5
    allowed = own_clinic.run("prepare", "--override", "only the word changed")
    assert allowed.status == 0, allowed.err
    assert "only the word changed" in own_clinic.run("history").out


def test_the_same_files_do_not_get_a_second_budget(own_clinic: Clinic) -> None:
    own_clinic.run("prepare")
    for file in (own_clinic.directory / ".lapwing").iterdir():
        file.unlink()
    again = own_clinic.run("prepare")
    assert again.status != 0 and "ledger-missing" in again.err and "lapwing restore FILE" in again.err


def test_retire_and_reopen(own_clinic: Clinic) -> None:
    own_clinic.run("prepare")
    own_clinic.run("prepare")
    assert own_clinic.run("retire", "1").status == 0
    missing = own_clinic.run("retire", "7")
    assert missing.status == 5 and "no-such-version" in missing.err
    with Curator(own_clinic.directory, home=own_clinic.home) as curator:
        curator.ledger.close("an incident")
    closed = own_clinic.run("budget")
    assert "closed" in closed.out and json.loads(own_clinic.run("budget", "--format", "json").out)["closed"] is True
    refused = own_clinic.run("ask", "SELECT COUNT(*) FROM patients")
    assert refused.status == 3 and "data-set-closed" in refused.err
    assert own_clinic.run("reopen", "the disk was full").status == 0
    assert own_clinic.run("ask", "SELECT COUNT(*) FROM patients").status == 0
    assert "the disk was full" in own_clinic.run("history").out


def test_a_damaged_ledger_is_the_operators(own_clinic: Clinic) -> None:
    own_clinic.run("prepare")
    (own_clinic.directory / ".lapwing" / "ledger.sqlite").write_bytes(b"not a ledger")
    damaged = own_clinic.run("budget")
    assert damaged.status == 1 and damaged.err.startswith("[")


def test_an_unexpected_fault_shows_no_message(own_clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    own_clinic.run("prepare")

    def fault(_curator: Curator) -> None:
        raise ValueError("invalid literal: '4711 Ada'")

    monkeypatch.setattr(Curator, "balance", fault)
    ran = own_clinic.run("budget")
    assert ran.status == 1 and "4711" not in ran.out + ran.err
    assert ran.err.startswith("internal error: ValueError at lapwing/curator/curator.py:")


def test_usage(tmp_path: Path) -> None:
    assert run("unknown", home=tmp_path).status == 2
    assert run("history", "--limit", "0", home=tmp_path).status == 2
    version = run("--version", home=tmp_path)
    assert version.status == 0 and version.out.startswith("lapwing ")
