"""Bounds on how small a double can become: kept by every value of random expressions, and tight enough that prices need no guard."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction

import pytest

from lapwing.kernel.domains import Domain, IntegerDomain, KeyDomain, Kind, RealDomain
from lapwing.kernel.expression_domains import Domains
from lapwing.kernel.expressions import Call, Column, Function, Literal, call
from lapwing.render.magnitudes import LEAST_EXPONENT, least_exponent, may_underflow
from tests.support.expression_fuzz import ExpressionFuzz
from tests.support.reference import Stored, evaluator

COLUMNS: Mapping[str, Domain] = {
    "k": KeyDomain(),
    "n": IntegerDomain(-1000, 1000, False),
    "price": RealDomain(Fraction(0), Fraction(500), False, 100),
    "ratio": RealDomain(Fraction(-1), Fraction(1), False, 10**12),
}
PRICE, RATIO = Column("price"), Column("ratio")


def _real(text: str) -> Literal:
    return Literal(Fraction(text), Kind.REAL)


@pytest.mark.parametrize("seed", range(20))
def test_no_value_is_smaller_than_its_bound(seed: int) -> None:
    fuzz, choose = ExpressionFuzz(COLUMNS, seed=seed), random.Random(seed)
    rows: list[dict[str, Stored]] = [
        {"k": 1, "n": choose.choice((0, 1, -1, 999)), "price": choose.choice((0, 1, 50_000)), "ratio": choose.choice((0, 1, -1, 10**12))}
        for _ in range(12)
    ]
    for _ in range(50):
        typed = fuzz.expression(Kind.REAL, depth=4)
        least, value = least_exponent(typed.expression, Domains(COLUMNS)), evaluator(typed.expression, COLUMNS).as_double()
        found = [value(row) for row in rows]
        assert all(number is None or number == 0 or abs(Fraction(number)) >= Fraction(2) ** least for number in found)


def test_ordinary_products_and_quotients_need_no_guard() -> None:
    assert not may_underflow(call(Function.MULTIPLY, PRICE, PRICE), Domains(COLUMNS))
    assert not may_underflow(call(Function.DIVIDE, call(Function.MULTIPLY, RATIO, RATIO), PRICE), Domains(COLUMNS))
    assert not may_underflow(call(Function.MULTIPLY, call(Function.EXP, Literal(-200, Kind.INTEGER)), RATIO), Domains(COLUMNS))


def _power(base: Call | Column, doublings: int) -> Call | Column:
    for _ in range(doublings):
        base = call(Function.MULTIPLY, base, base)
    return base


def test_products_that_can_vanish_are_guarded() -> None:
    tiny = call(Function.MULTIPLY, _real("1e-200"), call(Function.TO_REAL, RATIO))
    assert may_underflow(call(Function.MULTIPLY, tiny, _real("1e-200")), Domains(COLUMNS))
    assert may_underflow(call(Function.DIVIDE, call(Function.MULTIPLY, _real("1e-300"), RATIO), _real("1e90")), Domains(COLUMNS))
    # (10^-12)^16 = 10^-192 is a double; (10^-12)^32 is none
    assert not may_underflow(_as_call(_power(RATIO, 4)), Domains(COLUMNS))
    assert may_underflow(_as_call(_power(RATIO, 5)), Domains(COLUMNS))


def _as_call(made: Call | Column) -> Call:
    assert isinstance(made, Call)
    return made


def test_bounds_end_at_the_least_double() -> None:
    assert least_exponent(_real("5e-324"), Domains(COLUMNS)) == LEAST_EXPONENT
    assert Fraction(5e-324) == Fraction(2) ** LEAST_EXPONENT
