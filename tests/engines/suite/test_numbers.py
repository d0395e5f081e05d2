"""Wide integers and doubles are the same numbers on every engine: sums beyond 64 bits, quotients, roundings, constants."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lapwing.engines.base import Snapshot
from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import SPREAD_BITS_MAX
from lapwing.kernel.thresholds import spread_weight
from lapwing.render.dialect import Dialect, double_literal
from lapwing.render.key_weights import checked_weight, weight_at_most
from tests.engines.suite import statements
from tests.engines.suite.engines import NAMES, SuiteEngine

EngineNamed = Callable[[str], SuiteEngine]
DOUBLES = (
    0.1,
    1 / 3,
    0.49999999999999994,
    5e-324,
    2.2250738585072014e-308,
    1e22,
    1.7976931348623157e308,
    2.0**53 + 2,
    -12.34,
    123456.789e-7,
)


@pytest.mark.parametrize("name", NAMES)
def test_numbers(tmp_path: Path, engine_named: EngineNamed, name: str) -> None:
    engine = engine_named(name)
    snapshot = engine.prepare(statements.people(tmp_path, "unbounded", Account.PURE, seed=1))
    dialect = engine.dialect(snapshot)
    _sums(engine, snapshot, dialect)
    _wide_integers(engine, snapshot, dialect)
    _weights(engine, snapshot, dialect)
    assert list(_one_row(engine, snapshot, [double_literal(value, dialect.double) for value in DOUBLES])) == list(DOUBLES)
    snapshot.close()


def _one_row(engine: SuiteEngine, snapshot: Snapshot, columns: list[str]) -> tuple[Any, ...]:
    return engine.select(snapshot, ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(columns)), "people")[0]


def _sums(engine: SuiteEngine, snapshot: Snapshot, dialect: Dialect) -> None:
    """Sums are exact up to what a certificate allows: below 2^62 of 64-bit integers, below 2^126 of wide ones."""
    rows = len(engine.select(snapshot, "1", "visits"))
    assert 4 < rows < 2**7
    each, square = (2**62 - 1) // rows, 2**119 + 1
    spelt = [f"CAST({value} AS {dialect.integer})" for value in (each, -each)]
    spelt.append(f"CAST({_text(square, dialect)} AS {dialect.wide_integer})")
    [found] = engine.select(snapshot, ", ".join(dialect.total(sql) for sql in spelt), "visits")
    assert [int(total) for total in found] == [rows * each, -rows * each, rows * square]


def _weights(engine: SuiteEngine, snapshot: Snapshot, dialect: Dialect) -> None:
    """What a unit weighs in each of its d groups is floor(2^bits / sqrt(d)), also where that is whole or just below."""
    squares = [root**2 + nearby for root in range(2, 317, 7) for nearby in (-1, 0, 1)]
    numbers = [(bits, groups) for bits in (0, 1, 10, 16, SPREAD_BITS_MAX) for groups in (1, 2, 3, *squares, 99_999, 100_000)]
    spelt = []
    for bits, groups in numbers:
        number = f"CAST({groups} AS {dialect.integer})"
        spelt.append(checked_weight(number, weight_at_most(number, bits, dialect), bits))
    found = [int(weight) for start in range(0, len(spelt), 100) for weight in _one_row(engine, snapshot, spelt[start : start + 100])]
    assert found == [spread_weight(bits, groups) for bits, groups in numbers]


def _wide_integers(engine: SuiteEngine, snapshot: Snapshot, dialect: Dialect) -> None:
    choose = random.Random(5)
    wide = [choose.getrandbits(choose.randint(50, 120)) for _ in range(40)] + [2**53, 2**53 + 1, 2**54 + 2, 2**64 - 1]
    spelt = [f"CAST({_text(value, dialect)} AS {dialect.wide_integer})" for value in wide]
    assert list(_one_row(engine, snapshot, [dialect.wide_as_double(sql) for sql in spelt])) == [float(value) for value in wide]
    # what is divided may be wide; the quotient is a bounded cell
    pairs = [(sign * value, (value >> 61) + choose.randint(1, 2**40)) for value in wide for sign in (1, -1)]
    quotients = [
        dialect.quotient(f"CAST({_text(a, dialect)} AS {dialect.wide_integer})", f"CAST({b} AS {dialect.wide_integer})") for a, b in pairs
    ]
    found = [Decimal(value) for value in _one_row(engine, snapshot, quotients)]
    assert found == [Decimal(abs(a) // b * (1 if a >= 0 else -1)) for a, b in pairs]


def _text(value: int, dialect: Dialect) -> str:
    return dialect.text_literal(str(value))
