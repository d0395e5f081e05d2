"""One table of a server under two names in one catalogue: its parts, and what was copied from it, are not public."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.curator.curator import Curator
from lapwing.curator.source_checks import source_problems
from lapwing.engines.postgres.session import OWNER_VARIABLE, ask
from lapwing.errors import CatalogueError
from tests.engines.postgres.place import Place

PUBLIC = """
[public.everybody]
source = "clinic.{name}"
key = "person_id"
columns.person_id = {{ type = "key" }}
"""


@pytest.mark.parametrize("name", ["part", "made"])
def test_a_part_or_a_copy_of_a_protected_table_is_not_public(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(OWNER_VARIABLE, f"user={place.owner}")
    with place.as_owner() as owner:
        ask(owner, "CREATE TABLE clinic.part () INHERITS (clinic.visits)")
        ask(owner, "CREATE MATERIALIZED VIEW clinic.made AS SELECT DISTINCT person_id FROM clinic.visits")
        ask(owner, "CREATE TABLE clinic.apart AS SELECT DISTINCT person_id FROM clinic.visits")
    (tmp_path / "lapwing.toml").write_text(place.text() + PUBLIC.format(name=name))
    with Curator(tmp_path, home=tmp_path / "home") as curator:
        (problem,) = source_problems(curator.declaration)
        assert "`visits`" in problem
        with pytest.raises(CatalogueError) as refused:
            curator.prepare()
        assert refused.value.code == "catalogue-contradiction" and curator.engine.versions() == ()
    (tmp_path / "lapwing.toml").write_text(place.text() + PUBLIC.format(name="apart"))
    with Curator(tmp_path, home=tmp_path / "home") as curator:
        assert list(source_problems(curator.declaration)) == []
