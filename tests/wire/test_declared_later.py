"""A data set that is declared while the server runs is on the wire from its first version on, without a restart."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest

from lapwing.errors import LapwingError
from lapwing.interfaces.http.configuration import NewDataSettings
from lapwing.interfaces.http.data_set_pool import DataSetPool
from lapwing.interfaces.wire.run import look_at_shadow, wire_settings
from lapwing.interfaces.wire.shadow.database import DeclaredColumn, DeclaredTable, make_shadow, shadow_name
from tests.ledger.cluster import Cluster
from tests.server.test_declaring import loans_body, write_loans
from tests.wire.world import WireUnderTest, wire_over


@pytest.fixture(scope="module")
def wire(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WireUnderTest]:
    """A server with the wire that lets a file be declared."""
    home = tmp_path_factory.mktemp("later")
    (home / "files").mkdir()
    write_loans(home / "files" / "loans.csv")
    new_data = NewDataSettings(sources="files")
    with wire_over(shared_cluster, home, new_data=new_data, session_share=1.0, day_share=1.0, shadow_prefix="later_") as under_test:
        yield under_test


def _refusal(wire: WireUnderTest) -> str:
    with pytest.raises(psycopg.OperationalError) as refused:
        psycopg.connect(wire.dsn(dbname="loans"))
    return str(refused.value)


def test_from_a_declaration_to_an_answer_on_the_wire(wire: WireUnderTest) -> None:
    assert "no such data set" in _refusal(wire)
    assert wire.server.call("POST", "/v1/data-sets", by="olga", json=loans_body(epsilon="50")).status_code == 201
    assert "no prepared version yet" in _refusal(wire), "before its first version nothing can be asked"
    assert wire.server.call("POST", "/v1/data-sets/loans/versions", by="olga", json={}).json() == {"version": 1}
    with psycopg.connect(wire.dsn(dbname="loans"), autocommit=True) as connection:
        listed = "SELECT column_name FROM information_schema.columns WHERE table_name = 'loans' ORDER BY ordinal_position"
        assert [row[0] for row in connection.execute(listed)] == ["reader", "branch", "day", "days_kept"]
        connection.execute("SET lapwing.epsilon = 18")
        rows = connection.execute("SELECT branch, COUNT(*) AS n FROM loans GROUP BY branch ORDER BY branch").fetchall()
        assert [row[0] for row in rows] == ["central", "hill"]
        assert all(abs(row[1] - 450) < 60 for row in rows), rows
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT * FROM loans")
    with psycopg.connect(wire.dsn(dbname="loans")) as again:
        assert again.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="no such data set"):
        psycopg.connect(wire.dsn("nemo", dbname="loans"))


def test_a_shadow_that_is_not_made_yet_is_not_down(wire: WireUnderTest) -> None:
    """It is made for its first session."""
    app_state = wire.server.app_state
    if "loans" not in app_state.new_data.catalogues():
        assert wire.server.call("POST", "/v1/data-sets", by="olga", json=loans_body(epsilon="50")).status_code == 201
    settings, limits = wire_settings(app_state.configuration), app_state.configuration.limits
    alone = DataSetPool.open([], limits, app_state.configuration.moments, directory=wire.server.home, added=app_state.new_data.catalogues)
    later = replace(app_state, desk=alone)
    for changed in ({"shadow_prefix": "unmade_"}, {"role": "unmade"}):
        unmade = settings.model_copy(update=changed)
        look_at_shadow(later, unmade, "x")
    away = settings.model_copy(update={"shadow": "postgresql://postgres@127.0.0.1:1/postgres"})
    with pytest.raises(OSError):
        look_at_shadow(later, away, "x")


def test_workers_that_make_the_same_shadow_at_once_do_not_disturb_each_other(shared_cluster: Cluster) -> None:
    url = shared_cluster.dsn("postgres", role="postgres")
    tables = [DeclaredTable("t", "", (DeclaredColumn("x", "bigint", nullable=True, description=""),))]

    def make(_: int) -> None:
        make_shadow(url, database="made_at_once", role="made_at_once", password="x", tables=tables)

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(make, range(8)))
    with shared_cluster.superuser("made_at_once") as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    shared_cluster.drop_database("made_at_once")


def test_a_data_set_that_is_called_like_a_database_does_not_touch_it(shared_cluster: Cluster) -> None:
    with pytest.raises(LapwingError, match="not a shadow"):
        make_shadow(shared_cluster.dsn("postgres", role="postgres"), database="postgres", role="called_alike", password="x", tables=[])


def test_long_names_that_begin_alike_have_shadows_of_their_own(shared_cluster: Cluster) -> None:
    """PostgreSQL cuts names off at 63 bytes: whoever may ask the one saw the tables of the other."""
    url, beginning = shared_cluster.dsn("postgres", role="postgres"), "a" * 60
    names = [shadow_name("later_", f"{beginning}-{end}") for end in "xy"]
    assert len(set(names)) == 2 and max(len(name) for name in names) <= 63
    assert shadow_name("later_", "loans") == "later_loans"
    for number, name in enumerate(names):
        tables = [DeclaredTable(f"of_{number}", "", (DeclaredColumn("x", "bigint", nullable=True, description=""),))]
        make_shadow(url, database=name, role="named_at_length", password="x", tables=tables)
    for number, name in enumerate(names):
        with shared_cluster.superuser(name) as connection:
            assert connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall() == [(f"of_{number}",)]
        shared_cluster.drop_database(name)
