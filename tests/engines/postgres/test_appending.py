"""A version from an older one and the rows that came since is the version that a preparation from nothing writes, row for row."""

from __future__ import annotations

import threading
import time
from fractions import Fraction
from typing import Any

import pytest

from lapwing.catalog import Settings
from lapwing.engines.postgres.prepare import schema_name
from lapwing.engines.postgres.session import ask, transaction
from lapwing.errors import PreparationError
from lapwing.kernel.certify import certify
from lapwing.kernel.ir import KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian
from tests.engines.postgres.place import KEY, ROWS, Place, by_ward, totals

COLUMNS = "_unit, _rank, _rows, person_id, ward, day, cost, note"


def _rows(place: Place, version: int) -> list[tuple[Any, ...]]:
    schema = schema_name(f"visits.{place.number}", version)
    with place.as_owner() as owner:
        return ask(owner, f"SELECT {COLUMNS} FROM {schema}.visits ORDER BY {COLUMNS}")


def test_appending_equals_preparing_from_nothing(place: Place) -> None:
    """Units with new rows below, at and above the cap of 5, new units, equal rows, and rows without a unit."""
    place.units = 150
    place.prepare(version=1)
    place.add_visits(ROWS + 1, ROWS + 60)
    place.add_visits(ROWS + 1 + 11 * 90, ROWS + 1 + 11 * 90)
    with place.as_owner() as owner:
        ask(owner, "INSERT INTO clinic.visits SELECT 10000 + i, 7, 1, '2024-05-05', 1.5, 'the same', '' FROM generate_series(1, 9) i")
        ask(owner, "INSERT INTO clinic.visits VALUES (20000, NULL, 1, '2024-05-05', 1.5, 'nobody', '')")
    engine = place.prepare(version=2, append_to=1)
    assert engine.versions() == (2,)
    appended = _rows(place, 2)
    place.prepare(version=3)
    assert appended == _rows(place, 3)
    assert len(appended) > ROWS
    assert max(row[1] for row in appended) == 5


def test_appending_again_and_again(place: Place) -> None:
    place.prepare(version=1)
    for version in range(2, 6):
        place.add_visits(ROWS + version * 20, ROWS + version * 20 + 15)
        place.prepare(version=version, append_to=version - 1)
    appended = _rows(place, 5)
    place.prepare(version=6)
    assert appended == _rows(place, 6)


@pytest.mark.parametrize(
    "change", ["DELETE FROM clinic.visits WHERE id = 5", "INSERT INTO clinic.visits SELECT * FROM clinic.visits WHERE id = 5"]
)
def test_a_source_that_changed_before_the_mark_is_refused_and_nothing_changes(place: Place, change: str) -> None:
    place.prepare(version=1)
    before = _rows(place, 1)
    with place.as_owner() as owner:
        ask(owner, change)
    with pytest.raises(PreparationError) as refused:
        place.prepare(version=2, append_to=1)
    assert refused.value.code == "append-not-only"
    assert place.engine().versions() == (1,)
    assert _rows(place, 1) == before


def test_another_ranking_key_prepares_from_nothing(place: Place) -> None:
    place.prepare(version=1)
    place.add_visits(ROWS + 1, ROWS + 40)
    engine = place.engine()
    other = b"another key of thirty-two bytes!"
    engine.prepare(place.declaration(), place.text(), version=2, ranking_key=other, progress=lambda *_: None, append_to=1)
    appended = _rows(place, 2)
    engine.prepare(place.declaration(), place.text(), version=3, ranking_key=other, progress=lambda *_: None)
    assert appended == _rows(place, 3)


def test_a_reader_of_the_older_version_is_told_before_it_pays(place: Place) -> None:
    older = place.prepare(version=1).open(1, ranking_key=KEY)
    query = Query(Scan("visits", 5), (), KnownGroups(((),)), Ranked(), (Vector("n", RowCount(), DiscreteGaussian(Fraction(4))),))
    certified = certify(Plan((query,)), older.facts)
    older.check(certified)
    place.add_visits(ROWS + 1, ROWS + 2)
    newer = place.prepare(version=2, append_to=1).open(2, ranking_key=KEY)
    with pytest.raises(PreparationError) as refused:
        older.check(certified)
    assert refused.value.code == "snapshot-unreadable"
    assert totals(by_ward(newer))[0] > ROWS - 90
    older.close()
    newer.close()


def test_appending_waits_for_a_plan_that_runs(place: Place) -> None:
    """A plan reads the table that says what a version is before all else; until it ends, the version keeps its name."""
    engine = place.prepare(version=1)
    place.add_visits(ROWS + 1, ROWS + 2)
    schema = schema_name(f"visits.{place.number}", 1)
    appending = threading.Thread(target=lambda: place.prepare(version=2, append_to=1))
    with place.as_owner() as reading:
        with transaction(reading, Settings(), read_only=True):
            ask(reading, f"SELECT body FROM {schema}._lapwing")
            counted = ask(reading, f"SELECT COUNT(*) FROM {schema}.visits")
            appending.start()
            deadline = time.monotonic() + 20
            with place.as_superuser() as watching:
                while not ask(watching, "SELECT 1 FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"):
                    assert time.monotonic() < deadline
            assert engine.versions() == (1,)
            assert ask(reading, f"SELECT COUNT(*) FROM {schema}.visits") == counted
        appending.join(30)
    assert not appending.is_alive()
    assert engine.versions() == (2,)
