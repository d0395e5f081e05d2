"""The kept data sets: unpacking one, opening it where it was put, and asking again for everything that was paid for.

``make.py`` runs this with the program that wrote them, and keeps what came of it; the tests run it with today's, and compare. So it uses
what a user has: opening, asking, listing releases, the history and receipts of a ledger.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from lapwing.answers.answer import Answer
from lapwing.asking.weights_session import weighed_before
from lapwing.curator.curator import Curator
from lapwing.data_set import DataSet
from lapwing.interfaces.cli.views import as_json
from lapwing.kernel.accounting import Cost
from lapwing.ledger.amounts import budget_text
from lapwing.ledger.protocol import Entry, Request
from lapwing.owner.ledger_admin import accept
from lapwing.receipts import Receipt, check, receipt_text
from lapwing.releases.released import Release

Fields: TypeAlias = dict[str, Any]

DATA = Path(__file__).parent / "data"
LOCAL = ("approximate", "pure", "ordered")
"""Data sets with a local ledger, by the kind of their account."""
ON_SERVER = "postgres"
"""The one whose ledger is in a database."""
DUMP = "ledger.sql"
"""The database, as ``pg_dump`` wrote it, beside the data set."""
REASON = "put back from the kept data"
LOST, LOST_DIGEST = "lost", "0" * 64
"""The request that was charged and got no answer."""
HISTORY_MAX = 100_000
BOUGHT_MAX = 10_000
DIFFERENCES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept data set in a directory of its own: its files, its home, its keys and, on a server, its anchors."""

    base: Path

    @property
    def directory(self) -> Path:
        return self.base / "clinic"

    @property
    def ledger(self) -> Path:
        return self.directory / ".lapwing" / "ledger.sqlite"

    @property
    def older(self) -> Path:
        """A copy of the local ledger from when there was one version."""
        return self.base / "older-ledger.sqlite"

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def keys(self) -> Path:
        return self.base / "keys"

    @property
    def anchors(self) -> Path:
        return self.base / "anchors"

    @property
    def dump(self) -> Path:
        return self.base / DUMP

    def curator(self) -> Curator:
        return Curator(self.directory, home=self.home)

    def accept(self) -> None:
        """What ``lapwing ledger accept`` does: the owner says that the data set is elsewhere now. It was: its place is part of it."""
        with self.curator() as curator:
            accept(curator, reason=REASON)

    @contextmanager
    def opened(self, *, analyst: str, version: int | None = None) -> Iterator[DataSet]:
        """The data set, for asking. An older ``version`` is asked after newer ones were retired."""
        with self.curator() as curator:
            while version is not None and curator.latest() > version:
                curator.retire(curator.latest())
            yield DataSet(curator, analyst=analyst)


def unpacked(name: str, to: Path) -> Kept:
    """A copy of a kept data set. Modes are kept: a ledger and a signing key are their owner's alone."""
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        archive.extractall(to, filter="data")
    return Kept(to)


def index_of(name: str) -> Fields:
    """What was bought, and what was seen of it when it was asked for again with the program that wrote it."""
    with gzip.open(DATA / f"{name}.json.gz", "rt", encoding="utf-8") as stream:
        index: Fields = json.load(stream)
    return index


# -- what is seen ---------------------------------------------------------------------------------------------------------------------


def seen(text: str | bytes) -> Fields:
    """Bytes as they are, which is always text here, with their digest."""
    content = text.encode() if isinstance(text, str) else text
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": content.decode("utf-8")}


def seen_answer(answer: Answer) -> Fields:
    """An answer: as ``lapwing ask --format json`` shows it, the stored bytes, the receipt. How a terminal lays it out may change."""
    return {
        "json": seen(as_json(answer.to_dict())),
        "stored": None if answer.stored is None else seen(answer.stored),
        "receipt": None if answer.receipt is None else seen(receipt_text(answer.receipt)),
    }


def seen_cost(cost: Cost) -> Fields:
    return {"loss": cost.loss, "delta": cost.delta, "pure": cost.pure}


def seen_entry(entry: Entry) -> Fields:
    return {
        "entry_id": entry.entry_id,
        "at": entry.at,
        "kind": entry.kind.value,
        "analyst": entry.analyst,
        "charge_id": entry.charge_id,
        "cost": seen_cost(entry.cost),
        "detail": entry.detail,
    }


def seen_history(curator: Curator) -> list[Fields]:
    """All entries, the oldest first."""
    return [seen_entry(entry) for entry in reversed(curator.history(limit=HISTORY_MAX))]


def lost_request(index: Fields) -> Request:
    """The one request that was charged and ended without an answer, as it was made."""
    [lost] = [entry["charge_id"] for entry in index["history"] if entry["kind"] == "forfeit"]
    [cost] = [entry["cost"] for entry in index["history"] if entry["charge_id"] == lost and entry["kind"] == "reserve"]
    return Request(index["analyst"], LOST, LOST_DIGEST, Cost(**cost), 1, "SELECT COUNT(*) FROM patients")


def seen_balance(curator: Curator) -> Fields:
    balance = curator.balance()
    return {
        "budget": budget_text(balance.budget),
        "ceiling": budget_text(balance.ceiling),
        "spent": seen_cost(balance.spent),
        "closed": balance.closed,
        "shown": as_json(curator.view_of(balance).to_dict()),
    }


# -- asking again ---------------------------------------------------------------------------------------------------------------------


def asked_again(data: DataSet, question: Fields) -> Fields:
    """A statement, asked as it was recorded; it must be free, and what is spent must stay as it is."""
    before = data.curator.balance()
    answer = data.ask(question["sql"], **question["options"])
    assert answer.cost.free, f"not free: {question['sql']}"
    assert data.curator.balance() == before, f"charged: {question['sql']}"
    answer.receipt = payers_receipt(data, question["options"].get("analyst", data.analyst), answer.receipt, answer.stored)
    return seen_answer(answer)


def payers_receipt(data: DataSet, analyst: str, receipt: Receipt | None, stored: bytes | None) -> Receipt | None:
    """The receipt that was recorded. To this analyst, where another one paid, the same is shown without who that was, and signed so."""
    if receipt is None or receipt.statement.names_payer:
        return receipt
    found = data.curator.ledger.find(receipt.statement.request_digest, analyst=analyst)
    assert found is not None and data.curator.place.keys is not None
    check(receipt, data.curator.place.keys, answer=stored)
    paid = data.curator.receipt_of_charge(found.charge_id)
    assert paid is not None and paid.statement.analyst != analyst and paid.statement.seen_by(analyst) == receipt.statement
    return paid


def seen_release(release: Release, queries: list[str]) -> Fields:
    """A release: what it says of itself, its stored bytes, what it answers, and its synthetic rows if it is for these."""
    return {
        "name": release.name,
        "kind": release.kind,
        "table": release.of_table,
        "columns": list(release.columns),
        "cells": release.cells,
        "cost": release.terms.cost.to_dict(),
        "stored": seen(release.terms.stored),
        "receipt": None if release.receipt is None else seen(receipt_text(release.receipt)),
        "queries": {sql: seen_answer(release.query(sql)) for sql in queries},
        "rows": seen(as_json(release.table().to_pydict())) if release.is_synthetic else None,
    }


def releases_again(data: DataSet, queries: dict[str, list[str]]) -> list[Fields]:
    """All releases of the version, the newest first, each with the statements recorded for it."""
    releases = data.releases()
    for release in releases:
        paid = payers_receipt(data, data.analyst, release.receipt, release.terms.stored)
        release.terms = replace(release.terms, receipt=paid)
    return [seen_release(release, queries[release.name]) for release in releases]


def seen_sessions(data: DataSet) -> list[Fields]:
    """What sessions of weights told, the newest first."""
    return [
        {
            "starts_used": log.starts_used,
            "told": {
                key: [count.value, count.served_by.value, count.error, str(count.confidence), count.starts_left]
                for key, count in log.told.items()
            },
        }
        for log in weighed_before(data.curator, analyst=data.analyst)
    ]


def seen_charges(data: DataSet) -> list[Fields]:
    """Every committed charge about a version, the oldest first: norms, pilots and statistics too, which no answer shows.

    With the stored bytes, found by digest, and the receipt, whose signature is checked with the public key that is there.
    """
    curator, analyst = data.curator, data.analyst
    found = []
    for bought in reversed(curator.ledger.bought(version=curator.facts.version, limit=BOUGHT_MAX, analyst=analyst)):
        stored = curator.ledger.find(bought.digest, analyst=analyst)
        assert stored is not None, bought.summary
        receipt = curator.receipt_of_charge(stored.charge_id)
        assert receipt is not None and curator.place.keys is not None
        check(receipt, curator.place.keys, answer=stored.payload)
        found.append(
            {
                "summary": bought.summary,
                "cost": seen_cost(bought.cost),
                "digest": bought.digest,
                "charge_id": stored.charge_id,
                "stored": seen(stored.payload),
                "receipt": seen(receipt_text(receipt)),
            }
        )
    return found


def version_again(data: DataSet, questions: list[Fields], queries: dict[str, list[str]]) -> Fields:
    """All that can be seen again of the version that is open."""
    return {
        "version": data.curator.facts.version,
        "answers": [asked_again(data, question) for question in questions],
        "releases": releases_again(data, queries),
        "sessions": seen_sessions(data),
        "charges": seen_charges(data),
    }


# -- comparing ------------------------------------------------------------------------------------------------------------------------

_SHOWN = ("columns", "rows", "intervals", "marks", "confidence", "receipt")


def not_as_bought(bought: list[Fields], again: list[Fields]) -> list[str]:
    """In which answers the table, its error bars, marks, receipt or stored bytes are not those that were paid for.

    Notes may differ: they also say what is free, which it was not when it was bought.
    """
    wrong = []
    for number, (first, second) in enumerate(zip(bought, again, strict=True)):
        shown, shown_again = (json.loads(one["json"]["bytes"]) for one in (first, second))
        wrong += [f"answer {number}: {part}" for part in _SHOWN if shown[part] != shown_again[part]]
        wrong += [f"answer {number}: {part}" for part in ("stored", "receipt") if first[part] != second[part]]
    return wrong


def differences(recorded: Any, today: Any, where: str = "") -> list[str]:
    """Where two values of the index differ, and in what; a text is shown from the first character that differs."""
    if isinstance(recorded, dict) and isinstance(today, dict) and recorded.keys() == today.keys():
        return [line for key in recorded for line in differences(recorded[key], today[key], f"{where}/{key}")]
    if isinstance(recorded, list) and isinstance(today, list) and len(recorded) == len(today):
        pairs = enumerate(zip(recorded, today, strict=True))
        return [line for number, (one, other) in pairs for line in differences(one, other, f"{where}/{number}")]
    if recorded == today:
        return []
    one, other = str(recorded), str(today)
    begin = max(next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0) - 40, 0)
    return [f"{where}: kept ...{one[begin : begin + 160]!r}, today ...{other[begin : begin + 160]!r}"]


def apart_from_balance(value: Any) -> Any:
    """The same without what each answer says is left: of that there is more once a budget is raised."""
    if isinstance(value, list):
        return [apart_from_balance(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _but_remaining(item["bytes"]) if key == "json" else apart_from_balance(item) for key, item in value.items()}


def _but_remaining(shown: str) -> Fields:
    answer = json.loads(shown)
    return {key: value for key, value in answer.items() if key != "remaining"}


def change_catalogue(kept: Kept, old: str, new: str) -> None:
    """As an owner would, with an editor."""
    catalogue = kept.directory / "lapwing.toml"
    text = catalogue.read_text(encoding="utf-8")
    assert text.count(old) == 1, old
    catalogue.write_text(text.replace(old, new), encoding="utf-8")


def assert_as_kept(version: Fields, again: Fields) -> None:
    """What is seen today of a version is what was seen of it, and in its answers and releases what was paid for."""
    wrong = differences(version["again"], again) + not_as_bought(version["bought"], again["answers"])
    for first, second in zip(version["releases_bought"], reversed(again["releases"]), strict=True):
        wrong += [f"release {first['name']}: {part}" for part in ("stored", "receipt", "rows", "kind") if first[part] != second[part]]
    assert not wrong, "\n".join([f"{len(wrong)} differences", *wrong[:DIFFERENCES_SHOWN]])
