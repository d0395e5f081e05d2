"""``[ledger]``: where the ledger is kept, and what is refused there."""

from __future__ import annotations

import pytest

from lapwing.catalog import LedgerDecl, parse
from lapwing.catalog.changes import Verdict, classify
from lapwing.errors import CatalogueError

_CATALOGUE = """
format = 1
[dataset]
id = "library"
unit = "reader"
[budget]
epsilon = 1
{ledger}
[tables.loans]
source = "loans.parquet"
unit = "reader_id"
[tables.loans.columns]
reader_id = {{ type = "key" }}
"""
_WHOLE = '[ledger]\ndatabase = "service=lapwing"\nanchors = "anchors"\nkeys = "keys"'


def _text(ledger: str = "") -> str:
    return _CATALOGUE.format(ledger=ledger)


def test_without_the_section_the_ledger_is_local() -> None:
    assert parse(_text()).ledger == LedgerDecl(database=None, anchors=None, keys=None)


def test_the_section_is_read() -> None:
    assert parse(_text(_WHOLE)).ledger == LedgerDecl(database="service=lapwing", anchors="anchors", keys="keys")


def test_a_local_ledger_may_have_keys() -> None:
    assert parse(_text('[ledger]\nkeys = "keys"')).ledger == LedgerDecl(keys="keys")


@pytest.mark.parametrize(
    "database",
    [
        "host=db password=hunter2",
        "host=db PASSWORD = 'hunter2'",
        "host=db sslpassword=hunter2",
        "postgresql://curator:hunter2@db/privacy",
        "postgresql://db/privacy?user=curator&password=hunter2",
    ],
)
def test_a_password_is_refused_and_not_repeated(database: str) -> None:
    with pytest.raises(CatalogueError) as refused:
        parse(_text(_WHOLE.replace("service=lapwing", database)))
    assert refused.value.code == "catalogue-password"
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "database", ["host=db passfile=/run/pass user=curator", "postgresql://curator@db:5433/privacy", "postgresql://db:5433/privacy"]
)
def test_other_connection_strings_are_accepted(database: str) -> None:
    assert parse(_text(_WHOLE.replace("service=lapwing", database))).ledger.database == database


@pytest.mark.parametrize(
    ("section", "code"),
    [
        (_WHOLE.replace('anchors = "anchors"', ""), "catalogue-missing-key"),
        (_WHOLE.replace('keys = "keys"', ""), "catalogue-missing-key"),
        ('[ledger]\nanchors = "anchors"', "catalogue-contradiction"),
        (_WHOLE.replace('"anchors"', '" "'), "catalogue-bad-value"),
        (_WHOLE.replace("keys =", "kyes ="), "catalogue-unknown-key"),
        (_WHOLE.replace('"keys"', "1"), "catalogue-wrong-type"),
    ],
)
def test_mistakes(section: str, code: str) -> None:
    with pytest.raises(CatalogueError) as refused:
        parse(_text(section))
    assert refused.value.code == code


def test_another_place_needs_no_new_version() -> None:
    [change] = classify(parse(_text()), parse(_text(_WHOLE)))
    assert (change.where, change.verdict) == ("ledger", Verdict.KEEPS)
