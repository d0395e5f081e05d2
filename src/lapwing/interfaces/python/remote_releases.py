"""Releases on a server, with the methods of local ones: planned and bought there, then downloaded to answer without a server."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lapwing.answers.answer import Answer, CostView
from lapwing.asking.answer_bytes import MEDIA_TYPE, cost_value
from lapwing.errors import LapwingError, LedgerError
from lapwing.interfaces.python.transport import Reply
from lapwing.interfaces.python.waiting import waited_for
from lapwing.releases.serving.covering import is_covered

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.releases.released import Release
    from lapwing.releases.request import QuantileRequest

FILE = "application/zip"
PAUSE_SECONDS_MAX = 10.0
Send = Callable[..., Reply]


@dataclass(frozen=True, slots=True)
class RemoteReleases:
    """The releases of a data set on a server; with ``keys``, receipts are checked locally."""

    send: Send
    read: Callable[[Reply], Answer]
    keys: Path | None

    def planned(self, body: dict[str, Any]) -> RemoteReleasePlan:
        """The plan of a release. Free."""
        told = self.send("POST", "releases", "plan", body=body).json()
        return RemoteReleasePlan(self, body, str(told["text"]), cost_value(told["cost"]))

    def bought(self, body: dict[str, Any], key: str) -> Release | float:
        """The release, or after how many seconds to send the request again with the same name."""
        reply = self.send("POST", "releases", body=body, headers={"Idempotency-Key": key, "Accept": FILE})
        if reply.status == 202:
            return min(float(reply.headers.get("retry-after", "1")), PAUSE_SECONDS_MAX)
        return self.opened(reply.body)

    def listed(self) -> tuple[RemoteRelease, ...]:
        """The releases of the newest version."""
        return tuple(RemoteRelease(self, fields) for fields in self.send("GET", "releases").json()["releases"])

    def named(self, name: str) -> Release:
        """The newest release of this name."""
        return self.opened(self.send("GET", "releases", name, headers={"Accept": FILE}).body)

    def opened(self, content: bytes) -> Release:
        """A release from its file."""
        from lapwing.owner.release_file import release_in

        try:
            return release_in(content, keys=self.keys)
        except LapwingError as error:
            if error.code != "release-file":
                raise
            raise LedgerError("server-reply", "the server's release cannot be read; it is paid for, so asking again is free") from error


@dataclass(frozen=True, slots=True)
class RemoteReleasePlan:
    """The plan of a release on a server, with its price."""

    _there: RemoteReleases
    _body: dict[str, Any]
    _text: str
    cost: CostView

    def explain(self) -> str:
        """What is measured, with how much noise, and what it costs. Free; touches no data."""
        return self._text

    def __str__(self) -> str:
        return self._text

    def run(self, *, request_id: str | None = None) -> Release:
        """Buy it: one charge for all of it. The same release again is free. The result answers without the server."""
        key = secrets.token_hex(16) if request_id is None else request_id

        def work() -> Release:
            while True:
                found = self._there.bought(self._body, key)
                if not isinstance(found, float):
                    return found
                time.sleep(found)

        return waited_for(work)


class RemoteRelease:
    """A release on a server: the server answers from it, or it is downloaded."""

    def __init__(self, there: RemoteReleases, fields: dict[str, Any]) -> None:
        self._there = there
        self.name = str(fields["name"])
        self.of_table = str(fields["of_table"])
        self.columns = tuple(str(column) for column in fields["columns"])
        self.kind = str(fields["kind"])
        self.cells = int(fields["cells"])
        self.is_synthetic = bool(fields["is_synthetic"])
        self.cost = cost_value(fields["cost"])

    def __repr__(self) -> str:
        return f"<RemoteRelease {self.name!r} of {self.of_table!r}>"

    def query(self, sql: str, *, confidence: float = 0.95, dialect: str = "duckdb") -> Answer:
        """Answer SQL from the release: free, with error bars."""
        body = {"sql": sql, "confidence": float(confidence), "dialect": dialect}
        return self._there.read(self._there.send("POST", "releases", self.name, "query", body=body, headers={"Accept": MEDIA_TYPE}))

    def covers(self, sql: str, *, dialect: str = "duckdb") -> bool:
        """Whether it answers a statement."""
        return is_covered(lambda: self.query(sql, dialect=dialect))

    def table(self, *, rows: int | None = None) -> pa.Table:
        """Synthetic rows, generated locally."""
        return self.opened().table(rows=rows)

    def opened(self) -> Release:
        """The release itself, which answers without the server."""
        return self._there.named(self.name)


def release_body(
    wanted: Sequence[QuantileRequest],
    *,
    name: str,
    table: str | None,
    epsilon: str | float | None,
    rows_per_unit: int | None,
    shares: list[str | float],
) -> dict[str, Any]:
    """The request body for a release."""
    from lapwing.releases.request import wanted_fields

    optional = {"table": table, "epsilon": epsilon, "rows_per_unit": rows_per_unit, "shares": shares or None}
    return {"name": name, "wanted": [wanted_fields(part) for part in wanted]} | {
        key: value for key, value in optional.items() if value is not None
    }
