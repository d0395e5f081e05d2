"""A data set on a server, with the same methods as a local one: ``lapwing.connect("https://host:8765", token=...)``.

``connect_async`` returns an awaitable version. It sends over the same transport in its own threads: the standard library has no HTTP
client for coroutines, and another dependency would be one more component that handles the token.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from lapwing.answers.answer import Answer
from lapwing.answers.data_set_view import data_set_html
from lapwing.answers.display.budget import BudgetView
from lapwing.asking.answer_bytes import MEDIA_TYPE, budget_view, cost_value, unpacked
from lapwing.asking.explaining.explanation import Explanation
from lapwing.asking.options import AskArguments, AskOptions, Number, with_options
from lapwing.curator.curator import Entry
from lapwing.errors import LapwingError, LedgerError
from lapwing.interfaces.python.remote_releases import RemoteRelease, RemoteReleasePlan, RemoteReleases, release_body
from lapwing.interfaces.python.transport import CONNECT_SECONDS, Reply, Transport
from lapwing.interfaces.python.waiting import Waiting, waited_for
from lapwing.owner.ledger_entries import entry_value
from lapwing.receipts import Receipt, check, receipt_value

if TYPE_CHECKING:
    from lapwing.releases.released import Release
    from lapwing.releases.request import QuantileRequest

TOKEN_VARIABLE = "LAPWING_TOKEN"
"""The environment variable of the token, if none is given."""
PAUSE_SECONDS_MAX = 10.0
THREADS_MAX = 64
"""How many requests of an :class:`AsyncDataSet` are in flight at once."""
Result = TypeVar("Result")


class RemoteDataSet:
    """A data set on a server. The token identifies the analyst; with ``keys``, the receipt of every answer is checked locally."""

    def __init__(self, transport: Transport, data_set: str, *, keys: Path | None = None) -> None:
        self._transport = transport
        self._keys = keys
        self.name = data_set

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<RemoteDataSet {self.name!r}>"

    def _repr_html_(self) -> str:
        return data_set_html(self.name, self.budget, self.describe())

    def close(self) -> None:
        """Nothing is kept open between requests."""

    @with_options
    def ask(self, sql: str, *, request_id: str | None = None, waiting: Waiting | None = None, **options: Unpack[AskArguments]) -> Answer:
        """Answer a statement, as a local data set does. A broken connection costs nothing: the request has a name and is sent again.

        If the answer takes long, a terminal or a notebook shows the elapsed time, or ``waiting`` is called.
        """
        body = _question(sql, options)
        key = secrets.token_hex(16) if request_id is None else request_id

        def work() -> Answer:
            while True:
                answer = self._asked(body, key)
                if isinstance(answer, Answer):
                    return answer
                time.sleep(answer)

        return waited_for(work, waiting)

    @with_options
    def replay(self, sql: str, **options: Unpack[AskArguments]) -> Answer:
        """The stored answer to a statement; refused (``not-answered-before``) if it would cost something."""
        return self._read(self._send("POST", "replay", body=_question(sql, options), headers={"Accept": MEDIA_TYPE}))

    @with_options
    def explain(self, sql: str, **options: Unpack[AskArguments]) -> Explanation:
        """What asking would cost, how it would be bounded and how accurate it would be. Free; touches no data."""
        told = self._send("POST", "explain", body=_question(sql, options)).json()
        lines = tuple((str(name), str(text)) for name, text in told["lines"])
        return Explanation(lines, cost_value(told["cost"]), told["values"])

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that statements may use: protected ones, then public ones."""
        return tuple(self._send("GET").json()["tables"])

    def describe(self, table: str | None = None) -> Answer:
        """The declarations of a table's columns; without a table, the list of tables. Free."""
        return self.ask("SHOW TABLES" if table is None else f"DESCRIBE {_quoted(table)}")

    @property
    def budget(self) -> BudgetView:
        """The budget of the data set, and what is spent of it."""
        return budget_view(self._send("GET", "budget").json()["exact"])

    def history(self, *, limit: int = 100) -> tuple[Entry, ...]:
        """Entries of the ledger, newest first: the analyst's own, or all of them for owners and auditors."""
        told = self._send("GET", "history", query=f"?limit={limit}").json()
        try:
            return tuple(entry_value(fields, "rho" if "rho" in fields else "epsilon") for fields in told["entries"])
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerError("server-reply", "the server's history cannot be read") from error

    def receipt(self, charge: int) -> Receipt:
        """The signed receipt of a charge; ``receipt-missing`` if there is none, or you may not see it."""
        receipt = receipt_value(json.dumps(self._send("GET", "receipts", str(charge)).json()["receipt"]))
        if self._keys is not None:
            check(receipt, self._keys)
        return receipt

    def request(self, share: float, *, reason: str = "") -> int:
        """Ask the owners for this share of the whole budget, from 0 to 1; returns the number of the proposal."""
        return int(self._send("POST", "requests", body={"share": share, "reason": reason}, again=False).json()["proposal"])

    def release(
        self,
        *wanted: QuantileRequest,
        name: str,
        table: str | None = None,
        epsilon: Number | None = None,
        rows_per_unit: int | None = None,
        shares: Sequence[Number] = (),
    ) -> RemoteReleasePlan:
        """Plan a release of one table, as a local data set does; ``run()`` charges once, and its result answers without the server."""
        price, divided = None if epsilon is None else _number(epsilon), [_number(share) for share in shares]
        body = release_body(wanted, name=name, table=table, epsilon=price, rows_per_unit=rows_per_unit, shares=divided)
        return self._releases.planned(body)

    def releases(self) -> tuple[RemoteRelease, ...]:
        """The releases of the newest version, newest first; of each name, only the newest. Free."""
        return self._releases.listed()

    def release_named(self, name: str) -> Release:
        """Download the newest release of this name. Free."""
        return self._releases.named(name)

    @property
    def _releases(self) -> RemoteReleases:
        return RemoteReleases(self._send, self._told, self._keys)

    def _told(self, reply: Reply) -> Answer:
        """An answer computed from a release. It has no receipt: the release's own receipt was checked at its purchase."""
        try:
            return unpacked(reply.body)
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise LedgerError("server-reply", "the server's answer cannot be read") from error

    def _asked(self, body: dict[str, Any], key: str) -> Answer | float:
        """The answer, or after how many seconds to send the request again with the same name."""
        reply = self._send("POST", "ask", body=body, headers={"Idempotency-Key": key, "Accept": MEDIA_TYPE})
        return self._read(reply) if reply.status != 202 else min(float(reply.headers.get("retry-after", "1")), PAUSE_SECONDS_MAX)

    def _read(self, reply: Reply) -> Answer:
        try:
            answer = unpacked(reply.body)
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise LedgerError("server-reply", "the server's answer cannot be read; it is paid for, so asking again is free") from error
        if self._keys is not None:
            answer.check_receipt(self._keys)
        return answer

    def _send(
        self, method: str, *path: str, body: Any = None, headers: dict[str, str] | None = None, query: str = "", again: bool = True
    ) -> Reply:
        return self._transport.send(method, ("v1", "data-sets", self.name, *path), body=body, headers=headers, query=query, again=again)


class AsyncDataSet:
    """A data set on a server, with coroutines; up to ``THREADS_MAX`` requests are in flight at once.

    Cancelling the wait does not cancel the statement: it may be charged, and the same ``request_id`` then returns its answer.
    """

    def __init__(self, data_set: RemoteDataSet) -> None:
        self._data_set = data_set
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="lapwing-async")
        self.name = data_set.name

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncDataSet {self.name!r}>"

    async def close(self) -> None:
        """Stop the threads, without waiting for requests in flight."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @with_options
    async def ask(
        self, sql: str, *, request_id: str | None = None, waiting: Waiting | None = None, **options: Unpack[AskArguments]
    ) -> Answer:
        """As :meth:`RemoteDataSet.ask`; ``waiting`` is called whenever the server reports that it takes longer."""
        body, key = _question(sql, options), secrets.token_hex(16) if request_id is None else request_id
        start = time.monotonic()
        while True:
            answer = await self._run(lambda: self._data_set._asked(body, key))
            if isinstance(answer, Answer):
                return answer
            if waiting is not None:
                waiting(time.monotonic() - start)
            await asyncio.sleep(answer)

    @with_options
    async def replay(self, sql: str, **options: Unpack[AskArguments]) -> Answer:
        """As :meth:`RemoteDataSet.replay`."""
        return await self._run(lambda: self._data_set.replay(sql, **options))

    @with_options
    async def explain(self, sql: str, **options: Unpack[AskArguments]) -> Explanation:
        """As :meth:`RemoteDataSet.explain`."""
        return await self._run(lambda: self._data_set.explain(sql, **options))

    async def tables(self) -> tuple[str, ...]:
        """Names of the tables that statements may use: protected ones, then public ones."""
        return await self._run(lambda: self._data_set.tables)

    async def describe(self, table: str | None = None) -> Answer:
        """As :meth:`RemoteDataSet.describe`."""
        return await self._run(lambda: self._data_set.describe(table))

    async def budget(self) -> BudgetView:
        """The budget of the data set, and what is spent of it."""
        return await self._run(lambda: self._data_set.budget)

    async def history(self, *, limit: int = 100) -> tuple[Entry, ...]:
        """As :meth:`RemoteDataSet.history`."""
        return await self._run(lambda: self._data_set.history(limit=limit))

    async def receipt(self, charge: int) -> Receipt:
        """As :meth:`RemoteDataSet.receipt`."""
        return await self._run(lambda: self._data_set.receipt(charge))

    async def request(self, share: float, *, reason: str = "") -> int:
        """As :meth:`RemoteDataSet.request`."""
        return await self._run(lambda: self._data_set.request(share, reason=reason))

    async def release(
        self,
        *wanted: QuantileRequest,
        name: str,
        table: str | None = None,
        epsilon: Number | None = None,
        rows_per_unit: int | None = None,
        shares: Sequence[Number] = (),
    ) -> AsyncReleasePlan:
        """As :meth:`RemoteDataSet.release`."""
        plan = self._data_set.release
        terms: dict[str, Any] = {"table": table, "epsilon": epsilon, "rows_per_unit": rows_per_unit, "shares": shares}
        return AsyncReleasePlan(await self._run(lambda: plan(*wanted, name=name, **terms)), self._run)

    async def releases(self) -> tuple[RemoteRelease, ...]:
        """As :meth:`RemoteDataSet.releases`."""
        return await self._run(self._data_set.releases)

    async def release_named(self, name: str) -> Release:
        """As :meth:`RemoteDataSet.release_named`."""
        return await self._run(lambda: self._data_set.release_named(name))

    async def _run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class AsyncReleasePlan:
    """The plan of a release on a server, with its price and a coroutine to buy it."""

    def __init__(self, planned: RemoteReleasePlan, run: Callable[[Callable[[], Release]], Awaitable[Release]]) -> None:
        self._planned, self._run = planned, run
        self.cost = planned.cost

    def explain(self) -> str:
        """What is measured, with how much noise, and what it costs."""
        return self._planned.explain()

    async def run(self, *, request_id: str | None = None) -> Release:
        """As :meth:`RemoteReleasePlan.run`."""
        return await self._run(lambda: self._planned.run(request_id=request_id))


async def connect_async(
    url: str,
    *,
    token: str | None = None,
    data_set: str | None = None,
    keys: str | Path | None = None,
    seconds: float = CONNECT_SECONDS,
    context: ssl.SSLContext | None = None,
) -> AsyncDataSet:
    """The same as :func:`connect`, as a coroutine."""
    opened = await asyncio.to_thread(lambda: connect(url, token=token, data_set=data_set, keys=keys, seconds=seconds, context=context))
    return AsyncDataSet(opened)


def connect(
    url: str,
    *,
    token: str | None = None,
    data_set: str | None = None,
    keys: str | Path | None = None,
    seconds: float = CONNECT_SECONDS,
    context: ssl.SSLContext | None = None,
) -> RemoteDataSet:
    """A data set on a server. ``token`` is an API key or a token of the server's OpenID provider; without it, ``LAPWING_TOKEN`` is used.

    ``data_set`` may be left out if there is only one. ``keys`` is a directory with the owner's public keys: an answer whose receipt is
    missing or not signed with one of them is then refused. ``context`` can trust certificates that the system does not know.
    """
    shown = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    if not shown:
        raise LapwingError("token-missing", f"no token was given, and {TOKEN_VARIABLE} is not set")
    transport = Transport(url, shown, seconds=seconds, context=context)
    seen: list[str] = transport.send("GET", ("v1", "data-sets")).json()["data_sets"]
    if data_set is None and len(seen) != 1:
        raise LapwingError("data-set-missing", f"name one of the data sets: {', '.join(seen)}" if seen else "you may see no data set")
    if data_set is not None and data_set not in seen:
        raise LapwingError("data-set-missing", "there is no such data set, or you may not see it")
    return RemoteDataSet(transport, seen[0] if data_set is None else data_set, keys=None if keys is None else Path(keys))


def _question(sql: str, options: AskArguments) -> dict[str, Any]:
    given = {name: value for name, value in asdict(AskOptions(**options)).items() if value is not None}
    return {"sql": sql} | {name: value if isinstance(value, bool) else _number(value) for name, value in given.items()}


def _number(value: Number) -> str | float:
    """A number for JSON; an exact one is sent as text."""
    return value if isinstance(value, float) else str(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


__all__ = ["AsyncDataSet", "RemoteDataSet", "connect", "connect_async"]
