"""A session: runs statements and commands one by one, here or on a server, at a prompt or from a pipe."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.exits import INTERRUPTED, ExitStatus, report_error
from lapwing.interfaces.cli.shell.commands import COMMANDS
from lapwing.interfaces.cli.shell.splitting import split
from lapwing.interfaces.cli.shell.terms import SETTINGS, ShellTerms
from lapwing.interfaces.cli.views import (
    AnswerFormat,
    ReportFormat,
    write_answer,
    write_budget,
    write_description,
    write_explanation,
    write_history,
    write_pairs,
)
from lapwing.interfaces.python.waiting import SHOWN_AFTER_SECONDS, begun, on_terminal

if TYPE_CHECKING:
    from lapwing.answers.answer import Answer
    from lapwing.asking.explaining.explanation import Explanation
    from lapwing.asking.options import AskArguments
    from lapwing.data_set import DataSet
    from lapwing.interfaces.python.remote import RemoteDataSet

HISTORY_SHOWN = 20
_LOOK_SECONDS = 0.2
_Key = tuple[str, tuple[tuple[str, Any], ...]]

LEFT = (
    "No longer waiting. The statement continues and may be charged.\n"
    "Ask it again here to get its answer: it is charged once. \\history shows the charge."
)


class _LeftAlone(Exception):
    """The user stopped waiting for a statement, which continues."""


class ShellSession:
    """The settings, the statements in progress, and how the last one ended."""

    def __init__(self, data_set: DataSet | RemoteDataSet) -> None:
        self.data_set = data_set
        self.terms = ShellTerms()
        self.status: int = ExitStatus.OK
        self.is_over = False
        self.share_left: float | None = None
        """The remaining budget as last known."""
        self._left: dict[_Key, Future[Answer]] = {}
        """Statements that the user stopped waiting for."""
        self._told_of: set[_Key] = set()

    def explain(self, statement: str) -> Explanation:
        """What asking a statement now would cost; free."""
        text, terms = self.terms.asked(statement)
        return self.data_set.explain(text, **terms)

    def run(self, text: str, *, pays: Callable[[str], bool] = lambda _: True) -> None:
        """Run a command, or the finished statements of a text. ``pays`` is called before each statement; a failure stops the rest."""
        if text.lstrip().startswith("\\"):
            self._guarded("", lambda: self._command(text.strip()))
            return
        for statement in split(text).statements:
            self._guarded(statement, partial(self._ask, statement, pays))
            if self.status != ExitStatus.OK:
                return

    def _guarded(self, statement: str, work: Callable[[], None]) -> None:
        """Run an action; report any error and store it as the status."""
        self.status = ExitStatus.OK
        try:
            work()
        except KeyboardInterrupt:
            terminal.write_note("Interrupted.")
            self.status = INTERRUPTED
        except _LeftAlone:
            terminal.write_note(LEFT)
            self.status = INTERRUPTED
        except typer.BadParameter as error:
            terminal.write_error(error.message)
            self.status = ExitStatus.USAGE
        except BrokenPipeError:
            raise
        except Exception as error:
            self.status = report_error(error, statement)

    # -- asking -------------------------------------------------------------------------------------------------------------------

    def _ask(self, statement: str, pays: Callable[[str], bool]) -> None:
        text, terms = self.terms.asked(statement)
        if _key(text, terms) not in self._left and not pays(statement):
            return
        answer = self._waited(text, terms)
        self.share_left = 1 - answer.remaining.share_spent
        write_answer(answer, AnswerFormat(self.terms["format"]))

    def _waited(self, text: str, terms: AskArguments) -> Answer:
        """The answer. A thread asks, so that Ctrl-C ends only the waiting and leaves no charge without an answer."""
        key = _key(text, terms)
        asking = self._left.pop(key, None) or begun(lambda: self.data_set.ask(text, **terms))
        start = time.monotonic()
        try:
            self._wait(asking, until=start + SHOWN_AFTER_SECONDS)
            if not asking.done() and terminal.console(stderr=True).is_terminal:
                with on_terminal() as show:
                    while not asking.done():
                        show(time.monotonic() - start)
                        wait([asking], timeout=_LOOK_SECONDS)
            self._wait(asking)
            return asking.result()
        except KeyboardInterrupt:
            self._left[key] = asking
            raise _LeftAlone from None

    def _wait(self, asking: Future[Answer], until: float | None = None) -> None:
        while not asking.done() and (until is None or time.monotonic() < until):
            wait([asking], timeout=_LOOK_SECONDS)

    def take_answered(self) -> bool:
        """Whether a statement that the user left has been answered since the last call."""
        done = {key for key, asking in self._left.items() if asking.done() and asking.exception() is None}
        news, self._told_of = done - self._told_of, done
        return bool(news)

    def settle(self) -> None:
        """Before exit, wait for the statements that the user left, so that the answers they are charged for are stored. A server does
        that itself."""
        from lapwing.data_set import DataSet

        running = [asking for asking in self._left.values() if not asking.done()]
        if not running:
            return
        if not isinstance(self.data_set, DataSet):
            terminal.write_note("The server continues with a statement that you left. Once it is answered, asking it again is free.")
            return
        terminal.write_note("Waiting for a statement that is being answered; Ctrl-C stops waiting.")
        try:
            for asking in running:
                self._wait(asking)
        except KeyboardInterrupt:
            terminal.write_note("It may have been charged: see `lapwing history`.")

    # -- commands -----------------------------------------------------------------------------------------------------------------

    def _command(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        rest = rest.strip().removesuffix(";").strip()
        match word:
            case "\\q":
                self.is_over = True
            case "\\?" | "\\h" | "\\help":
                write_pairs([(command.usage, command.meaning) for command in COMMANDS.values()])
                terminal.write("\nA statement ends with a semicolon. Ctrl-C clears what you typed, or stops waiting for an answer.")
            case "\\d":
                write_description(self.data_set.describe(rest or None), self._report_format)
            case "\\budget":
                budget = self.data_set.budget
                self.share_left = 1 - budget.share_spent
                write_budget(budget, name=self.data_set.name, form=self._report_format)
            case "\\history":
                limit = _count(rest)
                write_history(self.data_set.history(limit=limit), form=self._report_format, loss_unit=self.data_set.budget.loss_unit)
            case "\\explain":
                self._guarded_explain(rest)
            case "\\set":
                self._set(rest)
            case _:
                raise typer.BadParameter(f"there is no command {word}; \\? lists them")

    def _guarded_explain(self, statement: str) -> None:
        if not statement:
            raise typer.BadParameter("\\explain takes a statement")
        try:
            write_explanation(self.explain(statement), self._report_format)
        except (KeyboardInterrupt, typer.BadParameter):
            raise
        except Exception as error:
            self.status = report_error(error, statement)

    def _set(self, rest: str) -> None:
        if not rest:
            write_pairs([(name, f"{self.terms[name] or '-'}  ({setting.meaning})") for name, setting in SETTINGS.items()])
            return
        name, _, value = rest.replace("=", " ", 1).partition(" ")
        self.terms.set(name.lower(), value.strip().strip("'\""))

    @property
    def _report_format(self) -> ReportFormat:
        return ReportFormat.JSON if self.terms["format"] == AnswerFormat.JSON else ReportFormat.TABLE


def _key(text: str, terms: AskArguments) -> _Key:
    return text, tuple(sorted(terms.items()))


def _count(text: str) -> int:
    if not text:
        return HISTORY_SHOWN
    if not text.isdecimal() or not 1 <= int(text) <= 1_000:
        raise typer.BadParameter("\\history takes a number from 1 to 1000")
    return int(text)
