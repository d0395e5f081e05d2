"""Requests to a server, using only the standard library. Safe requests are sent again when the connection breaks."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

from lapwing.errors import LapwingError, LedgerError
from lapwing.interfaces.python.problems import error_of

CONNECT_SECONDS = 30
ATTEMPTS_MAX = 4
"""How often a request is sent if the connection breaks or the server is busy."""
REPLY_BYTES_MAX = 2**31
_BUSY = frozenset({429, 503})


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a server."""

    status: int
    body: bytes
    headers: dict[str, str]

    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)


class Transport:
    """One server and its token. Redirects are not followed, so that no other server receives the token."""

    def __init__(self, url: str, token: str, *, seconds: float = CONNECT_SECONDS, context: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
            raise LapwingError("server-address", "the address of a server must look like https://host:port")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise LapwingError("server-address", "without https, others on the network could read the token", hint="use https")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise LapwingError("server-address", "the token must be one line of ASCII characters without spaces")
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path.rstrip("/")
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._token = token
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"<Transport {self._host}>"

    def send(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        body: Any = None,
        headers: dict[str, str] | None = None,
        query: str = "",
        again: bool = True,
    ) -> Reply:
        """The reply; raises the server's refusal as an error. With ``again``, the request may safely be sent twice."""
        target = self._path + "/" + "/".join(quote(part, safe="*") for part in path) + query
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                reply = self._once(method, target, body, headers or {})
            except (OSError, http.client.HTTPException) as error:
                if attempt == ATTEMPTS_MAX or not again:
                    raise LedgerError("server-unreachable", "the server cannot be reached") from error
                time.sleep(0.2 * 2**attempt)
                continue
            if reply.status in _BUSY and attempt < ATTEMPTS_MAX and reply.headers.get("retry-after", "").isdigit():
                time.sleep(min(int(reply.headers["retry-after"]) * attempt, 10))
                continue
            if reply.status >= 300:
                raise error_of(reply.status, reply.body)
            return reply
        raise AssertionError("the last attempt returns or raises")

    def _once(self, method: str, target: str, body: Any, headers: dict[str, str]) -> Reply:
        if self._context is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._seconds)
        else:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=self._seconds, context=self._context)
        try:
            sent = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **headers}
            content = None if body is None else json.dumps(body).encode()
            if content is not None:
                sent["Content-Type"] = "application/json"
            connection.request(method, target, body=content, headers=sent)
            reply = connection.getresponse()
            return Reply(reply.status, reply.read(REPLY_BYTES_MAX), {name.lower(): value for name, value in reply.getheaders()})
        finally:
            connection.close()


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, so that nobody on a network can listen."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def private_or_encrypted(url: str) -> bool:
    """Whether the connection to this address is private: over https, or on this machine."""
    parts = urlsplit(url)
    return parts.hostname is not None and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname)))
