"""The hint how to clamp the values of sums and averages, with the ends, and the error bars that these are predicted to give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from statistics import median

from lapwing.answers.display.number_format import figure
from lapwing.answers.estimates import Estimate, estimates_of
from lapwing.kernel.ir import GridSum
from lapwing.kernel.release import Released
from lapwing.planning.measures import AverageMeasure, Recipe, SumMeasure
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.statements import LinearOutput, PostProcess

ROOM = 10
"""The suggested end is at least this many times the average. It kept the averages of sessions, whose tail is log-normal, within 1 %."""
CLEARLY_SHORTER = 0.5
"""Ends are suggested if bars are predicted to be at most this share of the present ones."""
BEFORE = ", or clamp what is summed, as in SUM(LEAST(x, 100))"
"""The hint of versions with earlier planning rules."""


def clamping_hint(wide: Sequence[str], post: PostProcess, planned: PlannedStatement, released: Released, *, confidence: Fraction) -> str:
    """How to clamp what is summed or averaged; empty if nothing is. ``wide`` are the columns with long bars."""
    if planned.facts.planning_rules < 2:
        recipes = [recipe for part in planned.parts for recipe in part.recipes]
        return BEFORE if any(isinstance(recipe, SumMeasure | AverageMeasure) for recipe in recipes) else ""
    found = [pair for output in post.outputs if output.name in wide and (pair := _source(output.derivation, planned)) is not None]
    for part, recipe in found:
        if isinstance(recipe, AverageMeasure) and (suggested := _suggested(part, recipe, planned, released, confidence)):
            return suggested
    if not found:
        return ""
    called = "AVG" if isinstance(found[0][1], AverageMeasure) else "SUM"
    if any(_lower(part, recipe, planned) < 0 for part, recipe in found):
        return f", or clamp the values at both ends, as in {called}(GREATEST(-100, LEAST(x, 100)))"
    return f", or clamp the values, as in {called}(LEAST(x, 100))"


def _source(derivation: object, planned: PlannedStatement) -> tuple[Part, Recipe] | None:
    """The sum or average that an output is."""
    if not isinstance(derivation, LinearOutput):
        return None
    part = planned.parts[derivation.aggregate.query]
    recipe = part.recipes[derivation.aggregate.index]
    return (part, recipe) if part.number is not None and isinstance(recipe, SumMeasure | AverageMeasure) else None


def _lower(part: Part, recipe: Recipe, planned: PlannedStatement) -> Fraction:
    """The least value that is possible."""
    if isinstance(recipe, AverageMeasure):
        return recipe.lower
    assert isinstance(recipe, SumMeasure) and part.number is not None
    vectors = planned.queries[part.number].vectors
    (measure,) = (item.vector.measure for item in vectors if item.vector.name == recipe.vector)
    return measure.lower if isinstance(measure, GridSum) else Fraction(0)


def _suggested(part: Part, recipe: AverageMeasure, planned: PlannedStatement, released: Released, confidence: Fraction) -> str:
    """Ends about ``ROOM`` times the average, with the bars that it has between them; empty if they are not clearly shorter."""
    present = _estimates(part, recipe, planned, released, confidence)
    values = [float(one.value) for one in present if one.value is not None]
    typical = median(values) if values else 0.0
    if not typical:
        return ""
    end = _round_number(ROOM * abs(typical))
    lower, upper = (Fraction(0), end) if typical > 0 else (-end, Fraction(0))
    lower, upper = max(lower, recipe.lower), min(upper, recipe.upper)
    if recipe.offset or lower >= upper or (lower, upper) == (recipe.lower, recipe.upper):
        return ""
    clamped = _estimates(part, replace(recipe, lower=lower, upper=upper), planned, released, confidence)
    half, before = _half_bar(clamped), _half_bar(present)
    if half > CLEARLY_SHORTER * before:
        return ""
    inner = "x" if upper == recipe.upper else f"LEAST(x, {_number(upper)})"
    whole = inner if lower == recipe.lower else f"GREATEST({_number(lower)}, {inner})"
    between = f"from {figure(float(recipe.lower))} to {figure(float(recipe.upper))}"
    return f", or clamp the values, which may be {between}: AVG({whole}) is predicted to have bars of about ±{figure(half, digits=2)}"


def _estimates(part: Part, recipe: AverageMeasure, planned: PlannedStatement, released: Released, confidence: Fraction) -> list[Estimate]:
    assert part.number is not None
    table, query = released.tables[part.number], planned.queries[part.number]
    return estimates_of(recipe, part, table, query, confidence=confidence, terms=1)


def _half_bar(estimates: Sequence[Estimate]) -> float:
    """The median half-width of the bars."""
    bars = [one.interval for one in estimates if one.interval is not None]
    return median((bar.hi - bar.lo) / 2 for bar in bars) if bars else math.inf


def _round_number(value: float) -> Fraction:
    """The least of 1, 2, 5, 10, 20, ... and their decimal parts that is not below a value."""
    power = Fraction(10) ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= Fraction(value))


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.12g}"
