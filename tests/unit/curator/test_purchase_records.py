"""What the ledger records of a purchase, and a replay by these terms: as they were asked, not as they are guessed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.asking.older_charges import of_line, record_of
from lapwing.asking.replay_terms import ReplayTerms, asked_before, exact_text
from lapwing.data_set import DataSet
from lapwing.ledger.protocol import Bought, Ledger
from lapwing.ledger.purchases import AskedTerms, PurchaseKind, PurchaseRecord
from tests.unit.curator.test_deciding import ABOVE, _opened
from tests.unit.curator.test_norms import BY_COUNTRY, COUNT, _declare


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataSet]:
    with _declare(tmp_path_factory.mktemp("records") / "shop") as data:
        yield data


def newest(data: DataSet, *, many: int = 1) -> list[tuple[int, PurchaseRecord]]:
    """The newest charges, the oldest of them first, with their records."""
    charges = [entry.charge_id for entry in data.history(limit=1_000) if entry.kind == "reserve"][:many]
    found = [(charge, data.curator.ledger.purchase(charge)) for charge in reversed(charges) if charge is not None]
    return [(charge, record) for charge, record in found if record is not None]


def replay_terms(data: DataSet, charge: int) -> ReplayTerms:
    found = asked_before(data.curator, data.history(limit=1_000), charge)
    assert found is not None
    return found


def without_records(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    """The ledger as if all that is in it were older than records."""
    bought = type(ledger).bought
    monkeypatch.setattr(type(ledger), "purchase", lambda *_: None)
    monkeypatch.setattr(
        type(ledger), "bought", lambda self, **how: tuple(replace(one, purchase=None) for one in bought(self, **{**how, "kind": None}))
    )


def test_a_replay_uses_the_terms_that_were_asked(shop: DataSet) -> None:
    """An epsilon that no guess from a charge gives back, and what a charge says nothing about."""
    sql = 'SELECT "country", COUNT(*)::int8 AS "n" FROM "orders" GROUP BY "country"'
    answer = shop.ask(sql, epsilon="0.1000000001", confidence=0.8, dialect="postgres", reuse="never")
    charge, record = newest(shop)[0]
    assert record.terms == AskedTerms("0.1000000001", "", "0.8", "postgres", "never", False)
    asked = replay_terms(shop, charge)
    assert (asked.sql, asked.epsilons, asked.terms) == (sql, ("0.1000000001",), record.terms)
    again = shop.replay(asked.sql, epsilon=asked.epsilons[0], confidence=record.terms.confidence, dialect=record.terms.dialect)
    assert again.table == answer.table and again.stored == answer.stored and again.confidence == 0.8


def test_norms_have_their_statement_as_parent_and_the_statement_has_their_digests(shop: DataSet) -> None:
    answer = shop.ask(BY_COUNTRY, epsilon=1, request_id="by country")
    *histograms, (charge, whole) = newest(shop, many=9)
    of_it = [record for _, record in histograms if record.parent == "by country"]
    assert of_it and all(record.kind is PurchaseKind.NORMS and record.terms == whole.terms and record.name for record in of_it)
    assert whole.kind is PurchaseKind.STATEMENT and whole.parent == "" and whole.terms is not None and whole.terms.epsilon == "1"
    assert len(whole.histograms) == len(of_it)
    assert all(shop.curator.ledger.find(digest) is not None for digest in whole.histograms)
    assert replay_terms(shop, charge).epsilons == ("1",)
    assert asked_before(shop.curator, shop.history(limit=1_000), histograms[-1][0]) is None, "a histogram is no statement"
    assert shop.replay(BY_COUNTRY, epsilon="1").table == answer.table


def test_parts_of_a_request_without_a_name_have_one_parent(shop: DataSet) -> None:
    shop.ask("SELECT SUM(amount) AS s FROM orders WHERE country = 'at'", epsilon=1)
    norms = [record for _, record in newest(shop, many=3) if record.kind is PurchaseKind.NORMS]
    assert norms and len({record.parent for record in norms}) == 1 and norms[0].parent


def test_a_pilot_has_its_statement_as_parent_and_leads_to_its_terms(shop: DataSet) -> None:
    sql = "SELECT AVG(amount) AS a FROM orders WITH PRIVACY (error = '20%', confidence = 0.9)"
    shop.ask(sql, request_id="within")
    records = newest(shop, many=9)
    pilots = [(charge, record) for charge, record in records if record.kind is PurchaseKind.PILOT]
    assert pilots and all(record.parent == "within" and record.terms is not None for _, record in pilots)
    terms = pilots[0][1].terms
    assert terms is not None and (terms.epsilon, terms.target, terms.confidence) == ("", "share 0.2", "0.9")
    asked = replay_terms(shop, pilots[0][0])
    assert asked.epsilons == () and asked.terms == terms


def test_what_is_bought_for_an_accuracy_is_planned_by_the_histograms_recorded(shop: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT COUNT(*) AS n FROM orders WHERE amount < 5 WITH PRIVACY (error = 400)"
    first = shop.ask(sql)
    monkeypatch.setattr("lapwing.asking.accuracy_solver.NORMS_STEP", 7)  # a ladder of prices that leads nowhere
    again = shop.ask(sql)
    assert again.cost.free and again.table == first.table


def test_a_comment_like_that_of_a_pilot_makes_no_pilot(shop: DataSet) -> None:
    shop.ask(f"-- pilot 1 for this:\n{COUNT}", epsilon="0.3")
    charge, record = newest(shop)[0]
    assert record.kind is PurchaseKind.STATEMENT and replay_terms(shop, charge).epsilons == ("0.3",)


def test_what_decides_first_belongs_to_the_whole(tmp_path: Path) -> None:
    with _opened(tmp_path) as clinic:
        answer = clinic.ask(ABOVE, epsilon=1, request_id="above")
        records = newest(clinic, many=9)
        [first] = [record for _, record in records if record.kind is PurchaseKind.FIRST]
        assert first.parent == "above"
        charge, whole = records[-1]
        assert whole.kind is PurchaseKind.STATEMENT and replay_terms(clinic, charge).epsilons == ("1",), "of the whole, not of its share"
        assert clinic.replay(ABOVE, epsilon="1").table == answer.table
        statistics = {record.name for _, record in newest(clinic, many=99) if record.kind is PurchaseKind.STATISTICS}
        assert "visits" in statistics


def test_an_older_charge_without_a_record_still_replays(shop: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT country, SUM(amount) AS s FROM orders WHERE amount < 50 GROUP BY country"
    answer = shop.ask(sql, epsilon=1)
    charge = newest(shop)[0][0]
    without_records(monkeypatch, shop.curator.ledger)
    asked = replay_terms(shop, charge)
    assert asked.terms is None and "1" in asked.epsilons
    assert shop.replay(sql, epsilon="1").table == answer.table
    shop.ask(sql, epsilon="1.1")  # histograms are found by their lines
    assert shop.history()[1].detail == sql


@pytest.mark.parametrize(
    ("line", "record"),
    [
        ("norms 0af3: SELECT 1", PurchaseRecord(PurchaseKind.NORMS, name="0af3")),
        ("-- pilot 2 for this:\nSELECT 1", PurchaseRecord(PurchaseKind.PILOT)),
        ("first: SELECT 1", PurchaseRecord(PurchaseKind.FIRST)),
        ('release year {"table":"t"}', PurchaseRecord(PurchaseKind.RELEASE, name="year")),
        ('weights {"table":"t"}', PurchaseRecord(PurchaseKind.WEIGHTS)),
        ("statistics: rows per unit of t", PurchaseRecord(PurchaseKind.STATISTICS)),
        ("SELECT 'norms 0af3: '", PurchaseRecord(PurchaseKind.STATEMENT)),
    ],
)
def test_the_line_of_an_older_charge_is_read_as_before(shop: DataSet, line: str, record: PurchaseRecord) -> None:
    assert of_line(line) == record
    cost = shop.curator.balance().spent
    stated = PurchaseRecord(PurchaseKind.STATEMENT)
    assert record_of(Bought(line, cost, "")) == record and record_of(Bought(line, cost, "", stated)) == stated


@pytest.mark.parametrize("number", ["0.1", "1/3", "3", "0.0000001", "100", "12345678901234567890.5", "1/1267650600228229401496703205376"])
def test_a_recorded_number_is_exact(number: str) -> None:
    assert exact_text(Fraction(number)) == number
