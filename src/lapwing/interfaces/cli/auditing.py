"""``lapwing audit``: empirical lower bounds on the privacy loss, beside the claims.

With ``cli.conformance`` the only module of the product that imports ``lapwing.audit``, and only when the command runs: an audit answers
no statement of the data set, opens neither its rows nor its ledger, and asks only about invented data (docs/decisions/0010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import ExitStatus
from lapwing.interfaces.cli.views import ReportFormat, as_json

if TYPE_CHECKING:
    from lapwing.audit.report import AuditItem, Line

HEADERS = ("audited", "setting", "claimed", "at least", "runs", "the claim")
RIGHT = (False, False, False, True, True, False)
CONFIDENCE_TEXT = "99 %"


def audited(
    catalogue: Path, statements: Sequence[str], *, epsilon: str, samples: int, asks: int, mechanisms: bool, plans: bool, form: ReportFormat
) -> ExitStatus:
    """Audit and print; the status says whether a claim was refuted."""
    lines: list[Line] = []
    if mechanisms or plans:
        lines += _measured(_items(mechanisms=mechanisms, plans=plans), samples=samples)
    if statements or not (mechanisms or plans):
        lines += _statements(catalogue, statements, epsilon=epsilon, samples=samples, asks=asks, alone=not lines)
    write_lines(lines, form)
    return ExitStatus.REFUTED if any(line.caught for line in lines) else ExitStatus.OK


def _items(*, mechanisms: bool, plans: bool) -> list[AuditItem]:
    from lapwing.audit.report import mechanism_items, plan_items

    return [*(mechanism_items() if mechanisms else []), *(plan_items() if plans else [])]


def _measured(items: Sequence[AuditItem], *, samples: int) -> list[Line]:
    from lapwing.audit.report import measured

    lines = []
    with terminal.status("auditing") as show:
        show(f"1 of {len(items)}: {items[0].name}")
        for line in measured(items, samples=samples):
            lines.append(line)
            if len(lines) < len(items):
                show(f"{len(lines) + 1} of {len(items)}: {items[len(lines)].name}")
    return lines


def _statements(catalogue: Path, statements: Sequence[str], *, epsilon: str, samples: int, asks: int, alone: bool) -> list[Line]:
    from lapwing.audit.project import invented_project
    from lapwing.audit.report import TESTS, exact_line, line_of

    lines = []
    with terminal.status("auditing") as show, invented_project(catalogue) as project:
        audited = statements or [f"SELECT COUNT(*) AS n FROM {table}" for table in project.tables()]
        # beside other audits, correct for the tests of a whole report: one confidence then holds for all lines
        tests = (4 if asks else 2) * len(audited) if alone else TESTS
        for statement in audited:
            show(" ".join(statement.split()))
            outcome = project.audit(statement, epsilon=epsilon, samples=samples, asks=asks, tests=tests)
            name = " ".join(statement.split())
            lines.append(exact_line(outcome.released.claimed, share=outcome.share, name=name))
            lines.append(line_of(outcome.released, area="statement", name=name, setting="released at once"))
            if outcome.asked is not None:
                lines.append(line_of(outcome.asked, area="statement", name=name, setting="asked one by one"))
    return lines


def write_lines(lines: Sequence[Line], form: ReportFormat) -> None:
    """Print what was found."""
    from lapwing.audit.report import claim_text, headline, runs_text, verdict

    if form is ReportFormat.JSON:
        refuted = sum(line.caught for line in lines)
        terminal.write(as_json({"confidence": 0.99, "refuted": refuted, "lines": [asdict(line) for line in lines]}))
        return
    rows = [[line.name, line.setting, claim_text(line), f"{line.lower_bound:.4f}", runs_text(line), verdict(line)] for line in lines]
    summary = f"{headline(lines)} Confidence {CONFIDENCE_TEXT} for all lines together."
    if not terminal.is_terminal():
        terminal.write(terminal.plain_table(HEADERS, rows, right=RIGHT))
        terminal.write(f"\n{summary}")
        return
    table = terminal.table(HEADERS, right=RIGHT, accents=(False, False, False, True, False, False))
    above = ""
    for row, line in zip(rows, lines, strict=True):
        # a statement is long: its three lines name it once
        terminal.add_row(table, "" if row[0] == above else row[0], *row[1:], style=f"bold {terminal.ALARM}" if line.caught else None)
        above = row[0] if line.area == "statement" else ""
    target = terminal.console()
    target.print(table)
    target.print()
    target.print(summary, style=f"bold {terminal.ALARM}" if any(line.caught for line in lines) else "bold")
