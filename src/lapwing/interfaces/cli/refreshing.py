"""``lapwing refresh``: asks every statement of a dashboard after blocks of time have closed, so that it is free for everybody else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lapwing.answers.display.number_format import figure, shortened
from lapwing.asking.explaining.block_lines import count
from lapwing.errors import Actor, LapwingError
from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import INTERRUPTED, ExitStatus, report_error, usage_error
from lapwing.interfaces.cli.place import curator_of, statement_text, whereabouts
from lapwing.interfaces.cli.shell.splitting import statements_of, without_comments
from lapwing.interfaces.cli.shell.terms import ShellTerms

if TYPE_CHECKING:
    from lapwing.asking.explaining.explanation import Explanation
    from lapwing.data_set import DataSet
    from lapwing.interfaces.python.remote import RemoteDataSet

SOME_REFUSED = 1
"""The exit status where some statements were refused."""
TITLE_LENGTH_MAX = 44
_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"--\s*([^\n]*\S)\s*$")
_TIME_OF_REQUEST = re.compile(r"\b(?:current_date|current_timestamp|today|now|getdate)\b", re.IGNORECASE)


class Outcome(Enum):
    """How a statement ended."""

    PAID = "paid"
    FREE = "free"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """How one statement ended, in a few words, and what to do about it."""

    outcome: Outcome
    said: str
    advice: str = ""


def read_dashboard(name: str) -> tuple[str, ...]:
    """The statements of a file; ``-`` stands for standard input."""
    try:
        text = statement_text("-") if name == "-" else Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise usage_error(f"{name} is not UTF-8 text") from None
    except OSError as error:
        raise usage_error(f"{name} cannot be read: {error.strerror}") from None
    statements = statements_of(text)
    if not statements:
        raise usage_error(f"{'standard input' if name == '-' else name} holds no statement")
    return statements


def prepared_before(context: typer.Context, *, dry_run: bool) -> None:
    """Prepare the data set, as its owner."""
    from lapwing.interfaces.cli.preparing import prepared

    if whereabouts(context).server is not None:
        raise usage_error("--prepare needs the files of the data set: leave it or --server out")
    if dry_run:
        raise usage_error("--dry-run changes nothing: leave it or --prepare out")
    with curator_of(context) as curator:
        prepared(curator, override="")
    terminal.write("")


def refreshed(
    data_set: DataSet | RemoteDataSet, statements: Sequence[str], *, epsilon: str | None, dialect: str, dry_run: bool
) -> ExitStatus | int:
    """Ask the statements one after another, and say how each ended; returns the exit status."""
    terms = ShellTerms()
    terms.set("dialect", dialect)
    if epsilon is not None:
        terms.set("epsilon", epsilon)
    refreshing = Refreshing(data_set, terms, dry_run=dry_run)
    titles = [title_of(statement) for statement in statements]
    width, outcomes = max(map(len, titles)), Counter[Outcome]()
    try:
        for title, statement in zip(titles, statements, strict=True):
            one = refreshing.ask(statement)
            outcomes[one.outcome] += 1
            _write(f"{title.ljust(width)}  {one.said}", terminal.ALARM if one.outcome is Outcome.REFUSED else None)
            if one.advice:
                _write(f"  {one.advice}", terminal.CAUTION)
    except KeyboardInterrupt:
        terminal.write_note("Interrupted. The statement may have been charged: see `lapwing history`. What was answered is free.")
        raise typer.Exit(INTERRUPTED) from None
    _write("\n" + _summary(outcomes, dry_run=dry_run), None)
    if not dry_run:
        _write(f"{data_set.budget.left_text}.", None)
    return SOME_REFUSED if outcomes[Outcome.REFUSED] else ExitStatus.OK


class Refreshing:
    """Asks statements of a dashboard, or only for their prices."""

    def __init__(self, data_set: DataSet | RemoteDataSet, terms: ShellTerms, *, dry_run: bool) -> None:
        self._data_set, self._terms, self._dry_run = data_set, terms, dry_run
        blocks = data_set.budget.blocks
        self._last = None if blocks is None or blocks.last is None else blocks.last.isoformat()
        """The last closed day."""

    def ask(self, statement: str) -> Refreshed:
        """Ask one statement. Errors that no other statement could avoid are raised."""
        try:
            return self._asked(statement)
        except LapwingError as error:
            if error.actor is not Actor.ANALYST:
                raise
            return Refreshed(Outcome.REFUSED, f"refused [{error.code}]: {error.message}", f"hint: {error.hint}" if error.hint else "")
        except Exception as error:
            report_error(error)
            return Refreshed(Outcome.REFUSED, "failed: an internal error")

    def _asked(self, statement: str) -> Refreshed:
        text, terms = self._terms.asked(statement)
        explanation = self._data_set.explain(text, **terms)
        cost, values = explanation.cost, explanation.values
        is_free, too_much = cost.free or bool(values.get("stored")), values["too_much"]
        if not self._dry_run:
            answer = self._data_set.ask(text, **terms)
            cost, is_free = answer.cost, answer.cost.free
        elif too_much and not is_free:
            return Refreshed(Outcome.REFUSED, f"would be refused: epsilon {figure(cost.epsilon)} is {too_much}")
        warning = ""
        if self._is_measured_again(statement, explanation):
            warning = f"warning: measured over its range: costs every {values['blocks']['every']} again"
        if is_free:
            return Refreshed(Outcome.FREE, f"free{_none_new(explanation)}", warning)
        return Refreshed(Outcome.PAID, f"epsilon {figure(cost.epsilon)}{_where(explanation)}", warning)

    def _is_measured_again(self, statement: str, explanation: Explanation) -> bool:
        """Whether it is another question tomorrow: its range moves with the calendar, and it is not measured by block."""
        blocks = explanation.values.get("blocks")
        if blocks is None or "by_block" in blocks or not blocks["ranges"]:
            return False
        moves = blocks["ranges"][-1]["last"] == self._last or _TIME_OF_REQUEST.search(without_comments(statement)) is not None
        return moves and sum(each["number"] for each in blocks["ranges"]) > 1


def title_of(statement: str) -> str:
    """The name of a statement: the comment on the line before it, otherwise its first words."""
    comments = _COMMENTS.match(statement)
    named = _NAME.search("" if comments is None else comments.group().rstrip().rpartition("\n")[2])
    return shortened(named[1] if named else without_comments(statement), TITLE_LENGTH_MAX)


def _where(explanation: Explanation) -> str:
    """In which blocks of time a price is paid."""
    blocks = explanation.values.get("blocks")
    if blocks is None or not blocks["ranges"]:
        return ""
    every, by_block = blocks["every"], blocks.get("by_block")
    number, new = (sum(each["number"] for each in blocks["ranges"]), "") if by_block is None else (by_block["new"], "new ")
    said = count(number, f"{new}{every}") if number == 1 else count(number, every).replace(" ", f" {new}")
    return f" in {said}" if number == 1 else f" in each of {said}"


def _none_new(explanation: Explanation) -> str:
    blocks = explanation.values.get("blocks")
    return "" if blocks is None or "by_block" not in blocks else f", no new {blocks['every']}"


def _summary(outcomes: Counter[Outcome], *, dry_run: bool) -> str:
    """How many were paid, free and refused."""
    number, paid, refused = outcomes.total(), outcomes[Outcome.PAID], outcomes[Outcome.REFUSED]
    statements = "1 statement" if number == 1 else f"{number} statements"
    if not paid and not refused:
        return f"{statements}, all free: there is nothing new to pay."
    words = {each: each.value for each in Outcome} | ({Outcome.PAID: "to pay"} if dry_run else {})
    said = ", ".join(f"{outcomes[each]} {word}" for each, word in words.items() if outcomes[each])
    return f"{statements}: {said}." + (" Nothing was asked or paid." if dry_run else "")


def _write(text: str, style: str | None) -> None:
    target = terminal.console()
    if target.is_terminal:
        target.print(terminal.printable(text), style=style, soft_wrap=True)
    else:
        terminal.write(text)
