"""Spellings that several engines share."""

from __future__ import annotations

from collections.abc import Mapping

from lapwing.kernel.expressions import Function
from lapwing.render.dialect import Emit

DATE_PARTS = {
    Function.YEAR: "year",
    Function.QUARTER: "quarter",
    Function.MONTH: "month",
    Function.DAY: "day",
    Function.DAY_OF_WEEK: "dow",
    Function.DAY_OF_YEAR: "doy",
    Function.WEEK: "week",
    Function.ISO_YEAR: "isoyear",
    Function.HOUR: "hour",
    Function.MINUTE: "minute",
    Function.SECOND: "second",
}
"""Names of the parts of a date, as PostgreSQL has them."""


LIBRARY: Mapping[Function, Emit] = {
    Function.SQRT: lambda value: f"sqrt({value})",
    Function.LN: lambda value: f"ln({value})",
    Function.EXP: lambda value: f"exp({value})",
    Function.SIN: lambda value: f"sin({value})",
    Function.COS: lambda value: f"cos({value})",
}
"""Functions that every engine here calls by the same name."""


def whole_as_wide(double: str, wide: str) -> str:
    """SQL of a whole double as a wide integer, through 64-bit integers: the plain cast of some engines keeps 15 digits only."""
    small = f"CAST(CAST({double} AS BIGINT) AS {wide})"
    large = f"CAST(CAST({double} / 4 AS BIGINT) AS {wide}) * 4"
    return f"(CASE WHEN {double} < {2.0**62!r} THEN {small} ELSE {large} END)"
