"""Numbers for reading: four significant figures, with separators, and exponents only if needed."""

from __future__ import annotations

import math

DIGITS = 4
_PLAIN_MAX = 1e15


def figure(value: float, *, digits: int = DIGITS) -> str:
    """16412.7 as 16,410; 0.04321 as 0.04321; 12 as 12."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= _PLAIN_MAX:
        return f"{value:.3g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    if decimals <= 0:
        return f"{rounded:,.0f}"
    return f"{rounded:,.{min(decimals, 9)}f}".rstrip("0").rstrip(".")


def share_text(share: float) -> str:
    """A share of a whole as percent: two decimals, and never 0.00% for something above 0."""
    if 0 < share < 0.0001:
        return "less than 0.01%"
    return f"{share:.2%}"


def shortened(text: str, length: int) -> str:
    """One line of at most ``length`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def cell_text(value: object) -> str:
    """A value without error bar as a cell. Whole numbers are keys, such as years: no separators."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case float() if value == 0 or 1e-3 <= abs(value) < 1e9:
            return f"{value:,.2f}" if abs(value) >= 1 or value == 0 else f"{value:.4f}"
        case float():
            return f"{value:.4g}"
        case _:
            return str(value)


def percent(share: float) -> str:
    """0.95 as 95%, 0.999 as 99.9%."""
    return f"{share * 100:.10g}%"
