"""The gate to noise, asked directly: what it refuses, what that costs, and what comes out. Noise of the least scale is 0 here."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account, Cost
from lapwing.kernel.certify import Certified, certify
from lapwing.kernel.exact import Counts, Exact, ExactTable
from lapwing.kernel.ir import DiscoveredGroups, KnownGroups, Plan, ProductGroups, Query, Scan
from lapwing.kernel.laws import SCALE_MIN, DiscreteLaplace
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import Permit, issue
from lapwing.kernel.release import UNITS_COLUMN, Released, release
from tests.unit.kernel.bad_plans import BY_CITY, BY_NOTE, FACTS, ROWS, quantile

SILENT = DiscreteLaplace(SCALE_MIN)
"""Noise that is 0 but for a probability below exp(-2^20)."""
COUNTED = replace(BY_CITY, vectors=(replace(ROWS, law=SILENT),))
FOUND = replace(
    BY_NOTE, source=Scan("visits", 1), groups=DiscoveredGroups(SILENT, Fraction(1, 10**9), 3), vectors=(replace(ROWS, law=SILENT),)
)


BOUNDED = replace(FACTS, neighbours=Neighbours.BOUNDED)
"""Facts with which the same plan has the same name, and another price."""


def certified(query: Query = COUNTED) -> Certified:
    return certify(Plan((query,)), FACTS)


def permit_for(plan: Certified) -> Permit:
    return issue(1, plan.digest, plan.cost)


def exact(plan: Certified, **changed: Any) -> Exact:
    """A result of the plan that counts rows by city."""
    table: dict[str, Any] = {"groups": [("b",), ("a",)], "vectors": [[7, 3]], "units": None}
    return Exact([ExactTable(**(table | changed))], certified=plan)


def test_a_plan_that_was_paid_for_is_released() -> None:
    plan = certified()
    released = release(plan, permit_for(plan), exact(plan))
    assert released.digest == plan.digest
    (table,) = released.tables
    assert (table.keys, table.groups, table.threshold) == (("city",), (("a",), ("b",)), None)
    assert table.column("rows").values == (3, 7)
    assert table.column("rows").law == SILENT


def test_each_permit_is_taken_once() -> None:
    plan = certified()
    permit = permit_for(plan)
    release(plan, permit, exact(plan))
    with pytest.raises(LapwingError) as error:
        release(plan, permit, exact(plan))
    assert error.value.code == "permit-used"
    with pytest.raises(LapwingError) as error:
        release(plan, issue(2, plan.digest, plan.cost, nonce=permit.nonce), exact(plan))
    assert error.value.code == "permit-used"
    assert isinstance(release(plan, permit_for(plan), exact(plan)), Released)


def test_of_many_threads_with_one_permit_one_draws() -> None:
    plan = certified()
    permit, start, outcomes = permit_for(plan), threading.Barrier(8), list[str]()

    def draw() -> None:
        start.wait()
        try:
            release(plan, permit, exact(plan))
            outcomes.append("drawn")
        except LapwingError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["drawn", *["permit-used"] * 7]


class _AnyPermit(Permit):
    """What only looks like a permit."""


class _AlwaysEqual(Certified):
    def __ne__(self, other: object) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def _forged(kind: type, source: object) -> Any:
    """An object of a class with the fields of another, made without its constructor."""
    made: Any = object.__new__(kind)
    for field in dataclasses.fields(source):  # type: ignore[arg-type]
        object.__setattr__(made, field.name, getattr(source, field.name))
    return made


MISMATCHES: dict[str, Callable[[Certified], tuple[Any, Any]]] = {
    "a permit of another plan": lambda plan: (plan, permit_for(certified(quantile()))),
    "a permit for less": lambda plan: (plan, issue(1, plan.digest, Cost(plan.cost.loss - 1, plan.cost.delta))),
    "something like a permit": lambda plan: (plan, _forged(_AnyPermit, permit_for(plan))),
    "a cheaper certificate": lambda plan: (replace(plan, cost=Cost.zero()), issue(1, plan.digest, Cost.zero())),
    "a certificate of another plan": lambda plan: (replace(plan, plan=certified(quantile()).plan), permit_for(plan)),
    "a certificate with another name": lambda plan: (replace(plan, digest="another"), issue(1, "another", plan.cost)),
    "a certificate of other queries": lambda plan: (replace(plan, queries=certified(quantile()).queries), permit_for(plan)),
    "a certificate of a newer version": lambda plan: (replace(plan, facts=replace(FACTS, version=2)), permit_for(plan)),
    "a certificate of another account": lambda plan: (replace(plan, facts=replace(FACTS, account=Account.PURE)), permit_for(plan)),
    "a certificate that was stored": lambda plan: (pickle.loads(pickle.dumps(plan)), permit_for(plan)),
    "something equal to any certificate": lambda plan: (_forged(_AlwaysEqual, plan), permit_for(plan)),
}


@pytest.mark.parametrize("how", MISMATCHES)
def test_nothing_is_drawn_for(how: str) -> None:
    plan = certified()
    wrong, permit = MISMATCHES[how](plan)
    with pytest.raises(LapwingError) as error:
        release(wrong, permit, exact(plan))
    assert error.value.code == "permit-mismatch"
    assert isinstance(release(plan, permit_for(plan), exact(plan)), Released)


def test_a_permit_for_less_delta_is_refused() -> None:
    plan = certified(FOUND)
    assert plan.cost.delta > 0
    with pytest.raises(LapwingError) as error:
        release(plan, issue(1, plan.digest, Cost(plan.cost.loss, plan.cost.delta - 1)), Exact([], certified=plan))
    assert error.value.code == "engine-result"
    table = ExactTable(groups=[], vectors=[[]], units=[])
    with pytest.raises(LapwingError) as error:
        release(plan, issue(1, plan.digest, Cost(plan.cost.loss, plan.cost.delta - 1)), Exact([table], certified=plan))
    assert error.value.code == "permit-mismatch"


def test_a_refusal_before_anything_is_drawn_leaves_the_permit() -> None:
    plan = certified()
    permit = permit_for(plan)
    with pytest.raises(LapwingError):
        release(replace(plan, digest="another"), permit, exact(plan))
    with pytest.raises(LapwingError):
        release(plan, permit, Exact([], certified=plan))
    assert isinstance(release(plan, permit, exact(plan)), Released)


RESULTS: dict[str, Callable[[Certified], Exact]] = {
    "of another plan": lambda plan: Exact(exact(plan)._tables, certified=certified(quantile())),
    "of the plan as certified for other neighbours": lambda plan: Exact(exact(plan)._tables, certified=certify(plan.plan, BOUNDED)),
    "without a table": lambda plan: Exact([], certified=plan),
    "with a table more": lambda plan: Exact([*exact(plan)._tables] * 2, certified=plan),
    "without the column": lambda plan: exact(plan, vectors=[]),
    "with a column more": lambda plan: exact(plan, vectors=[[7, 3], [7, 3]]),
    "with a cell more": lambda plan: exact(plan, vectors=[[7, 3, 1]]),
    "with quantiles nobody asked for": lambda plan: exact(plan, quantiles=[{}]),
    "with a group twice": lambda plan: exact(plan, groups=[("a",), ("a",)]),
}


def test_a_name_does_not_tell_for_which_facts_a_plan_was_certified() -> None:
    """So the name alone does not show that a result belongs to a certificate."""
    one, other = certified(), certify(Plan((COUNTED,)), BOUNDED)
    assert one.digest == other.digest and one.cost != other.cost


@pytest.mark.parametrize("how", RESULTS)
def test_a_result_is_refused(how: str) -> None:
    plan = certified()
    with pytest.raises(LapwingError) as error:
        release(plan, permit_for(plan), RESULTS[how](plan))
    assert error.value.code == "engine-result"


def test_a_fault_after_the_permit_was_taken_leaves_it_spent() -> None:
    plan = certified()
    permit = permit_for(plan)
    with pytest.raises(LapwingError, match="engine-result"):
        release(plan, permit, exact(plan, groups=[("a",), ("a",)]))
    with pytest.raises(LapwingError, match="permit-used"):
        release(plan, permit, exact(plan))


def test_known_groups_are_all_there_and_no_others() -> None:
    plan = certified()
    empty = release(plan, permit_for(plan), exact(plan, groups=[], vectors=[[]])).tables[0]
    assert (empty.groups, empty.column("rows").values) == ((("a",), ("b",)), (0, 0))
    unlisted = release(plan, permit_for(plan), exact(plan, groups=[("z",), ("b",)], vectors=[[9, 4]])).tables[0]
    assert (unlisted.groups, unlisted.column("rows").values) == ((("a",), ("b",)), (0, 4))


@pytest.mark.parametrize("value", [True, 1.0, 2**62 + 1, -(2**62) - 1])
def test_a_cell_that_is_no_integer_of_62_bits_gets_no_noise(value: Any) -> None:
    plan = certified()
    with pytest.raises(LapwingError) as error:
        release(plan, permit_for(plan), exact(plan, vectors=[[value, 3]]))
    assert error.value.code == ("value-too-large" if type(value) is int else "value-invalid")


def _discovered(units: dict[str | None, int]) -> tuple[tuple[Any, ...], tuple[int, ...], tuple[int, ...]]:
    plan = certified(FOUND)
    table = ExactTable(groups=[(key,) for key in units], vectors=[list(units.values())], units=list(units.values()))
    shown = release(plan, permit_for(plan), Exact([table], certified=plan)).tables[0]
    assert shown.threshold is not None
    assert all(count >= shown.threshold for count in shown.column(UNITS_COLUMN).values)
    return tuple(key for (key,) in shown.groups), shown.column(UNITS_COLUMN).values, shown.column("rows").values


def test_discovered_groups_are_shown_from_the_threshold_on() -> None:
    """A group of one unit is hidden. At most three are shown, the largest ones, and they stand in the order of their values."""
    assert _discovered({"one": 1}) == ((), (), ())
    assert _discovered({"b": 9, "one": 1, "a": 5}) == (("a", "b"), (5, 9), (5, 9))
    assert _discovered({None: 7, "d": 6, "c": 9, "b": 8, "a": 5}) == (("b", "c", None), (8, 9, 7), (8, 9, 7))
    assert _discovered({"c": 5, "b": 5, "d": 5, "a": 5})[0] == ("a", "b", "c")


@pytest.mark.parametrize("changed", [{"units": None}, {"units": [3]}, {"groups": [("a",), ("a",)]}], ids=["missing", "too few", "twice"])
def test_discovered_groups_need_the_units_of_each(changed: dict[str, Any]) -> None:
    plan = certified(FOUND)
    table: dict[str, Any] = {"groups": [("a",), ("b",)], "vectors": [[3, 3]], "units": [3, 3]}
    with pytest.raises(LapwingError) as error:
        release(plan, permit_for(plan), Exact([ExactTable(**(table | changed))], certified=plan))
    assert error.value.code == "engine-result"


def test_quantiles_are_selected_inside_their_bounds_whatever_arrives() -> None:
    plan = certified(quantile(scale=SCALE_MIN))
    rows: Counts = {(): [(-50, 1), (4, 8), (99, 1)]}
    table = ExactTable(groups=[], vectors=[], units=None, quantiles=[rows])
    chosen = release(plan, permit_for(plan), Exact([table], certified=plan)).tables[0].chosen("median")
    assert (chosen.values, chosen.step) == (((4,),), Fraction(1))
    empty = ExactTable(groups=[], vectors=[], units=None, quantiles=[{}])
    ((value,),) = release(plan, permit_for(plan), Exact([empty], certified=plan)).tables[0].chosen("median").values
    assert 0 <= value <= 10


def test_exact_results_show_nothing_of_themselves() -> None:
    plan = certified()
    result = exact(plan)
    assert "7" not in f"{result!r} {result} {result._tables[0]!r}"
    for thing in (result, result._tables[0]):
        with pytest.raises(TypeError):
            pickle.dumps(thing)


TWO_KEYS = replace(COUNTED, keys=(*COUNTED.keys, ("again", COUNTED.keys[0][1])))
CITIES = ("b", None, "a")


def test_a_product_of_axes_is_released_like_its_groups_written_out() -> None:
    """The same values in the same order, and groups that the product does not have are left out; the certificate costs the same."""
    found = [("a", "b"), ("b", "b"), (None, None), ("a", "elsewhere"), ("elsewhere", None)]
    by_form = []
    for groups in (ProductGroups((CITIES, CITIES)), KnownGroups(tuple(itertools.product(CITIES, CITIES)))):
        plan = certify(Plan((replace(TWO_KEYS, groups=groups),)), FACTS)
        (table,) = release(plan, permit_for(plan), exact(plan, groups=found, vectors=[[1, 2, 3, 4, 5]])).tables
        by_form.append((plan.cost, table.column("rows").values, table.keys))
    assert by_form[0] == by_form[1]
    assert by_form[0][1] == (2, 0, 0, 0, 3, 0, 1, 0, 0)
    assert ProductGroups((CITIES, CITIES)).groups == tuple(itertools.product(CITIES, CITIES))


def test_a_product_says_its_axes_in_the_place_of_groups() -> None:
    plan = certify(Plan((replace(COUNTED, groups=ProductGroups((CITIES,))),)), FACTS)
    (table,) = release(plan, permit_for(plan), exact(plan)).tables
    assert (table.axes, table.groups, table.column("rows").values) == ((CITIES,), (), (7, 0, 3))


def test_a_product_without_axes_is_one_cell() -> None:
    plan = certify(Plan((replace(COUNTED, keys=(), groups=ProductGroups(())),)), FACTS)
    (table,) = release(plan, permit_for(plan), exact(plan, groups=[()], vectors=[[9]])).tables
    assert (table.axes, table.column("rows").values) == ((), (9,))


def test_of_a_product_too_a_group_may_come_once_only() -> None:
    plan = certify(Plan((replace(COUNTED, groups=ProductGroups((CITIES,))),)), FACTS)
    with pytest.raises(LapwingError) as failed:
        release(plan, permit_for(plan), exact(plan, groups=[("a",), ("a",)]))
    assert failed.value.code == "engine-result"
