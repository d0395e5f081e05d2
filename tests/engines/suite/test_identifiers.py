"""Two different identifiers are never one unit, on any engine: what cannot be kept apart has no unit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog import load
from lapwing.errors import PreparationError
from tests.engines.suite.engines import NAMES, SuiteEngine

EngineNamed = Callable[[str], SuiteEngine]
CATALOGUE = """
format = 1
[dataset]
id = "ids"
unit = "person"
[budget]
epsilon = 1
statistics_share = 0
[tables.t]
source = "t.parquet"
unit = "id"
rows_per_unit_max = 5
[tables.t.columns]
id = {{ type = "key"{of} }}
x = {{ type = "integer", min = 0, max = 100 }}
"""
TOP, STEP = 2**63 - 1, Decimal("1e-20")
HALF = 2**53

SOURCES: dict[str, tuple[pa.DataType, Sequence[Any], Sequence[int | str | None]]] = {
    "fixed point": (pa.decimal128(38, 20), [Decimal(1), 1 + STEP, 1 - STEP, Decimal(0), -STEP, Decimal(-7)], [1, None, None, 0, None, -7]),
    "many digits": (
        pa.decimal128(38, 2),
        [Decimal(HALF), Decimal(HALF + 1), Decimal(TOP), Decimal(TOP + 1), Decimal(-TOP - 1)],
        [HALF, HALF + 1, TOP, None, -TOP - 1],
    ),
    "only decimals": (pa.decimal128(38, 38), [Decimal(0), Decimal("1e-38")], [0, None]),
    "whole fixed point": (
        pa.decimal128(38, 0),
        [Decimal(TOP), Decimal(TOP + 1), Decimal(2**64), Decimal(2**64 + 5)],
        [TOP, None, None, None],
    ),
    "unsigned": (pa.uint64(), [2**64 - 1, 2**63, TOP, 0], [None, None, TOP, 0]),
    "double": (pa.float64(), [0.1 + 0.2, float(HALF), HALF + 2.0, -0.0, 1e300, float("nan"), 3.0], [None, HALF, None, 0, None, None, 3]),
    "float": (pa.float32(), [16777216.0, 16777218.0, 0.5], [16777216, 16777218, None]),
    "text": (pa.string(), ["1", "01", "+1", "1.0", " 1", "1 ", "1e0", "-0", str(TOP + 1)], [1, *[None] * 8]),
}
TEXTS = ["a", "A", "a ", " a", "\u00e9", "e\u0301", "\u212b", "\u00c5", "", "\uff41", "ss", "\u00df"]


def units(engine: SuiteEngine, directory: Path, kind: pa.DataType, values: Sequence[Any], *, of: str = "") -> dict[int, Any]:
    """Unit of every row that is prepared, by the number of the row."""
    pq.write_table(pa.table({"id": pa.array(values, kind), "x": pa.array(range(len(values)), pa.int64())}), directory / "t.parquet")
    (directory / "lapwing.toml").write_text(CATALOGUE.format(of=of), encoding="utf-8")
    snapshot = engine.prepare(load(directory / "lapwing.toml"))
    found = {row[0]: row[1] for row in engine.select(snapshot, "t.x, t._unit", "t")}
    snapshot.close()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_kept_apart(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    for source, (kind, values, expected) in SOURCES.items():
        found = units(engine_named(name), tmp_path, kind, values)
        assert found == {number: unit for number, unit in enumerate(expected) if unit is not None}, source


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_kept_apart_by_their_bytes(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    assert units(engine_named(name), tmp_path, pa.string(), TEXTS, of=', of = "text"') == dict(enumerate(TEXTS))


@pytest.mark.parametrize("name", NAMES)
def test_what_has_no_one_text_cannot_be_a_key(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    for kind, value in ((pa.decimal128(38, 2), Decimal(1)), (pa.float64(), 1.0), (pa.date32(), 0), (pa.timestamp("us", tz="UTC"), 0)):
        with pytest.raises(PreparationError) as caught:
            units(engine_named(name), tmp_path, kind, [value], of=', of = "text"')
        assert caught.value.code == "source-type", kind
