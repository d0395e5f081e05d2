"""The protocol, one process: charge, replay, settle, refuse."""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import BudgetRefused, CatalogueError, LapwingError, LedgerError, Refused
from lapwing.kernel.accounting import DELTA_UNITS, Account, Cost, budget_for
from lapwing.kernel.permit import Permit, issue
from lapwing.ledger.limits import HISTORY_ENTRIES_MAX, NAME_CHARACTERS_MAX, PAYLOAD_BYTES_MAX
from lapwing.ledger.protocol import RECORDABLE, EntryKind, Ledger, StoredAnswer
from tests.ledger.support import (
    approximate_budget,
    declare_dead,
    ledger_path,
    new_ledger,
    open_ledger,
    pure_budget,
    request,
    require_own_first,
)


def permit_for(ledger: Ledger, key: str, *, loss: int = 1, delta: int = 0, digest: str | None = None) -> Permit:
    outcome = ledger.reserve(request(key, loss=loss, delta=delta, digest=digest))
    assert isinstance(outcome, Permit)
    return outcome


def test_a_charge_is_spent_when_it_is_reserved_and_stays_so(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        permit = permit_for(ledger, "one", loss=4)
        assert (permit.charge_id, permit.digest, permit.cost) == (1, "plan of one", Cost(loss=4, delta=0))
        assert ledger.balance().spent == Cost(loss=4, delta=0)
        assert ledger.balance().remaining == Cost(loss=6, delta=0)
        ledger.commit(permit, b"answer")
        assert ledger.balance().spent == Cost(loss=4, delta=0)
        forfeited = permit_for(ledger, "two", loss=5)
        ledger.forfeit(forfeited, incident=False)
        assert ledger.balance().spent == Cost(loss=9, delta=0)
    with open_ledger(tmp_path) as ledger:
        assert ledger.balance().spent == Cost(loss=9, delta=0)


def test_the_budget_is_used_to_the_last_unit_and_not_one_further(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        permit_for(ledger, "most", loss=9)
        with pytest.raises(BudgetRefused) as refusal:
            ledger.reserve(request("two more", loss=2))
        assert refusal.value.code == "budget-exceeded"
        permit_for(ledger, "last", loss=1)
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("one more", loss=1))
        assert ledger.balance().remaining == Cost.zero()


def test_delta_runs_out_on_its_own(tmp_path: Path) -> None:
    budget = approximate_budget()
    with new_ledger(tmp_path, budget=budget) as ledger:
        permit_for(ledger, "all of delta", loss=1, delta=budget.delta_total)
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("one unit of delta", loss=1, delta=1))
        permit_for(ledger, "no delta", loss=budget.loss_total - 1)


def test_amounts_beyond_64_bits_are_exact(tmp_path: Path) -> None:
    budget = budget_for(epsilon=Fraction(10**9), delta=Fraction(1, 2), delta_keys_share=Fraction(999, 1000))
    assert budget.loss_total > 2**64 and budget.delta_total > 2**64
    with new_ledger(tmp_path, budget=budget) as ledger:
        permit_for(ledger, "almost all", loss=budget.loss_total - 1, delta=budget.delta_total - 1)
        assert ledger.balance().remaining == Cost(loss=1, delta=1)
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("too much", loss=1, delta=2))
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("absurd", loss=10**60, delta=10 * DELTA_UNITS))
        permit_for(ledger, "the rest", loss=1, delta=1)
    with open_ledger(tmp_path) as ledger:
        assert ledger.balance().budget == budget
        assert ledger.balance().remaining == Cost.zero()


def test_a_pure_data_set_cannot_be_charged_delta(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        assert ledger.balance().budget.account is Account.PURE
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("keys", loss=1, delta=1))


def test_nothing_reads_the_data_for_free(tmp_path: Path) -> None:
    with new_ledger(tmp_path, budget=approximate_budget()) as ledger:
        for delta in (0, 1):
            with pytest.raises(Refused) as refusal:
                ledger.reserve(request("free", loss=0, delta=delta))
            assert refusal.value.code == "zero-cost"
        assert [entry.kind for entry in ledger.history()] == [EntryKind.REGISTER]


def test_replay_returns_the_same_bytes_and_charges_nothing(tmp_path: Path) -> None:
    payload = bytes(range(256)) * 100
    with new_ledger(tmp_path) as ledger:
        ledger.commit(permit_for(ledger, "one", loss=7), payload)
        assert ledger.reserve(request("one", loss=7)) == StoredAnswer(charge_id=1, payload=payload)
    with open_ledger(tmp_path) as ledger:
        assert ledger.reserve(request("one", loss=7)) == StoredAnswer(charge_id=1, payload=payload)
        assert ledger.find("plan of one") == StoredAnswer(charge_id=1, payload=payload)
        assert ledger.balance().spent == Cost(loss=7, delta=0)


def test_find_gives_the_answer_that_was_committed_first_whoever_paid(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        assert ledger.find("shared") is None
        open_permit = permit_for(ledger, "open", digest="shared")
        assert ledger.find("shared") is None
        ledger.commit(permit_for(ledger, "first", digest="shared"), b"1")
        outcome = ledger.reserve(request("second", digest="shared", analyst="bo"))
        assert isinstance(outcome, Permit)
        ledger.commit(outcome, b"2")
        ledger.commit(open_permit, b"0")  # reserved before the others, and too late to be the one that is given
        assert open_permit.charge_id < outcome.charge_id
        assert ledger.find("shared") == StoredAnswer(charge_id=outcome.charge_id - 1, payload=b"1")


def test_what_was_bought_is_listed_by_how_its_summary_begins(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        for key, summary in (("a", "release x"), ("b", "SELECT 1"), ("c", "release y"), ("d", "rel%")):
            permit = ledger.reserve(replace(request(key), summary=summary))
            assert isinstance(permit, Permit)
            ledger.commit(permit, b"")
        assert [one.summary for one in ledger.bought(version=1, limit=9, begins="release ")] == ["release y", "release x"]
        assert [one.summary for one in ledger.bought(version=1, limit=2, begins="release ")] == ["release y"], "of the newest two"
        assert [one.summary for one in ledger.bought(version=1, limit=9, begins="rel%")] == ["rel%"]
        assert len(ledger.bought(version=1, limit=9)) == 4


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        ledger.commit(permit_for(ledger, "one"), b"")
        assert ledger.reserve(request("one")) == StoredAnswer(charge_id=1, payload=b"")


def test_keys_belong_to_an_analyst(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        ledger.commit(permit_for(ledger, "same id"), b"ana's")
        outcome = ledger.reserve(request("same id", analyst="bo"))
        assert isinstance(outcome, Permit)
        assert ledger.balance().spent == Cost(loss=2, delta=0)


def test_a_key_that_was_used_gets_what_became_of_it(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        permit = permit_for(ledger, "one")
        with pytest.raises(Refused) as refusal:
            ledger.reserve(request("one"))
        assert refusal.value.code == "request-in-progress"
        with pytest.raises(Refused) as refusal:
            ledger.reserve(request("one", digest="another plan"))
        assert refusal.value.code == "request-mismatch"
        ledger.forfeit(permit, incident=False)
        with pytest.raises(Refused) as refusal:
            ledger.reserve(request("one"))
        assert refusal.value.code == "request-forfeited"
        assert ledger.balance().spent == Cost(loss=1, delta=0)


def test_a_permit_settles_one_charge_once(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        permit = permit_for(ledger, "one")
        ledger.commit(permit, b"first")
        with pytest.raises(LedgerError) as error:
            ledger.commit(permit, b"second")
        assert error.value.code == "charge-not-open"
        with pytest.raises(LedgerError) as error:
            ledger.forfeit(permit, incident=False)
        assert error.value.code == "charge-not-open"
        assert ledger.find("plan of one") == StoredAnswer(charge_id=1, payload=b"first")


@pytest.mark.parametrize(
    "forged",
    [
        issue(99, "plan of one", Cost(loss=2, delta=0)),
        issue(1, "another plan", Cost(loss=2, delta=0)),
        issue(1, "plan of one", Cost(loss=1, delta=0)),
        issue(1, "plan of one", Cost(loss=2, delta=1)),
    ],
)
def test_a_permit_that_was_never_given_settles_nothing(tmp_path: Path, forged: Permit) -> None:
    with new_ledger(tmp_path) as ledger:
        permit = permit_for(ledger, "one", loss=2)
        with pytest.raises(LedgerError) as error:
            ledger.commit(forged, b"forged")
        assert error.value.code == "charge-not-open"
        ledger.commit(permit, b"true")


def test_another_use_of_the_ledger_cannot_settle_our_charge(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger, open_ledger(tmp_path) as other:
        permit = permit_for(ledger, "one")
        with pytest.raises(LedgerError) as error:
            other.commit(permit, b"theirs")
        assert error.value.code == "charge-not-open"
        ledger.commit(permit, b"ours")


def test_reservations_of_a_live_process_survive_an_open(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        permit = permit_for(ledger, "one")
        with open_ledger(tmp_path) as other:
            with pytest.raises(Refused) as refusal:
                other.reserve(request("one"))
            assert refusal.value.code == "request-in-progress"
        ledger.commit(permit, b"answer")


def test_a_process_declared_dead_cannot_commit(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as zombie:
        permit = permit_for(zombie, "one")
        assert declare_dead(ledger_path(tmp_path), permit.charge_id)
        with open_ledger(tmp_path) as ledger:
            assert ledger.history()[0].kind is EntryKind.FORFEIT
            with pytest.raises(LedgerError) as error:
                zombie.commit(permit, b"too late")
            assert error.value.code == "charge-not-open"
            with pytest.raises(Refused) as refusal:
                ledger.reserve(request("one"))
            assert refusal.value.code == "request-forfeited"
            assert ledger.balance().spent == Cost(loss=1, delta=0)


def test_asking_again_after_the_other_process_died_needs_no_open(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger, open_ledger(tmp_path) as doomed:
        permit = permit_for(doomed, "one")
        declare_dead(ledger_path(tmp_path), permit.charge_id)
        for _ in range(2):
            with pytest.raises(Refused) as refusal:
                ledger.reserve(request("one"))
            assert refusal.value.code == "request-forfeited"
        assert [entry.kind for entry in ledger.history(limit=2)] == [EntryKind.FORFEIT, EntryKind.RESERVE]


def test_disconnecting_forfeits_what_is_still_reserved(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    permit = permit_for(ledger, "one")
    ledger.disconnect()
    ledger.disconnect()
    with pytest.raises(LedgerError) as error:
        ledger.commit(permit, b"late")
    assert error.value.code == "ledger-disconnected"
    with open_ledger(tmp_path) as again:
        assert again.history()[0].kind is EntryKind.FORFEIT
        assert again.balance().spent == Cost(loss=1, delta=0)


def test_an_incident_closes_the_data_set_until_the_owner_acts(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        stored = permit_for(ledger, "stored")
        ledger.commit(stored, b"stored")
        running = permit_for(ledger, "running")
        ledger.forfeit(permit_for(ledger, "failed"), incident=True)
        assert ledger.balance().closed
        for key in ("new", "stored", "failed"):
            with pytest.raises(Refused) as refusal:
                ledger.reserve(request(key))
            assert refusal.value.code == "data-set-closed"
        ledger.commit(running, b"already paid for")
    with open_ledger(tmp_path) as ledger:
        assert ledger.balance().closed
        ledger.reopen("the cause was found")
        permit_for(ledger, "new")
        assert [entry.kind for entry in reversed(ledger.history(limit=5))] == [
            EntryKind.FORFEIT,
            EntryKind.CLOSE,
            EntryKind.COMMIT,
            EntryKind.REOPEN,
            EntryKind.RESERVE,
        ]


def test_an_incident_closes_the_data_set_even_when_the_charge_was_closed_before(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        permit = permit_for(ledger, "one")
        ledger.forfeit(permit, incident=False)
        with pytest.raises(LedgerError) as error:
            ledger.forfeit(permit, incident=True)
        assert error.value.code == "charge-not-open"
        assert ledger.balance().closed


def test_the_owner_closes_and_reopens(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        ledger.close("holidays")
        with pytest.raises(Refused):
            ledger.reserve(request("one"))
        ledger.reopen("back")
        permit_for(ledger, "one")
        assert [(entry.kind, entry.detail) for entry in ledger.history(limit=3)][1:] == [
            (EntryKind.REOPEN, "back"),
            (EntryKind.CLOSE, "holidays"),
        ]


def test_the_budget_moves_between_what_is_spent_and_the_ceiling(tmp_path: Path) -> None:
    with new_ledger(tmp_path, budget=pure_budget(10), ceiling=pure_budget(20)) as ledger:
        permit_for(ledger, "eight", loss=8)
        ledger.set_budget(pure_budget(20), reason="a second study")
        permit_for(ledger, "seven", loss=7)
        with pytest.raises(CatalogueError) as error:
            ledger.set_budget(pure_budget(21), reason="more")
        assert error.value.code == "budget-above-ceiling"
        with pytest.raises(CatalogueError) as error:
            ledger.set_budget(pure_budget(14), reason="less")
        assert error.value.code == "budget-below-spent"
        ledger.set_budget(pure_budget(15), reason="no more")
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("one more"))
        ledger.raise_ceiling(pure_budget(30), reason="the board agreed")
        with pytest.raises(BudgetRefused):
            ledger.reserve(request("one more"))
        ledger.set_budget(pure_budget(30), reason="use it")
        permit_for(ledger, "fifteen", loss=15)
        with pytest.raises(CatalogueError) as error:
            ledger.raise_ceiling(pure_budget(29), reason="lower")
        assert error.value.code == "budget-above-ceiling"
    with open_ledger(tmp_path) as ledger:
        balance = ledger.balance()
        assert (balance.budget, balance.ceiling, balance.spent.loss) == (pure_budget(30), pure_budget(30), 30)


def test_the_account_and_the_deltas_are_fixed_for_life(tmp_path: Path) -> None:
    with new_ledger(tmp_path, budget=approximate_budget(1), ceiling=approximate_budget(2)) as ledger:
        with pytest.raises(CatalogueError) as error:
            ledger.set_budget(pure_budget(1), reason="pure")
        assert error.value.code == "budget-account"
        with pytest.raises(CatalogueError) as error:
            ledger.set_budget(approximate_budget(1, Fraction(1, 2**41)), reason="a smaller delta converts differently")
        assert error.value.code == "budget-delta"


def test_a_budget_above_its_ceiling_makes_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError) as error:
        new_ledger(tmp_path, budget=pure_budget(3), ceiling=pure_budget(2))
    assert error.value.code == "budget-above-ceiling"
    assert not ledger_path(tmp_path).exists()


def test_owners_acts_are_recorded_but_not_forged(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        ledger.record(EntryKind.VERSION, "version 2")
        assert (ledger.history()[0].kind, ledger.history()[0].detail) == (EntryKind.VERSION, "version 2")
        for kind in set(EntryKind) - RECORDABLE:
            with pytest.raises(LedgerError) as error:
                ledger.record(kind, "forged")
            assert error.value.code == "entry-kind"


def test_history_is_newest_first_and_limited(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        ledger.commit(permit_for(ledger, "one", loss=3), b"answer")
        entries = ledger.history()
        assert [entry.entry_id for entry in entries] == [3, 2, 1]
        assert [entry.kind for entry in entries] == [EntryKind.COMMIT, EntryKind.RESERVE, EntryKind.REGISTER]
        assert [entry.cost.loss for entry in entries] == [0, 3, 0]
        assert entries[1].analyst == "ana" and entries[1].detail == "SELECT 'one'" and entries[1].charge_id == 1
        assert entries[1].at.endswith("+00:00")
        assert ledger.history(limit=1) == entries[:1]
        for limit in (0, HISTORY_ENTRIES_MAX + 1):
            with pytest.raises(LedgerError) as error:
                ledger.history(limit=limit)
            assert error.value.code == "history-limit"


@pytest.mark.parametrize("text", ["", "x" * (NAME_CHARACTERS_MAX + 1), "nul\0", "half \ud800 pair"])
def test_names_that_cannot_be_stored_are_refused(tmp_path: Path, text: str) -> None:
    with new_ledger(tmp_path) as ledger:
        for bad in (request(text), request("k", analyst=text), request("k", digest=text)):
            with pytest.raises(Refused) as refusal:
                ledger.reserve(bad)
            assert refusal.value.code == "request-invalid"
        with pytest.raises(Refused) as refusal:
            ledger.reserve(request("k", version=-1))
        assert refusal.value.code == "request-invalid"
        permit_for(ledger, "x" * NAME_CHARACTERS_MAX, digest="x" * NAME_CHARACTERS_MAX)


def test_an_answer_that_cannot_be_stored_leaves_the_charge_open_to_be_forfeited(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as ledger:
        permit = permit_for(ledger, "one")
        with pytest.raises(LedgerError) as error:
            ledger.commit(permit, bytes(PAYLOAD_BYTES_MAX + 1))
        assert error.value.code == "answer-too-large"
        ledger.forfeit(permit, incident=False)


def test_threads_share_one_ledger(tmp_path: Path) -> None:
    outcomes: list[str] = []

    def spend(name: str) -> None:
        for number in range(10):
            try:
                outcome = ledger.reserve(request(f"{name}-{number}"))
            except LapwingError as error:
                outcomes.append(error.code)
            else:
                assert isinstance(outcome, Permit)
                ledger.commit(outcome, name.encode())
                outcomes.append("answered")

    with new_ledger(tmp_path, budget=pure_budget(25)) as ledger:
        threads = [threading.Thread(target=spend, args=[f"thread {number}"]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.balance().spent == Cost(loss=25, delta=0)
    assert sorted(outcomes) == ["answered"] * 25 + ["budget-exceeded"] * 15


def test_the_local_ledger_is_a_ledger(tmp_path: Path) -> None:
    with new_ledger(tmp_path) as local:
        ledger: Ledger = local  # the type checker reads the whole protocol here
        assert ledger.balance().spent == Cost.zero()


def test_a_request_finds_what_it_paid_for_itself_before_what_others_paid(tmp_path: Path) -> None:
    """Two may pay for the same plan at the same time. Each gets its own answer again; whoever paid for nothing gets the first."""
    with new_ledger(tmp_path, budget=pure_budget(20)) as ledger:
        require_own_first(ledger)
