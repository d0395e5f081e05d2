"""The gate, asked directly: each of its refusals is provoked by a plan that has one fault and is certified without it."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lapwing.errors import Refused
from lapwing.kernel import (
    blocks,
    certify,
    date_functions,
    domains,
    expression_domains,
    facts,
    functions,
    plan_types,
    row_ranges,
    rules,
    selections,
    shapes,
    stability,
    unit_norms,
    workload,
)
from lapwing.kernel.accounting import Cost
from lapwing.kernel.certify import Certified
from lapwing.kernel.ir import Plan, Project
from tests.unit.kernel.bad_expressions import EXPRESSIONS
from tests.unit.kernel.bad_plans import BY_CITY, BY_NOTE, FACTS, FAULTS, VISITS, Fault, of_source, query

MODULES: tuple[ModuleType, ...] = (
    blocks,
    certify,
    date_functions,
    domains,
    expression_domains,
    facts,
    functions,
    plan_types,
    row_ranges,
    rules,
    selections,
    shapes,
    stability,
    unit_norms,
    workload,
)
"""Where the gate refuses. Laws and quantiles refuse wherever they are made, and are tested there."""


def _with(expression: object) -> Project:
    columns: Any = (("value", expression),)
    return Project(VISITS, columns)


ALL: dict[str, Fault] = FAULTS | {name: of_source(code, _with(sound), _with(bad)) for name, (code, sound, bad) in EXPRESSIONS.items()}


def _refused(fault: Fault) -> Refused:
    with pytest.raises(Refused) as refusal:
        certify.certify(fault.bad, fault.bad_facts or fault.facts)
    return refusal.value


@pytest.mark.parametrize("name", ALL)
def test_the_gate_refuses(name: str) -> None:
    fault = ALL[name]
    assert isinstance(certify.certify(fault.sound, fault.facts), Certified)
    assert _refused(fault).code == fault.code


def _raised_at(error: Refused) -> tuple[str, int]:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.lineno is not None]
    return Path(frames[-1].filename).name, frames[-1].lineno or 0


def _refusals(module: ModuleType) -> dict[tuple[str, int], str]:
    """Every line of every ``raise`` of a refusal in a module, and which one it is part of."""
    name = Path(inspect.getfile(module)).name
    raises = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Raise) and node.exc is not None]
    return {
        (name, line): f"{name}:{node.lineno}: {ast.unparse(node)}"
        for node in raises
        if "TypeError" not in ast.unparse(node)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def _unprovoked(faults: Iterable[Fault]) -> list[str]:
    """Refusals that none of these faults comes to: by the very line, so that one cannot stand for another with the same code."""
    written = {place: one for module in MODULES for place, one in _refusals(module).items()}
    assert len(set(written.values())) > 60
    return sorted(set(written.values()) - {written.get(_raised_at(_refused(fault))) for fault in faults})


def test_every_refusal_of_the_gate_is_provoked() -> None:
    assert _unprovoked(ALL.values()) == []


def test_a_refusal_that_is_provoked_no_more_is_found() -> None:
    (unprovoked,) = _unprovoked(fault for name, fault in ALL.items() if name != "a union of nothing")
    assert "union-empty" in unprovoked


def test_the_facts_decide_and_not_the_plan() -> None:
    """The plan that is certified for one data set is refused for another that has less."""
    narrow = dataclasses.replace(FACTS, tables={"visits": dataclasses.replace(FACTS.tables["visits"], rows_per_unit_max=3)})
    plan = Plan((query(),))
    assert certify.certify(plan, FACTS).cost.loss > 0
    with pytest.raises(Refused, match="rows-per-unit"):
        certify.certify(plan, narrow)


def test_costs_of_queries_add_up_and_are_rounded_up_once() -> None:
    one, two = (certify.certify(Plan((each,)), FACTS) for each in (BY_CITY, BY_NOTE))
    both = certify.certify(Plan((BY_CITY, BY_NOTE)), FACTS)
    together = one.cost + two.cost
    assert together.loss - 1 <= both.cost.loss <= together.loss
    assert both.cost.delta == two.cost.delta > 0 == one.cost.delta
    assert len({one.digest, two.digest, both.digest}) == 3


def test_nobody_else_makes_certified_plans() -> None:
    certified = certify.certify(Plan((query(),)), FACTS)
    with pytest.raises(TypeError):
        Certified(certified.plan, certified.facts, certified.queries, Cost.zero(), certified.digest, object())
    assert certify.certify(certified.plan, certified.facts) == certified
    assert copy.copy(certified) == certified
    assert dataclasses.replace(certified, cost=Cost.zero()) != certified
