"""``verify`` accepts what the protocol made, whatever happened, and sees every kind of change behind its back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.verify import sources, verify
from lapwing.ledger.verification import Verification
from tests.ledger.pg import Place
from tests.ledger.support import pure_budget, request


def a_life(place: Place, ledger: PostgresLedger) -> None:
    """Something of everything: answers, a forfeit, a group, limits, a raised budget, a closing, texts of every length."""
    policy.set_group(ledger, "team", loss_total=50)
    policy.admit(ledger, "bo", group="team", loss_total=20)
    policy.set_limits(ledger, policy.Limits(statement_loss_max=9), reason="careful: 5:a,-")
    for number in range(3):
        for analyst in ("ana", "bo"):
            permit = ledger.reserve(replace(request(f"{number}", loss=number + 1, analyst=analyst), summary="ünïcode, '\\\" 雪"))
            assert isinstance(permit, Permit)
            if number == 1:
                ledger.forfeit(permit, incident=analyst == "bo")
            else:
                ledger.commit(permit, f"{number} {analyst}".encode())
        if number == 1:
            ledger.reopen("")
    with place.in_another_role(ledger) as second:
        policy.approve(second, policy.propose_budget(ledger, pure_budget(70), by="olga", reason="x"), by="piet")


def checked(place: Place, ledger: PostgresLedger) -> Verification:
    return verify(ledger.connection, place.source_id, anchors=place.anchors)


def test_a_ledger_that_was_used_verifies(place: Place) -> None:
    with place.create(pure_budget(60), pure_budget(80)) as ledger:
        assert checked(place, ledger).problems == ()
        a_life(place, ledger)
        report = checked(place, ledger)
        assert report.problems == ()
        assert (report.charges, report.answers, report.spent) == (6, 4, Cost(loss=12, delta=0))
        assert report.entries == ledger.state().entries and report.anchored_entries is not None
        assert place.source_id in sources(ledger.connection)


CHANGES = {
    "UPDATE lapwing.entry SET detail = detail || '.' WHERE {this} AND entry_id = 3": "the chain is broken",
    "UPDATE lapwing.entry SET loss = loss + 1 WHERE {this} AND kind = 'reserve' AND charge_id = 2": "the amount spent is not the sum",
    "DELETE FROM lapwing.entry WHERE {this} AND entry_id = 4": "an entry is missing",
    "DELETE FROM lapwing.entry WHERE {this} AND entry_id = (SELECT entries FROM lapwing.data_set WHERE {this})": "the state is not that",
    "UPDATE lapwing.data_set SET loss_spent = loss_spent - 1 WHERE {this}": "the amount spent is not the sum",
    "UPDATE lapwing.data_set SET closed = true WHERE {this}": "the data set is open where",
    "UPDATE lapwing.data_set SET budget = ceiling, loss_total = loss_ceiling WHERE {this}": "the budget or the ceiling",
    "UPDATE lapwing.data_set SET loss_total = loss_total + 1 WHERE {this}": "a total that charges are compared with",
    "UPDATE lapwing.data_set SET loss_ceiling = loss_ceiling + 1 WHERE {this}": "a total that charges are compared with",
    "UPDATE lapwing.data_set SET delta_total = delta_total + 1, delta_ceiling = delta_ceiling + 1 WHERE {this}": "a total that charges",
    "UPDATE lapwing.data_set SET day_loss_max = 3 WHERE {this}": "no entry set the limits",
    "UPDATE lapwing.data_set SET lost_workers_max = 99 WHERE {this}": "no entry set the limits",
    "UPDATE lapwing.data_set SET day_loss = 0 WHERE {this}": "what was charged on the newest day",
    "UPDATE lapwing.data_set SET day = day - 1 WHERE {this}": "what was charged on the newest day",
    "UPDATE lapwing.analyst SET day_loss = day_loss - 1 WHERE {this} AND analyst = 'ana'": "what was charged on the newest day",
    "UPDATE lapwing.analyst SET day = NULL WHERE {this} AND analyst = 'bo'": "what was charged on the newest day",
    "UPDATE lapwing.data_set SET anchors = '{a}' WHERE {this}": "no entry set the anchors",
    "UPDATE lapwing.data_set SET anchors = '{}' WHERE {this}": "no entry set the anchors",
    "UPDATE lapwing.proposal SET loss_total = loss_total + 1 WHERE {this}": "a proposal is not the one that was made",
    "UPDATE lapwing.proposal SET proposed_role = 'x' WHERE {this}": "a proposal is not the one that was made",
    "UPDATE lapwing.data_set SET statement_loss_max = NULL WHERE {this}": "no entry set the limits",
    "UPDATE lapwing.analyst SET loss_total = 49 WHERE {this} AND analyst = 'bo'": "no entry set the analyst",
    "UPDATE lapwing.analyst_group SET loss_total = 51 WHERE {this}": "no entry set the group",
    "UPDATE lapwing.analyst SET loss_spent = 0 WHERE {this}": "what an analyst has spent",
    "UPDATE lapwing.charge SET summary = '' WHERE {this} AND charge_id = 1": "a charge is not the one that was reserved",
    "UPDATE lapwing.charge SET state = 'forfeited', payload = NULL, payload_digest = NULL WHERE {this}": "a charge is not in",
    "DELETE FROM lapwing.analyst WHERE {this} AND analyst = 'ana'": "an analyst or a group is missing",
    "UPDATE lapwing.charge SET payload = 'x' WHERE {this} AND charge_id = 1": "an answer is not the one",
    "DELETE FROM lapwing.charge WHERE {this} AND charge_id = 1": "a charge is missing",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_behind_its_back_is_seen(place: Place, change: str) -> None:
    with place.create(pure_budget(60), pure_budget(80)) as ledger:
        a_life(place, ledger)
        # Whoever can do this owns the database: triggers are off for the length of the change.
        place.execute("SET session_replication_role = replica", change.replace("{this}", f"ledger_id = '{ledger.ledger_id}'"))
        problems = checked(place, ledger).problems
        assert any(problem.startswith(CHANGES[change]) for problem in problems), problems


def test_a_history_cut_off_and_made_consistent_again_is_behind_its_anchor(place: Place) -> None:
    with place.create(pure_budget(60), pure_budget(80)) as ledger:
        ledger.commit(_permit(ledger, "kept"), b"kept")
        state = ledger.state()
        _permit(ledger, "cut off")
        this = f"ledger_id = '{ledger.ledger_id}'"
        place.execute(
            "SET session_replication_role = replica",
            f"DELETE FROM lapwing.entry WHERE {this} AND entry_id > {state.entries}",
            f"DELETE FROM lapwing.charge WHERE {this} AND charge_id > 1",
            f"UPDATE lapwing.data_set SET entries = {state.entries}, head = '{state.head}', charges = 1, loss_spent = 1, day_loss = 1"
            f" WHERE {this}",
            f"UPDATE lapwing.analyst SET loss_spent = 1, day_loss = 1 WHERE {this} AND analyst = 'ana'",
        )
        [alone] = verify(ledger.connection, place.source_id, anchors=None).problems
        assert alone.startswith("[anchor-missing]"), "the database agrees with itself, and nobody says that this is enough"
        assert checked(place, ledger).problems == ("the ledger is behind its anchor",)


def _permit(ledger: PostgresLedger, key: str) -> Permit:
    permit = ledger.reserve(request(key))
    assert isinstance(permit, Permit)
    return permit
