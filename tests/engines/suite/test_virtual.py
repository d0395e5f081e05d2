"""Virtual versions on DuckDB: the same integers as stored ones, nothing copied, no other file within reach, and closed on any change."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.audit.plan_shapes import Shape, sampled_norms
from lapwing.audit.runs import RANKING_KEY, run_oracle
from lapwing.catalog import Declaration, Preparation, Settings, load
from lapwing.engines.base import Snapshot, silent
from lapwing.engines.duckdb import DuckDBEngine
from lapwing.engines.duckdb.virtual import VirtualDuckDBSnapshot
from lapwing.errors import Incident, PreparationError
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from tests.engines.comparison import comparable, public_tables
from tests.engines.suite import statements
from tests.engines.suite.engines import OnDuckDB


def opened(declaration: Declaration, *, version: int = 1) -> VirtualDuckDBSnapshot:
    """The declaration, prepared virtually, and opened."""
    assert declaration.directory is not None
    path = declaration.directory / "lapwing.toml"
    text = path.read_text(encoding="utf-8").replace("[dataset]\n", '[dataset]\npreparation = "virtual"\n', 1)
    (declaration.directory / ".lapwing").mkdir(exist_ok=True)
    engine = DuckDBEngine(declaration.directory / ".lapwing", Settings())
    virtual = replace(declaration, dataset=replace(declaration.dataset, preparation=Preparation.VIRTUAL))
    engine.prepare(virtual, text, version=version, ranking_key=RANKING_KEY, progress=silent)
    snapshot = engine.open(version, ranking_key=RANKING_KEY)
    assert isinstance(snapshot, VirtualDuckDBSnapshot)
    return snapshot


@pytest.mark.parametrize(("relation", "account"), statements.KINDS[1:3])
def test_the_integers_are_those_of_a_stored_version(tmp_path: Path, relation: str, account: Account) -> None:
    declaration = statements.people(tmp_path, relation, account, seed=71)
    stored, virtual = OnDuckDB().prepare(declaration), opened(declaration)
    assert stored.facts == virtual.facts
    assert public_tables(stored) == public_tables(virtual) and len(public_tables(stored)["clinics"]) > 1
    shapes: dict[str, Shape] = {**statements.hand_made(account), **sampled_norms()}
    shapes |= statements.generated(stored.facts, count=10, seed=71)
    for name, shape in shapes.items():
        certified = certify(shape(stored.facts), stored.facts)
        assert comparable(virtual.run(certified)) == comparable(stored.run(certified)), name
    stored.close()


def test_a_virtual_version_has_no_private_row(tmp_path: Path) -> None:
    snapshot = opened(statements.people(tmp_path, "unbounded", Account.PURE, seed=72))
    with duckdb.connect(str(tmp_path / ".lapwing" / "v000001.duckdb"), read_only=True) as connection:
        assert {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()} == {"_lapwing", "clinics"}
    snapshot.close()


def test_no_neighbour_breaks_a_claim(tmp_path: Path) -> None:
    chosen = dict(list(statements.hand_made(Account.APPROXIMATE).items())[::4])

    def prepare(declaration: Declaration) -> Snapshot:
        return opened(declaration)

    outcome = run_oracle(relation="unbounded", account=Account.APPROXIMATE, worlds=1, seed=73, only=chosen, prepare=prepare)
    assert outcome.faults == [] and outcome.breaches == []
    assert outcome.pairs >= 4 * len(chosen)


def test_no_other_file_can_be_read_or_written(tmp_path: Path) -> None:
    snapshot = opened(statements.people(tmp_path, "unbounded", Account.PURE, seed=74))
    (tmp_path / "other.csv").write_text("a\n1\n", encoding="utf-8")
    connection = snapshot._connect()
    assert connection.execute(f"SELECT COUNT(*) > 0 FROM read_parquet('{tmp_path}/visits.parquet')").fetchall() == [(True,)]
    refused = (
        f"SELECT * FROM read_csv('{tmp_path}/other.csv')",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"COPY (SELECT 1) TO '{tmp_path}/written.csv'",
        f"ATTACH '{tmp_path}/new.duckdb'",
        "SET enable_external_access = true",
        f"SET allowed_directories = ['{tmp_path}']",
        "INSTALL httpfs",
    )
    for statement in refused:
        with pytest.raises(duckdb.Error):
            connection.execute(statement).fetchall()
    connection.close()
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".csv") == ["other.csv"]


def test_a_file_that_changes_while_it_is_read_closes_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is written again, with the same rows, after the first statement: nobody could tell which rows a second one reads."""
    snapshot = opened(statements.people(tmp_path, "unbounded", Account.PURE, seed=75))
    certified = certify(statements.hand_made(Account.PURE)["ranked, one group"](snapshot.facts), snapshot.facts)
    snapshot.run(certified)
    really = VirtualDuckDBSnapshot._run

    def run(self: VirtualDuckDBSnapshot, connection: duckdb.DuckDBPyConnection, sql: str) -> object:
        found = really(self, connection, sql)
        rows = pq.read_table(tmp_path / "people.parquet")
        pq.write_table(rows, tmp_path / "people.partial")
        os.replace(tmp_path / "people.partial", tmp_path / "people.parquet")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(VirtualDuckDBSnapshot, "_run", run)
        with pytest.raises(Incident):
            snapshot.run(certified)
    # between plans too: then the question is refused, before it is charged
    with pytest.raises(PreparationError) as caught:
        snapshot.check(certified)
    assert caught.value.code == "snapshot-outdated"
    again = opened(statements.people(tmp_path, "unbounded", Account.PURE, seed=75), version=2)
    again.check(certify(statements.hand_made(Account.PURE)["ranked, one group"](again.facts), again.facts))


def test_a_text_that_is_no_text_stops_the_owner_and_no_question(tmp_path: Path) -> None:
    declaration = statements.people(tmp_path, "unbounded", Account.PURE, seed=78)
    people = pq.read_table(tmp_path / "people.parquet")
    broken = pa.array([b"\xff\xfe"] + [b"north"] * (people.num_rows - 1), pa.binary()).view(pa.string())
    pq.write_table(people.set_column(people.column_names.index("sex"), "sex", broken), tmp_path / "people.parquet")
    with pytest.raises(PreparationError) as caught:
        opened(declaration)
    assert caught.value.code == "preparation-failed"


def test_other_types_and_different_files_are_refused(tmp_path: Path) -> None:
    declaration = statements.people(tmp_path, "unbounded", Account.PURE, seed=76)
    snapshot = opened(declaration)
    certified = certify(statements.hand_made(Account.PURE)["ranked, one group"](snapshot.facts), snapshot.facts)
    visits = pq.read_table(tmp_path / "visits.parquet")
    costs = visits.column("cost").cast("string")
    pq.write_table(visits.set_column(visits.column_names.index("cost"), "cost", costs), tmp_path / "visits.parquet")
    with pytest.raises(PreparationError):
        snapshot.check(certified)
    with pytest.raises(Incident):
        snapshot.run(certified)
    opened(declaration, version=2).close()
    text = (tmp_path / "lapwing.toml").read_text(encoding="utf-8").replace("visits.parquet", "visits*.parquet")
    (tmp_path / "lapwing.toml").write_text(text, encoding="utf-8")
    pq.write_table(visits, tmp_path / "visits-more.parquet")
    with pytest.raises(PreparationError) as caught:
        opened(load(tmp_path / "lapwing.toml"), version=3)
    assert caught.value.code == "source-files-differ"


def test_csv_is_refused(tmp_path: Path) -> None:
    declaration = statements.people(tmp_path, "unbounded", Account.PURE, seed=77)
    text = (tmp_path / "lapwing.toml").read_text(encoding="utf-8").replace("drugs.parquet", "drugs.csv")
    (tmp_path / "lapwing.toml").write_text(text, encoding="utf-8")
    (tmp_path / "drugs.csv").write_text("visit_id,drug,dose\n1,x,2\n", encoding="utf-8")
    with pytest.raises(PreparationError) as caught:
        opened(load(tmp_path / "lapwing.toml"))
    assert caught.value.code == "virtual-csv"
    assert declaration.table("drugs").source == "drugs.parquet"
