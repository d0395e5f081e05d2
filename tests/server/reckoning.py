"""Whether what analysts got agrees with the ledger: nothing overspent, no answer without a charge, no paid answer lost, memory flat."""

from __future__ import annotations

import random
import statistics
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal

from tests.server.crowd import Analyst, Asked, Crowd, Got, Kind
from tests.server.fleet import Fleet, Memory


@dataclass(frozen=True, slots=True)
class Charged:
    """A charge in the ledger."""

    charge_id: int
    data_set: str
    analyst: str
    key: str
    state: str
    stored: str
    """The digest of its answer; empty for none."""


@dataclass(slots=True)
class Reckoning:
    """What is wrong, by the claim that it breaks; and what was counted."""

    overspent: list[str] = field(default_factory=list)
    uncharged: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    unequal: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def wrong(self) -> list[str]:
        """All of it."""
        return [*self.overspent, *self.uncharged, *self.lost, *self.unequal]


def charges_of(fleet: Fleet) -> list[Charged]:
    """Every charge, of every data set."""
    with fleet.cluster.superuser(fleet.database) as superuser:
        rows = superuser.execute(
            "SELECT source_id, analyst, request_id, state::text, coalesce(encode(sha256(payload), 'hex'), ''), charge_id::text"
            " FROM lapwing.charge JOIN lapwing.data_set USING (ledger_id)"
        ).fetchall()
    return [Charged(int(str(number)), *(str(text) for text in texts)) for *texts, number in rows]


def reckoned(crowd: Crowd, *, again_max: int | None = None) -> Reckoning:
    """Compare everything, with servers that still run; ``again_max`` paid requests, chosen by chance, are sent again; None for all."""
    found = Reckoning()
    _sums(crowd.fleet, found)
    charges = charges_of(crowd.fleet)
    _answers(crowd.got, charges, found)
    _paid(crowd, [one for one in charges if one.state == "committed"], found, again_max)
    _read_on_the_wire(crowd, found)
    found.counts.update({f"charges, {state}": count for state, count in Counter(one.state for one in charges).items()})
    return found


def _sums(fleet: Fleet, found: Reckoning) -> None:
    with fleet.cluster.superuser(fleet.database) as superuser:
        whole = superuser.execute(
            "SELECT source_id, loss_spent, loss_total,"
            " (SELECT coalesce(sum(loss), 0) FROM lapwing.charge c WHERE c.ledger_id = d.ledger_id) FROM lapwing.data_set d"
        ).fetchall()
        shares = superuser.execute(
            "SELECT source_id || ', ' || a.analyst, a.loss_spent, a.loss_total, (SELECT coalesce(sum(loss), 0) FROM lapwing.charge c"
            " WHERE c.ledger_id = a.ledger_id AND c.analyst = a.analyst) FROM lapwing.analyst a JOIN lapwing.data_set d USING (ledger_id)"
        ).fetchall()
    for name, spent, total, charged in [*whole, *shares]:
        found.counts["sums compared"] += 1
        assert isinstance(spent, Decimal) and isinstance(charged, Decimal)
        if spent != charged or (isinstance(total, Decimal) and spent > total):
            found.overspent.append(f"{name}: {spent} spent, {charged} charged, of {total}")


def _answers(got: Sequence[Got], charges: Sequence[Charged], found: Reckoning) -> None:
    """Every answer has a charge whose answer is these bytes; one key has one answer; one key has one charge."""
    by_number = {(one.data_set, one.charge_id): one for one in charges}
    by_answer = {(one.data_set, one.stored): one for one in charges if one.state == "committed"}
    by_key = Counter((one.data_set, one.analyst, one.key) for one in charges)
    found.unequal += [f"{key} is charged {count} times" for key, count in by_key.items() if count > 1]
    paid = {(one.data_set, one.analyst, one.key): one for one in charges if one.state == "committed"}
    for one in got:
        found.counts[f"{one.kind}: {one.code or ('free' if one.free else 'paid')}"] += 1
        if not one.stored:
            continue
        found.counts["answers"] += 1
        # The receipt of an answer that another analyst paid for does not say which charge that was.
        charge = by_number.get((one.asked.data_set, one.charge_id)) or by_answer.get((one.asked.data_set, one.stored))
        if charge is None or charge.state != "committed":
            found.uncharged.append(f"{one} has no charge that paid for it")
        elif charge.stored != one.stored:
            found.unequal.append(f"{one} is not what the ledger has")
        own = None if one.kind is Kind.REPLAY else paid.get((one.asked.data_set, one.asked.analyst, one.asked.key))
        if own is not None and own.charge_id != one.charge_id:
            found.unequal.append(f"{one} is not what charge {own.charge_id} of this request has paid for")


def _paid(crowd: Crowd, committed: Sequence[Charged], found: Reckoning, again_max: int | None) -> None:
    """Each request whose charge was committed is had again with its key, and is what the ledger has."""
    asked = {(one.asked.data_set, one.asked.analyst, one.asked.key): one.asked for one in crowd.got}
    mine = [(asked[key], one) for one in committed if (key := (one.data_set, one.analyst, one.key)) in asked]
    whole = {(one.data_set, one.analyst, one.key.partition("/")[0]): one for one in committed if one.analyst in crowd.analysts}
    found.uncharged += [f"{one} was asked by nobody" for key, one in whole.items() if key not in asked]
    if again_max is not None and again_max < len(mine):
        mine = random.Random(0).sample(mine, again_max)
    queue, gate = list(mine), threading.Lock()

    def have_again() -> None:
        while True:
            with gate:
                if not queue:
                    return
                one, charge = queue.pop()
            with closing(Analyst(crowd, one.analyst, random.Random(charge.charge_id))) as analyst:
                got = analyst.ask(one, Kind.AGAIN)
            found.counts["paid requests had again"] += 1
            _compare(one, charge, got, found)

    threads = [threading.Thread(target=have_again) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _read_on_the_wire(crowd: Crowd, found: Reckoning) -> None:
    """Each answer that was read on the wire is in the ledger, with these values."""
    for one in crowd.read:
        with closing(Analyst(crowd, one.analyst, random.Random(one.sql))) as analyst:
            rows = analyst.rows_again(crowd.fleet.names[0], one.sql, crowd.epsilons[0])
        found.counts["answers on the wire"] += 1
        if rows is None:
            found.uncharged.append(f"{one} is not in the ledger")
        elif [[str(value) for value in row] for row in rows] != [[str(value) for value in row] for row in one.rows]:
            found.unequal.append(f"{one} was read on the wire, and the ledger has {rows}")


def _compare(asked: Asked, charge: Charged, got: Got, found: Reckoning) -> None:
    if got.code:
        found.lost.append(f"{asked} was paid for, and is {got.code}")
    elif (got.charge_id, got.stored) != (charge.charge_id, charge.stored):
        found.unequal.append(f"{asked}: charge {charge.charge_id} paid for it, and {got.charge_id} is given")


@dataclass(frozen=True, slots=True)
class Growth:
    """How the memory of a worker went: medians of the first and of the last third after it had warmed up, and a line through all."""

    seconds: float
    first_mb: float
    last_mb: float
    mb_a_minute: float


def growth(memory: Memory, *, warm_seconds: float) -> Growth | None:
    """None for a worker that did not live long enough to say anything."""
    samples = [(at, resident / 1e6) for at, resident in memory.samples if at - memory.samples[0][0] >= warm_seconds]
    if len(samples) < 6:
        return None
    third = len(samples) // 3
    line = statistics.linear_regression([at / 60 for at, _ in samples], [mb for _, mb in samples])
    first, last = (statistics.median(mb for _, mb in part) for part in (samples[:third], samples[-third:]))
    return Growth(samples[-1][0] - samples[0][0], first, last, line.slope)
