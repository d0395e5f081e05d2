"""Columns of the catalogue: from the file to a domain that preparation can enforce."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar, assert_never

from lapwing.catalog.declaration import ColumnDecl, ColumnRef
from lapwing.catalog.exact import show
from lapwing.catalog.positions import Path
from lapwing.catalog.problems import ProblemReport
from lapwing.catalog.schema import (
    AnyColumnModel,
    BooleanModel,
    DateModel,
    IntegerModel,
    KeyModel,
    RealModel,
    TextModel,
    TimestampModel,
)
from lapwing.catalog.settings import Settings
from lapwing.catalog.spellings import spelling_of
from lapwing.kernel.domains import (
    DOUBLE_EXACT_LIMIT,
    INTEGER_LIMIT,
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    RealDomain,
    TextDomain,
    TimestampDomain,
    grid_integer,
)

IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""Names of tables and columns. A leading underscore is kept for the columns that preparation adds."""

STEPS_DIGITS_MAX = 12
"""Finest grid that can be asked for: 10 to this power steps per 1."""

_REFERENCE = re.compile(r"\s*([^\s.]+)\s*\.\s*([^\s.]+)\s*")
_SOURCE_NAME_CHARACTERS_MAX = 255
_COARSE_STEPS = 100
_EPOCH_DATE = datetime.date(1970, 1, 1)
_EPOCH_TIME = datetime.datetime(1970, 1, 1)
_Ordered = TypeVar("_Ordered", int, Fraction, datetime.date, datetime.datetime)


def read_reference(text: str) -> ColumnRef | None:
    """``table.column`` as written, or None."""
    match = _REFERENCE.fullmatch(text)
    return ColumnRef(table=match[1], column=match[2]) if match else None


def check_name(report: ProblemReport, path: Path, name: str) -> None:
    """Names are the same in every engine, quoted or not: small letters, digits, underscores."""
    if IDENTIFIER.fullmatch(name):
        return
    hint = "small letters, digits and underscores, starting with a letter, at most 63 characters"
    folded = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")[:63]
    if IDENTIFIER.fullmatch(folded):
        hint += f"; `{folded}` would do"
        if path[-2:-1] == ("columns",):
            hint += f', with from = "{name}"'
    report.problem("catalogue-bad-name", path, f'"{name}" cannot be a name', hint=hint, of_key=True)


def build_columns(
    report: ProblemReport, base: Path, models: Mapping[str, AnyColumnModel], *, rows_max: int, is_summed: bool, settings: Settings
) -> tuple[ColumnDecl, ...]:
    """The columns of one table. ``rows_max`` bounds how many rows a sum can have; public tables are not summed by themselves."""
    if len(models) > settings.columns_per_table_max:
        report.problem("catalogue-limit", base, f"more than {settings.columns_per_table_max} columns")
    if not models:
        report.problem("catalogue-missing-key", base, "no column is declared", hint="columns that are not declared cannot be asked about")
    columns: list[ColumnDecl] = []
    taken: dict[str, str] = {}
    for name, model in models.items():
        path = (*base, name)
        check_name(report, path, name)
        source_name = _source_name(report, path, name, model)
        # Engines compare column names without regard to case, so "Age" and "age" are one source column.
        first = taken.setdefault(source_name.lower(), name)
        if first != name:
            report.problem("catalogue-duplicate", path, f'`{name}` and `{first}` read the same source column "{source_name}"', of_key=True)
        columns.append(
            ColumnDecl(
                name=name,
                source_name=source_name,
                domain=_domain(report, path, model, rows_max=rows_max, is_summed=is_summed, settings=settings),
                other=model.other if isinstance(model, TextModel) else None,
                values_from=_values_from(report, path, model),
                description=model.description,
                spelling=spelling_of(report, path, model),
            )
        )
    return tuple(columns)


def _source_name(report: ProblemReport, path: Path, name: str, model: AnyColumnModel) -> str:
    written = model.source_name
    if written is None:
        return name
    if not written or len(written) > _SOURCE_NAME_CHARACTERS_MAX or not written.isprintable():
        hint = f"1 to {_SOURCE_NAME_CHARACTERS_MAX} printable characters"
        report.problem("catalogue-bad-name", (*path, "from"), "`from` cannot be the name of a source column", hint=hint)
    return written


def _domain(report: ProblemReport, path: Path, model: AnyColumnModel, *, rows_max: int, is_summed: bool, settings: Settings) -> Domain:
    match model:
        case KeyModel():
            return KeyDomain(nullable=model.null, text=model.of == "text")
        case BooleanModel():
            return BooleanDomain(nullable=model.null)
        case IntegerModel():
            if _in_order(report, path, model.min, model.max):
                _check_integers(report, path, model, rows_max=rows_max, is_summed=is_summed)
            return IntegerDomain(model.min, model.max, model.null)
        case RealModel():
            steps = 1
            if _in_order(report, path, model.min, model.max):
                steps = _steps(report, path, model, rows_max=rows_max, is_summed=is_summed, settings=settings)
            return RealDomain(model.min, model.max, model.null, steps)
        case TextModel():
            return TextDomain(_values(report, path, model, settings=settings), model.null)
        case DateModel():
            _in_order(report, path, model.min, model.max)
            return DateDomain((model.min - _EPOCH_DATE).days, (model.max - _EPOCH_DATE).days, model.null)
        case TimestampModel():
            _in_order(report, path, model.min, model.max)
            microsecond = datetime.timedelta(microseconds=1)
            return TimestampDomain((model.min - _EPOCH_TIME) // microsecond, (model.max - _EPOCH_TIME) // microsecond, model.null)
        case _:
            assert_never(model)


def _in_order(report: ProblemReport, path: Path, low: _Ordered, high: _Ordered) -> bool:
    if low <= high:
        return True
    report.problem("catalogue-bad-bounds", (*path, "min"), f"`min` ({_shown(low)}) is above `max` ({_shown(high)})", hint="swap them?")
    return False


def _shown(end: int | Fraction | datetime.date) -> str:
    return str(end) if isinstance(end, datetime.date) else show(end)


def _check_integers(report: ProblemReport, path: Path, model: IntegerModel, *, rows_max: int, is_summed: bool) -> None:
    magnitude = max(abs(model.min), abs(model.max))
    end: Path = (*path, "max" if abs(model.max) >= abs(model.min) else "min")
    if magnitude >= DOUBLE_EXACT_LIMIT:
        hint = 'bounds stay below 2^52; an identifier is { type = "key" }'
        report.problem("catalogue-bad-bounds", end, "the bound is too large", hint=hint)
    elif is_summed and magnitude * rows_max >= INTEGER_LIMIT:
        message = f"a sum over {show(rows_max)} rows of numbers up to {show(magnitude)} could pass 2^62"
        hint = 'declare a smaller `rows_max` or tighter bounds; an identifier is { type = "key" }'
        report.problem("catalogue-bad-bounds", end, message, hint=hint)


def _fits(model: RealModel, *, steps: int, rows_max: int, is_summed: bool) -> bool:
    """Whether grid integers, and their sums, stay where integer and double arithmetic are exact."""
    magnitude = max(abs(grid_integer(end, steps)) for end in (model.min, model.max))
    return magnitude < DOUBLE_EXACT_LIMIT and (not is_summed or magnitude * rows_max < INTEGER_LIMIT)


def _steps(report: ProblemReport, path: Path, model: RealModel, *, rows_max: int, is_summed: bool, settings: Settings) -> int:
    """Steps of the grid per 1: as declared, or the finest power of ten that fits, because most measured numbers are decimals."""
    finest = 0
    while finest < STEPS_DIGITS_MAX and 10 ** (finest + 1) <= settings.steps_default_max:
        finest += 1
    powers = (int(10**digits) for digits in range(finest, -1, -1))
    best = next((steps for steps in powers if _fits(model, steps=steps, rows_max=rows_max, is_summed=is_summed)), None)
    if best is None:
        ends = f"{show(model.min)} and {show(model.max)}"
        message = f"bounds of {ends} are too wide for {show(rows_max)} rows, even on a grid of whole numbers"
        hint = "declare a smaller `rows_max`, tighter bounds, or the column in a larger measure (thousands, millions)"
        report.problem("catalogue-bad-bounds", path, message, hint=hint, of_key=True)
        return 1
    steps = best if model.steps is None else model.steps
    if not 1 <= steps <= 10**STEPS_DIGITS_MAX:
        report.problem("catalogue-bad-value", (*path, "steps"), f"`steps` must be from 1 to 10^{STEPS_DIGITS_MAX}")
        return best
    if not _fits(model, steps=steps, rows_max=rows_max, is_summed=is_summed):
        message = f"{show(steps)} steps per 1 are too fine a grid for these bounds and {show(rows_max)} rows"
        report.problem("catalogue-bad-bounds", (*path, "steps"), message, hint=f"the finest that fits by default is {show(best)}")
        return best
    distinct = grid_integer(model.max, steps) - grid_integer(model.min, steps) + 1
    if distinct <= _COARSE_STEPS and model.min < model.max:
        message = f"only {distinct} different values between `min` and `max` lie on the grid of {show(steps)} step(s) per 1"
        report.warn("grid-coarse", path, message, hint="raise `steps`, or declare the column in a smaller measure")
    return steps


def _values(report: ProblemReport, path: Path, model: TextModel, *, settings: Settings) -> tuple[str, ...] | None:
    if model.other is not None:
        _check_text(report, (*path, "other"), model.other, settings=settings)
        if model.values is None and model.values_from is None:
            hint = "list the values, or leave `other` out"
            report.problem("catalogue-contradiction", (*path, "other"), "`other` needs `values` or `values_from`", hint=hint)
    if model.values is None:
        return None
    if model.values_from is not None:
        report.problem("catalogue-contradiction", (*path, "values_from"), "`values` and `values_from` cannot both be given")
    if not model.values:
        hint = "leave `values` out when they are not known"
        report.problem("catalogue-bad-values", (*path, "values"), "`values` is empty", hint=hint)
    if len(model.values) > settings.values_per_column_max:
        report.problem("catalogue-limit", path, f"more than {settings.values_per_column_max} values", of_key=True)
    seen: set[str] = set()
    for position, value in enumerate(model.values):
        at = (*path, "values", position)
        _check_text(report, at, value, settings=settings)
        if value in seen:
            report.problem("catalogue-bad-values", at, "this value is listed twice")
        seen.add(value)
    return with_other(model.values, model.other)


def with_other(values: tuple[str, ...], other: str | None) -> tuple[str, ...]:
    """The declared values and the one that replaces all others."""
    return values if other is None or other in values else (*values, other)


def _check_text(report: ProblemReport, path: Path, value: str, *, settings: Settings) -> None:
    if "\x00" in value:
        report.problem("catalogue-bad-values", path, "a value cannot hold the NUL character")
    if len(value.encode()) > settings.text_value_bytes_max:
        report.problem("catalogue-limit", path, f"a value is longer than {settings.text_value_bytes_max} bytes")


def _values_from(report: ProblemReport, path: Path, model: AnyColumnModel) -> ColumnRef | None:
    if not isinstance(model, TextModel) or model.values_from is None:
        return None
    reference = read_reference(model.values_from)
    if reference is None:
        hint = 'write "table.column", a text column of a public table'
        report.problem("catalogue-bad-reference", (*path, "values_from"), "`values_from` cannot be read", hint=hint)
    return reference
