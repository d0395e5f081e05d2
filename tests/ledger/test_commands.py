"""``lapwing ledger`` and ``lapwing receipt`` as people type them, on a real PostgreSQL server."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.kernel.accounting import LOSS_UNITS, budget_for
from lapwing.ledger.connect import system_user
from tests.ledger.cluster import APP_ROLE, CURATOR_ROLE, ROLES, SECOND_ROLE, Cluster
from tests.ledger.wired import BY_SEX, Wired, new_wired
from tests.unit.cli.support import ROOT, Ran, run, run_process


@pytest.fixture(scope="module")
def wired(cluster: Cluster, database: str, tmp_path_factory: pytest.TempPathFactory) -> Wired:
    made = new_wired(tmp_path_factory.mktemp("commands"), cluster.dsn(database))
    prepared = _run(made, "prepare")
    assert prepared.status == 0, prepared.err
    return made


def _run(wired: Wired, *arguments: str | Path) -> Ran:
    return run("-C", wired.directory, *arguments, home=wired.home)


def _done(wired: Wired, *arguments: str | Path) -> str:
    ran = _run(wired, *arguments)
    assert ran.status == 0, ran.err
    return ran.out


def _status(wired: Wired) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_done(wired, "ledger", "status", "--format", "json"))
    return found


def _analyst(wired: Wired, name: str) -> dict[str, Any]:
    [found] = [one for one in _status(wired)["analysts"] if one["analyst"] == name]
    assert isinstance(found, dict)
    return found


def test_amounts_are_exact_and_what_is_left_out_stays(wired: Wired) -> None:
    _done(wired, "ledger", "admit", "cy", "--budget", "rho 0.012345678901234", "--per-day", "rho=0.01")
    assert (_analyst(wired, "cy")["total"], _analyst(wired, "cy")["per_day"]) == ("0.012345678901234", "0.01")
    nobody = _run(wired, "ledger", "suspend", "nobody", "--reason", "on leave")
    assert nobody.status == 5 and "[analyst-never-admitted]" in nobody.err
    _done(wired, "ledger", "suspend", "cy", "--reason", "on leave")
    assert _analyst(wired, "cy")["suspended"] is True
    _done(wired, "ledger", "admit", "cy")
    assert _analyst(wired, "cy") == {
        "analyst": "cy",
        "group": None,
        "suspended": False,
        "spent": "0",
        "total": "0.012345678901234",
        "per_day": "0.01",
    }
    _done(wired, "ledger", "admit", "cy", "--budget", "none", "--per-day", "0.5")
    # An epsilon is that of all it pays for together, so it is the rho of a whole budget of that epsilon.
    half = budget_for(epsilon=Fraction(1, 2), delta=Fraction(1, 2**40), delta_keys_share=Fraction(1, 2))
    assert _analyst(wired, "cy")["total"] is None
    assert Fraction(_analyst(wired, "cy")["per_day"]) == Fraction(half.loss_total, LOSS_UNITS)


@pytest.mark.parametrize("amount", ["much", "-1", "rho", "rho x", "epsilon 1 2", ""])
def test_an_amount_that_cannot_be_read_changes_nothing(wired: Wired, amount: str) -> None:
    before = _status(wired)["entries"]
    assert _run(wired, "ledger", "admit", "cy", f"--budget={amount}").status == 2
    assert _status(wired)["entries"] == before


def test_groups_and_limits(wired: Wired) -> None:
    assert _run(wired, "ledger", "admit", "di", "--group", "students").status == 5, "no such group yet"
    assert "is made" in _done(wired, "ledger", "group", "students", "--budget", "rho 0.000001")
    _done(wired, "ledger", "admit", "di", "--group", "students")
    refused = _run(wired, "ask", BY_SEX, "--epsilon", "0.2", "--analyst", "di")
    assert refused.status == 4 and "[group-budget]" in refused.err
    _done(wired, "ledger", "admit", "di", "--group", "none")
    _done(wired, "ledger", "limit", "--per-statement", "0.1")
    refused = _run(wired, "ask", BY_SEX, "--epsilon", "0.2", "--analyst", "di")
    assert refused.status == 4 and "[statement-limit]" in refused.err
    _done(wired, "ledger", "limit", "--per-statement", "none", "--not-shared", "--lost-workers", "5")
    assert _status(wired)["limits"] == {
        "per_statement": None,
        "per_day": None,
        "answers_shared": False,
        "lost_workers_max": 5,
        "lost_workers_seconds": 315_360_000,
    }
    assert "Nothing was changed" in _done(wired, "ledger", "limit", "--not-shared")
    _done(wired, "ledger", "limit", "--shared", "--lost-workers", "3")


def test_what_needs_two_people_needs_two(wired: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    _done(wired, "ledger", "admit", system_user(), "--budget", "0.1")
    out = _done(wired, "ledger", "request", "0.3", "--reason", "two tables are left")
    number = re.findall(r"Proposal (\d+)", out)[0]
    alone = _run(wired, "ledger", "approve", number)
    assert alone.status == 5 and "[second-person]" in alone.err
    assert "two tables are left" in _done(wired, "ledger", "status")
    _done(wired, "ledger", "approve", number, "--by", "olga")  # an analyst's wish: any owner
    assert float(_analyst(wired, system_user())["total"]) > 0.0009
    assert _run(wired, "ledger", "approve", number, "--by", "olga").status == 5, "it was carried out already"
    above = _run(wired, "ledger", "propose", "budget", "--epsilon", "7")
    assert above.status == 5 and "[budget-above-ceiling]" in above.err
    out = _done(wired, "ledger", "propose", "ceiling", "--epsilon", "7", "--reason", "a longer study")
    number = re.findall(r"ledger approve (\d+)", out)[0]
    _done(wired, "ledger", "deny", number, "--by", "olga", "--reason", "no")
    assert _status(wired)["ceiling"] == 6
    out = _done(wired, "ledger", "propose", "budget", "--epsilon", "3.5")
    number = re.findall(r"ledger approve (\d+)", out)[0]
    alone = _run(wired, "ledger", "approve", number, "--by", "olga")
    assert alone.status == 5 and "[second-person]" in alone.err, "another name in a session of the same role"
    monkeypatch.setenv("LAPWING_DATABASE", wired.dsn.replace(APP_ROLE, SECOND_ROLE))
    assert "the catalogue says 3" in _done(wired, "ledger", "approve", number, "--by", "olga")
    monkeypatch.delenv("LAPWING_DATABASE")
    assert _status(wired)["budget"]["epsilon"] == 3.5


def test_a_second_person_approves_without_the_signing_key_or_the_state(wired: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another user of the machine has: the catalogue, the database, and the anchors of a group."""
    number = re.findall(r"ledger approve (\d+)", _done(wired, "ledger", "propose", "budget", "--epsilon", "3.5"))[0]
    keys, state = wired.keys, wired.directory / ".lapwing"
    keys.rename(wired.base / "keys of the curator")
    state.rename(wired.base / "state of the curator")
    monkeypatch.setenv("LAPWING_DATABASE", wired.dsn.replace(APP_ROLE, SECOND_ROLE))
    try:
        assert f"{number}  budget  epsilon 3.5" in _done(wired, "ledger", "status")
        _done(wired, "ledger", "approve", number, "--by", "olga")
    finally:
        (wired.base / "state of the curator").rename(state)
    monkeypatch.delenv("LAPWING_DATABASE")
    refused = _run(wired, "ask", BY_SEX)
    (wired.base / "keys of the curator").rename(keys)
    assert refused.status == 1 and "[signing-key]" in refused.err, "without the key nothing is answered"


def test_no_password_is_shown(wired: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_DATABASE", f"{wired.dsn} password=swordfish")
    for form in ("table", "json"):
        shown = _done(wired, "ledger", "status", "--format", form)
        assert "swordfish" not in shown and "dbname=" in shown


def test_a_curator_is_told_whose_act_it_is(wired: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_DATABASE", wired.dsn.replace(APP_ROLE, CURATOR_ROLE))
    refused = _run(wired, "ledger", "admit", "eve")
    assert refused.status == 1 and "[ledger-role]" in refused.err and "LAPWING_DATABASE" in refused.err
    assert _run(wired, "budget").status == 0


def test_a_curator_neither_prepares_nor_retires_by_halves(wired: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger would refuse to write it down, and the version would be there, or gone, all the same."""
    with wired.open() as owner:
        before = owner.curator.engine.versions(), owner.curator.balance(), len(owner.history(limit=1000))
    monkeypatch.setenv("LAPWING_DATABASE", wired.dsn.replace(APP_ROLE, CURATOR_ROLE))
    for act in (("prepare",), ("retire", str(before[0][-1]))):
        refused = _run(wired, *act)
        assert refused.status == 1 and "[ledger-role]" in refused.err and f"a member of {ROLES.owners}" in refused.err
    monkeypatch.delenv("LAPWING_DATABASE")
    with wired.open() as owner:
        assert (owner.curator.engine.versions(), owner.curator.balance(), len(owner.history(limit=1000))) == before


def test_a_share_of_the_whole_budget_is_an_amount(wired: Wired) -> None:
    total = Fraction(_status(wired)["budget"]["loss"]["total"])
    for written, share in (("50%", Fraction(1, 2)), ("12.5 %", None), ("33.33333333%", Fraction(1, 3)), ("100%", Fraction(1))):
        ran = _run(wired, "ledger", "admit", "flo", "--budget", written)
        assert ran.status == (2 if share is None else 0), ran.err
        if share is not None:
            assert 0 <= total * share - Fraction(_analyst(wired, "flo")["total"]) < Fraction(1, LOSS_UNITS)
    assert _run(wired, "ledger", "admit", "flo", "--budget", "101%").status == 2


def test_closing_and_reopening_say_who(wired: Wired) -> None:
    _done(wired, "ledger", "admit", "ed")
    _done(wired, "close", "inventory")
    assert _run(wired, "ask", BY_SEX, "--analyst", "ed").status == 3
    assert "re-opens it" in _done(wired, "ledger", "status")
    _done(wired, "reopen", "done")
    assert f"by {system_user()}: inventory" in _done(wired, "history", "--limit", "3")
    assert _run(wired, "ask", BY_SEX, "--analyst", "ed").status == 0


def test_a_ledger_without_its_anchor_is_refused_until_two_owners_give_it_up(wired: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _status(wired)
    [lost] = before["anchors"]
    for anchor in (wired.base / "anchors").glob("*.anchor"):
        anchor.unlink()
    for command in (("budget",), ("ledger", "accept", "the disk of the anchors failed")):
        refused = _run(wired, *command)
        assert refused.status == 1 and "[anchor-missing]" in refused.err and lost in refused.err
    unknown = _run(wired, "ledger", "anchor-lost", "another", "--reason", "x")
    assert unknown.status == 5 and "[anchor-unknown]" in unknown.err
    assert _run(wired, "ledger", "anchor-lost", lost, "--reason", " ").status == 1, "a reason is needed"
    assert "Another owner must now run the same" in _done(wired, "ledger", "anchor-lost", lost, "--reason", "the disk burnt")
    alone = _run(wired, "ledger", "anchor-lost", lost, "--reason", "the disk burnt", "--by", "olga")
    assert alone.status == 5 and "[second-person]" in alone.err
    monkeypatch.setenv("LAPWING_DATABASE", wired.dsn.replace(APP_ROLE, SECOND_ROLE))
    assert "is removed" in _done(wired, "ledger", "anchor-lost", lost, "--reason", "so it did", "--by", "olga")
    monkeypatch.delenv("LAPWING_DATABASE")
    refused = _run(wired, "budget")
    assert refused.status == 1 and "[ledger-unregistered]" in refused.err
    assert _run(wired, "ledger", "accept", " ").status == 1, "a reason is needed"
    assert "Accepted" in _done(wired, "ledger", "accept", "the disk of the anchors failed")
    assert _status(wired)["budget"]["loss"]["spent"] == before["budget"]["loss"]["spent"]
    history = _done(wired, "history", "--limit", "8")
    assert "ledger-unregistered: the disk of the anchors failed" in history and "so it did" in history


def test_files_are_not_overwritten_and_nothing_is_charged_then(wired: Wired) -> None:
    _done(wired, "ledger", "admit", "ed")
    there = wired.base / "there.json"
    there.write_text("mine")
    entries = _status(wired)["entries"]
    statement = "SELECT COUNT(*) AS n FROM visits"
    assert _run(wired, "ask", statement, "--analyst", "ed", "--receipt", there).status == 2
    assert _run(wired, "ask", statement, "--analyst", "ed", "--answer", wired.base / "nowhere" / "a.json").status == 2
    assert there.read_text() == "mine" and _status(wired)["entries"] == entries


def test_a_local_ledger_knows_no_analysts(wired: Wired, tmp_path: Path) -> None:
    assert run("demo", tmp_path / "clinic", "--patients", "20", home=tmp_path).status == 0
    refused = run("-C", tmp_path / "clinic", "ledger", "admit", "ana", home=tmp_path)
    assert refused.status == 1 and "[ledger-local]" in refused.err and "lapwing ledger move" in refused.err
    assert not (tmp_path / "clinic" / ".lapwing" / "ledger.sqlite").exists(), "asking makes no ledger"


def test_every_act_is_in_the_reference_and_teaches_by_an_example(tmp_path: Path) -> None:
    from lapwing.interfaces.cli.ledger.commands import ledger_app, receipt_app

    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for group, app in (("ledger", ledger_app), ("receipt", receipt_app)):
        for command in app.registered_commands:
            assert f"`lapwing {group} {command.name}" in page, command.name
            shown = run(group, str(command.name), "--help", home=tmp_path).out
            for option in set(re.findall(r"^  (--[a-z-]+)", shown, re.MULTILINE)) - {"--help"}:
                assert option in page, (command.name, option)


def test_from_a_local_ledger_to_a_server_as_a_user_types_it(cluster: Cluster, database: str, tmp_path: Path) -> None:
    """What a command prints is used for the next. Those that matter most here run in a process of their own each, which takes its time."""
    clinic, home, dsn = tmp_path / "clinic", tmp_path / "home", cluster.dsn(database)

    def lapwing(*arguments: str | Path, status: int = 0) -> str:
        own_process = not {"demo", "key", "budget", "admit"} & set(arguments)
        ran = run_process(*arguments, home=home) if own_process else run(*arguments, home=home)
        assert ran.status == status, (arguments, ran.out, ran.err)
        return ran.err if status else ran.out

    lapwing("demo", clinic, "--patients", "100")
    lapwing("-C", clinic, "prepare")
    table = lapwing("-C", clinic, "ask", BY_SEX, "--epsilon", "0.5").split("\n\n")[0]
    spent = json.loads(lapwing("-C", clinic, "budget", "--format", "json"))["loss"]["spent"]
    where = ("--database", dsn, "--anchors", tmp_path / "anchors", "--keys", tmp_path / "keys")
    assert "[signing-key]" in lapwing("-C", clinic, "ledger", "move", *where, status=1)
    lapwing("receipt", "key", "--keys", tmp_path / "keys")
    moved = lapwing("-C", clinic, "ledger", "move", *where)
    assert "Admitted, because they paid before: local, owner" in moved
    refused = lapwing("-C", clinic, "ask", BY_SEX, "--epsilon", "0.5", status=1)
    assert "[ledger-elsewhere]" in refused and f"dbname={database}" in refused
    with (clinic / "lapwing.toml").open("a", encoding="utf-8") as catalogue:
        catalogue.write("\n" + moved[moved.index("[ledger]") :])
    loss = json.loads(lapwing("-C", clinic, "budget", "--format", "json"))["loss"]
    assert loss["spent"] == spent
    terms = json.loads(run("-C", clinic, "ledger", "status", "--format", "json", home=home).out)
    assert Fraction(terms["limits"]["per_statement"]) == pytest.approx(Fraction(loss["total"]) / 5)
    for one in terms["analysts"]:
        assert Fraction(one["per_day"]) == pytest.approx(Fraction(loss["total"]) / 2), "the limits of the catalogue move too"
    assert "[analyst-unknown]" in lapwing("-C", clinic, "ask", BY_SEX, "--epsilon", "0.5", status=3)
    lapwing("-C", clinic, "ledger", "admit", system_user())
    receipt, answer = tmp_path / "receipt.json", tmp_path / "answer.json"
    replayed = lapwing("-C", clinic, "ask", BY_SEX, "--epsilon", "0.5", "--receipt", receipt, "--answer", answer)
    assert replayed.startswith(table) and "free;" in replayed and "paid by another analyst" in replayed
    check = ("receipt", "verify", receipt, "--keys", tmp_path / "keys", "--answer", answer)
    assert lapwing(*check).startswith("valid: a charge of clinic-")  # Who paid is not named to another.
    text = receipt.read_text(encoding="utf-8")
    receipt.write_text(json.dumps(json.loads(text) | {"analyst": "local"}), encoding="utf-8")
    assert "[receipt-invalid]" in lapwing(*check, status=1)
    source = json.loads(text)["source_id"]
    verified = lapwing("ledger", "verify", source, "--database", dsn, "--anchors", tmp_path / "anchors")
    assert "sub-budgets and anchor agree" in verified and "WRONG" not in verified
