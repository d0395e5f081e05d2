"""Marks of computed cells, as SQL: how the mark of an expression follows from those of its inputs.

A mark is a whole number: 0 for an ordinary value, else the code of a :class:`lapwing.statements.CellMark`. None is for values that do not
come from noisy values at all. Withheld values are NULL already, so most of SQL treats them correctly; this module does the rest: divisors,
sort keys, and the marks that the reader sees.
"""

from __future__ import annotations

from collections.abc import Sequence

from lapwing.statements import CellMark

SCALED, NOISE_ONLY, MEANINGLESS = CellMark.SCALED.code, CellMark.NOISE_ONLY.code, CellMark.MEANINGLESS.code


def clear(sql: str, mark: str | None) -> str:
    """The value if it is significant, else NULL: for use as a divisor or for sorting."""
    return sql if mark is None else f"(CASE WHEN {mark} < {NOISE_ONLY} THEN {sql} END)"


def unless_withheld(sql: str, mark: str | None) -> str:
    """The value, or NULL where an input of it is withheld."""
    return sql if mark is None else f"(CASE WHEN {mark} < {MEANINGLESS} THEN {sql} END)"


def worst(*marks: str | None) -> str | None:
    """The worst of several marks, such as the mark of a product."""
    known = list(dict.fromkeys(mark for mark in marks if mark is not None))
    return None if not known else known[0] if len(known) == 1 else f"greatest({', '.join(known)})"


def of_sum(left: str | None, right: str | None) -> str | None:
    """The sum of two values may be significant even if neither is. A value without noise only shifts the other."""
    if left is None or right is None:
        return worst(left, right)
    both = f"{left}, {right}"
    return f"(CASE WHEN greatest({both}) = {NOISE_ONLY} THEN least({both}) % {NOISE_ONLY} ELSE greatest({both}) END)"


def of_quotient(above: str | None, below: str | None) -> str | None:
    """The mark of a quotient, which is meaningless if the divisor is not significant."""
    if below is None:
        return above
    return f"(CASE WHEN {below} >= {NOISE_ONLY} THEN {MEANINGLESS} ELSE {worst(above, below)} END)"


def of_first(values: Sequence[tuple[str, str | None]]) -> str | None:
    """The mark of COALESCE: that of the chosen value. A constant that replaces a missing value has the mark of the missing value."""
    every = worst(*(mark for _, mark in values))
    cases = "".join(f" WHEN {sql} IS NOT NULL THEN {mark}" for sql, mark in values if mark is not None)
    return None if every is None else f"(CASE{cases} ELSE {every} END)"


def of_case(conditions: Sequence[str], marks: Sequence[str | None]) -> str | None:
    """The mark of CASE: that of the branch taken; none if no branch is taken and there is no ELSE."""
    if worst(*marks) is None:
        return None
    cases = "".join(f" WHEN {condition} THEN {mark or 0}" for condition, mark in zip(conditions, marks, strict=False))
    return f"(CASE{cases} ELSE {(marks[len(conditions)] or 0) if len(marks) > len(conditions) else 0} END)"


def of_aggregate(mark: str | None) -> str | None:
    """The mark of an aggregate over answers, which skips withheld values: withheld if all are; scaled if any value is scaled."""
    if mark is None:
        return None
    scaled = f"WHEN bool_or({mark} = {SCALED}) THEN {SCALED}"
    return f"(CASE WHEN bool_and({mark} >= {MEANINGLESS}) THEN {MEANINGLESS} {scaled} ELSE 0 END)"


def order(sql: str, mark: str | None, *, descending: bool, nulls_first: bool) -> str:
    """A term of ORDER BY. Cells that are not significant come last in either direction."""
    way = "DESC" if descending else "ASC"
    return f"{clear(sql, mark)} {way} NULLS {'FIRST' if nulls_first and mark is None else 'LAST'}"
