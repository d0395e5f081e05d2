"""A data set on a server, asked in the same words as a local one: ``lapwing.connect("https://host:8765", token=...)``."""

from __future__ import annotations

import asyncio
import os
import secrets
import ssl
import time
from collections.abc import Callable
from fractions import Fraction
from types import TracebackType
from typing import Any, Self

from lapwing.answers.answer import Answer
from lapwing.answers.budget import BudgetView
from lapwing.client.transport import CONNECT_SECONDS, Reply, Transport
from lapwing.curator.asked_price import Number
from lapwing.curator.explanation import Explanation
from lapwing.curator.packing import MEDIA_TYPE, budget_view, cost_value, unpacked
from lapwing.errors import LapwingError, LedgerError

TOKEN_VARIABLE = "LAPWING_TOKEN"
"""Where the token is looked for when none is given."""
PAUSE_SECONDS_MAX = 10.0
Waiting = Callable[[float], None]
"""Told, now and then, for how many seconds an answer has been waited for."""


def _silently(_: float) -> None:
    pass


class RemoteDataSet:
    """A data set on a server. Who asks is said by the token."""

    def __init__(self, transport: Transport, data_set: str) -> None:
        self._transport = transport
        self.name = data_set

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteDataSet {self.name!r}>"

    def close(self) -> None:
        """Nothing is kept open between requests."""

    def ask(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        confidence: Number | None = None,
        request_id: str | None = None,
        dialect: str = "duckdb",
        scaled_groups: bool | None = None,
        waiting: Waiting = _silently,
    ) -> Answer:
        """Answer a statement, as a local data set does. A connection that breaks costs nothing: the request has a name, and is sent again.

        A long answer is waited for; ``waiting`` is told so.
        """
        body = _question(sql, epsilon, confidence, dialect, scaled_groups)
        key = secrets.token_hex(16) if request_id is None else request_id
        begun = time.monotonic()
        while True:
            reply = self._send("POST", "ask", body=body, headers={"Idempotency-Key": key, "Accept": MEDIA_TYPE})
            if reply.status != 202:
                return _answer(reply)
            waiting(time.monotonic() - begun)
            time.sleep(min(float(reply.headers.get("retry-after", "1")), PAUSE_SECONDS_MAX))

    def replay(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        confidence: Number | None = None,
        dialect: str = "duckdb",
        scaled_groups: bool | None = None,
    ) -> Answer:
        """The answer to what was answered before; refused (``not-answered-before``) where it would cost something."""
        body = _question(sql, epsilon, confidence, dialect, scaled_groups)
        return _answer(self._send("POST", "replay", body=body, headers={"Accept": MEDIA_TYPE}))

    async def ask_async(self, sql: str, **terms: Any) -> Answer:
        """The same as :meth:`ask`, for programs that do other things meanwhile."""
        return await asyncio.to_thread(lambda: self.ask(sql, **terms))

    def explain(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        confidence: Number | None = None,
        dialect: str = "duckdb",
        scaled_groups: bool | None = None,
    ) -> Explanation:
        """What asking would cost, how it would be bounded and how accurate it would be. Free; touches no data."""
        told = self._send("POST", "explain", body=_question(sql, epsilon, confidence, dialect, scaled_groups)).json()
        lines = tuple((str(name), str(text)) for name, text in told["lines"])
        return Explanation(lines, cost_value(told["cost"]), told["values"])

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that statements may use: protected ones, then public ones."""
        return tuple(self._send("GET").json()["tables"])

    def describe(self, table: str | None = None) -> Answer:
        """What is declared of a table's columns; without a table, which tables there are. Free."""
        return self.ask("SHOW TABLES" if table is None else f"DESCRIBE {_quoted(table)}")

    @property
    def budget(self) -> BudgetView:
        """What the data set has and has spent."""
        return budget_view(self._send("GET", "budget").json()["exact"])

    def history(self, *, limit: int = 100) -> list[dict[str, Any]]:
        """Newest entries of the ledger first: those of whoever asks, or all of them for owners and auditors."""
        entries: list[dict[str, Any]] = self._send("GET", "history", query=f"?limit={limit}").json()["entries"]
        return entries

    def receipt(self, charge: int) -> dict[str, Any]:
        """The signed receipt of a charge; ``lapwing receipt check`` checks it with the public key alone."""
        fields: dict[str, Any] = self._send("GET", "receipts", str(charge)).json()["receipt"]
        return fields

    def request(self, share: float, *, reason: str = "") -> int:
        """Ask the owners for this share of the whole budget, from 0 to 1; the number of the proposal."""
        return int(self._send("POST", "requests", body={"share": share, "reason": reason}, again=False).json()["proposal"])

    def _send(
        self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None, query: str = "", again: bool = True
    ) -> Reply:
        return self._transport.send(method, ("v1", "data-sets", self.name, *path), body=body, headers=headers, query=query, again=again)


def connect(
    url: str,
    *,
    token: str | None = None,
    data_set: str | None = None,
    seconds: float = CONNECT_SECONDS,
    context: ssl.SSLContext | None = None,
) -> RemoteDataSet:
    """A data set on a server. ``token`` is an API key or a token of the server's OpenID provider; without it, ``LAPWING_TOKEN`` is used.

    ``data_set`` may be left out where there is one. ``context`` names certificates that the system does not know.
    """
    shown = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    if not shown:
        raise LapwingError("token-missing", f"no token was given, and {TOKEN_VARIABLE} is not set")
    transport = Transport(url, shown, seconds=seconds, context=context)
    seen: list[str] = transport.send("GET", ("v1", "data-sets")).json()["data_sets"]
    if data_set is None and len(seen) != 1:
        raise LapwingError("data-set-missing", f"name one of the data sets: {', '.join(seen)}" if seen else "you may see no data set there")
    if data_set is not None and data_set not in seen:
        raise LapwingError("data-set-missing", "there is no such data set, or none that you may see")
    return RemoteDataSet(transport, seen[0] if data_set is None else data_set)


def _question(sql: str, epsilon: Number | None, confidence: Number | None, dialect: str, scaled_groups: bool | None) -> dict[str, Any]:
    body: dict[str, Any] = {"sql": sql, "dialect": dialect}
    body |= {name: _number(value) for name, value in (("epsilon", epsilon), ("confidence", confidence)) if value is not None}
    return body if scaled_groups is None else body | {"scaled_groups": scaled_groups}


def _number(value: Number) -> str | float:
    """A number as it is sent: what is exact stays exact."""
    return value if isinstance(value, float) else str(Fraction(value)) if isinstance(value, Fraction) else str(value)


def _answer(reply: Reply) -> Answer:
    try:
        return unpacked(reply.body)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise LedgerError("server-reply", "the server's answer cannot be read; it is paid for: asking again is free") from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


__all__ = ["RemoteDataSet", "connect"]
