"""Domain rules of reals on a grid: onto one, and between a real on a grid and the integer that stands for it.

Proof: docs/proofs/intervals.md.
"""

from __future__ import annotations

from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.domains import DOUBLE_EXACT_LIMIT, Domain, IntegerDomain, RealDomain, double_bounds, grid_integer
from lapwing.kernel.expressions import Expression, Function, Literal
from lapwing.kernel.rules import Rule, require_count, wrong_kinds

STEPS_MAX = 10**12
"""Finest grid an expression can be put on: its steps per 1 are an exact double, and one step is far from the smallest double."""


def constant_integer(domain: Domain, argument: Expression) -> int | None:
    """The value of an integer constant of the statement, or None for anything else."""
    if isinstance(domain, IntegerDomain) and isinstance(argument, Literal) and isinstance(argument.value, int):
        return argument.value
    return None


def _to_grid(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    require_count(Function.TO_GRID, domains, 2)
    steps = constant_integer(domains[1], arguments[1])
    if steps is None or not 1 <= steps <= STEPS_MAX:
        raise Refused("wrong-arguments", f"a grid has a whole number of steps per 1, from 1 to {STEPS_MAX}")
    if isinstance(domains[0], RealDomain) and domains[0].steps == steps:
        return domains[0]
    lo, hi = (grid_integer(end, steps) for end in double_bounds(domains[0]))
    if max(abs(lo), abs(hi)) >= DOUBLE_EXACT_LIMIT:
        raise Refused("range-too-wide", "the grid is too fine for so wide a range", hint="narrow it with LEAST and GREATEST")
    return RealDomain(Fraction(lo, steps), Fraction(hi, steps), domains[0].nullable, steps)


def _steps(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    """The integer k that stands for a real k / steps on a grid."""
    require_count(Function.STEPS, domains, 1)
    match domains[0]:
        case RealDomain(lo, hi, nullable, int(steps)):
            return IntegerDomain(grid_integer(lo, steps), grid_integer(hi, steps), nullable)
        case _:
            raise wrong_kinds("steps", domains)


def _of_steps(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    """The real k / steps on a grid that an integer k stands for."""
    require_count(Function.OF_STEPS, domains, 2)
    steps = constant_integer(domains[1], arguments[1])
    if steps is None or not 1 <= steps <= STEPS_MAX:
        raise Refused("wrong-arguments", f"a grid has a whole number of steps per 1, from 1 to {STEPS_MAX}")
    if not isinstance(domains[0], IntegerDomain):
        raise wrong_kinds("of_steps", domains)
    lo, hi = domains[0].lo, domains[0].hi
    if max(abs(lo), abs(hi)) >= DOUBLE_EXACT_LIMIT:
        raise Refused("range-too-wide", "the grid is too fine for so wide a range", hint="narrow it with LEAST and GREATEST")
    return RealDomain(Fraction(lo, steps), Fraction(hi, steps), domains[0].nullable, steps)


GRID_RULES: dict[Function, Rule] = {Function.TO_GRID: _to_grid, Function.STEPS: _steps, Function.OF_STEPS: _of_steps}
