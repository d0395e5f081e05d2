"""The same request sent several times: at once, late, for another plan, and in another order than it was meant."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import assert_never

from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.postgres.verify import verify
from tests.faults import history
from tests.faults.clients import Field, new_field
from tests.faults.table import Outcome, fault
from tests.faults.worker import ANALYST, Act, Mode, Plan, Steps, ask
from tests.ledger.cluster import Cluster
from tests.ledger.pg import new_place
from tests.ledger.support import pure_budget

CLIENTS_MAX = 8
JOIN_SECONDS_MAX = 300.0


def duplicates_at_once(cluster: Cluster, database: str, directory: Path, *, seed: int, keys: int) -> Outcome:
    """Each key is sent by two to eight clients at one moment, by some for another plan; later by all of them again."""
    chance = random.Random(seed)
    field = new_field(cluster, database, directory, sources=1, loss_total=4 * keys)
    outcome = Outcome(histories=[field.log])
    place = field.places[0]
    with ExitStack() as stack:
        ledgers = [stack.enter_context(place.open()) for _ in range(CLIENTS_MAX)]
        acts = []
        for number in range(keys):
            senders = chance.sample(ledgers, 2 + number % (CLIENTS_MAX - 1))
            one = Act(place.source_id, f"{number}", 1 + number % 4, 0, Mode.ANSWER)
            other = Act(one.source_id, one.key, one.loss, 0, Mode.ANSWER, other_plan=True)
            # In every third, one of the senders means something else by the same key.
            calls = [(ledger, other if number % 3 == 0 and ledger is senders[-1] else one) for ledger in senders]
            _at_once(field, calls)
            acts.append(calls)
            outcome.counts["duplicate retry"] += len(calls) - 1
        for calls in acts:
            _at_once(field, calls[::-1])
            outcome.counts["late retry"] += len(calls)
    _, outcome.violations = field.judged()
    return outcome


def _at_once(field: Field, calls: Sequence[tuple[PostgresLedger, Act]]) -> None:
    """All of them in threads of their own, which start together."""
    write = history.writer(field.log)
    plan = Plan(dsn="", anchors=field.anchors.directory, acts=())
    start = threading.Barrier(len(calls))
    failed: list[BaseException] = []

    def run(ledger: PostgresLedger, act: Act) -> None:
        try:
            start.wait(JOIN_SECONDS_MAX)
            ask(ledger, act, write, Steps(plan, write), engine_seconds=0.001)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=one, daemon=True) for one in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(JOIN_SECONDS_MAX)
        assert not thread.is_alive(), "a client is not done"
    assert failed == []


class Message(Enum):
    """What may be sent about one key. A network can deliver any of it twice, late, or before another that was sent first."""

    RESERVE = "reserve"
    RESERVE_BY_ANOTHER = "reserve by another"
    RESERVE_OTHER_PLAN = "reserve for another plan"
    COMMIT = "commit"
    COMMIT_OTHER_BYTES = "commit other bytes"
    FORFEIT = "forfeit"


RESERVATIONS = (Message.RESERVE, Message.RESERVE_BY_ANOTHER, Message.RESERVE_OTHER_PLAN)


@dataclass(slots=True)
class Key:
    """What is true of a key after some messages, and what each is to be answered: the protocol, said once more and shorter."""

    holder: Message | None = None
    """The reservation that was charged."""
    end: Message | None = None
    """The commit or the forfeit that ended it. Those are sent by the holder of ``RESERVE`` alone."""

    def answer(self, message: Message) -> str:
        match message:
            case Message.RESERVE | Message.RESERVE_BY_ANOTHER | Message.RESERVE_OTHER_PLAN:
                return self._reserved(message)
            case Message.COMMIT | Message.COMMIT_OTHER_BYTES:
                if self.holder is Message.RESERVE and self.end is None:
                    self.end = message
                return "done" if self.end is message else "not-open"
            case Message.FORFEIT:
                is_open = self.holder is Message.RESERVE and self.end is None
                self.end = message if is_open else self.end
                return "done" if is_open else "not-open"
            case _:
                assert_never(message)

    def _reserved(self, message: Message) -> str:
        if self.holder is None:
            self.holder = message
            return "permit"
        if Message.RESERVE_OTHER_PLAN in (message, self.holder) and message is not self.holder:
            return "mismatch"
        if self.end is not None:
            return "forfeited" if self.end is Message.FORFEIT else "stored"
        return "permit" if message is self.holder else "in-progress"


def sent(ledger: PostgresLedger, key: str, message: Message, *, loss: int) -> str:
    """Send a message with the statement that the ledger sends, and with the same nonce each time; what was answered."""
    plan = f"another plan of {key}" if message is Message.RESERVE_OTHER_PLAN else f"plan of {key}"
    nonce = f"{message.value if message in RESERVATIONS else Message.RESERVE.value} {key}"
    connection, me = ledger.connection, [ledger.ledger_id, ledger.epoch, nonce]
    if message in RESERVATIONS:
        call = "CALL lapwing.reserve_durably(%s, %s, %s, %s, %s, %s, 1::bigint, '', %s::numeric, 0::numeric, NULL::numeric, 0::bigint, ''"
        rows = connection.ask(f"{call}, NULL, NULL, NULL, NULL, NULL, NULL)", [*me, ANALYST, key, plan, loss], again=True)
        return str(rows[0][0])
    # One who was never told the number of the charge cannot send this; the number of whatever charge there is makes it harder.
    number = "SELECT charge_id FROM lapwing.charge WHERE ledger_id = %s AND request_id = %s"
    found = connection.ask(number, [ledger.ledger_id, key], again=True)
    charge_id = found[0][0] if found else 0
    if message is Message.FORFEIT:
        rows = connection.ask("SELECT outcome FROM lapwing.forfeit(%s, %s, %s, %s::bigint, false)", [*me, charge_id], again=True)
    else:
        call = "CALL lapwing.commit_durably(%s, %s, %s, %s::bigint, %s, %s::numeric, 0::numeric, NULL::numeric, %b, NULL, NULL)"
        rows = connection.ask(call, [*me, charge_id, plan, loss, message.value.encode()], again=True)
    return str(rows[0][0])


def reordered(ledger: PostgresLedger, *, seed: int, keys: int, messages: int) -> tuple[Outcome, int]:
    """For each key a random sequence of messages, most of them several times: every answer is the one of :class:`Key`.

    Also what all keys together should have cost. The sequences of all keys are mixed.
    """
    chance = random.Random(seed)
    outcome = Outcome()
    models = {f"{number}": Key() for number in range(keys)}
    losses = {key: chance.randint(1, 5) for key in models}
    for key in chance.sample([key for key in models for _ in range(messages)], keys * messages):
        message = chance.choice([Message.RESERVE, Message.RESERVE, Message.COMMIT, *Message])
        outcome.counts["reordered retry"] += 1
        wanted, found = models[key].answer(message), sent(ledger, key, message, loss=losses[key])
        if wanted != found:
            outcome.violations.append(f"key {key}: {message.value} was answered {found}, not {wanted}")
    expected = sum(losses[key] for key, model in models.items() if model.holder is not None)
    return outcome, expected


@fault("duplicate and reordered retries")
def retry_somewhere(cluster: Cluster, directory: Path, seed: int) -> Outcome:
    """One round of the campaign."""
    outcome = duplicates_at_once(cluster, cluster.new_database(), directory, seed=seed, keys=40)
    place = new_place(cluster, cluster.new_database(), directory)
    with place.create(pure_budget(1000)) as ledger:
        second, expected = reordered(ledger, seed=seed, keys=60, messages=10)
        if ledger.balance().spent.loss != expected:
            second.violations.append("another amount was spent than the keys cost")
        second.violations += verify(ledger.connection, place.source_id, anchors=place.anchors).problems
    outcome.counts += second.counts
    outcome.violations += second.violations
    return outcome
