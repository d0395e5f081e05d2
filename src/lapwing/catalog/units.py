"""Unit paths: from the row of a table to its unit; or the row itself, if no owner is declared."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lapwing.catalog.declaration import ColumnDecl, ColumnRef, Hop, RowUnit, UnitPath
from lapwing.catalog.problems import ProblemReport
from lapwing.catalog.settings import Settings
from lapwing.catalog.shape_problems import closest
from lapwing.kernel.domains import Domain, KeyDomain, TextDomain

_WRITTEN = re.compile(r"\s*([^\s.>]+)\s*(?:->\s*([^\s.>]+)\s*\.\s*([^\s.>]+)\s*)?")

ROW = "row"
"""The value of ``unit`` if every row is a unit of its own."""

Columns = Mapping[str, ColumnDecl]


def resolve_units(
    report: ProblemReport, *, written: Mapping[str, str], columns: Mapping[str, Columns], public_names: frozenset[str], settings: Settings
) -> Mapping[str, UnitPath | RowUnit]:
    """The complete path of every table of ``written`` whose path is valid; the others are reported.

    Post: each path starts in its table, follows declared columns only, visits no table twice, and all paths end in columns of one type
    (units of different tables must be comparable); or every row of every table is a unit.
    """
    steps = {}
    for table, text in written.items():
        step = _read_step(report, table, text, columns=columns, public_names=public_names)
        if step is not None:
            steps[table] = step
    paths: dict[str, UnitPath | RowUnit] = {}
    for table in steps:
        path = _follow(report, table, steps, settings=settings)
        if path is not None:
            paths[table] = path
    _check_rows_or_owners(report, paths)
    _check_one_type(report, {table: path for table, path in paths.items() if isinstance(path, UnitPath)}, columns)
    return paths


def _read_step(
    report: ProblemReport, table: str, text: str, *, columns: Mapping[str, Columns], public_names: frozenset[str]
) -> Hop | ColumnRef | RowUnit | None:
    """What ``unit`` of one table says: a hop to another table, a column of its own, or that each row is a unit."""
    at = ("tables", table, "unit")
    if text.strip() == ROW:
        return _row_step(report, table, columns[table])
    match = _WRITTEN.fullmatch(text)
    if not match:
        hint = 'write a column, or a path "column -> table.column"'
        report.problem("catalogue-bad-unit", at, "`unit` cannot be read", hint=hint)
        return None
    own = ColumnRef(table=table, column=match[1])
    if not _check_end(report, table, own, columns):
        return None
    if match[2] is None:
        return own
    target = ColumnRef(table=match[2], column=match[3])
    if target.table in public_names:
        hint = "rows belong to units through protected tables only"
        report.problem("catalogue-bad-unit", at, f"`{target.table}` is a public table and holds no units", hint=hint)
        return None
    if target.table not in columns:
        meant = closest(target.table, columns)
        hint = f"did you mean `{meant}`?" if meant else ""
        report.problem("catalogue-bad-unit", at, f"there is no table `{target.table}`", hint=hint)
        return None
    if not _check_end(report, table, target, columns):
        return None
    if _is_text(columns[table][own.column].domain) != _is_text(columns[target.table][target.column].domain):
        report.problem("catalogue-bad-unit", at, f"`{own}` and `{target}` are of different types and are never equal")
        return None
    return Hop(column=own.column, target=target)


def _row_step(report: ProblemReport, table: str, columns: Columns) -> RowUnit | None:
    at = ("tables", table, "unit")
    if ROW in columns:
        message = f'`unit = "{ROW}"` would protect single rows, and `{table}.{ROW}` is a column as well'
        hint = f'if that column is the unit, give it another name: who = {{ from = "{ROW}", ... }}; if not, rename it all the same'
        report.problem("catalogue-bad-unit", at, message, hint=hint)
        return None
    return RowUnit()


def _check_end(report: ProblemReport, table: str, end: ColumnRef, columns: Mapping[str, Columns]) -> bool:
    """Units are distinguished by the value of this column, so nothing may merge two of its values.

    Clamping an integer or mapping text to "other" would make two persons one unit; removing one of them could then change which rows
    of the other survive, and the preparation lemma would fail. Hence only keys and unmodified text.
    """
    at = ("tables", table, "unit")
    column = columns[end.table].get(end.column)
    if column is None:
        meant = closest(end.column, columns[end.table])
        hint = f"did you mean `{meant}`?" if meant else "declare it among the columns"
        report.problem("catalogue-bad-unit", at, f"there is no column `{end}`", hint=hint)
        return False
    match column.domain:
        case KeyDomain():
            return True
        case TextDomain(values=None) if column.values_from is None:
            return True
        case _:
            message = f"`{end}` cannot tell units apart: its values are bounded or listed, so two units could become one"
            report.problem("catalogue-bad-unit", at, message, hint=f'declare {end.column} = {{ type = "key" }}')
            return False


def _follow(
    report: ProblemReport, table: str, steps: Mapping[str, Hop | ColumnRef | RowUnit], *, settings: Settings
) -> UnitPath | RowUnit | None:
    hops: list[Hop] = []
    visited = [table]
    while True:
        step = steps.get(visited[-1])
        if step is None:
            return None  # the mistake is in a table further on, where it has been reported
        if isinstance(step, ColumnRef):
            return UnitPath(hops=tuple(hops), end=step)
        if isinstance(step, RowUnit):
            if hops:
                _refuse_owned_by_row(report, table, visited[-1])
            return None if hops else step
        hops.append(step)
        if step.target.table in visited:
            circle = " -> ".join([*visited, step.target.table])
            hint = "one table of the circle must name a column of its own"
            report.problem("catalogue-bad-unit", ("tables", table, "unit"), f"the path runs in a circle: {circle}", hint=hint)
            return None
        if len(hops) > settings.unit_path_hops_max:
            report.problem("catalogue-limit", ("tables", table, "unit"), f"the path has more than {settings.unit_path_hops_max} steps")
            return None
        visited.append(step.target.table)


def _refuse_owned_by_row(report: ProblemReport, table: str, parent: str) -> None:
    """Refuse a path to a table whose units are rows: a counter distinguishes equal rows, so other tables have no key for them."""
    hint = f"where a column of `{parent}` tells its rows apart, that column is the unit of both tables"
    message = f'rows of `{parent}` are units of their own (`unit = "{ROW}"`), and no other row can belong to one'
    report.problem("catalogue-bad-unit", ("tables", table, "unit"), message, hint=hint)


def _check_rows_or_owners(report: ProblemReport, paths: Mapping[str, UnitPath | RowUnit]) -> None:
    """A data set makes one promise: for each row, or for the owner of the rows."""
    owned = next((path.end for path in paths.values() if isinstance(path, UnitPath)), None)
    for table, path in paths.items():
        if isinstance(path, RowUnit) and owned is not None:
            message = f"the units of this table are its rows, and elsewhere they are identified by `{owned}`"
            report.problem("catalogue-bad-unit", ("tables", table, "unit"), message, hint="all tables of a data set share one unit")


def _check_one_type(report: ProblemReport, paths: Mapping[str, UnitPath], columns: Mapping[str, Columns]) -> None:
    first: ColumnRef | None = None
    reported: set[ColumnRef] = set()
    for table, path in paths.items():
        first = first or path.end
        ends = [columns[end.table][end.column].domain for end in (first, path.end)]
        if _is_text(ends[0]) != _is_text(ends[1]) and path.end not in reported:
            reported.add(path.end)
            message = f"units are identified by `{path.end}` here and by `{first}` elsewhere, of different types"
            report.problem("catalogue-bad-unit", ("tables", table, "unit"), message, hint="all tables of a data set share one unit")


def _is_text(domain: Domain) -> bool:
    match domain:
        case KeyDomain(text=text):
            return text
        case TextDomain():
            return True
        case _:
            return False
