"""The third list: what becomes of its statements is as it says, and answers are those of bare DuckDB and of a bare PostgreSQL.

LAPWING_WRITE_GOLDEN=1 LAPWING_TIER=nightly writes down what was found. The ordinary run asks a sample, the night the whole list.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pyarrow.parquet as parquet
import pytest

from lapwing.audit.lists.bare_postgres import BarePostgres
from lapwing.audit.lists.conformance import Worlds
from lapwing.audit.lists.third_list import FILE, SHOP, shop_worlds, third_list
from lapwing.audit.lists.written_lists import (
    ANSWERED,
    DIFFERENT,
    KNOWN_WRONG,
    ListedStatement,
    Uncompared,
    WrittenOutcome,
    WrittenScore,
    as_found,
    run_written,
)
from tests.ledger.cluster import Cluster
from tests.meta.tree import DOCS, SOURCE
from tests.support.sizes import spread
from tests.unit.cli.support import run

LIST = SOURCE / "demo" / FILE
PAGE = DOCS / "reference" / "conformance.md"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with closing(Cluster()) as cluster:
        yield cluster.dsn("postgres", role="postgres")


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with closing(shop_worlds(tmp_path_factory.mktemp("shop"))) as made:
        yield made


def test_every_entry_is_read() -> None:
    listed = third_list()
    assert len(listed) == LIST.read_text(encoding="utf-8").count(";\n") == 509
    assert len({item.name for item in listed}) == len(listed)
    assert Counter(item.dialect for item in listed) == {"duckdb": 374, "postgres": 135}
    assert all(bool(item.why) == (item.expected == KNOWN_WRONG) for item in listed)


def test_the_page_has_the_figures_of_the_list() -> None:
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [tuple(map(str, row)) for row in page_rows()]


def page_rows() -> list[tuple[str | int, ...]]:
    """Each kind, how many there are, and how many are answered, known to be wrong, and refused; and all together."""
    listed = third_list()
    rows: list[tuple[str | int, ...]] = []
    for kind in [*dict.fromkeys(item.kind for item in listed), "all"]:
        of = [item.expected for item in listed if kind in (item.kind, "all")]
        answered, wrong = of.count(ANSWERED), of.count(KNOWN_WRONG)
        rows.append((kind, len(of), answered, wrong, len(of) - answered - wrong))
    return rows


def test_the_same_customers_give_the_same_rows_and_what_is_awkward_is_there() -> None:
    tables = SHOP.rows(60)
    assert all(table.equals(SHOP.rows(60)[name]) for name, table in tables.items())
    amounts = tables["orders"].column("amount").to_pylist()
    assert None in amounts and min(amount for amount in amounts if amount is not None) < 0
    assert {"", None, "Großkunde"} <= set(tables["customers"].column("segment").to_pylist())
    events = tables["events"].column("event_id").to_pylist()
    assert len(set(events)) < len(events)


def test_statements_become_what_is_written_down(server: str, worlds: Worlds) -> None:
    score = WrittenScore(tuple(run_written(worlds, spread(third_list(), "third list, statements"), postgres=server)))
    if os.environ.get("LAPWING_WRITE_GOLDEN"):
        LIST.write_text(as_found(LIST.read_text(encoding="utf-8"), score.outcomes), encoding="utf-8")
    else:
        assert {item.listed.name: (item.listed.expected, item.found, item.detail) for item in score.unlike} == {}
    assert Uncompared.NO_SERVER.value not in score.uncompared()


def test_without_a_server_its_dialect_is_planned_and_counted(worlds: Worlds) -> None:
    listed = [item for item in third_list() if item.name in ("pgtools-1", "pgtools-20")]
    found = list(run_written(worlds, listed, postgres=None))
    assert [(item.found, item.uncompared, item.as_written) for item in found] == [(ANSWERED, Uncompared.NO_SERVER, True)] * 2


def test_a_wrong_answer_is_noticed(worlds: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worlds, "bare_rows", lambda *_: [(7.0,)])
    (found,) = run_written(worlds, [ListedStatement("agg", "a", ANSWERED, "SELECT COUNT(*) FROM orders")], postgres=None)
    assert found.found == DIFFERENT and not found.as_written


def test_the_scratch_schema_is_filled_and_dropped(server: str, tmp_path: Path) -> None:
    for name, table in SHOP.rows(20).items():
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    schemas = "SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE 'lapwing_conformance%'"
    with psycopg.connect(server, autocommit=True) as other:
        with closing(BarePostgres(server, tmp_path)) as bare:
            assert bare.rows('SELECT count(*) FROM "public"."customers"') == bare.rows("SELECT COUNT(*) FROM public.customers") == [(20,)]
            assert bare.rows("SELECT 'public.' || count(*) FROM customers, nowhere") is None
            assert other.execute(schemas).fetchall() == [(1,)]
        assert other.execute(schemas).fetchall() == [(0,)]


def _outcomes(found: str) -> tuple[WrittenOutcome, ...]:
    wrong = ListedStatement("agg", "b", KNOWN_WRONG, "SELECT 2", "postgres", "it is 3")
    return (WrittenOutcome(ListedStatement("agg", "a", ANSWERED, "SELECT 1"), ANSWERED), WrittenOutcome(wrong, found))


def test_what_is_known_to_be_wrong_is_named_until_it_is_mended() -> None:
    score = WrittenScore(_outcomes("different"))
    assert score.unlike == [] and score.to_dict()["known_wrong"] == {"b": "it is 3"} and score.compared == 2
    mended = WrittenScore(_outcomes(ANSWERED))
    assert [item.listed.name for item in mended.unlike] == ["b"]
    text = "-- agg a duckdb: answered\nSELECT 1;\n\n-- agg b postgres: known-wrong\n-- why: it is 3\nSELECT 2;\n"
    assert as_found(text, mended.outcomes) == "-- agg a duckdb: answered\nSELECT 1;\n\n-- agg b postgres: answered\nSELECT 2;\n"
    unasked = WrittenOutcome(mended.outcomes[1].listed, ANSWERED, Uncompared.NO_SERVER)
    assert unasked.as_written and WrittenScore((unasked,)).uncompared() == {"no PostgreSQL server was given": 1}


@pytest.mark.parametrize("form", ["table", "json"])
def test_the_command_prints_what_is_wrong(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.audit.lists.third_list.run_third_list", lambda _, postgres: iter(_outcomes("different")))
    ran = run("conformance", "--list", "third", "--format", form, home=tmp_path)
    assert ran.status == 0
    if form == "json":
        assert json.loads(ran.out)["known_wrong"] == {"b": "it is 3"}
    else:
        assert "it is 3" in ran.out and "2 answers compared; not compared: none" in ran.out
