"""Homes that an earlier program wrote open with today's, agree with their old anchors, and give back what was paid for, byte for byte.

README.md says what is kept and what to do when a test here fails: it is never the kept data that is changed.
"""

from __future__ import annotations

import copy
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.catalog.facts import PLANNING_RULES_UNNUMBERED
from lapwing.errors import LedgerError, Refused
from lapwing.ledger.protocol import EntryKind
from lapwing.owner.ledger_admin import verified_of
from lapwing.receipts import check, receipt_value
from tests.kept.kept import (
    LOCAL,
    ON_SERVER,
    REASON,
    Kept,
    apart_from_balance,
    assert_as_kept,
    change_catalogue,
    differences,
    index_of,
    lost_request,
    not_as_bought,
    seen_balance,
    seen_history,
    unpacked,
    version_again,
)

ANY_ACCOUNT = {
    *("count", "known groups", "quantile", "extremes", "moments", "distinct", "subtotals", "computed", "per unit", "deciding", "named"),
    *("another analyst", "target", "declared", "from a release", "bought by another"),
}
APPROXIMATE = ANY_ACCOUNT | {"dates", "found keys", "regression", "join", "over groups", "exists", "union", "window", "scaled groups"}
"""Kinds of statements that must be in the index."""
CHARGES = {"statistics": r"statistics: ", "first": r"first: ", "release": r"release ", "weights": r"weights "}
BOUNDED = {"norms": r"norms ", "pilot": r"-- pilot "}
"""How charges begin that no answer shows by itself."""


def change(file: Path, old: bytes, new: bytes) -> None:
    """Other bytes of the same length in the one place of a file that has these, behind the back of whatever guards it."""
    content = file.read_bytes()
    assert content.count(old) == 1 and len(old) == len(new) and old != new
    file.write_bytes(content.replace(old, new))


def refused(kept: Kept) -> str:
    """The code with which even the owner is refused."""
    with pytest.raises(LedgerError) as refusal:
        kept.accept()
    return refusal.value.code


@pytest.fixture(params=LOCAL)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def kept(name: str, tmp_path: Path) -> Kept:
    return unpacked(name, tmp_path / name)


@pytest.mark.parametrize("every", [*LOCAL, ON_SERVER])
def test_the_index_has_things_of_every_kind(every: str) -> None:
    index = index_of(every)
    is_wide = every in ("approximate", ON_SERVER)
    newest, oldest = index["versions"]
    assert [one["again"]["version"] for one in (newest, oldest)] == [2, 1]
    assert {question["kind"] for question in oldest["questions"]} == (APPROXIMATE if is_wide else ANY_ACCOUNT)
    assert len(newest["questions"]) >= 3 and len(oldest["questions"]) >= (40 if is_wide else 18)
    kinds = [release["kind"] for release in oldest["again"]["releases"]]
    assert {"marginals", "tree", "synthetic"} <= {*kinds} and len(newest["again"]["releases"]) == 1
    [session] = oldest["again"]["sessions"]
    assert len(session["told"]) == 4 and (session["starts_used"] or not is_wide)
    summaries = [charge["summary"] for charge in oldest["again"]["charges"]]
    begins = CHARGES | (BOUNDED if is_wide else {})
    assert all(any(re.match(begin, summary) for summary in summaries) for begin in begins.values()), begins
    acts = Counter(entry["kind"] for entry in index["history"])
    assert acts["forfeit"] == acts["close"] == acts["reopen"] == acts["budget"] == 1 and acts["version"] == 2
    committed = [entry["charge_id"] for entry in index["history"] if entry["kind"] == "commit"]
    assert sorted(committed) == sorted(charge["charge_id"] for one in index["versions"] for charge in one["again"]["charges"])


def test_a_kept_home_that_was_moved_opens_and_agrees_with_its_old_anchor(name: str, kept: Kept) -> None:
    index = index_of(name)
    with pytest.raises(LedgerError) as moved, kept.curator() as curator:
        curator.balance()
    assert moved.value.code == "ledger-moved"
    with kept.curator() as curator:
        found = verified_of(curator)
        assert [problem.split("]")[0] for problem in found.problems] == ["[ledger-moved", "[source-changed"]
        assert found.anchored_entries is not None and found.entries == len(index["history"])
    kept.accept()
    with kept.curator() as curator:
        assert curator.facts.planning_rules == PLANNING_RULES_UNNUMBERED and not curator.profiles()
        assert verified_of(curator).problems == ()
        *history, accepted = seen_history(curator)
        assert differences(index["history"], history) == []
        # That it is elsewhere is all that there was to accept: nothing of it was lost, and nothing is charged again.
        assert (accepted["kind"], accepted["detail"]) == (EntryKind.OVERRIDE, f"ledger-moved, source-changed: {REASON}")
        assert differences(index["balance"], seen_balance(curator)) == []
        with pytest.raises(Refused) as lost:
            curator.ledger.reserve(lost_request(index))
        assert lost.value.code == "request-forfeited"


def test_everything_that_was_bought_is_free_and_the_same(name: str, kept: Kept) -> None:
    index = index_of(name)
    kept.accept()
    for version in index["versions"]:
        with kept.opened(analyst=index["analyst"], version=version["again"]["version"]) as data:
            assert_as_kept(version, version_again(data, version["questions"], version["queries"]))
            assert differences(index["balance"], seen_balance(data.curator)) == []


def test_everything_is_free_and_the_same_after_the_owner_changed_what_no_version_is_made_of(name: str, kept: Kept) -> None:
    """A higher budget, another default and another description: both versions give back what was paid for."""
    index = index_of(name)
    kept.accept()
    change_catalogue(kept, "\nepsilon = 110\n", "\nepsilon = 115\n")
    change_catalogue(kept, "\nepsilon = 2    ", "\nepsilon = 9    ")
    change_catalogue(kept, "of a made-up health service", "of no health service")
    with kept.curator() as curator:
        before = curator.history(limit=1)[0]
        assert curator.prepare() == 2 and curator.engine.versions() == (1, 2)
        raised, newest = curator.history(limit=2)
        assert newest == before and raised.kind is EntryKind.BUDGET and "epsilon 110 to 115" in raised.detail
    for version in index["versions"]:
        with kept.opened(analyst=index["analyst"], version=version["again"]["version"]) as data:
            again = version_again(data, version["questions"], version["queries"])
            assert differences(apart_from_balance(version["again"]), apart_from_balance(again)) == []
            assert not_as_bought(version["bought"], again["answers"]) == []
            balance = data.curator.balance()
            assert balance.budget.epsilon == 115 and seen_balance(data.curator)["spent"] == index["balance"]["spent"]


def test_a_changed_entry_is_noticed(kept: Kept) -> None:
    change(kept.ledger, b"version 1 prepared", b"version 3 prepared")
    assert refused(kept) == "ledger-damaged"


def test_a_changed_answer_is_noticed(name: str, kept: Kept) -> None:
    index = index_of(name)
    version = index["versions"][0]
    stored = version["again"]["answers"][0]["stored"]["bytes"].encode()
    change(kept.ledger, stored[:60], stored[:59] + b"?")
    kept.accept()
    with kept.opened(analyst=index["analyst"]) as data, pytest.raises(LedgerError) as damaged:
        version_again(data, version["questions"][:1], version["queries"])
    assert damaged.value.code == "ledger-damaged"


def test_an_older_ledger_in_the_place_of_the_newest_is_noticed(name: str, kept: Kept) -> None:
    index = index_of(name)
    shutil.copy2(kept.older, kept.ledger)
    kept.accept()
    with kept.curator() as curator:
        details = [entry.detail for entry in curator.history(limit=3)]
        assert f"ledger-moved, ledger-rolled-back, source-changed: {REASON}" in details
        assert len(seen_history(curator)) < len(index["history"])


def test_a_receipt_that_says_something_else_is_refused(name: str, kept: Kept) -> None:
    charge = index_of(name)["versions"][0]["again"]["charges"][0]
    receipt, answer = receipt_value(charge["receipt"]["bytes"]), charge["stored"]["bytes"].encode()
    check(receipt, kept.keys, answer=answer)
    cheaper = replace(receipt, statement=replace(receipt.statement, loss=receipt.statement.loss - 1))
    for changed, content in ((cheaper, answer), (receipt, answer + b" ")):
        with pytest.raises(LedgerError, match="receipt-invalid"):
            check(changed, kept.keys, answer=content)


def test_the_comparison_sees_one_character() -> None:
    version = index_of("pure")["versions"][0]
    other = copy.deepcopy(version["again"])
    assert differences(version["again"], other) == [] and not_as_bought(version["bought"], other["answers"]) == []
    shown = other["answers"][0]["json"]
    shown["bytes"] = re.sub(r"\d(?=\n)", "x", shown["bytes"], count=1)
    [line] = differences(version["again"], other)
    assert line.startswith("/answers/0/json/bytes: ")
    other["answers"][0] = other["answers"][1]
    assert not_as_bought(version["bought"], other["answers"]) != []
    other["charges"].pop()
    assert any(line.startswith("/charges: ") for line in differences(version["again"], other))
