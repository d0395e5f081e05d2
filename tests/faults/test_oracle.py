"""The oracle sees what it is there for: a sound history of a real ledger is passed, and each way to falsify it is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faults import history
from tests.faults.history import Event, What
from tests.faults.oracle import Charge, LedgerState, recovered, refunds, violations
from tests.faults.rounds import new_bench
from tests.faults.worker import Act, Mode, Plan, Steps, live
from tests.ledger.cluster import Cluster

Seen = tuple[list[Event], LedgerState]


@pytest.fixture(scope="module")
def sound(fault_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """One client: four answers, two of them for the same key, one failure, one refusal for a key that was used, one for the budget."""
    bench = new_bench(fault_cluster, tmp_path_factory.mktemp("sound"), data_sets=1)
    [(source_id, unit, _)] = bench.sources
    acts = (
        Act(source_id, "one", unit, 0, Mode.ANSWER),
        Act(source_id, "two", 3 * unit, 0, Mode.ANSWER),
        Act(source_id, "two", 3 * unit, 0, Mode.FIND),
        Act(source_id, "failed", 2 * unit, 0, Mode.FAIL),
        Act(source_id, "one", unit, 0, Mode.ANSWER, other_plan=True),
        Act(source_id, "failed", 2 * unit, 0, Mode.ANSWER),
        Act(source_id, "dear", 10**9 * unit, 0, Mode.ANSWER),
    )
    plan = Plan(dsn=bench.dsn, anchors=bench.anchors.directory, acts=acts)
    write = history.writer(bench.history_file)
    live(plan, write, Steps(plan, write))
    events = bench.events()
    state, found = recovered(bench.dsn, source_id, anchors=bench.anchors, history=events)
    assert found == []
    assert [event.code for event in events if event.what == What.REFUSED] == ["request-mismatch", "request-forfeited", "budget-exceeded"]
    assert sum(event.what == What.SENT for event in events) == 4
    return events, state


def judged(events: Sequence[Event], state: LedgerState) -> list[str]:
    return violations(events, state, settled=True)


def first(events: Sequence[Event], what: What, key: str) -> int:
    return next(number for number, event in enumerate(events) if event.what == what and event.key == key)


def changed_event(what: What, key: str, /, **fields: Any) -> Callable[[Seen], Seen]:
    """The same history, with one event falsified."""

    def change(seen: Seen) -> Seen:
        events, state = list(seen[0]), seen[1]
        number = first(events, what, key)
        events[number] = replace(events[number], **fields)
        return events, state

    return change


def more_events(what: What, key: str, /, **fields: Any) -> Callable[[Seen], Seen]:
    """The same history, with one event a second time, falsified."""

    def change(seen: Seen) -> Seen:
        events, state = list(seen[0]), seen[1]
        return [*events, replace(events[first(events, what, key)], **fields)], state

    return change


def changed_charge(key: str, /, **fields: Any) -> Callable[[Seen], Seen]:
    """The same history, with one charge falsified behind its back."""

    def change(seen: Seen) -> Seen:
        events, state = seen
        charges = tuple(replace(charge, **fields) if charge.key == key else charge for charge in state.charges)
        return list(events), replace(state, charges=charges)

    return change


def changed_state(**fields: Any) -> Callable[[Seen], Seen]:
    return lambda seen: (seen[0], replace(seen[1], **fields))


def without_charge(key: str) -> Callable[[Seen], Seen]:
    """As if the charge had never been durable: its row and its entries are gone, and the sums agree."""

    def change(seen: Seen) -> Seen:
        events, state = seen
        gone = next(charge for charge in state.charges if charge.key == key)
        log = tuple(entry for entry in state.log if entry.charge_id != gone.charge_id)
        renumbered = tuple(replace(entry, entry_id=number) for number, entry in enumerate(log, 1))
        return events, replace(
            state,
            charges=tuple(charge for charge in state.charges if charge != gone),
            log=renumbered,
            entries=len(renumbered),
            head=renumbered[-1].chained,
            loss_spent=state.loss_spent - gone.loss,
        )

    return change


def second_charge(seen: Seen) -> Seen:
    events, state = seen
    copy: Charge = replace(state.charges[0], charge_id=99)
    return events, replace(state, charges=(*state.charges, copy), loss_spent=state.loss_spent + copy.loss)


CASES: dict[str, tuple[Callable[[Seen], Seen], str]] = {
    "one unit more is spent than the budget has": (
        lambda seen: (seen[0], replace(seen[1], loss_total=seen[1].loss_spent - 1)),
        "overspent",
    ),
    "the sum is one too small": (lambda seen: (seen[0], replace(seen[1], loss_spent=seen[1].loss_spent - 1)), "the charges do not add up"),
    "a delta that nobody charged": (changed_state(delta_spent=1), "the entries do not add up"),
    "a permit whose charge is gone": (without_charge("failed"), "permit without its charge: failed"),
    "data read without a charge": (more_events(What.RUNNING, "one", key="never"), "running without its charge: never"),
    "an answer whose charge is gone": (without_charge("one"), "sent without a committed charge: one"),
    "an answer before its commit": (changed_charge("one", state="reserved", answer=None), "sent without a committed charge: one"),
    "a refunded part": (changed_charge("two", loss=1), "sent for another cost than was charged: two"),
    "an answer of another plan": (changed_event(What.SENT, "two", digest="another"), "sent without a committed charge: two"),
    "another answer than is stored": (changed_event(What.SENT, "one", answer="0" * 64), "sent another answer than was committed: one"),
    "two answers": (more_events(What.SENT, "one", answer="0" * 64), "one key, 2 answers"),
    "a second permit": (more_events(What.PERMIT, "one", client=1), "one key, 2 permits"),
    "data read twice": (more_events(What.RUNNING, "one"), "one key, data read 2 times"),
    "two charges": (second_charge, "one key, 2 charges"),
    "left reserved": (changed_charge("failed", state="reserved"), "charge 3 is still reserved"),
    "a forfeit undone": (changed_charge("failed", state="committed", answer=""), "told that it is forfeited, and it is not: failed"),
    "an end without an entry": (changed_charge("failed", state="committed", answer=""), "charge 3 has other entries than its state says"),
    "a refusal for a budget that was there": (
        changed_event(What.REFUSED, "dear", loss=1),
        "told that the budget is too small, and it is not",
    ),
    "a refusal for a key that was free": (
        changed_event(What.REFUSED, "one", key="free"),
        "told that the key was used for another request, and it was not: free",
    ),
    "an entry is gone": (lambda seen: (seen[0], replace(seen[1], log=seen[1].log[:2] + seen[1].log[3:])), "an entry is missing"),
    "another head": (changed_state(head="0" * 64), "the head is not the newest entry"),
    "verify found something": (changed_state(problems=("the chain is broken",)), "verify: the chain is broken"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_falsification_is_seen(sound: Seen, case: str) -> None:
    change, expected = CASES[case]
    assert judged(*sound) == []
    found = judged(*change(sound))
    assert any(text.startswith(expected) for text in found), found


def test_an_anchor_that_is_ahead_or_missing_is_seen(sound: Seen) -> None:
    events, state = sound
    anchor = state.anchored
    assert anchor is not None
    ahead = replace(state, anchored=replace(anchor, entries=anchor.entries + 1))
    assert "the anchor is ahead of the database" in judged(events, ahead)
    entry = next(entry for entry in state.log if entry.kind == "register")
    behind = replace(state, anchored=replace(anchor, entries=entry.entry_id, head=entry.chained))
    assert "permit without an anchor: one" in judged(events, behind)


def test_what_is_taken_back_is_seen(sound: Seen) -> None:
    _, state = sound
    assert refunds(state, state) == []
    reserved = replace(state.charges[0], state="reserved", answer=None)
    assert refunds(replace(state, charges=(reserved, *state.charges[1:])), state) == []
    assert refunds(state, replace(state, charges=(reserved, *state.charges[1:]))) == ["charge 1 was changed after its end"]
    assert refunds(state, replace(state, charges=state.charges[1:])) == ["charge 1 is gone"]
    assert refunds(state, replace(state, loss_spent=state.loss_spent - 1)) == ["the amount spent fell"]
    assert refunds(state, replace(state, log=state.log[:-1])) == ["the history was changed"]
    cheaper = replace(reserved, loss=reserved.loss - 1)
    assert refunds(replace(state, charges=(reserved,)), replace(state, charges=(cheaper,))) == ["charge 1 was changed"]


def test_a_line_that_a_kill_cut_short_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    event = Event(What.SENT, "source", "ana", "key", "digest", 1, 2, client=3, charge_id=4, answer="a", code="c")
    write = history.writer(path)
    write(event)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        write(event)
        assert history.read(path)[-1] == event
        assert len(history.read(path)) <= 2
