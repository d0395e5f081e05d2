"""Deliberate bugs in windows within a unit, from the kernel to the binder. Suites as in ``relation_mutants``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lapwing.contribution import relations as planned_relations
from lapwing.kernel import stability
from lapwing.kernel import unit_windows as kernel_windows
from lapwing.kernel.domains import Kind, with_null
from lapwing.kernel.expressions import Function, Literal, call
from lapwing.kernel.ir import UnitWindow
from lapwing.kernel.window_columns import Reach, WindowColumn, WindowKind
from lapwing.render import relations
from lapwing.render import unit_windows as rendered_windows
from lapwing.sql.rows import unit_windows as bound_windows
from tests.properties.relation_mutants import Mutant, Patch

_WINDOWED = kernel_windows.windowed
_KEEP = bound_windows.UnitWindows.keep
_WINDOW = rendered_windows.render_window
_ORDER = rendered_windows.window_order
_LIMITED = planned_relations.limited


def _by_others(column: WindowColumn, scope: Any) -> list[str]:
    """Whether rows come in one order or in the other depends on how many units there are in all."""
    terms = _ORDER(replace(column, order=()), scope)
    turned = [term.replace(" ASC ", " DESC ") for term in terms]
    many = "(SELECT COUNT(DISTINCT _unit) FROM visits) % 2"
    return [
        *_ORDER(column, scope)[: len(column.order)],
        *(f"(CASE WHEN {many} = 0 THEN {term.removesuffix(' ASC NULLS LAST')} END) ASC NULLS LAST" for term in terms),
        *turned,
    ]


def _rendering(change: Callable[[WindowColumn], WindowColumn]) -> tuple[Patch, ...]:
    """Another window is rendered than the one that was certified."""

    def rendered(column: WindowColumn, unit: str, scope: Any) -> str:
        return _WINDOW(change(column), unit, scope)

    return ((relations, "render_window", rendered),)


def _without_order(column: WindowColumn) -> WindowColumn:
    return replace(column, order=())


def _ascending(column: WindowColumn) -> WindowColumn:
    return replace(column, order=tuple(replace(key, descending=False) for key in column.order))


def _nulls_last(column: WindowColumn) -> WindowColumn:
    return replace(column, order=tuple(replace(key, nulls_first=False) for key in column.order))


def _without_parts(column: WindowColumn) -> WindowColumn:
    return replace(column, partition=())


def _lag_as_lead(column: WindowColumn) -> WindowColumn:
    return replace(column, kind=WindowKind.LEAD) if column.kind is WindowKind.LAG else column


def _peers_as_row(column: WindowColumn) -> WindowColumn:
    return replace(column, reach=Reach.ROW) if column.reach is Reach.PEERS else column


def _running_as_total(column: WindowColumn) -> WindowColumn:
    return replace(column, reach=Reach.ALL)


def _numbering(numbers: Callable[[WindowColumn], bool]) -> Callable[..., stability.Shape]:
    """Some columns are taken for numbers that no two rows of a unit share."""

    def windowed(columns: Any, shape: stability.Shape) -> stability.Shape:
        made = _WINDOWED(columns, shape)
        return replace(made, numbering=made.numbering | {name for name, column in columns if numbers(column)})

    return windowed


def _never_null(columns: Any, shape: stability.Shape) -> stability.Shape:
    made = _WINDOWED(columns, shape)
    return replace(made, columns={name: with_null(domain, False) for name, domain in made.columns.items()})


def _lowered_below(relation: Any, rows: int, facts: Any) -> Any:
    if isinstance(relation, UnitWindow):
        return replace(relation, source=_LIMITED(relation.source, rows, facts))
    return _LIMITED(relation, rows, facts)


def _any_partition(self: Any, nodes: Any, node: Any) -> Any:
    return tuple(self.rows.bind(part).expression for part in nodes if not self.is_unit(part))


def _keep_nothing(self: Any, *arguments: Any) -> None:
    return None


def _keep_all(self: Any, *arguments: Any) -> None:
    _KEEP(self, *arguments)
    self.kept = None


def _of_one_column(self: Any, node: Any, partition: Any, order: Any) -> None:
    number = self.column(node, WindowColumn(WindowKind.ROW_NUMBER, None, (), order))
    self.kept = call(Function.EQUAL, number.expression, Literal(1, Kind.INTEGER))


def _one_too_few(predicate: Any, shape: stability.Shape) -> int:
    found = kernel_windows.rows_passing(predicate, shape)
    return max(1, found - 1) if found < shape.rows_per_unit else found


WINDOW_MUTANTS: tuple[Mutant, ...] = (
    Mutant("windows over all units", ((rendered_windows, "window_partition", lambda column, unit, scope: [f"{unit} IS NULL"]),), "oracle"),
    Mutant("rows of one time in an order that other units decide", ((rendered_windows, "window_order", _by_others),), "oracle"),
    Mutant(
        "numbers within a part taken for numbers within a unit",
        ((stability, "windowed", _numbering(lambda column: column.kind is WindowKind.ROW_NUMBER)),),
        "oracle",
    ),
    Mutant(
        "ranks taken for numbers",
        ((stability, "windowed", _numbering(lambda column: column.kind in (WindowKind.RANK, WindowKind.DENSE_RANK))),),
        "sizes",
    ),
    Mutant("a condition on a number lets through one row too few", ((stability, "rows_passing", _one_too_few),), "sizes"),
    Mutant("a sum of a window bounded like one row", ((kernel_windows, "unit_sum", lambda value, rows: value),), "sizes"),
    Mutant("windows never NULL", ((stability, "windowed", _never_null),), "sizes"),
    Mutant("windows without their order", _rendering(_without_order), "limit"),
    Mutant("descending windows read ascending", _rendering(_ascending), "limit"),
    Mutant("NULLS FIRST forgotten", _rendering(_nulls_last), "limit"),
    Mutant("windows parted by the unit alone", _rendering(_without_parts), "limit"),
    Mutant("LAG rendered as LEAD", _rendering(_lag_as_lead), "limit"),
    Mutant("running totals of single rows", _rendering(_peers_as_row), "limit"),
    Mutant("running totals to the last row", _rendering(_running_as_total), "limit"),
    Mutant("QUALIFY dropped", ((bound_windows.UnitWindows, "keep", _keep_all),), "limit"),
    Mutant("DISTINCT ON dropped", ((bound_windows.UnitWindows, "keep_first", _keep_nothing),), "limit"),
    Mutant("DISTINCT ON of the unit alone", ((bound_windows.UnitWindows, "keep_first", _of_one_column),), "limit"),
    Mutant("windows parted by anything", ((bound_windows.UnitWindows, "partition", _any_partition),), "refusals"),
    Mutant("scans lowered below a window", ((planned_relations, "limited", _lowered_below),), "lowering"),
)
