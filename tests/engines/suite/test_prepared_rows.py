"""Preparation on every engine writes the rows that DuckDB writes: values, units, ranks and all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from lapwing.catalog import Declaration, load
from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import Domain, TextDomain
from tests.engines.suite import statements
from tests.engines.suite.engines import NAMES, OTHERS, OnDuckDB, SuiteEngine, prepared
from tests.engines.test_hostile_rows import COLUMNS, HOLDS, catalogue
from tests.support.hostile import SOURCES, TEXTS, write_rows
from tests.support.reference import Raw, sanitise
from tests.support.sizes import size

EngineNamed = Callable[[str], SuiteEngine]
UNREAD = {
    ("spark", "nanoseconds"): "Spark does not read Parquet files with nanoseconds",
    ("spark", "nothing"): "Spark takes a column without a type for whole numbers, and they are not dates",
}
"""Sources that an engine cannot open, or reads as another type, and why."""
KEY = b"\x00\x01" * 16
SEEDS = {"postgres": range(3), "spark": range(size("prepared rows on Spark, worlds"))}


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in OTHERS for seed in SEEDS[name]])
def test_random_worlds(tmp_path: Path, engine_named: EngineNamed, name: str, seed: int) -> None:
    _same_rows(engine_named(name), statements.people(tmp_path / "people", "unbounded", Account.PURE, seed=seed))
    _same_rows(engine_named(name), statements.clinic(tmp_path / "clinic", "unbounded", Account.PURE, seed=seed))


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in OTHERS for seed in SEEDS[name][:2]])
def test_hostile_rows(tmp_path: Path, engine_named: EngineNamed, name: str, seed: int) -> None:
    _same_rows(engine_named(name), statements.hostile(tmp_path, seed=seed))


def _same_rows(engine: SuiteEngine, declaration: Declaration) -> None:
    first, second = OnDuckDB().prepare(declaration, ranking_key=KEY), engine.prepare(declaration, ranking_key=KEY)
    assert first.facts == second.facts
    for table in declaration.tables:
        rows = prepared(OnDuckDB(), first, table.name)
        assert rows, "an empty table would show nothing"
        assert prepared(engine, second, table.name) == rows
    first.close()
    second.close()


@pytest.mark.parametrize("name", NAMES)
def test_every_type_of_source_is_read_as_the_reference_says(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    read = [source for source in SOURCES if HOLDS[source] and (name, source) not in UNREAD]
    for source in read:
        values = [None, *SOURCES[source].values]
        rows: list[dict[str, Raw]] = [{"id": number, **dict.fromkeys(COLUMNS, value)} for number, value in enumerate(values)]
        kept = [statements.without_zero(row) for row in rows]
        write_rows(tmp_path / f"{source}.parquet", kept, {"id": "int64", **dict.fromkeys(COLUMNS, source)})
    (tmp_path / "lapwing.toml").write_text(catalogue(read), encoding="utf-8")
    declaration, engine = load(tmp_path / "lapwing.toml"), engine_named(name)
    snapshot = engine.prepare(declaration)
    wrong, seen = [], 0
    for source in read:
        table = declaration.table(f"from_{source}")
        domains = snapshot.facts.table(table.name).columns
        stored = {row[3]: row[4:] for row in prepared(engine, snapshot, table.name)}
        for number, value in enumerate([None, *SOURCES[source].values]):
            raw = statements.without_zero({"x": value})["x"]
            expected = tuple(sanitise(raw, domains[column.name], column.other) for column in table.columns[1:])
            seen += len(expected)
            pairs = zip(table.columns[1:], stored[number], expected, strict=True)
            wrong += [(source, str(value)[:40], column.name, found, right) for column, found, right in pairs if found != right]
    snapshot.close()
    assert wrong == []
    assert seen > 3_000


def test_ranks_are_the_order_of_keyed_hashes(tmp_path: Path) -> None:
    """Computed a second time here: the key, the unit, the row's own values, SHA-256. The other engines write the same ranks."""
    declaration = statements.people(tmp_path, "unbounded", Account.PURE, seed=1)
    snapshot = OnDuckDB().prepare(declaration, ranking_key=KEY)
    for table in declaration.tables:
        units: dict[object, list[tuple[int, str]]] = {}
        domains = snapshot.facts.table(table.name).columns
        for unit, rank, _, *values in prepared(OnDuckDB(), snapshot, table.name):
            encoded = ",".join(_encoded(value, domain) for value, domain in zip(values, domains.values(), strict=True))
            units.setdefault(unit, []).append((rank, hashlib.sha256(f"{KEY.hex()}|{unit}|{encoded}".encode()).hexdigest()))
        for found in units.values():
            hashes = [digest for _, digest in sorted(found)]
            assert hashes == sorted(hashes)
            assert [rank for rank, _ in sorted(found)] == [*range(1, len(found) + 1)]
        assert any(len(found) > 3 for found in units.values()) or table.one_row_per_unit
    snapshot.close()


def _encoded(value: object, domain: Domain) -> str:
    match value:
        case None:
            return "n"
        case bool():
            return "t" if value else "f"
        case str():
            return f"{len(value.encode())}:{value}"
        case _:
            assert isinstance(value, int) and not isinstance(domain, TextDomain)
            return str(value)


@pytest.mark.parametrize("name", NAMES)
def test_hashes_of_hostile_texts(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    engine = engine_named(name)
    snapshot = engine.prepare(statements.people(tmp_path, "unbounded", Account.PURE, seed=1))
    texts, dialect = [text for text in TEXTS if "\0" not in text], engine.dialect(snapshot)
    columns = ", ".join(
        f"{dialect.keyed_hash(dialect.text_literal('key'), dialect.text_literal(text))} AS h{i}, "
        f"{dialect.byte_length(dialect.text_literal(text))} AS b{i}"
        for i, text in enumerate(texts)
    )
    row = engine.select(snapshot, columns, "people")[0]
    assert list(row[::2]) == [hashlib.sha256(f"key|{text}".encode()).hexdigest() for text in texts]
    assert list(row[1::2]) == [len(text.encode()) for text in texts]
    snapshot.close()
