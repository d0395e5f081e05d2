"""``lapwing conformance``: the project's own list of statements, run and scored.

With ``cli.auditing`` the only module of the product that imports ``lapwing.audit``, and only when the command runs: it asks only
about made-up people in a temporary directory (docs/decisions/0010).
"""

from __future__ import annotations

import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import ExitStatus, reported, without_password_typed
from lapwing.interfaces.cli.terminal import ALARM
from lapwing.interfaces.cli.views import ReportFormat, as_json, write_table

if TYPE_CHECKING:
    from lapwing.audit.lists.conformance import Outcome, Score
    from lapwing.audit.lists.written_lists import WrittenOutcome, WrittenScore

HEADERS = ("", "statement", "outcome", "")
RIGHT = (False, False, False, False)


def add_conformance(app: typer.Typer) -> None:
    """Add ``lapwing conformance`` to the commands."""
    app.command(name="conformance", short_help="Run the project's own list of statements.")(_conformance)


class ListName(StrEnum):
    """The lists of statements."""

    FIRST = "first"
    SECOND = "second"
    THIRD = "third"
    TPCH = "tpch"
    CLICKBENCH = "clickbench"


def _conformance(
    form: Annotated[ReportFormat, typer.Option("--format", help="How to print it.")] = ReportFormat.TABLE,
    which: Annotated[ListName, typer.Option("--list", help="Which list of statements.")] = ListName.FIRST,
    postgres: Annotated[
        str | None,
        typer.Option(
            "--postgres",
            metavar="DSN",
            help="A server to compare with, for the second and third lists.",
            callback=without_password_typed,
        ),
    ] = None,
) -> None:
    """Run the project's own list of statements on made-up data: which are answered, and which are refused. Takes half a minute.

    An answer passes if, with the noise turned down, it equals DuckDB's own; a refusal passes if it points into the statement and nothing
    was charged. Exits with 1 if anything fails. The second and third lists hold statements as people and tools write them. They take a few
    minutes and exit with 1 if a statement is answered or refused other than expected. With --postgres, statements in PostgreSQL's dialect
    are compared with that server, in a scratch schema that is dropped. Two lists follow well-known benchmarks.

    \b
    Example:
        lapwing conformance
        lapwing conformance --list third --postgres "host=localhost dbname=scratch" --format json
    """
    with reported(form=form):
        raise typer.Exit(_written(form, which, postgres) if which in (ListName.SECOND, ListName.THIRD) else conformed(form, which))


def _written(form: ReportFormat, which: ListName, postgres: str | None) -> ExitStatus:
    """Run the second or the third list. Print its outcomes by kind, and each outcome that was not expected."""
    from lapwing.audit.lists import second_list, third_list
    from lapwing.audit.lists.written_lists import WrittenScore

    third = which is ListName.THIRD
    total = len(third_list.third_list() if third else second_list.second_list())
    outcomes: list[WrittenOutcome] = []
    with tempfile.TemporaryDirectory(prefix="lapwing-conformance-") as directory, terminal.status("writing made-up data") as show:
        run = third_list.run_third_list if third else second_list.run_second_list
        for outcome in run(Path(directory), postgres=postgres):
            outcomes.append(outcome)
            show(f"{len(outcomes)} of {total}")
    score = WrittenScore(tuple(outcomes))
    if form is ReportFormat.JSON:
        terminal.write(as_json(score.to_dict()))
    else:
        _write_written(score)
    return ExitStatus.INTERNAL if score.unlike else ExitStatus.OK


def _write_written(score: WrittenScore) -> None:
    """Print a score of statements that have expected outcomes."""
    rows = [[kind, f"{answered} of {many}"] for kind, (answered, many) in score.counts().items()]
    write_table(("kind", "answered"), rows, right=(False, True), accents=(True, False))
    terminal.write("")
    refused = [[outcome.listed.name, outcome.found] for outcome in score.refused]
    write_table(("refused", "code"), refused, right=(False, False), accents=(True, False))
    if score.known_wrong:
        terminal.write("")
        wrong = [[outcome.listed.name, outcome.listed.why] for outcome in score.known_wrong]
        write_table(("known to be wrong", "why"), wrong, right=(False, False), accents=(True, False))
    uncompared = [f"{many} ({reason})" for reason, many in score.uncompared().items()]
    terminal.write(f"\n{score.compared} answers compared; not compared: " + ("; ".join(uncompared) or "none"))
    changed = [f"{item.listed.name}: {item.found}, not {item.listed.expected}" for item in score.unlike]
    terminal.write("not as expected: " + ("; ".join(changed) or "none"))


def conformed(form: ReportFormat, which: ListName = ListName.FIRST) -> ExitStatus:
    """Run a list and print the score; the status says whether everything passed."""
    from lapwing.audit.lists.benchmark_lists import BENCHMARKS, benchmark_statements, run_benchmark
    from lapwing.audit.lists.conformance import Score, listed_statements, run_list

    benchmark = BENCHMARKS.get(which.value)
    total = len(listed_statements() if benchmark is None else benchmark_statements(benchmark))
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="lapwing-conformance-") as directory, terminal.status("writing made-up data") as show:
        for outcome in run_list(Path(directory)) if benchmark is None else run_benchmark(benchmark, Path(directory)):
            outcomes.append(outcome)
            show(f"{len(outcomes)} of {total}")
    score = Score(tuple(outcomes))
    write_score(score, form)
    return ExitStatus.INTERNAL if score.failed or len(outcomes) != total else ExitStatus.OK


def write_score(score: Score, form: ReportFormat) -> None:
    """Print a score: JSON is the figures and the names of what failed, a table has a line for each statement."""
    if form is ReportFormat.JSON:
        terminal.write(as_json(score.to_dict()))
        return
    rows = [_row(outcome) for outcome in score.outcomes]
    if terminal.is_terminal():
        table = terminal.table(HEADERS, right=RIGHT, accents=(True, False, False, False))
        for row, outcome in zip(rows, score.outcomes, strict=True):
            terminal.add_row(table, *row, style=None if outcome.passed else ALARM)
        terminal.console().print(table)
    else:
        terminal.write(terminal.plain_table(HEADERS, rows, right=RIGHT))
    values = score.to_dict()
    failed = ", ".join(values["failed"]) or "none"
    terminal.write(f"\n{values['answered']} answered, {values['refused']} refused as expected; failed: {failed}")


def _row(outcome: Outcome) -> list[str]:
    done = "answered" if outcome.listed.answered else "refused"
    return [outcome.listed.name, outcome.listed.title, done if outcome.passed else "FAILED", outcome.detail]
