"""The curator on a real PostgreSQL server: prepare, ask, replay, pay, refuse, close and go on, with receipts."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.asking.answer_bytes import packed
from lapwing.data_set import DataSet
from lapwing.errors import BudgetRefused, CatalogueError, Incident, LapwingError, LedgerError, Refused
from lapwing.kernel.accounting import Cost
from lapwing.ledger.connect import LEASE_SECONDS_MIN, place_of, system_user
from lapwing.ledger.postgres import overview, policy
from lapwing.ledger.postgres.anchors import FileAnchors
from lapwing.ledger.postgres.connection import Connection
from lapwing.ledger.postgres.install import SCHEMA_VERSION
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import EntryKind
from lapwing.owner.policies import admit_share
from lapwing.receipts import check, new_key, receipt_text, receipt_value
from tests.ledger.cluster import APP_ROLE, SECOND_ROLE, Cluster
from tests.ledger.wired import BY_SEX, Wired, new_wired, server_ledger
from tests.unit.cli.support import run_process


@pytest.fixture
def wired(cluster: Cluster, database: str, tmp_path: Path) -> Wired:
    return new_wired(tmp_path, cluster.dsn(database))


@pytest.fixture
def data(wired: Wired) -> Iterator[DataSet]:
    """Prepared, and ana and bo are admitted."""
    with wired.open(analyst="ana") as opened:
        opened.prepare()
        for analyst in ("ana", "bo"):
            policy.admit(server_ledger(opened), analyst)
        yield opened


def _spent(data: DataSet) -> Cost:
    return data.curator.balance().spent


def test_an_answer_is_paid_once_and_its_receipt_verifies(wired: Wired, data: DataSet) -> None:
    before = _spent(data)
    first = data.ask(BY_SEX, epsilon="0.2")
    paid = _spent(data)
    assert paid.loss > before.loss and first.receipt is not None and first.stored is not None
    said = first.receipt.statement
    assert (said.analyst, said.loss) == ("ana", paid.loss - before.loss)
    check(receipt_value(receipt_text(first.receipt)), wired.keys, answer=first.stored)
    again = data.ask(BY_SEX, epsilon="0.2")
    assert again.cost.free and again.table == first.table and again.receipt == first.receipt and _spent(data) == paid
    assert "paid by ana" in str(again) and "paid by ana" in again._repr_html_()
    with wired.open(analyst="ana") as other_use:
        later = other_use.ask(BY_SEX, epsilon="0.2")
        assert later.cost.free and later.stored == first.stored and later.receipt == first.receipt


def test_an_answer_that_another_paid_for_comes_with_a_receipt_that_names_nobody(wired: Wired, data: DataSet, tmp_path: Path) -> None:
    first = data.ask(BY_SEX, epsilon="0.2", request_id="ana's own name for it")
    shared = data.ask(BY_SEX, epsilon="0.2", analyst="bo")
    assert shared.cost.free and shared.table == first.table and shared.stored == first.stored
    assert first.receipt is not None and shared.receipt is not None
    paid, said = first.receipt.statement, shared.receipt.statement
    assert said == replace(paid, analyst="", request_id="", at="", charge_id=0, entry_id=0, head="")
    shared.check_receipt(wired.keys)
    for told in (str(shared), shared._repr_html_(), json.dumps(shared.to_dict()), packed(shared).decode("latin-1")):
        assert not any(word in told for word in ("paid by ana", "ana's own", paid.at, paid.head))
    (tmp_path / "receipt.json").write_text(receipt_text(shared.receipt))
    checked = run_process("receipt", "verify", str(tmp_path / "receipt.json"), "--keys", str(wired.keys), home=tmp_path / "home")
    assert checked.out.startswith(f"valid: a charge of {data.name}, signed with ")
    pretended = replace(shared.receipt, statement=replace(said, analyst="bo"))
    with pytest.raises(LedgerError, match="receipt-invalid"):
        check(pretended, wired.keys)


def test_a_forged_receipt_does_not_verify(wired: Wired, data: DataSet, tmp_path: Path) -> None:
    answer = data.ask(BY_SEX, epsilon="0.2")
    assert answer.receipt is not None and answer.stored is not None
    other = data.ask(BY_SEX, epsilon="0.3")
    cheaper = replace(answer.receipt, statement=replace(answer.receipt.statement, loss=1))
    new_key(tmp_path / "other keys")
    for receipt, keys, content in (
        (cheaper, wired.keys, answer.stored),
        (answer.receipt, wired.keys, other.stored),
        (answer.receipt, wired.keys, answer.stored.replace(b'"f"', b'"g"')),
        (answer.receipt, tmp_path / "other keys", answer.stored),
    ):
        with pytest.raises(LedgerError, match="receipt-invalid"):
            check(receipt, keys, answer=content)


def test_after_a_rotation_old_answers_are_signed_with_the_new_key(wired: Wired, data: DataSet) -> None:
    old = data.ask(BY_SEX, epsilon="0.2").receipt
    new_key(wired.keys)
    new = data.ask(BY_SEX, epsilon="0.2").receipt
    assert old is not None and new is not None and old.key_id != new.key_id and old.statement == new.statement
    check(old, wired.keys)
    check(new, wired.keys)


def test_nobody_asks_who_was_not_admitted(wired: Wired, data: DataSet) -> None:
    with pytest.raises(Refused, match="'eve' is not admitted") as refused:
        data.ask(BY_SEX, epsilon="0.2", analyst="eve")
    assert refused.value.code == "analyst-unknown" and "lapwing ledger admit" in refused.value.hint
    data.ask(BY_SEX, epsilon="0.2")
    with pytest.raises(Refused, match="analyst-unknown"):
        data.ask(BY_SEX, epsilon="0.2", analyst="eve")  # what others paid for is not shown either
    with wired.open() as unnamed, pytest.raises(Refused, match=f"'{system_user()}' is not admitted"):
        unnamed.ask(BY_SEX, epsilon="0.2")


def test_answers_that_are_not_shared_are_paid_again_and_priced_so(data: DataSet) -> None:
    policy.set_limits(server_ledger(data), policy.Limits(answers_shared=False))
    statement = "SELECT COUNT(*) AS n FROM patients WITH PRIVACY (error = 40)"
    first = data.ask(BY_SEX, epsilon="0.2")
    aimed = data.ask(statement)
    assert data.explain(BY_SEX, epsilon="0.2").to_dict()["stored"] is True
    assert data.explain(BY_SEX, epsilon="0.2", analyst="bo").to_dict()["stored"] is False
    before = _spent(data)
    second, again = data.ask(BY_SEX, epsilon="0.2", analyst="bo"), data.ask(statement, analyst="bo")
    assert not second.cost.free and not again.cost.free and _spent(data).loss > before.loss
    assert first.receipt is not None and second.receipt is not None and second.receipt.statement.analyst == "bo"
    assert aimed.receipt is not None and again.receipt is not None and again.receipt.statement.analyst == "bo"
    assert data.ask(statement).receipt == aimed.receipt  # a target that was met before is served with the receipt of what paid


def test_two_processes_ask_one_data_set(wired: Wired, data: DataSet) -> None:
    before = _spent(data)
    code = (
        "import json, sys, lapwing as lw\n"
        "ds = lw.open(sys.argv[1], analyst=sys.argv[2])\n"
        f"answers = [ds.ask({BY_SEX!r}, epsilon=f'0.{{n}}') for n in range(1, 7)]\n"
        "print(json.dumps([[str(a), a.receipt.statement.charge_id] for a in answers]))\n"
        "ds.close()\n"
    )

    def ask(analyst: str) -> list[list[object]]:
        ran = run_process(wired.directory, analyst, home=wired.home, code=code)
        assert ran.status == 0, ran.err
        found: list[list[object]] = json.loads(ran.out)
        return found

    with ThreadPoolExecutor(2) as both:
        results = list(both.map(ask, ("ana", "bo")))
    ledger = server_ledger(data)
    charges = {charge for result in results for _, charge in result} - {0}  # of what the other one paid for, nobody is told the charge
    entries = ledger.history(limit=1000)
    committed = [entry for entry in entries if entry.kind is EntryKind.COMMIT and entry.charge_id in charges]
    reserved = [entry for entry in entries if entry.kind is EntryKind.RESERVE and entry.charge_id in charges]
    assert len(committed) == len(reserved) == len(charges) and 6 <= len(charges) <= 12
    assert _spent(data).loss - before.loss == sum(entry.cost.loss for entry in reserved)
    assert verify(ledger.connection, data.curator.declaration.dataset.id, anchors=FileAnchors(wired.base / "anchors")).problems == ()


def test_what_the_budget_cannot_pay_is_refused_before_any_row_is_read(data: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    policy.set_limits(server_ledger(data), policy.Limits())
    data.ask("SELECT COUNT(*) AS n FROM patients", epsilon="2.9")
    before = _spent(data)
    monkeypatch.setattr(type(data.curator.snapshot), "run", lambda *_: pytest.fail("data was read"))
    with pytest.raises(BudgetRefused, match="budget-exceeded"):
        data.ask(BY_SEX, epsilon="2.9")
    policy.admit(server_ledger(data), "bo", loss_total=1)
    with pytest.raises(BudgetRefused, match="analyst-budget"):
        data.ask(BY_SEX, epsilon="0.01", analyst="bo")
    assert _spent(data) == before


def test_the_limits_of_the_catalogue_hold_on_postgresql(wired: Wired, data: DataSet) -> None:
    ledger = server_ledger(data)
    total = ledger.balance().budget.loss_total
    assert overview.limits_in_force(ledger).statement_loss_max == total // 5
    data.curator.ledger.require_payable("ana", Cost(loss=total // 5, delta=0))
    with pytest.raises(BudgetRefused, match="statement-limit"):
        data.ask(BY_SEX, epsilon="1.4")
    admit_share(data.curator, "cy", None, by="olga", reason="")
    assert {one.analyst: one.day_loss_max for one in overview.analysts(ledger)}["cy"] == total // 2
    first = data.ask(BY_SEX, epsilon="1.2", analyst="cy")
    data.ask("SELECT COUNT(*) AS n FROM visits", epsilon="1.2", analyst="cy")
    with pytest.raises(BudgetRefused, match="day-limit") as refused:
        data.ask("SELECT COUNT(*) AS n FROM patients", epsilon="1.2", analyst="cy")
    assert "00:00 UTC" in (refused.value.hint or "")
    again = data.ask(BY_SEX, epsilon="1.2", analyst="cy")
    assert again.cost.free and again.table == first.table, "a replay is never limited"
    wired.edit("per_statement = 0.2 ", "per_statement = 1 ")
    with wired.open(analyst="ana") as raised:
        assert raised.curator.policy_changes() == ("limits.per_statement",) and raised.curator.prepare() == 1
        changed = raised.history()[0]
        assert changed.kind is EntryKind.POLICY and changed.detail == f"limits, by {system_user()}: declared in the catalogue"
        assert not raised.ask(BY_SEX, epsilon="1.4").cost.free


def test_an_incident_closes_for_every_worker_until_the_owner_reopens(wired: Wired, data: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    data.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1")

    def explode(*_: object) -> None:
        raise Incident

    before = _spent(data)
    with monkeypatch.context() as broken, pytest.raises(Incident):
        broken.setattr(type(data.curator.snapshot), "run", explode)
        data.ask(BY_SEX, epsilon="0.2")
    assert _spent(data).loss > before.loss, "the charge is kept"
    with wired.open(analyst="bo") as other:
        for statement in (BY_SEX, "SELECT COUNT(*) AS n FROM patients"):
            with pytest.raises(Refused, match="data-set-closed"):
                other.ask(statement, epsilon="0.1")
        other.curator.reopen("the disk was full")
    assert not data.ask(BY_SEX, epsilon="0.2").cost.free


def test_a_worker_that_was_taken_for_dead_sends_nothing_and_closes_nothing(
    cluster: Cluster, database: str, data: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its charge is spent. That it was slow is no fault of the engine, so it is no incident."""
    snapshot = type(data.curator.snapshot)
    run, ledger = snapshot.run, server_ledger(data)

    def run_slowly(self: object, certified: object) -> object:
        with cluster.superuser(database) as connection:
            connection.execute("UPDATE lapwing.worker SET lease_until = '2000-01-01' WHERE epoch = %s", [ledger.epoch])
        with DataSet(type(data.curator)(data.curator.path, home=data.curator.place.home)) as other:
            other.curator.balance()  # another worker, which ends this one
        return run(self, certified)  # type: ignore[arg-type]

    before = _spent(data)
    with monkeypatch.context() as slow, pytest.raises(LedgerError, match="charge-not-open"):
        slow.setattr(snapshot, "run", run_slowly)
        data.ask(BY_SEX, epsilon="0.2")
    assert _spent(data).loss > before.loss and not data.curator.balance().closed
    assert not data.ask(BY_SEX, epsilon="0.2").cost.free


def test_a_budget_raised_in_the_catalogue_is_proposed_and_does_not_stop_a_preparation(wired: Wired, data: DataSet) -> None:
    data.close()
    wired.edit("epsilon = 3 ", "epsilon = 4 ")
    with wired.open() as owner:
        for _ in range(2):
            owner.prepare()
        ledger = server_ledger(owner)
        [proposal] = policy.proposals(ledger)
        assert (proposal.kind, proposal.by, proposal.state) == ("budget", system_user(), "open")
        assert owner.curator.balance().budget.epsilon == 3
        with pytest.raises(CatalogueError, match="second-person"):
            policy.approve(ledger, proposal.proposal_id, by=system_user())
        with pytest.raises(CatalogueError, match="second-person"):
            policy.approve(ledger, proposal.proposal_id, by="olga")
        policy.deny(ledger, proposal.proposal_id, by="olga")
        owner.prepare()
        assert len(policy.proposals(ledger)) == 1, "what was denied is not proposed again by itself"
        number = policy.propose_budget(ledger, owner.curator.declaration.budget(), by=system_user(), reason="please")
        second = copy(ledger)
        second._connection = Connection(wired.dsn.replace(APP_ROLE, SECOND_ROLE), schema_version=SCHEMA_VERSION)
        policy.approve(second, number, by="olga")
        second._connection.close()
        owner.prepare()
        assert owner.curator.balance().budget.epsilon == 4 and len(policy.proposals(ledger)) == 2
    wired.edit("epsilon = 4 ", "epsilon = 2 ")
    with wired.open() as owner:
        owner.prepare()
        assert owner.curator.balance().budget.epsilon == 2, "one person may lower it"


def test_statistics_are_bought_by_the_owner_unless_suspended(data: DataSet) -> None:
    terms = {one.analyst: one for one in overview.analysts(server_ledger(data))}
    assert terms["owner"].share.spent.loss > 0 and terms["ana"].share.spent.loss == 0


def test_a_source_never_gets_a_second_ledger(wired: Wired, data: DataSet) -> None:
    data.close()
    wired.edit(wired.section(), "")
    with wired.open() as without, pytest.raises(LedgerError, match="ledger-elsewhere"):
        without.prepare()
    assert not (wired.directory / ".lapwing" / "ledger.sqlite").exists()


def test_a_local_ledger_is_moved_and_not_left_behind(wired: Wired) -> None:
    wired.edit(wired.section(), "")
    with wired.open() as local:
        local.prepare()
    wired.add_section()
    with wired.open() as moved, pytest.raises(LedgerError, match="ledger-not-moved") as refused:
        moved.prepare()
    assert "lapwing ledger move" in refused.value.hint
    (wired.directory / ".lapwing" / "ledger.sqlite").unlink()
    with wired.open() as lost, pytest.raises(CatalogueError, match="source-registered"):
        lost.prepare()


def test_a_database_without_a_ledger_is_not_asked(wired: Wired) -> None:
    with wired.open() as unprepared, pytest.raises(LedgerError, match="ledger-missing"):
        unprepared.curator.balance()


def test_without_a_key_nothing_is_made(wired: Wired) -> None:
    for key in wired.keys.glob("*.private.pem"):
        key.unlink()
    with wired.open() as unsigned, pytest.raises(LedgerError, match="signing-key") as refused:
        unsigned.prepare()
    assert "lapwing receipt key" in refused.value.hint
    assert not (wired.base / "anchors").exists()
    assert [path.name for path in (wired.directory / ".lapwing").iterdir()] == ["prepare.lock"]


def test_without_the_extra_it_says_how_to_get_it(wired: Wired, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with wired.open() as bare, pytest.raises(LedgerError, match="extra-missing") as refused:
        bare.prepare()
    assert refused.value.hint == "pip install 'lapwing[postgres]'"


def test_a_local_ledger_signs_too_if_a_key_is_named(wired: Wired) -> None:
    wired.edit(wired.section(), '\n[ledger]\nkeys = "../keys"\n')
    with wired.open() as local:
        local.prepare()
        first = local.ask(BY_SEX, epsilon="0.2")
        again = local.ask(BY_SEX, epsilon="0.2", analyst="somebody else")
    assert first.receipt is not None and first.stored is not None and again.receipt is not None
    assert (first.receipt.statement.analyst, again.receipt.statement.analyst) == ("local", "")
    check(first.receipt, wired.keys, answer=first.stored)
    with pytest.raises(LedgerError, match="receipt-invalid"):
        check(first.receipt, wired.keys, answer=first.stored + b" ")


def test_a_local_ledger_without_a_key_gives_no_receipt(wired: Wired) -> None:
    wired.edit(wired.section(), "")
    with wired.open() as local:
        local.prepare()
        answer = local.ask(BY_SEX, epsilon="0.2")
    assert answer.receipt is None and answer.stored is not None


def test_the_environment_says_where_and_never_whether(wired: Wired) -> None:
    with wired.open() as named:
        declaration = named.curator.declaration
    wired.edit(wired.section(), "")
    with wired.open() as local:
        bare = local.curator.declaration
    environment = {"LAPWING_DATABASE": "service=other", "LAPWING_ANCHORS": "/elsewhere", "LAPWING_KEYS": "/keys"}
    there = place_of(declaration, local=Path("l"), home=None, query_timeout_seconds=600, environment=environment)
    assert there.server is not None and (there.server.database, there.server.anchors) == ("service=other", Path("/elsewhere"))
    assert there.keys == Path("/keys")
    here = place_of(bare, local=Path("l"), home=None, query_timeout_seconds=600, environment=environment)
    assert here.server is None and here.keys == Path("/keys")


@pytest.mark.parametrize("timeout_seconds", [1, 600, 10_000])
def test_two_thirds_of_a_lease_outlast_the_longest_statement(wired: Wired, timeout_seconds: int) -> None:
    with wired.open() as named:
        declaration = named.curator.declaration
    place = place_of(declaration, local=Path("l"), home=None, query_timeout_seconds=timeout_seconds, environment={})
    assert place.server is not None
    assert place.server.lease_seconds * 2 >= timeout_seconds * 3 and place.server.lease_seconds >= LEASE_SECONDS_MIN


def test_an_error_of_the_ledger_names_no_value(wired: Wired, data: DataSet) -> None:
    """The texts that analysts see hold names and amounts that they gave themselves."""
    policy.set_limits(server_ledger(data), policy.Limits())
    with pytest.raises(LapwingError) as refused:
        data.ask(BY_SEX, epsilon="2.99")
    assert refused.value.code == "budget-exceeded" and not any(character.isdigit() for character in refused.value.message)
