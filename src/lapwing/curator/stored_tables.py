"""Released tables as bytes, for the ledger: the stored answer is returned bit for bit, so its form is fixed and exact.

JSON, one object per table. Integers are written as integers, fractions as "p/q" inside {"f": ...}; noise laws by name and scale. Values of
a product of axes, of which there may be millions, are packed: 64-bit integers, compressed, as text. A payload with such a table is of
format 2, every other one of format 1, as it always was.
"""

from __future__ import annotations

import base64
import json
import sys
import zlib
from array import array
from fractions import Fraction
from typing import Any

from lapwing.errors import LedgerError
from lapwing.kernel.expressions import Value
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.release import ChosenQuantiles, NoisyColumn, NoisyTable, Released

FORMAT = 1
FORMAT_PACKED = 2


def encode(released: Released) -> bytes:
    """Exact bytes of a release."""
    packed = any(table.axes is not None for table in released.tables)
    body = {
        "format": FORMAT_PACKED if packed else FORMAT,
        "digest": released.digest,
        "tables": [_table(table) for table in released.tables],
    }
    return json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode()


def decode(payload: bytes) -> Released:
    """The release that ``encode`` wrote."""
    body = json.loads(payload)
    if body.get("format") not in (FORMAT, FORMAT_PACKED):
        raise LedgerError("answer-format", "the stored answer has another format version")
    return Released(body["digest"], tuple(_read_table(table) for table in body["tables"]))


def _table(table: NoisyTable) -> dict[str, Any]:
    axes = {} if table.axes is None else {"axes": [[_value(value) for value in axis] for axis in table.axes]}
    return {
        **axes,
        "keys": list(table.keys),
        "groups": [[_value(value) for value in group] for group in table.groups],
        "columns": [
            {
                "name": column.name,
                "values": list(column.values) if table.axes is None else _packed(column.values),
                "law": [type(column.law).__name__, str(column.law.scale)],
                "step": str(column.step),
                "rounding": str(column.rounding),
            }
            for column in table.columns
        ],
        "threshold": table.threshold,
        "rows_max": table.rows_max,
        "quantiles": [
            {"name": item.name, "values": [list(column) for column in item.values], "step": str(item.step)} for item in table.quantiles
        ],
    }


def _read_table(body: dict[str, Any]) -> NoisyTable:
    columns = tuple(
        NoisyColumn(item["name"], _values(item["values"]), _law(*item["law"]), Fraction(item["step"]), Fraction(item["rounding"]))
        for item in body["columns"]
    )
    groups = tuple(tuple(_read_value(value) for value in group) for group in body["groups"])
    quantiles = tuple(
        ChosenQuantiles(item["name"], tuple(tuple(column) for column in item["values"]), Fraction(item["step"]))
        for item in body.get("quantiles", ())
    )
    axes = tuple(tuple(_read_value(value) for value in axis) for axis in body["axes"]) if "axes" in body else None
    return NoisyTable(tuple(body["keys"]), groups, columns, body["threshold"], body["rows_max"], quantiles, axes)


def _packed(values: tuple[int, ...]) -> str:
    """64-bit integers, the least significant byte first, compressed, as text: the same for the same values on every machine."""
    numbers = array("q", values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return base64.b64encode(zlib.compress(numbers.tobytes(), 1)).decode("ascii")


def _values(stored: list[int] | str) -> tuple[int, ...]:
    if isinstance(stored, list):
        return tuple(stored)
    numbers = array("q")
    numbers.frombytes(zlib.decompress(base64.b64decode(stored, validate=True)))
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


def _value(value: Value) -> object:
    return {"f": str(value)} if isinstance(value, Fraction) else value


def _read_value(value: Any) -> Value:
    if isinstance(value, dict):
        return Fraction(value["f"])
    if value is None or isinstance(value, bool | int | str):
        return value
    raise LedgerError("answer-format", "the stored answer cannot be read")


def _law(name: str, scale: str) -> Law:
    return DiscreteGaussian(Fraction(scale)) if name == DiscreteGaussian.__name__ else DiscreteLaplace(Fraction(scale))
