"""One domain rule per scalar function: which argument kinds it takes and what interval its result lies in.

Guarantee of every rule: if each argument lies in its domain, then the value *the engine computes* lies in the returned domain, and integer
results stay below ``INTEGER_LIMIT`` (else the expression is refused). For integers and dates that is the exact result. For reals it is the
double: +, -, *, / and square roots are the exact result rounded to the nearest double, and rounding is monotone, so rounding the ends of
the exact interval gives an interval that holds every rounded result. ``LN`` and ``EXP`` get a margin (``LIBRARY_ERROR``) instead.

That the ends hold for doubles carries weight: FLOOR, SIGN and comparisons with the smallest divisor turn a last-bit excess into a whole
integer or a NULL. A result outside a function's mathematical domain (x/0, ln of 0) is NULL. Proof: docs/proofs/intervals.md.
"""

from __future__ import annotations

from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.date_functions import DATE_RULES
from lapwing.kernel.domains import (
    INTEGER_LIMIT,
    REAL_LIMIT,
    BooleanDomain,
    Domain,
    IntegerDomain,
    Kind,
    RealDomain,
    TextDomain,
    bounds,
    double_bounds,
    is_numeric,
    kind_of,
    nearest_double,
    union,
    with_null,
)
from lapwing.kernel.expressions import Expression, Function, Literal
from lapwing.kernel.grid_functions import GRID_RULES, constant_integer
from lapwing.kernel.numbers import exp_upper, ln_lower, ln_upper, sqrt_upper
from lapwing.kernel.rules import Rule, all_integer, any_null, require_count, wrong_kinds
from lapwing.kernel.text_functions import TEXT_RULES

SMALLEST_DIVISOR = Fraction(1, 2**30)
"""A computed divisor smaller than this counts as zero: the quotient is NULL."""
EXP_LIMIT = 200
"""exp takes arguments in [-EXP_LIMIT, EXP_LIMIT]; smaller ones count as -EXP_LIMIT, larger ones are refused by their interval."""
LN_SMALLEST = -745
"""ln of the smallest positive double, rounded down."""
LIBRARY_ERROR = Fraction(1, 2**40)
"""Most by which an engine's logarithm, ``exp``, ``sin`` or ``cos`` may be wrong, relative to 1 + the result; real ones do 2^10 better."""
LOGARITHMS: dict[Function, int | None] = {Function.LN: None, Function.LOG_2: 2, Function.LOG_10: 10}
"""The logarithms and their bases; None stands for e."""
_IN_DOUBLES = frozenset({*LOGARITHMS, Function.SQRT, Function.EXP, Function.SIN, Function.COS, Function.TO_REAL})


def result_domain(function: Function, domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    """Domain of ``function`` applied to arguments with these domains, or refuse."""
    return RULES[function](domains, arguments)


def _number(lo: Fraction, hi: Fraction, *, integer: bool, nullable: bool) -> Domain:
    if integer:
        if max(abs(lo), abs(hi)) >= INTEGER_LIMIT:
            raise Refused("range-too-wide", "an integer expression could exceed 62 bits", hint="narrow it with LEAST and GREATEST")
        return IntegerDomain(int(lo), int(hi), nullable)
    if max(abs(lo), abs(hi)) > REAL_LIMIT:
        raise Refused("range-too-wide", "a real expression could become too large", hint="narrow it with LEAST and GREATEST")
    return RealDomain(nearest_double(lo), nearest_double(hi), nullable)


def _ends(domains: tuple[Domain, ...]) -> list[tuple[Fraction, Fraction]]:
    """Ends of the numbers the engine computes with: integers among integers, else doubles."""
    return [bounds(domain) if all_integer(domains) else double_bounds(domain) for domain in domains]


def _logical(function: Function, least: int) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        if len(domains) < least or (function is Function.NOT and len(domains) != 1):
            raise Refused("wrong-arguments", f"{function.value} takes at least {least} condition(s)")
        if not all(isinstance(domain, BooleanDomain) for domain in domains):
            raise wrong_kinds(function.value, domains)
        return BooleanDomain(any_null(domains))

    return rule


def _comparable(left: Domain, right: Domain) -> bool:
    if is_numeric(left) and is_numeric(right):
        return True
    return kind_of(left) is kind_of(right) and kind_of(left) is not Kind.KEY


def _comparison(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        require_count(function, domains, 2)
        if not _comparable(*domains):
            raise wrong_kinds(function.value, domains)
        return BooleanDomain(any_null(domains))

    return rule


def _in(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    if len(domains) < 2 or not all(isinstance(option, Literal) and option.value is not None for option in arguments[1:]):
        raise Refused("wrong-arguments", "IN takes a value and a list of constants")
    if not all(_comparable(domains[0], option) for option in domains[1:]):
        raise wrong_kinds("in", domains)
    return BooleanDomain(domains[0].nullable)


def _is_null(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    require_count(Function.IS_NULL, domains, 1)
    return BooleanDomain(nullable=False)


def _starts_with(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    require_count(Function.STARTS_WITH, domains, 2)
    if not all(isinstance(domain, TextDomain) for domain in domains) or not isinstance(arguments[1], Literal):
        raise wrong_kinds("starts_with", domains)
    return BooleanDomain(any_null(domains))


def _arithmetic(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
        require_count(function, domains, 2)
        (a, b), (c, d) = _ends(domains)
        match function:
            case Function.ADD:
                lo, hi = a + c, b + d
            case Function.SUBTRACT:
                lo, hi = a - d, b - c
            case _:
                corners = (a * c, a * d, b * c, b * d)
                lo, hi = min(corners), max(corners)
                if arguments[0] == arguments[1]:  # a square: both factors are the same number on every row
                    lo = max(lo, Fraction(0))
        return _number(lo, hi, integer=all_integer(domains), nullable=any_null(domains))

    return rule


def smallest_divisor(domain: Domain) -> Fraction:
    """Least magnitude a divisor may have; anything smaller counts as zero."""
    match domain:
        case IntegerDomain():
            return Fraction(1)
        case RealDomain(steps=int(steps)):
            return Fraction(1, steps)
        case _:
            return SMALLEST_DIVISOR


def _divide(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    require_count(Function.DIVIDE, domains, 2)
    (a, b), (c, d) = double_bounds(domains[0]), double_bounds(domains[1])
    least = nearest_double(smallest_divisor(domains[1]))
    divisors = [y for y in (c, d, least, -least) if c <= y <= d and abs(y) >= least]
    corners = [x / y for x in (a, b) for y in divisors] or [Fraction(0)]
    # With both signs of divisor possible the extremes are at +-least; with a of one sign and c >= 0 the corners already bound it.
    nullable = any_null(domains) or (c < least and d > -least)
    return _number(min(corners), max(corners), integer=False, nullable=nullable)


def _integer_divide(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    require_count(Function.INTEGER_DIVIDE, domains, 2)
    if not all_integer(domains):
        raise wrong_kinds("integer division", domains)
    (a, b), (c, d) = bounds(domains[0]), bounds(domains[1])
    largest = max(abs(a), abs(b))
    lo = Fraction(0) if a >= 0 and c >= 0 else -largest
    if c > 0:
        largest = Fraction(int(largest) // int(c))
        lo = max(lo, -largest)
    return _number(lo, largest, integer=True, nullable=any_null(domains) or c <= 0 <= d)


def _modulo(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    require_count(Function.MODULO, domains, 2)
    if not all_integer(domains):
        raise wrong_kinds("mod", domains)
    (a, b), (c, d) = bounds(domains[0]), bounds(domains[1])
    largest = max(max(abs(c), abs(d)) - 1, Fraction(0))
    lo = Fraction(0) if a >= 0 else -min(largest, abs(a))
    hi = Fraction(0) if b <= 0 else min(largest, b)
    return _number(lo, hi, integer=True, nullable=any_null(domains) or c <= 0 <= d)


def _unary(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        require_count(function, domains, 1)
        a, b = double_bounds(domains[0]) if function in _IN_DOUBLES else _ends(domains)[0]
        nullable, integer = domains[0].nullable, all_integer(domains)
        match function:
            case Function.NEGATE:
                lo, hi = -b, -a
            case Function.ABS:
                lo, hi = (Fraction(0) if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
            case Function.SIGN:
                lo, hi, integer = Fraction(-1 if a < 0 else 0), Fraction(1 if b > 0 else 0), True
            case Function.FLOOR:
                lo, hi, integer = Fraction(a // 1), Fraction(b // 1), True
            case Function.CEILING:
                lo, hi, integer = Fraction(-(-a // 1)), Fraction(-(-b // 1)), True
            case Function.TO_INTEGER:
                lo, hi, integer = Fraction(a // 1), Fraction(-(-b // 1)), True
            case Function.SQRT:
                lo, hi, integer, nullable = Fraction(0), sqrt_upper(max(b, Fraction(0))), False, nullable or a < 0
            case Function.LN | Function.LOG_2 | Function.LOG_10:
                lo, hi = _logarithm(a, b, base=LOGARITHMS[function])
                integer, nullable = False, nullable or a <= 0
            case Function.SIN | Function.COS:
                lo, hi, integer = -1 - LIBRARY_ERROR, 1 + LIBRARY_ERROR, False
            case Function.EXP:
                if b > EXP_LIMIT:
                    raise Refused("range-too-wide", f"EXP is only taken of values up to {EXP_LIMIT}", hint="narrow it with LEAST")
                lo, hi, integer = Fraction(0), exp_upper(max(b, Fraction(-EXP_LIMIT))) * (1 + LIBRARY_ERROR), False
            case _:
                lo, hi, integer = a, b, False
        return _number(lo, hi, integer=integer, nullable=nullable)

    return rule


def _logarithm(a: Fraction, b: Fraction, *, base: int | None) -> tuple[Fraction, Fraction]:
    """Ends of the logarithm of the positive doubles in [a, b], with a margin for the library's error."""
    lo = Fraction(LN_SMALLEST) if a <= 0 else ln_lower(a)
    hi = Fraction(LN_SMALLEST) if b <= 0 else max(ln_upper(b), lo)
    if base is not None:
        # a quotient by a positive number: the divisor that makes each end larger in size or smaller, whichever is outwards
        least, most = ln_lower(Fraction(base)), ln_upper(Fraction(base))
        lo, hi = min(lo / least, lo / most), max(hi / least, hi / most)
    return lo - LIBRARY_ERROR * (abs(lo) + 1), hi + LIBRARY_ERROR * (abs(hi) + 1)


def _round(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    require_count(Function.ROUND, domains, 2)
    digits = constant_integer(domains[1], arguments[1])
    if digits is None or not 0 <= digits <= 9:
        raise Refused("wrong-arguments", "ROUND takes a number of digits from -9 to 9")
    if all_integer(domains[:1]):
        return domains[0]
    lo, hi = (_rounded(end, 10**digits) for end in double_bounds(domains[0]))
    return _number(lo, hi, integer=False, nullable=domains[0].nullable)


def _rounded(end: Fraction, scale: int) -> Fraction:
    """round(x * scale) / scale as doubles give it, halves away from zero: three monotone steps."""
    scaled = nearest_double(end * scale)
    whole = (abs(scaled) + Fraction(1, 2)) // 1
    return nearest_double(Fraction(whole if scaled >= 0 else -whole)) / scale


def _extreme(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        if len(domains) < 2:
            raise Refused("wrong-arguments", f"{function.value} takes at least 2 arguments")
        if not all(is_numeric(domain) for domain in domains):
            raise wrong_kinds(function.value, domains)
        ends = _ends(domains)
        always = [end for end, domain in zip(ends, domains, strict=True) if not domain.nullable]
        lo, hi = min(lo for lo, _ in ends), max(hi for _, hi in ends)
        if always and function is Function.LEAST:
            hi = min(end for _, end in always)
        if always and function is Function.GREATEST:
            lo = max(end for end, _ in always)
        return _number(lo, hi, integer=all_integer(domains), nullable=not always)

    return rule


def _null_if(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    require_count(Function.NULL_IF, domains, 2)
    if not _comparable(*domains):
        raise wrong_kinds("nullif", domains)
    return with_null(domains[0], nullable=True)


def _coalesce(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    if not domains:
        raise Refused("wrong-arguments", "coalesce takes at least 1 argument")
    result = domains[0]
    for domain in domains[1:]:
        result = union(result, domain)
    return with_null(result, nullable=all(domain.nullable for domain in domains))


RULES: dict[Function, Rule] = {
    Function.AND: _logical(Function.AND, 2),
    Function.OR: _logical(Function.OR, 2),
    Function.NOT: _logical(Function.NOT, 1),
    **{f: _comparison(f) for f in (Function.EQUAL, Function.NOT_EQUAL, Function.LESS, Function.LESS_EQUAL)},
    **{f: _comparison(f) for f in (Function.GREATER, Function.GREATER_EQUAL)},
    Function.IN: _in,
    Function.IS_NULL: _is_null,
    Function.STARTS_WITH: _starts_with,
    **{f: _arithmetic(f) for f in (Function.ADD, Function.SUBTRACT, Function.MULTIPLY)},
    Function.DIVIDE: _divide,
    Function.INTEGER_DIVIDE: _integer_divide,
    Function.MODULO: _modulo,
    **{f: _unary(f) for f in (Function.NEGATE, Function.ABS, Function.SIGN, Function.FLOOR, Function.CEILING)},
    **{f: _unary(f) for f in (Function.TO_INTEGER, *_IN_DOUBLES)},
    **GRID_RULES,
    Function.ROUND: _round,
    Function.LEAST: _extreme(Function.LEAST),
    Function.GREATEST: _extreme(Function.GREATEST),
    Function.NULL_IF: _null_if,
    Function.COALESCE: _coalesce,
    **DATE_RULES,
    **TEXT_RULES,
}
