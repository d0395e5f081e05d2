"""``lapwing check``: the catalogue against its own rules, and against the schemas of the files it names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import ExitStatus

if TYPE_CHECKING:
    from lapwing.catalog import Declaration, TableDecl


def checked(path: Path) -> ExitStatus:
    """Print what is wrong or worth a second look. Raises ``CatalogueError`` for a catalogue that cannot be read at all."""
    from lapwing.catalog import load
    from lapwing.curator.source_checks import source_problems, source_warnings

    declaration = load(path / "lapwing.toml" if path.is_dir() else path)
    for warning in declaration.warnings:
        terminal.write_note(f"warning: {warning}")
    for note in source_warnings(declaration):
        terminal.write_note(f"warning: {note}")
    problems = list(source_problems(declaration))
    for problem in problems:
        terminal.write_error(f"problem: {problem}")
    if problems:
        return ExitStatus.OWNER
    typer.echo(_summary(declaration))
    return ExitStatus.OK


def _summary(declaration: Declaration) -> str:
    from lapwing.curator.source_checks import long_keys

    dataset, budget = declaration.dataset, declaration.declared_budget
    lines = [
        f"{dataset.id}: protects {declaration.protects}, {dataset.neighbours.value} neighbours",
        f"budget: epsilon {float(budget.epsilon):g} (at most {float(budget.ceiling_epsilon):g}), delta {float(budget.delta):.3g}",
    ]
    for table in declaration.tables:
        lines.append(f"  {table.name}: {len(table.columns)} columns, {_rows(table, dataset.unit)}")
        lines += [f"    {line}" for line in long_keys(table, has_delta=budget.delta > 0)]
    lines += [f"  {table.name}: {len(table.columns)} columns, public, joined by {table.key}" for table in declaration.public_tables]
    return "\n".join([*lines, "The catalogue can be prepared."])


def _rows(table: TableDecl, unit: str) -> str:
    """How many rows a unit may have, and the path that identifies it."""
    from lapwing.catalog import RowUnit

    if isinstance(table.unit, RowUnit):
        return "every row is a unit"
    path = " -> ".join([*(str(hop.target.table) for hop in table.unit.hops), table.unit.end.column])
    rows = "one row" if table.rows_per_unit_max == 1 else f"up to {table.rows_per_unit_max:,} rows"
    return f"{rows} per {unit} (by {path})"
