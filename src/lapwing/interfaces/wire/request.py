"""The requests of one session to the curator: rights, price and answers."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from lapwing.answers.answer import Answer
from lapwing.asking.ask import ask
from lapwing.asking.options import AskOptions, AskRequest, written_terms
from lapwing.asking.result_columns import ResultColumns, asked_columns
from lapwing.catalog import Settings
from lapwing.curator.cost_estimate import also_on_charge
from lapwing.data_set import DataSet
from lapwing.errors import CallRefused, LapwingError, Refused
from lapwing.interfaces.http.access import AppState, too_many
from lapwing.interfaces.http.call_notes import CallNotes
from lapwing.interfaces.http.data_set_pool import ServedDataSet
from lapwing.interfaces.http.identity.rights import Act, Identity
from lapwing.interfaces.http.problems import shown
from lapwing.interfaces.wire.abandoned_requests import NOTHING_CHARGED, RunningRequest
from lapwing.interfaces.wire.settings import SessionSettings
from lapwing.interfaces.wire.spending import SessionSpending

DIALECT = "postgres"
LOOK_AGAIN_SECONDS = 0.5
LEFT_MAX = 10
"""Abandoned questions whose outcome is reported to the session."""


class LoginEnded(Exception):
    """The key that opened the session is no longer valid."""


@dataclass(slots=True)
class RequestHandler:
    """Sends the questions of one session to the curator."""

    app_state: AppState
    served: ServedDataSet
    key_id: str
    name: str
    settings: SessionSettings
    spending: SessionSpending
    charge: str = ""
    """What a cancellation reports about the running statement's charge; empty if it asks nothing."""
    _left: list[RunningRequest] = field(default_factory=list)

    def news(self) -> list[str]:
        """The outcomes of interrupted questions, each once; one that still runs is also reported once before."""
        news = [question.outcome() for question in self._left if question.finished.done() or not question.told]
        self._left = [question for question in self._left if not question.finished.done()]
        for question in self._left:
            question.told = True
        return news

    async def columns(self, text: str) -> ResultColumns:
        """The columns of an answer; free."""
        await self.allowed(Act.SEE)
        work = partial(_columns, text=text, analyst=self.name)
        return await self.served.run(work, person=self.name)

    async def answer(self, text: str) -> Answer:
        """The answer, or why there is none: an error that may be shown. Each call has a line in the audit log."""
        act = Act.EXPLAIN if text.lstrip()[:7].lower() == "explain" else Act.ASK
        number, outcome, who = secrets.token_hex(8), "00000", ""

        def caller() -> dict[str, str]:
            said = {"who": self.name, "credential": who, "act": act.value, "data_set": self.served.data_set_id}
            return {**said, "request": number}

        notes = CallNotes(lambda: self.app_state.audit.begin(**caller()))
        self.charge = NOTHING_CHARGED
        try:
            identity = await self.allowed(act)
            who = identity.credential
            wait = self.app_state.rates.seconds_to_wait(identity.name)
            if wait:
                raise too_many(wait)
            answer = await self._asked(text, number, notes)
            self.charge = f"it was answered: {answer.summary()}; asking it again is free"
            return answer
        except LapwingError as error:
            outcome = error.code
            raise
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            self.app_state.metrics.replied("WIRE", act.value, 200 if outcome == "00000" else 400, None if outcome == "00000" else outcome)
            self.app_state.audit.write(**caller(), outcome=outcome, charges=notes.charges)

    async def _asked(self, text: str, number: str, notes: CallNotes) -> Answer:
        said = {name: self.settings.own(name) or None for name in ("epsilon", "error", "confidence")}

        def work(opened: DataSet) -> Answer:
            request = AskRequest(*_with_terms(text, said, opened.curator.settings), self.name, f"wire:{number}")
            with opened.curator.questions.one_by_one((request.sql, request.options)):  # tiles of a dashboard send the same question at once
                return ask(opened.curator, request)

        until = time.monotonic() + self.settings.timeout_seconds
        while True:
            try:
                return await self._awaited(self.spending.limited(work, notes), RunningRequest(notes), until)
            except Refused as error:
                if error.code != "request-in-progress" or time.monotonic() > until:
                    raise
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _awaited(self, work: Callable[[DataSet], Answer], question: RunningRequest, until: float) -> Answer:
        """The result of the work, which is begun only once: a second run might use another plan, after answers to others in between."""

        def kept(opened: DataSet) -> Answer:
            try:
                with also_on_charge(question.before_charge):
                    answer = work(opened)
            except BaseException as error:
                question.finished.set_exception(error)
                raise
            question.finished.set_result(answer)
            return answer

        try:
            with suppress(TimeoutError):  # it continues by itself
                return await self.served.run(kept, question.notes, person=self.name)
            waited = asyncio.wrap_future(question.finished)
            waited.add_done_callback(_taken_note_of)
            await asyncio.wait({waited}, timeout=max(until - time.monotonic(), 0.0))
            if waited.done():
                return waited.result()
        except asyncio.CancelledError:
            self._leave(question)
            raise
        raise CallRefused("wire-time-over", "the answer is not ready yet", hint=self._leave(question))

    def _leave(self, question: RunningRequest) -> str:
        question.leave()
        self._left = [*self._left[1 - LEFT_MAX :], question]
        self.charge = question.charge()
        return self.charge

    async def allowed(self, act: Act) -> Identity:
        """The identity; :class:`LoginEnded` if the key is no longer valid, ``forbidden`` if the person may not do this."""
        identity = await asyncio.to_thread(self.app_state.identities.of_key_id, self.key_id)
        if identity is None or not identity.may(Act.SEE, self.served.data_set_id):
            raise LoginEnded
        if not identity.may(act, self.served.data_set_id):
            raise CallRefused("forbidden", f"none of your roles on this data set allows {act.value!r}")
        return identity


def _with_terms(text: str, said: Mapping[str, str | None], settings: Settings) -> tuple[str, AskOptions]:
    """A statement with its session's price or accuracy, unless it names its own."""
    own = written_terms(text, dialect=DIALECT, settings=settings)
    epsilon, error = (None, None) if "asked" in own else (said["epsilon"], said["error"])
    confidence = None if "confidence" in own else said["confidence"]
    if not error or own or text.lstrip()[:4].lower() in ("show", "desc"):
        return text, AskOptions(epsilon=epsilon, confidence=confidence, dialect=DIALECT)
    terms = [f"error = '{error}'" if error.endswith("%") else f"error = {error}"]
    terms += [f"confidence = {confidence}"] if confidence else []
    return f"{text} WITH PRIVACY ({', '.join(terms)})", AskOptions(dialect=DIALECT)


def _columns(opened: DataSet, *, text: str, analyst: str) -> ResultColumns:
    return asked_columns(opened.curator, text, dialect=DIALECT, analyst=analyst)


def _taken_note_of(waited: asyncio.Future[Answer]) -> None:
    """Errors of abandoned questions are not logged."""
    if not waited.cancelled():
        waited.exception()


def as_shown(error: Exception) -> LapwingError:
    """Any error as an analyst may see it."""
    if isinstance(error, TimeoutError):
        return CallRefused("busy", "this takes longer than the server waits for an answer", hint="ask again in a moment")
    return shown(error, to_owner=False)
