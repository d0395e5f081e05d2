"""Every function of rows gives, on every row, what the bare engine gives, inside the interval the kernel derives."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import duckdb
import pytest
from docs.function_listing import LISTED, SIGNS

from lapwing.errors import Refused
from lapwing.kernel.domains import Kind
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.sql import bind
from lapwing.sql.scalars.handlers import BY_NAME, HANDLERS, NAMED
from tests.support.reference import evaluator, in_domain
from tests.unit.sql.clinic import FACTS, MOMENT, REFERENCES, SETTINGS, UNIT_COLUMNS, bound
from tests.unit.sql.meaning import comparable, engine, rows, stored

TABLES = rows(seed=11, patients=120, visits=500)
STORED = stored(TABLES)


@cache
def bare() -> duckdb.DuckDBPyConnection:
    return engine(TABLES)


def table_of(expression: str) -> str:
    return "patients" if re.search(r"\b(sex|region|birth_year|smoker|vaccinated|income)\b", expression) else "visits"


def ours(expression: str, dialect: str = "duckdb") -> list[Any]:
    """The expression on every row, by the reference evaluator of the kernel's closed list; each value inside the derived domain."""
    table = table_of(expression)
    text = f"SELECT COUNT({expression}) FROM {table}"
    (private,) = bind(
        text, FACTS, settings=SETTINGS, unit_columns=UNIT_COLUMNS, references=REFERENCES, dialect=dialect, moment=MOMENT
    ).privates
    (aggregate,) = private.aggregates
    assert aggregate.value is not None, "the expression must depend on rows"
    columns = shape_of(private.source, FACTS).columns
    found, domain = evaluator(aggregate.value, columns), domain_of(aggregate.value, columns)
    values = [found.value(row) for row in STORED[table]]
    assert [value for value in values if not in_domain(value, domain)] == []
    if found.steps is not None:
        values = [None if value is None else value / found.steps for value in values]
    return [_of_kind(value, found.kind) for value in values]


def _of_kind(value: Any, kind: Kind) -> Any:
    """Dates as the engine returns them."""
    if value is None or kind not in (Kind.DATE, Kind.TIMESTAMP):
        return value
    sql = f"DATE '1970-01-01' + {value}" if kind is Kind.DATE else f"make_timestamp({value})"
    return bare().execute(f"SELECT {sql}").fetchall()[0][0]


def theirs(expression: str) -> list[Any]:
    order = {"visits": "visit_id", "patients": "patient_id"}[table_of(expression)]
    found = bare().execute(f"SELECT {expression} FROM {table_of(expression)} ORDER BY {order}").fetchall()
    return [value for (value,) in found]


def differences(ours_written: str, theirs_written: str, dialect: str) -> list[tuple[Any, Any]]:
    pairs = zip(ours(ours_written, dialect), theirs(theirs_written), strict=True)
    return [(a, b) for a, b in pairs if not _same(comparable(a), comparable(b))]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-9 * max(1.0, abs(b))
    return bool(a == b)


CHECKED = [
    (*(pair if isinstance(pair, tuple) else (pair, pair)), listed.dialect) for listed in (*LISTED, *SIGNS) for pair in listed.checked
]


@pytest.mark.slow
@pytest.mark.parametrize(("written", "engines", "dialect"), CHECKED, ids=[written for written, *_ in CHECKED])
def test_a_function_agrees_with_the_bare_engine_on_every_row(written: str, engines: str, dialect: str) -> None:
    assert differences(written, engines, dialect) == []


def test_every_function_is_listed_once_and_checked() -> None:
    """A function without a check would be documented on trust."""
    names = [name for listed in LISTED for name in listed.names]
    assert len(names) == len(set(names))
    handled = {name for handler in HANDLERS.values() for name in handler.names} | set(BY_NAME)
    assert handled - set(names) == {"%"}  # an operator
    assert [listed.names for listed in LISTED if not listed.checked] == []
    assert len(LISTED) >= 60


def test_every_name_of_an_entry_is_called_in_its_checks() -> None:
    for entry in NAMED:
        checks = " ".join(pair if isinstance(pair, str) else pair[0] for pair in entry.meaning.checked).upper()
        assert [name for name in entry.meaning.names if f"{name}(" not in checks] == []


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("LOG10(code)", "type-mismatch"),
        ("LOG(1, minutes)", "wrong-arguments"),
        ("LOG(-2, minutes)", "wrong-arguments"),
        ("LOG(clinic_id, minutes)", "wrong-arguments"),
        ("POWER(minutes, clinic_id)", "wrong-arguments"),
        ("POWER(cost, -1.5)", "range-too-wide"),
        ("POWER(POWER(POWER(1000 * cost, 16), 16), 2)", "range-too-wide"),
        ("WIDTH_BUCKET(cost, 5, 5, 3)", "wrong-arguments"),
        ("WIDTH_BUCKET(cost, 0, 5, 0)", "wrong-arguments"),
        ("WIDTH_BUCKET(cost, 0, minutes, 3)", "wrong-arguments"),
        ("WIDTH_BUCKET(day, 0, 5, 3)", "type-mismatch"),
        ("WIDTH_BUCKET(cost, 0, 5)", "wrong-arguments"),
        ("DATE_DIFF('century', day, day)", "date-part-unsupported"),
        ("DATE_DIFF('day', minutes, day)", "type-mismatch"),
        ("STRFTIME(day, '%Q')", "date-part-unsupported"),
        ("STRFTIME(minutes, '%Y')", "type-mismatch"),
        ("TO_CHAR(day, 'Month')", "date-part-unsupported"),
        ("STRFTIME(day + (480 * minutes), '%d')", "statement-too-large"),
        ("SPLIT_PART(code, '', 1)", "wrong-arguments"),
        ("SPLIT_PART(code, '0', 0)", "wrong-arguments"),
        ("SPLIT_PART(code, code, 1)", "wrong-arguments"),
        ("LPAD(code, 5000)", "wrong-arguments"),
        ("LPAD(code, 5, '')", "wrong-arguments"),
        ("REPEAT(code, 4000)", "statement-too-large"),
        ("POSITION(code)", "wrong-arguments"),
        ("day + INTERVAL '1 month 2 days'", "interval-unsupported"),
        ("day + INTERVAL '1 day' * 1.5", "interval-unsupported"),
        ("day + INTERVAL '1 day' * INTERVAL '1 day'", "interval-unsupported"),
        ("day + INTERVAL '1 month' * minutes", "interval-unsupported"),
        ("started + INTERVAL '999999999 days' * minutes", "range-too-wide"),
        ("DATE(minutes)", "type-mismatch"),
        ("day < TO_DATE('2024-02-30', 'YYYY-MM-DD')", "date-unreadable"),
        ("day < TO_DATE('2024-02-03 10', 'YYYY-MM-DD HH24')", "date-part-unsupported"),
        ("day < TO_DATE(code, 'YYYY-MM-DD')", "wrong-arguments"),
        ("day < TO_DATE('2024-02-2024', 'YYYY-MM-YYYY')", "date-part-unsupported"),
        ("started < TO_TIMESTAMP('2024-02-03 25:00', 'YYYY-MM-DD HH24:MI')", "date-unreadable"),
        ("started < TO_TIMESTAMP(minutes)", "wrong-arguments"),
        ("day + INTERVAL '1.5 days'", "sql-unsupported"),
        ("day + INTERVAL (3) DAY", "interval-unsupported"),
        ("day + INTERVAL minutes MINUTE", "interval-unsupported"),
        ("day + INTERVAL '1 fortnight'", "interval-unsupported"),
        ("minutes + INTERVAL '1 day'", "type-mismatch"),
        ("day + INTERVAL '9000 years'", "range-too-wide"),
        ("day + 100000000", "range-too-wide"),
        ("started - started", "type-mismatch"),
        ("day + day", "type-mismatch"),
        ("EXTRACT(HOUR FROM day)", "type-mismatch"),
        ("EXTRACT(CENTURY FROM day)", "date-part-unsupported"),
        ("code SIMILAR TO 'J%'", "wrong-arguments"),
        ("regexp_matches(code, '(a*)*')", "wrong-arguments"),
        ("regexp_matches(code, 'a{200}')", "wrong-arguments"),
        ("regexp_matches(code, '((a{99}){99}){99}')", "wrong-arguments"),
        ("regexp_matches(code, '(')", "wrong-arguments"),
        ("regexp_extract(code, '(J)', 2)", "wrong-arguments"),
        ("regexp_replace(code, 'J', '\\1')", "wrong-arguments"),
        ("minutes BETWEEN SYMMETRIC 5 AND 1", "sql-unsupported"),
        ("regexp_count(code, 'J')", "function-unsupported"),
        ("AGE(day)", "function-unsupported"),
        ("md5(code)", "function-unsupported"),
        ("cost IS DISTINCT FROM NULL", "null-constant"),
        ("minutes::DECIMAL(10, 2)", "cast-unsupported"),
    ],
)  # fmt: skip
def test_what_is_not_provable_is_refused(expression: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        bound(f"SELECT COUNT({expression}) FROM visits")
    assert (caught.value.code, caught.value.span is not None) == (code, True)


def test_short_text_cannot_become_a_huge_expression() -> None:
    """Functions that use an argument more than once, one inside the other, double in size at every level."""
    nested = "minutes"
    for _ in range(30):
        nested = f"TAN({nested})"
    with pytest.raises(Refused) as caught:
        bound(f"SELECT COUNT({nested}) FROM visits")
    assert caught.value.code == "statement-too-large"
