"""Without a copy, questions read the owner's tables: what the reading role was not granted is found before anything is charged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.data_set import DataSet
from lapwing.data_set import open as open_data_set
from lapwing.engines.postgres.session import OWNER_VARIABLE, ask
from lapwing.errors import PreparationError
from tests.engines.postgres.place import Place

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE ward = {}"


@pytest.fixture
def data(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataSet]:
    """A data set that copies nothing; its reader was granted nothing yet."""
    monkeypatch.setenv(OWNER_VARIABLE, f"user={place.owner}")
    (tmp_path / "lapwing.toml").write_text(place.text(preparation="virtual").replace("epsilon = 10", "epsilon = 10\nstatistics_share = 0"))
    with open_data_set(tmp_path, home=tmp_path / "home") as opened:
        yield opened


def _do(place: Place, *statements: str) -> None:
    with place.as_owner() as owner:
        for statement in statements:
            ask(owner, statement)


def test_a_missing_right_stops_preparation_and_its_hint_is_what_to_grant(place: Place, data: DataSet) -> None:
    with pytest.raises(PreparationError) as refused:
        data.prepare()
    assert refused.value.code == "source-not-granted" and data.curator.engine.versions() == ()
    _do(place, *refused.value.hint.removeprefix("as their owner: ").split("; "))
    assert data.prepare() == 1
    assert data.ask(COUNT.format(1), epsilon=1).cost.epsilon > 0


@pytest.mark.parametrize("taken", ["SELECT (cost) ON clinic.visits", "USAGE ON SCHEMA clinic", "SELECT ON clinic.visits"])
def test_a_right_that_was_taken_back_is_found_before_a_charge(place: Place, data: DataSet, taken: str) -> None:
    given = "SELECT (person_id, ward, day, cost, note)" if "(cost)" in taken else "SELECT"
    _do(place, f"GRANT USAGE ON SCHEMA clinic TO {place.reader}", f"GRANT {given} ON clinic.visits TO {place.reader}")
    data.prepare()
    data.ask(COUNT.format(1), epsilon=1)
    before = data.curator.balance()
    _do(place, f"REVOKE {taken} FROM {place.reader}")
    with pytest.raises(PreparationError) as refused:
        data.ask(COUNT.format(2), epsilon=1)
    assert refused.value.code == "source-not-granted"
    assert data.curator.balance() == before and not before.closed
    _do(place, f"GRANT {taken} TO {place.reader}")
    assert data.ask(COUNT.format(2), epsilon=1).cost.epsilon > 0
