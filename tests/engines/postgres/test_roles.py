"""Who may do what: the owner prepares, another role answers, and that role can read a version and nothing else."""

from __future__ import annotations

import psycopg
import pytest

from lapwing.catalog import Settings
from lapwing.engines.postgres import PostgresEngine
from lapwing.engines.postgres.engine import READER_VARIABLE
from lapwing.engines.postgres.prepare import MARKS, schema_name
from lapwing.engines.postgres.session import OWNER_VARIABLE, ask, connect
from lapwing.errors import PreparationError
from tests.engines.postgres.place import KEY, ROWS, Place, by_ward, totals


def test_the_owner_prepares_and_the_reader_answers(place: Place) -> None:
    engine = place.prepare()
    assert engine.versions() == (1,)
    assert engine.stored_text(1) == place.text()
    snapshot = engine.open(1, ranking_key=KEY)
    rows, _, units = totals(by_ward(snapshot))
    assert rows == ROWS  # 90 persons have at most 5 visits each
    assert units >= 90
    snapshot.close()


def test_the_reader_can_read_the_version_and_nothing_else(place: Place) -> None:
    place.prepare()
    schema = schema_name(f"visits.{place.number}", 1)
    with connect(place.cluster.dsn(place.database, role=place.reader)) as reader:
        assert ask(reader, f"SELECT COUNT(*) FROM {schema}.visits") == [(ROWS,)]
        for statement in (
            "SELECT 1 FROM clinic.visits",
            f"SELECT 1 FROM {schema}.{MARKS}",
            f"DELETE FROM {schema}.visits",
            f"CREATE TABLE {schema}.other (x int)",
            f"DROP SCHEMA {schema} CASCADE",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ask(reader, statement)


@pytest.mark.parametrize("role", ["postgres", "owner"])
def test_questions_are_not_answered_as_a_role_that_could_read_the_source(place: Place, role: str) -> None:
    place.prepare()
    name = place.owner if role == "owner" else role
    with pytest.raises(PreparationError) as refused:
        place.engine(role=name).open(1, ranking_key=KEY)
    assert refused.value.code == "engine-role"
    allowed = place.engine(role=name, any_reader=True).open(1, ranking_key=KEY)
    assert totals(by_ward(allowed))[0] == ROWS
    allowed.close()


@pytest.mark.parametrize("granted", ["GRANT SELECT (ward) ON clinic.visits TO {0}", "GRANT pg_read_all_data TO {0}", "GRANT {1} TO {0}"])
def test_a_reader_that_was_given_the_source_is_refused(place: Place, granted: str) -> None:
    engine = place.prepare()
    engine.open(1, ranking_key=KEY).close()
    with place.as_superuser() as superuser:
        ask(superuser, f"GRANT USAGE ON SCHEMA clinic TO {place.reader}")
        ask(superuser, granted.format(place.reader, place.owner))
    with pytest.raises(PreparationError) as refused:
        engine.open(1, ranking_key=KEY)
    assert refused.value.code == "engine-role"


def test_the_environment_says_who_prepares_and_whether_any_role_may_answer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWNER_VARIABLE, f"user={place.owner}")
    engine = PostgresEngine(place.declaration(), Settings())
    place.engines.append(engine)
    engine.prepare(place.declaration(), place.text(), version=1, ranking_key=KEY, progress=lambda *_: None)
    engine.open(1, ranking_key=KEY).close()
    as_owner = PostgresEngine(place.declaration(role=place.owner), Settings())
    place.engines.append(as_owner)
    with pytest.raises(PreparationError):
        as_owner.open(1, ranking_key=KEY)
    monkeypatch.setenv(READER_VARIABLE, "any")
    permitted = PostgresEngine(place.declaration(role=place.owner), Settings())
    place.engines.append(permitted)
    permitted.open(1, ranking_key=KEY).close()


def test_without_a_copy_the_reader_reads_the_declared_columns_only(place: Place) -> None:
    with place.as_owner() as owner:
        ask(owner, f"GRANT USAGE ON SCHEMA clinic TO {place.reader}")
        ask(owner, f"GRANT SELECT (person_id, ward, day, cost, note) ON clinic.visits TO {place.reader}")
    engine = place.prepare(preparation="virtual")
    with pytest.raises(PreparationError):
        place.engine(role=place.owner).open(1, ranking_key=KEY)
    virtual = engine.open(1, ranking_key=KEY)
    stored = place.prepare(version=2).open
    assert totals(by_ward(virtual))[0] == ROWS
    # the copy of version 2 is refused to a role that can read the source, as it should be
    with pytest.raises(PreparationError):
        stored(2, ranking_key=KEY)
    with connect(place.cluster.dsn(place.database, role=place.reader)) as reader, pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(reader, "SELECT undeclared FROM clinic.visits")
    virtual.close()


def test_sources_that_are_no_plain_tables_are_refused(place: Place) -> None:
    with place.as_owner() as owner:
        ask(owner, "ALTER TABLE clinic.visits RENAME TO kept")
        ask(owner, "CREATE VIEW clinic.visits AS SELECT * FROM clinic.kept")
    assert _refusal(place) == "source-not-a-table"
    with place.as_owner() as owner:
        ask(owner, "DROP VIEW clinic.visits")
    assert _refusal(place) == "source-missing"
    with place.as_owner() as owner:
        ask(owner, "CREATE MATERIALIZED VIEW clinic.visits AS SELECT * FROM clinic.kept")
    engine = place.prepare()
    assert engine.versions() == (1,)


def test_a_source_with_policies_for_rows_is_refused(place: Place) -> None:
    with place.as_owner() as owner:
        ask(owner, "ALTER TABLE clinic.visits ENABLE ROW LEVEL SECURITY")
    assert _refusal(place) == "source-row-security"


def test_nothing_is_left_of_a_version_that_could_not_be_written(place: Place) -> None:
    with place.as_owner() as owner:
        ask(owner, "ALTER TABLE clinic.visits DROP COLUMN cost")
    assert _refusal(place) == "source-column-missing"
    assert place.engine().versions() == ()


def _refusal(place: Place) -> str:
    with pytest.raises(PreparationError) as refused:
        place.prepare()
    return refused.value.code


def test_a_retired_version_is_gone(place: Place) -> None:
    engine = place.prepare()
    engine.retire(1)
    assert engine.versions() == ()
    with pytest.raises(PreparationError) as refused:
        engine.retire(1)
    assert refused.value.code == "no-such-version"
