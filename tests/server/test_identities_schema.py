"""The database of keys and grants knows its version, and what came from a backup lets nobody in until the owner has looked."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from lapwing.errors import LapwingError
from lapwing.interfaces.http.identity.identities import SCHEMA_VERSION, Identities
from lapwing.interfaces.http.identity.rights import Grant, Role

pytestmark = pytest.mark.xdist_group("server: configuration")


def _tables(url: str) -> set[str]:
    return set(sa.inspect(sa.create_engine(url)).get_table_names())


def test_an_older_release_refuses_a_newer_database_and_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'identities.db'}"
    with sa.create_engine(url).begin() as connection:
        connection.execute(sa.text("CREATE TABLE lapwing_identities (id INTEGER PRIMARY KEY, version INTEGER, other TEXT)"))
        connection.execute(sa.text(f"INSERT INTO lapwing_identities VALUES (1, {SCHEMA_VERSION + 1}, '')"))
    with pytest.raises(LapwingError) as newer:
        Identities(url)
    assert newer.value.code == "identities-newer"
    assert _tables(url) == {"lapwing_identities"}


def test_a_database_without_a_version_is_of_the_first(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'identities.db'}"
    first = Identities(url)
    first.grant("ada", Grant(Role.ANALYST, "*"))
    key, _ = first.new_key("ada")
    with sa.create_engine(url).begin() as connection:
        connection.execute(sa.text("DROP TABLE lapwing_identities"))
    again = Identities(url)
    found = again.of_key(key)
    assert found is not None
    assert found.name == "ada"
    with sa.create_engine(url).connect() as connection:
        assert connection.execute(sa.text("SELECT id, version FROM lapwing_identities")).all() == [(1, SCHEMA_VERSION)]


def test_what_was_restored_waits_for_the_owner_and_its_keys_are_ended(tmp_path: Path) -> None:
    identities = Identities(f"sqlite:///{tmp_path / 'identities.db'}")
    identities.grant("ada", Grant(Role.ANALYST, "*"))
    key, _ = identities.new_key("ada")
    identities.require_accepted()
    assert identities.mark_restored() == 1
    assert identities.of_key(key) is None
    with pytest.raises(LapwingError) as restored:
        identities.require_accepted()
    assert restored.value.code == "identities-restored"
    assert identities.accept()
    assert not identities.accept()
    identities.require_accepted()
    assert identities.of_key(key) is None
    assert identities.grants() == [("ada", Grant(Role.ANALYST, "*"))]
