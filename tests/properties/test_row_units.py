"""Where every row is a unit: one record more or less is one prepared row more or less, whatever the others are; and bugs that this sees."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest

import lapwing as lw
from lapwing.audit.oracle import ExactResult, compare
from lapwing.audit.runs import RANKING_KEY, prepare_in_duckdb
from lapwing.catalog import Declaration, Settings
from lapwing.engines import appending, prepare
from lapwing.engines.base import silent
from lapwing.engines.duckdb import DuckDBEngine
from lapwing.engines.duckdb import append as duckdb_append
from lapwing.engines.duckdb.prepare import write_tables
from lapwing.engines.duckdb.session import begin_session
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import Certified, certify
from lapwing.render import encoding
from tests.support.row_worlds import Row, World, all_worlds, declare, expected_units, neighbours_of, random_row, random_world, write_file
from tests.support.sizes import size
from tests.support.sql_shapes import MANY_ROWS, SqlShape, sql_shapes

Prepared = Counter[tuple[Any, ...]]
"""Prepared rows: unit, rank, rows of the unit, values."""
COLLIDING: tuple[tuple[str | None, str | None], ...] = (("a", ",a"), ("a,", "a"), ("a", "1:a,1:a"), ("", None), (None, ""), ("n", None))


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": "1"})
    begin_session(connection)
    yield connection
    connection.close()


def prepared(connection: duckdb.DuckDBPyConnection, declaration: Declaration) -> Prepared:
    write_tables(connection, declaration, version=1, ranking_key=RANKING_KEY, settings=Settings())
    return Counter(connection.execute("SELECT * FROM answers").fetchall())


def appended(declaration: Declaration) -> Prepared:
    """The same from files: a version of the first file, and the next one made from it and the files that come later, one at a time."""
    assert declaration.directory is not None
    text, directory = (declaration.directory / "lapwing.toml").read_text(encoding="utf-8"), declaration.directory
    (directory / ".lapwing").mkdir()
    engine, files = DuckDBEngine(directory / ".lapwing", Settings()), sorted(directory.glob("answers-*.parquet"))
    for path in files[1:]:
        path.rename(path.with_suffix(".later"))
    for version, path in enumerate(files, start=1):
        if version > 1:
            path.with_suffix(".later").rename(path)
        before = version - 1 if version > 1 else None
        engine.prepare(declaration, text, version=version, ranking_key=RANKING_KEY, progress=silent, append_to=before)
    with duckdb.connect(str(engine.path(len(files))), read_only=True) as connection:
        return Counter(connection.execute("SELECT * FROM answers").fetchall())


def grown(world: World, directory: Path, *, files: int) -> Declaration:
    """A source that grew file by file: equal records in several of them."""
    declaration = declare((), directory, files=1, appended=True)
    listed = [{**row, "seq": number} for number, row in enumerate(world)]
    size_of_a_file = -(-len(listed) // files)
    for number in range(files):
        write_file(directory, number, listed[number * size_of_a_file : (number + 1) * size_of_a_file], random.Random(number))
    return declaration


def wrong_with(found: Prepared, world: World, declaration: Declaration) -> list[str]:
    """What is wrong with one preparation: every unit has one row, and they are the units that are expected."""
    units = Counter(row[0] for row in found.elements())
    wrong = ["a unit has several rows"] if any(copies > 1 for copies in units.values()) else []
    wrong += ["a rank is not 1 of 1"] if any(row[1:3] != (1, 1) for row in found) else []
    return wrong + (["units are other ones"] if units != expected_units(world, declaration, RANKING_KEY) else [])


def breaches(make: Callable[[random.Random], World], look: Callable[[World, int], Prepared], *, worlds: int, seed: int) -> list[str]:
    """Neighbouring worlds whose prepared rows differ in more than one row."""
    rng, found = random.Random(seed), []
    for _ in range(worlds):
        world = make(rng)
        whole = look(world, 0)
        for number, other in enumerate(neighbours_of(world, "unbounded", rng), start=1):
            less = look(other, number)
            if less - whole or (whole - less).total() > 1:
                found.append(f"{world} without one record: {(whole - less).total()} rows went, {(less - whole).total()} came")
    return found


def colliding(rng: random.Random) -> World:
    """Rows that differ in texts alone, which look alike once they are joined."""
    base = {**random_row(rng), "town": 1}
    return tuple({**base, "word": word, "note": note} for word, note in rng.sample(COLLIDING, 4) * 2)


def test_units_are_what_they_should_be(database: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    rng, copies = random.Random(1), 0
    for number in range(size("rows as units, worlds")):
        world = (*random_world(rng, rows=12), *colliding(rng))
        declaration = declare(world, tmp_path / str(number), seed=number)
        found = prepared(database, declaration)
        assert wrong_with(found, world, declaration) == []
        assert prepared(database, declare(world, tmp_path / f"{number}-again", seed=99, files=1)) == found, "files and order mean nothing"
        copies += sum(not row[0].endswith(":1") for row in found)
    assert copies > 20, "equal rows must be there"


def look_in(connection: duckdb.DuckDBPyConnection) -> Callable[[World, int], Prepared]:
    def look(world: World, seed: int) -> Prepared:
        with TemporaryDirectory() as scratch:
            return prepared(connection, declare(world, Path(scratch) / "world", seed=seed))

    return look


def look_after_appending(world: World, _seed: int) -> Prepared:
    with TemporaryDirectory() as scratch:
        return appended(grown(world, Path(scratch) / "world", files=2))


@pytest.mark.parametrize("make", [random_world, colliding])
def test_one_record_less_is_one_row_less(make: Callable[[random.Random], World], database: duckdb.DuckDBPyConnection) -> None:
    assert breaches(make, look_in(database), worlds=size("rows as units, worlds"), seed=2) == []


@pytest.mark.parametrize("seed", range(3))
def test_appending_counts_on(seed: int, database: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """Equal rows in three files are so many units, and those that a preparation from nothing makes."""
    rng = random.Random(seed)
    world = tuple(random_row(rng, rich=False) for _ in range(30))
    declaration = grown(world, tmp_path / "world", files=3)
    found = appended(declaration)
    assert wrong_with(found, world, declaration) == []
    assert found == prepared(database, declaration)
    assert max(int(row[0].split(":")[1]) for row in found) > 5


def test_nor_does_one_whose_rows_were_appended() -> None:
    assert breaches(lambda rng: random_world(rng, rows=6), look_after_appending, worlds=2, seed=3) == []


def _unmarked(sql: str, domain: Any, dialect: Any) -> str:
    return f"COALESCE(CAST({sql} AS {dialect.text}), 'n')"


def _null_is_empty(sql: str, domain: Any, dialect: Any) -> str:
    return encoding.encoded(sql, domain, dialect).replace("'n'", "'0:'")


_ROW_UNITS, _APPENDED = prepare.row_units, appending.appended_row_units
MUTANTS: dict[str, list[tuple[object, str, Any]]] = {
    "no counter": [(prepare, "copy_number", lambda alias: "1")],
    "one counter for all rows": [(prepare, "copy_number", lambda alias: "ROW_NUMBER() OVER (ORDER BY c._digest)")],
    "texts joined without their lengths": [(prepare, "encoded", _unmarked)],
    "NULL is the empty text": [(prepare, "encoded", _null_is_empty)],
    "counting from 1 again at append": [
        (duckdb_append, "appended_row_units", lambda new, old, columns, dialect: _ROW_UNITS(f"SELECT * FROM {new}", columns, dialect))
    ],
    "appended rows counted from the number of all rows": [
        (
            duckdb_append,
            "appended_row_units",
            lambda new, old, columns, dialect: _APPENDED(new, old, columns, dialect).replace(
                "COALESCE(e.n, 0)", f"(SELECT COUNT(*) FROM {old})"
            ),
        )
    ],
    "position in the files instead of a digest": [
        (prepare, "copy_number", lambda alias: "ROW_NUMBER() OVER ()"),
        (prepare, "row_bytes", lambda columns, alias, dialect: "''"),
    ],
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_bug_is_seen(name: str, database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for target, attribute, replacement in MUTANTS[name]:
        monkeypatch.setattr(target, attribute, replacement)
    rng, at_append = random.Random(4), "append" in name
    seen: list[str] = []
    for number in range(3):
        world = (*random_world(rng, rows=8), *colliding(rng))
        declaration = grown(world + world, tmp_path / str(number), files=2)
        seen += wrong_with(appended(declaration) if at_append else prepared(database, declaration), world + world, declaration)
    assert seen, f"not seen: {name}"
    if name in ("one counter for all rows", "texts joined without their lengths", "position in the files instead of a digest"):
        assert breaches(colliding, look_in(database), worlds=2, seed=5), "and it makes one record move the rows of others"


# -- sensitivity ------------------------------------------------------------------------------------------------------------------------

GIVEN = (
    "SELECT COUNT(*) AS n, SUM(score) AS s, AVG(age) AS a FROM answers",
    "SELECT town, COUNT(*) AS n, SUM(score) AS s FROM answers GROUP BY town",
    "SELECT country, COUNT(*) AS n, SUM(age) AS s FROM answers JOIN towns USING (town) WHERE flag GROUP BY country",
    "SELECT word, COUNT(*) AS n, SUM(score) AS s FROM answers GROUP BY word",
    "SELECT COUNT(DISTINCT word) AS n FROM answers",
    "SELECT MEDIAN(score) AS m, VARIANCE(age) AS v FROM answers",
)


@pytest.mark.parametrize("account", list(Account))
@pytest.mark.parametrize("relation", ["unbounded", "bounded"])
def test_no_neighbour_breaks_a_claim(relation: str, account: Account, tmp_path: Path) -> None:
    delta, rng, pairs = "0" if account is Account.PURE else '"2^-30"', random.Random(7), 0
    certificates: dict[str, Certified] = {}
    shapes: dict[str, SqlShape] = {}

    def results(world: World, name: str, seed: int) -> dict[str, ExactResult]:
        snapshot = prepare_in_duckdb(declare(world, tmp_path / name, neighbours=relation, delta=delta, seed=seed))
        if not shapes:
            shapes.update(sql_shapes(snapshot.facts, {}, count=size("rows as units, statements"), seed=8, first=GIVEN))
        for text, shape in shapes.items():
            if text not in certificates:
                certificates[text] = certify(shape(snapshot.facts), snapshot.facts)
        found = {text: ExactResult(certified, snapshot.run(certified)) for text, certified in certificates.items()}
        assert snapshot.facts == next(iter(certificates.values())).facts
        snapshot.close()
        return found

    for number in range(2 if relation == "unbounded" else 1):
        world = random_world(rng, rows=4)
        left = results(world, f"{number}", 0)
        for index, neighbour in enumerate(neighbours_of(world, relation, rng), start=1):
            right = results(neighbour, f"{number}-{index}", index)
            for text in left:
                pairs += 1
                assert compare(left[text], right[text]) == [], text
    assert pairs >= 8 * len(certificates)
    for certified in certificates.values():
        assert {query.shape.rows_per_unit for query in certified.queries} == {1}


@pytest.mark.parametrize(
    ("relation", "account", "l1", "l2_squared"),
    [
        ("unbounded", Account.PURE, 1, 1),
        ("unbounded", Account.APPROXIMATE, 1, 1),
        ("bounded", Account.PURE, 2, 2),
        ("bounded", Account.APPROXIMATE, 2, 2),
    ],
)
def test_a_count_by_group_has_sensitivity_one_and_the_bound_is_met(
    relation: str, account: Account, l1: int, l2_squared: int, tmp_path: Path
) -> None:
    """No truncation: whatever the statistics say, a count by group is charged for one row (or one that goes and one that comes)."""
    delta = "0" if account is Account.PURE else '"2^-30"'
    row: Row = {**random_row(random.Random(1)), "town": 1}
    sides = []
    for name, world in (("one", (row, row)), ("other", (row, {**row, "town": 2}) if relation == "bounded" else (row,))):
        snapshot = prepare_in_duckdb(declare(world, tmp_path / name, neighbours=relation, delta=delta))
        shape = SqlShape("SELECT town, COUNT(*) AS n FROM answers GROUP BY town", Fraction(1), MANY_ROWS, {})
        planned = shape.planned(snapshot.facts)
        (query,) = planned.certified.queries
        (vector,) = query.vectors
        assert (vector.sensitivity.l1, vector.sensitivity.l2_squared, vector.step) == (l1, l2_squared, Fraction(1))
        assert [part.lost for part in planned.parts] == [0.0]
        sides.append(snapshot.run(planned.certified)._tables[0])
        snapshot.close()
    counts = [dict(zip(table._groups, table._vectors[0], strict=True)) for table in sides]
    moved = [abs(counts[0].get(group, 0) - counts[1].get(group, 0)) for group in counts[0].keys() | counts[1].keys()]
    assert sum(moved) == l1


def test_every_part_of_some_records(database: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """All subsets of records that are equal, nearly equal, and left out: prepared rows are as many as records that are kept."""
    rows = [*colliding(random.Random(6))[:3], {**random_row(random.Random(6)), "town": None}]
    rows.append(rows[0])
    for number, world in enumerate(all_worlds(rows)):
        declaration = declare(world, tmp_path / str(number), seed=number)
        assert wrong_with(prepared(database, declaration), world, declaration) == []


# -- the limit --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preparation", ["stored", "virtual"])
@pytest.mark.parametrize(("relation", "delta"), [("unbounded", "0"), ("bounded", '"2^-40"')])
def test_with_a_huge_budget_answers_are_those_of_the_bare_engine(relation: str, delta: str, preparation: str, tmp_path: Path) -> None:
    """At an epsilon of 10^7 the chance that any of these draws is not 0 is below 1e-9; equal rows count as often as they are there."""
    world = tuple(
        {**row, "grade": "a", "age": 40, "score": 2.25} for row in random_world(random.Random(9), rows=40) if row["town"] is not None
    )
    directory = tmp_path / "data"
    declare(world, directory, neighbours=relation, delta=delta, epsilon="1_000_000_000")
    catalogue = directory / "lapwing.toml"
    catalogue.write_text(catalogue.read_text().replace("[dataset]\n", f'[dataset]\npreparation = "{preparation}"\n'))
    bare = duckdb.connect()
    bare.execute(f"CREATE TABLE answers AS SELECT * FROM read_parquet('{directory}/answers-*.parquet', union_by_name = true)")
    with lw.open(directory, home=tmp_path / "home") as data:
        data.prepare()
        for statement in (
            "SELECT COUNT(*) AS n FROM answers",
            "SELECT SUM(age) AS s, COUNT_IF(flag) AS n FROM answers WHERE town >= 1",
            "SELECT town, COUNT(*) AS n, SUM(score) AS s FROM answers GROUP BY town ORDER BY town",
            "SELECT COUNT(*) AS n FROM answers WHERE word = ''",
        ):
            answer = data.ask(statement, epsilon=10**7)
            expected = bare.execute(statement).fetchall()
            found = {tuple(row.values()) for row in answer.table.to_pylist()}
            assert set(expected) <= found, statement
            assert all(row[-1] in (0, None) for row in found - set(expected)), "groups without rows"
            assert not any("left out" in note for note in answer.notes), answer.notes
    assert len({tuple(sorted(map(repr, row.items()))) for row in world}) < len(world), "equal rows must be there"
