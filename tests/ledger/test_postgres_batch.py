"""Several reservations in one statement come out as they would one by one, whatever limits there are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lapwing.errors import LapwingError, LedgerError
from lapwing.kernel.accounting import Cost
from lapwing.kernel.permit import Permit
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.batch import REQUESTS_MAX
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.policy import Limits
from lapwing.ledger.postgres.verify import verify
from lapwing.ledger.protocol import Request, StoredAnswer
from tests.ledger.cluster import Cluster
from tests.ledger.pg import Place, new_place
from tests.ledger.support import approximate_budget, pure_budget, request

Told = str | tuple[str, object]


def told(result: object) -> Told:
    """What of a result does not depend on chance."""
    match result:
        case Permit():
            return ("permit", result.cost)
        case StoredAnswer():
            return ("stored", result.payload)
        case LapwingError():
            return result.code
    raise AssertionError(result)


def one_by_one(ledger: PostgresLedger, requests: list[Request]) -> list[Told]:
    found: list[Told] = []
    for one in requests:
        try:
            found.append(told(ledger.reserve(one)))
        except LapwingError as error:
            found.append(error.code)
    return found


LIMITS = ("budget", "delta", "statement", "day", "analyst", "analyst delta", "analyst day", "group", "group delta")


def limited(place: Place, limit: str, *, loss: int, delta: int) -> PostgresLedger:
    """A ledger in which ana and bo, who are a group, have this much left by one limit and enough by every other."""
    budget = approximate_budget()
    ledger = place.create(budget)
    spent = Cost(loss=budget.loss_total - loss if limit == "budget" else 5, delta=budget.delta_total - delta if limit == "delta" else 5)
    for name in ("zoe", "ana", "bo"):  # yesterday's
        policy.admit(ledger, name)
    for name, cost in (("zoe", spent), ("ana", Cost(loss=5, delta=5))):
        cost = cost if name == "zoe" or limit not in ("budget", "delta") else Cost(loss=0, delta=0)
        if cost.loss:
            assert isinstance(ledger.reserve(request("before", analyst=name, loss=cost.loss, delta=cost.delta)), Permit)
    share = policy.analyst_share(ledger, "ana")
    assert share is not None
    paid = share.spent
    policy.set_group(
        ledger,
        "team",
        loss_total=loss if limit == "group" else None,
        delta_total=delta if limit == "group delta" else None,
    )
    for name in ("ana", "bo"):
        policy.admit(
            ledger,
            name,
            group="team",
            loss_total=paid.loss + loss if limit == "analyst" else None,
            delta_total=paid.delta + delta if limit == "analyst delta" else None,
            day_loss_max=paid.loss + loss if limit == "analyst day" else None,
        )
    spent_today = ledger.balance().spent.loss
    policy.set_limits(
        ledger,
        Limits(statement_loss_max=loss // 2 if limit == "statement" else None, day_loss_max=spent_today + loss if limit == "day" else None),
    )
    return ledger


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("missing", [0, 1])
def test_a_batch_meets_every_limit_as_one_by_one(cluster: Cluster, database: str, tmp_path: Path, limit: str, missing: int) -> None:
    """Three requests of which any two would fit: with one unit missing the batch must not be charged as a whole."""
    who = {"group": ("ana", "bo", "ana"), "group delta": ("ana", "bo", "ana")}.get(limit, ("ana", "ana", "ana"))
    requests = [request(f"{number}", analyst=name, loss=2, delta=2) for number, name in enumerate(who)]
    places = [new_place(cluster, database, tmp_path / f"{number}") for number in range(2)]
    left = {"loss": 3 if limit == "statement" and missing else 6 - missing, "delta": 6 - missing}
    with limited(places[0], limit, **left) as together, limited(places[1], limit, **left) as alone:
        results = [told(result) for result in together.reserve_many(requests)]
        assert results == one_by_one(alone, requests)
        assert (results == [("permit", Cost(loss=2, delta=2))] * 3) is not bool(missing)
        assert together.balance() == alone.balance()
        for name in ("ana", "bo"):
            assert policy.analyst_share(together, name) == policy.analyst_share(alone, name)
        assert policy.group_share(together, "team") == policy.group_share(alone, "team")
        assert verify(together.connection, places[0].source_id, anchors=places[0].anchors).problems == ()


@pytest.mark.parametrize(
    ("keys", "codes"),
    [
        (["committed", "a"], [("stored", b"answer"), ("permit", Cost(loss=1, delta=0))]),
        (["a", "forfeited"], [("permit", Cost(loss=1, delta=0)), "request-forfeited"]),
        (["reserved", "a"], ["request-in-progress", ("permit", Cost(loss=1, delta=0))]),
        (["a", "a"], [("permit", Cost(loss=1, delta=0)), "request-in-progress"]),
        (["a", "of a suspended analyst"], [("permit", Cost(loss=1, delta=0)), "analyst-unknown"]),
        (["a", "of nobody"], [("permit", Cost(loss=1, delta=0)), "analyst-unknown"]),
    ],
)
def test_a_key_that_was_used_or_an_analyst_who_may_not_ask_is_decided_alone(place: Place, keys: list[str], codes: list[Told]) -> None:
    with place.create() as ledger, place.open() as other:
        policy.admit(ledger, "of a suspended analyst", suspended=True)
        for key in ("committed", "forfeited", "reserved"):
            permit = other.reserve(request(key))
            assert isinstance(permit, Permit)
            if key == "committed":
                other.commit(permit, b"answer")
            if key == "forfeited":
                other.forfeit(permit, incident=False)
        requests = [request(key, analyst=key if key.startswith("of ") else "ana") for key in keys]
        assert [told(result) for result in ledger.reserve_many(requests)] == codes
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


def test_a_closed_data_set_refuses_all_of_a_batch(place: Place) -> None:
    with place.create() as ledger:
        ledger.close("closed")
        assert [told(result) for result in ledger.reserve_many([request("a"), request("b")])] == ["data-set-closed"] * 2
        assert ledger.balance().spent == Cost.zero()


def test_all_of_a_batch_that_fits_is_charged_together_and_can_be_committed(place: Place) -> None:
    with place.create(pure_budget(100)) as ledger, place.open() as other:
        results = ledger.reserve_many([request(f"{number}", analyst=("ana", "bo")[number % 2]) for number in range(100)])
        assert all(isinstance(result, Permit) for result in results)
        assert ledger.balance().remaining == Cost.zero()
        kept = place.anchors.newest(place.source_id)
        assert kept is not None and kept.spent == Cost(loss=100, delta=0)
        # Sent at once, so stamped at once: the fast way was taken, not a hundred single reservations.
        stamps = {entry.at for entry in ledger.history(limit=100)}
        assert len(stamps) == 1
        for number, result in enumerate(results):
            assert isinstance(result, Permit)
            ledger.commit(result, f"{number}".encode())
        assert Counter(type(result) for result in other.reserve_many([request("7", analyst="bo"), request("8")])) == {StoredAnswer: 2}
        assert verify(ledger.connection, place.source_id, anchors=place.anchors).problems == ()


def test_a_batch_sent_again_finds_its_own_charges(place: Place) -> None:
    with place.create(pure_budget(10)) as ledger:
        first = ledger.reserve_many([request("a", loss=2), request("b", loss=3)])
        assert [type(result) for result in first] == [Permit, Permit]
        nonces = [result.nonce for result in first if isinstance(result, Permit)]
        sent_again = ledger.connection.ask(
            "SELECT outcomes, o_charge_ids FROM lapwing.reserve_many(%s, %s, %s, '{ana,ana}', '{a,b}', %s, '{1,1}', '{SELECT 1,SELECT 1}',"
            " '{2,3}', '{0,0}', '{NULL,NULL}', 0, '', '{NULL,NULL}')",
            [ledger.ledger_id, ledger.epoch, nonces, ["plan of a", "plan of b"]],
            again=True,
        )
        assert sent_again == [(["permit", "permit"], [1, 2])]
        assert ledger.balance().spent == Cost(loss=5, delta=0)


def test_a_worker_that_was_taken_for_dead_goes_on_as_a_new_one(place: Place) -> None:
    with place.create() as ledger:
        permit = ledger.reserve(request("one"))
        assert isinstance(permit, Permit) and place.declare_dead(permit.charge_id)
        place.open().disconnect()
        assert [type(result) for result in ledger.reserve_many([request("two"), request("three")])] == [Permit, Permit]
        assert ledger.balance().spent == Cost(loss=3, delta=0)


def test_a_restored_database_gives_no_permit(place: Place, tmp_path: Path) -> None:
    with place.create() as ledger:
        assert isinstance(ledger.reserve(request("one")), Permit)
        place.execute(
            "SET session_replication_role = replica",
            f"DELETE FROM lapwing.entry WHERE ledger_id = '{ledger.ledger_id}' AND kind = 'reserve'",
            f"UPDATE lapwing.data_set SET entries = entries - 1, head = 'older' WHERE ledger_id = '{ledger.ledger_id}'",
        )
        assert [told(result) for result in ledger.reserve_many([request("two"), request("three")])] == ["ledger-rolled-back"] * 2


@pytest.mark.parametrize("size", [0, REQUESTS_MAX + 1])
def test_a_batch_has_a_size(place: Place, size: int) -> None:
    with place.create() as ledger:
        with pytest.raises(LedgerError) as refusal:
            ledger.reserve_many([request(f"{number}") for number in range(size)])
        assert refusal.value.code == "batch-size"
