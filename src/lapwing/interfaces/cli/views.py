"""What the commands print: answers, budgets, histories. Tables on a terminal, plain text when piped, JSON and CSV when asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.terminal import ACCENT, CAUTION

if TYPE_CHECKING:
    from lapwing.answers.answer import Answer
    from lapwing.answers.display.budget import BudgetView
    from lapwing.asking.explaining.explanation import Explanation
    from lapwing.curator.curator import Entry

ROWS_SHOWN_MAX = 200
"""Rows of an answer shown on a terminal; pipes, JSON and CSV get all of them."""
_BAR_CELLS = 40


class AnswerFormat(StrEnum):
    """Output formats of answers."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class ReportFormat(StrEnum):
    """Output formats of everything else."""

    TABLE = "table"
    JSON = "json"


class ReleasesServe(StrEnum):
    """Whether a release that was bought before may answer."""

    AUTO = "auto"
    NEVER = "never"
    ONLY = "only"


class SqlSpelling(StrEnum):
    """SQL dialects: the names in ``lapwing.sql.DIALECTS``, repeated to avoid an import."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"


class EngineName(StrEnum):
    """Engines: the values of ``lapwing.catalog.EngineKind``, repeated to avoid an import."""

    DUCKDB = "duckdb"
    POSTGRES = "postgres"
    SPARK = "spark"


def as_json(value: object) -> str:
    """JSON text. What is not a finite number is an error: it has no JSON form."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)


def write_answer(answer: Answer, form: AnswerFormat) -> None:
    """Print an answer. In CSV the price and the notes go to standard error, so that a pipe gets only the table."""
    match form:
        case AnswerFormat.JSON:
            terminal.write(as_json(answer.to_dict()))
        case AnswerFormat.CSV:
            terminal.write_data(answer.to_csv().rstrip("\n"))
            for line in (*_last_lines(answer), *answer.footnotes(), *(f"note: {note}" for note in answer.notes)):
                terminal.write_note(line)
        case AnswerFormat.TABLE if terminal.is_terminal():
            _print_answer(answer)
        case AnswerFormat.TABLE:
            terminal.write(str(answer))


def _print_answer(answer: Answer) -> None:
    target = terminal.console()
    headers, rows = answer.cells()
    right, accents = _alignment(answer)
    table = terminal.table(headers, right=right, accents=accents)
    for row in rows[:ROWS_SHOWN_MAX]:
        terminal.add_row(table, *row)
    if headers:
        target.print(table)
    if len(rows) > ROWS_SHOWN_MAX:
        target.print(f"and {len(rows) - ROWS_SHOWN_MAX:,} rows more: use --format csv", style=CAUTION)
    target.print()
    target.print(terminal.printable(answer.summary()), style="bold")
    for line in _last_lines(answer)[1:]:
        target.print(terminal.printable(line))
    for line in answer.footnotes():
        target.print(terminal.printable(line))
    for note in answer.notes:
        target.print(terminal.printable(f"note: {note}"), style=CAUTION)


def _last_lines(answer: Answer) -> list[str]:
    from lapwing.answers.answer import receipt_line

    return [answer.summary()] if answer.receipt is None else [answer.summary(), receipt_line(answer.receipt)]


def _alignment(answer: Answer) -> tuple[list[bool], list[bool]]:
    """Which printed columns are numbers, and which are error bars."""
    from pyarrow import types

    right: list[bool] = []
    accents: list[bool] = []
    for field in answer.table.schema:
        right.append(types.is_integer(field.type) or types.is_floating(field.type) or types.is_decimal(field.type))
        accents.append(False)
        if field.name in answer.intervals:
            right.append(True)
            accents.append(True)
    return right, accents


def write_explanation(explanation: Explanation, form: ReportFormat) -> None:
    """Print what a statement would cost."""
    if form is ReportFormat.JSON:
        terminal.write(as_json(explanation.to_dict()))
    elif terminal.is_terminal():
        _print_pairs(explanation.lines)
    else:
        terminal.write(str(explanation))


def write_description(described: Answer, form: ReportFormat) -> None:
    """Print a description: the table, and its notes below."""
    if form is ReportFormat.JSON:
        rows = [{name: value for name, value in row.items() if value != ""} for row in described.table.to_pylist()]
        terminal.write(as_json({"rows": rows, "notes": list(described.notes)}))
        return
    headers, rows_of_cells = described.cells()
    first = [True] + [False] * (len(headers) - 1)
    write_table(headers, rows_of_cells, right=described.right_aligned(), accents=first)
    if terminal.is_terminal():
        terminal.console().print()
        for note in described.notes:
            terminal.console().print(terminal.printable(note))
    else:
        terminal.write("\n" + "\n".join(described.notes))


def write_budget(view: BudgetView, *, name: str, form: ReportFormat) -> None:
    """Print what a data set has and has spent. The share comes first, because epsilons do not add up."""
    if form is ReportFormat.JSON:
        terminal.write(as_json({"dataset": name, "closed": view.closed, **view.to_dict()}))
        return
    pairs = view.lines(name)
    if not terminal.is_terminal():
        terminal.write(_plain_pairs(pairs))
        return
    filled = round(view.share_spent * _BAR_CELLS)
    target = terminal.console()
    from rich.text import Text

    bar = Text.assemble(("█" * filled, ACCENT), ("░" * (_BAR_CELLS - filled), ACCENT), f"  {view.share_spent:.1%} spent")
    target.print(bar)
    _print_pairs(pairs)


def write_history(entries: Sequence[Entry], *, form: ReportFormat, loss_unit: str) -> None:
    """Print entries of the ledger, newest first."""
    from lapwing.owner.ledger_entries import entry_fields

    values = [entry_fields(entry, loss_unit) for entry in entries]
    if form is ReportFormat.JSON:
        terminal.write(as_json(values))
        return
    headers = ("#", "when (UTC)", "what", "analyst", loss_unit, "detail")
    right = (True, False, False, False, True, False)
    rows = [_history_row(value, loss_unit) for value in values]
    write_table(headers, rows, right=right, accents=(False, False, False, False, True, False))


def write_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[bool], accents: Sequence[bool] | None = None
) -> None:
    """Print a table; ``right`` columns hold numbers."""
    if not terminal.is_terminal():
        terminal.write(terminal.plain_table(headers, rows, right=right))
        return
    table = terminal.table(headers, right=right, accents=accents or [False] * len(headers))
    for row in rows:
        terminal.add_row(table, *row)
    terminal.console().print(table)


def write_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and their descriptions, one per line."""
    if terminal.is_terminal():
        _print_pairs(pairs)
    else:
        terminal.write(_plain_pairs(pairs))


def _history_row(value: Mapping[str, Any], loss_unit: str) -> list[str]:
    paid = float(value[loss_unit])
    when = str(value["at"])[:19].replace("T", " ")
    # A statement may span lines; a line of the history is one line.
    detail = " ".join(str(value["detail"]).split())
    return [str(value["id"]), when, value["kind"], value["analyst"] or "-", f"{paid:.3g}" if paid else "", detail]


def _print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=f"bold {ACCENT}", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in pairs:
        terminal.add_row(grid, name, text)
    terminal.console().print(grid)


def _plain_pairs(pairs: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name.ljust(width)}  {text}" for name, text in pairs)
