"""Asking the curator for one session: who may, what it costs, and how its answer is told."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from lapwing.answers.answer import Answer
from lapwing.client.dataset import DataSet
from lapwing.curator.asked_columns import AskedColumns, asked_columns
from lapwing.errors import CallRefused, LapwingError, Refused
from lapwing.server.access import Office, too_many
from lapwing.server.call_notes import CallNotes
from lapwing.server.desk import ServedDataSet
from lapwing.server.problems import shown
from lapwing.server.rights import Act, Identity
from lapwing.wire.settings import SessionSettings
from lapwing.wire.spending import SessionSpending

DIALECT = "postgres"
LOOK_AGAIN_SECONDS = 0.5
_TERMS = re.compile(r"\bwith\s+privacy\b", re.IGNORECASE)


class LoginEnded(Exception):
    """The key that the session was opened with is not good any more."""


@dataclass(slots=True)
class Asking:
    """What a session needs to ask."""

    office: Office
    served: ServedDataSet
    key_id: str
    name: str
    settings: SessionSettings
    spending: SessionSpending

    async def columns(self, text: str) -> AskedColumns:
        """The columns of an answer; free."""
        await self.allowed(Act.SEE)
        return await self.served.run(lambda opened: asked_columns(opened.curator, text, dialect=DIALECT, analyst=self.name))

    async def answer(self, text: str) -> Answer:
        """The answer, or why there is none: an error that may be shown. Each call has a line in the audit log."""
        act = Act.EXPLAIN if text.lstrip()[:7].lower() == "explain" else Act.ASK
        number, outcome, who, notes = secrets.token_hex(8), "00000", "", CallNotes()
        try:
            identity = await self.allowed(act)
            who = identity.credential
            wait = self.office.rates.seconds_to_wait(identity.name)
            if wait:
                raise too_many(wait)
            return await self._asked(self._with_terms(text), number, notes)
        except LapwingError as error:
            outcome = error.code
            raise
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            self.office.metrics.replied("WIRE", act.value, 200 if outcome == "00000" else 400, None if outcome == "00000" else outcome)
            said = {"who": self.name, "credential": who, "act": act.value, "data_set": self.served.data_set_id}
            self.office.audit.write(**said, outcome=outcome, request=number, charges=notes.charges)

    async def _asked(self, text: str, number: str, notes: CallNotes) -> Answer:
        epsilon, confidence = self.settings.own("epsilon"), self.settings.own("confidence")
        said = _names_terms(text)

        def work(opened: DataSet) -> Answer:
            return opened.ask(
                text,
                epsilon=None if said or not epsilon else epsilon,
                confidence=None if said or not confidence else confidence,
                analyst=self.name,
                request_id=f"wire:{number}",
                dialect=DIALECT,
            )

        until = time.monotonic() + self.settings.timeout_seconds
        while True:
            try:
                return await self._awaited(self.spending.limited(work), notes, until)
            except Refused as error:
                if error.code != "request-in-progress" or time.monotonic() > until:
                    raise
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _awaited(self, work: Callable[[DataSet], Answer], notes: CallNotes, until: float) -> Answer:
        """What comes of the work, which is begun once: begun again it may be another plan, where answers of others came in between."""
        finished: Future[Answer] = Future()

        def kept(opened: DataSet) -> Answer:
            try:
                answer = work(opened)
            except BaseException as error:
                finished.set_exception(error)
                raise
            finished.set_result(answer)
            return answer

        try:
            return await self.served.run(kept, notes)
        except TimeoutError:
            pass  # it goes on by itself
        waited = asyncio.wrap_future(finished)
        waited.add_done_callback(_taken_note_of)
        await asyncio.wait({waited}, timeout=max(until - time.monotonic(), 0.0))
        if not waited.done():
            raise CallRefused("wire-time-over", "the answer is not there yet", hint="ask again: it is charged once")
        return waited.result()

    def _with_terms(self, text: str) -> str:
        """The text with the accuracy that the session asks for, where the statement says nothing itself."""
        error, confidence = self.settings.own("error"), self.settings.own("confidence")
        if not error or _names_terms(text) or text.lstrip()[:4].lower() in ("show", "desc"):
            return text
        terms = [f"error = '{error}'" if error.endswith("%") else f"error = {error}"]
        terms += [f"confidence = {confidence}"] if confidence else []
        return f"{text} WITH PRIVACY ({', '.join(terms)})"

    async def allowed(self, act: Act) -> Identity:
        """Who it is; :class:`LoginEnded` where the key is not good any more, ``forbidden`` where they may not do this."""
        identity = await asyncio.to_thread(self.office.identities.of_key_id, self.key_id)
        if identity is None or not identity.may(Act.SEE, self.served.data_set_id):
            raise LoginEnded
        if not identity.may(act, self.served.data_set_id):
            raise CallRefused("forbidden", f"none of your roles on this data set allows to {act.value}")
        return identity


def _taken_note_of(waited: asyncio.Future[Answer]) -> None:
    """An error that nobody waits for any more is not written to a log."""
    if not waited.cancelled():
        waited.exception()


def _names_terms(text: str) -> bool:
    """Whether a statement may say itself what it costs."""
    return _TERMS.search(text) is not None


def as_shown(error: Exception) -> LapwingError:
    """Any error as an analyst may see it."""
    if isinstance(error, TimeoutError):
        return CallRefused("busy", "this takes longer than the server waits", hint="ask again in a moment")
    return shown(error, to_owner=False)
