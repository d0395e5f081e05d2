"""Strangers hold connections, send half of a request, read no reply, or use a proxy: whoever has a key is answered all the same."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn

from lapwing.interfaces.http import connections
from tests.server.certificate import write_certificate
from tests.server.process import START_SECONDS, free_port, lapwing_in

pytestmark = pytest.mark.xdist_group("server: strangers")
FILES = 256
"""Open files that the server may have: fewer than the strangers want."""
HALF = b"GET /v1/me HTTP/1.1\r\nHost: a\r\nX: "
BODY = b"POST /console/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nkey="


@dataclass
class Door:
    """A server, over TLS or not, and somebody's key."""

    port: int
    key: str
    log: Path
    context: ssl.SSLContext | None = None

    def status(self, *, key: str | None = None, source: str = "127.0.0.1", headers: dict[str, str] | None = None) -> int:
        """Of ``/v1/me``, with this key, from this address."""
        return self.reply(key=key, source=source, headers=headers)[0]

    def reply(self, *, key: str | None = None, source: str = "127.0.0.1", headers: dict[str, str] | None = None) -> tuple[int, str | None]:
        """The status, and what browsers are told of TLS."""
        one: http.client.HTTPConnection
        if self.context is None:
            one = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15, source_address=(source, 0))
        else:
            one = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=15, context=self.context)
        shown = {} if key is None else {"Authorization": f"Bearer {key}"}
        try:
            one.request("GET", "/v1/me", headers={**shown, **(headers or {})})
            reply = one.getresponse()
            reply.read()
            return reply.status, reply.getheader("Strict-Transport-Security")
        finally:
            one.close()


def _few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))


@pytest.fixture(scope="module", params=["plain", "encrypted"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A server with few open files, that serves no data set."""
    directory, port = tmp_path_factory.mktemp("strangers"), free_port()
    home = directory / "lapwing-server"
    home.mkdir(mode=0o700)
    said, context = ["[server]", f"port = {port}", "behind_proxy = true", 'trusted_proxies = ["127.0.0.2", "127.0.8.0/24"]'], None
    if request.param == "encrypted":
        write_certificate(home)
        said += ['certificate = "server.pem"', 'key = "server.key"']
        context = ssl.create_default_context(cafile=str(home / "server.pem"))
    file = home / "lapwing-server.toml"
    file.write_text("\n".join([*said, ""]), encoding="utf-8")
    file.chmod(0o600)
    key = lapwing_in(directory, "access", "key", "ada").strip()
    process = subprocess.Popen(
        [sys.executable, "-m", "lapwing.interfaces.cli", "serve"], cwd=directory, preexec_fn=_few_files, stdout=subprocess.DEVNULL
    )
    try:
        yield _ready(Door(port, key, home / "audit.jsonl", context), process)
    finally:
        process.kill()
        process.wait()


def _ready(door: Door, process: subprocess.Popen[bytes]) -> Door:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError):
            if door.status(key=door.key) == 200:
                return door
        time.sleep(0.2)
    raise AssertionError("the server did not start")


def _is_over(one: socket.socket) -> bool:
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True


def _stranger(door: Door, said: bytes, *, shaken: bool = True) -> socket.socket:
    one = socket.create_connection(("127.0.0.1", door.port), timeout=10)
    if door.context is not None and shaken:
        one = door.context.wrap_socket(one, server_hostname="127.0.0.1")
    one.sendall(said)
    return one


def test_half_requests_end_and_hold_up_nobody(door: Door) -> None:
    """More of them than the server may have open files; then, that each ends by itself, whether it says nothing, half a head or no body."""
    many: list[socket.socket] = []
    try:
        for _ in range(2 * FILES):
            many.append(_stranger(door, HALF if door.context is None else b"", shaken=False))
            if len(many) % 32 == 0:
                assert door.status(key=door.key) == 200, f"{len(many)} strangers"
        assert door.status(key=door.key) == 200
        assert len([one for one in many if not _is_over(one)]) <= FILES // 4, "the oldest were dropped"
        few = [_stranger(door, said) for said in (b"", HALF, BODY) for _ in range(3)]
        many += few
        begun, ended = time.monotonic(), dict[int, float]()
        while len(ended) < len(few) and time.monotonic() - begun < 35:
            ended |= {number: time.monotonic() - begun for number, one in enumerate(few) if number not in ended and _is_over(one)}
            with suppress(OSError):
                few[4].send(b"x")  # a byte now and then does not help
            time.sleep(0.5)
        assert sorted(ended) == list(range(9))
        assert max(ended[number] for number in range(6)) < 15
        assert min(ended[number] for number in range(6, 9)) > 15 and max(ended.values()) < 30
        assert all(_is_over(one) for one in many)
    finally:
        for one in many:
            one.close()


def test_connections_that_are_kept_by_strangers_leave_room(door: Door) -> None:
    """Each sends a whole request, without a credential, and keeps the connection for another."""
    asked = b"GET /v1/me HTTP/1.1\r\nHost: a\r\n\r\n"
    many: list[socket.socket] = []
    try:
        for _ in range(FILES + 32):
            with suppress(OSError):
                many.append(_stranger(door, asked))
            if len(many) % 64 == 0:
                assert door.status(key=door.key) == 200
        assert door.status(key=door.key) == 200
    finally:
        for one in many:
            one.close()


LENGTH = 8 * 2**20


async def _long(scope: Any, receive: Any, send: Any) -> None:
    """An application with one long reply."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(LENGTH).encode())]})
        await send({"type": "http.response.body", "body": bytes(LENGTH)})


def test_a_reply_that_is_read_slowly_arrives_and_one_that_is_not_read_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_SECONDS", {"head": 1.0, "body": 1.0, "reading": 2.5})
    http_class = cast("type[asyncio.Protocol]", partial(connections.BoundedHTTP, tls=None))
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(_long, port=port, http=http_class, lifespan="off", log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        slow, idle = (socket.socket() for _ in range(2))
        for one in (slow, idle):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            one.connect(("127.0.0.1", port))
            one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        begun, read = time.monotonic(), 0
        while piece := slow.recv(2**17):
            read += len(piece)
            time.sleep(0.05)
        assert read > LENGTH
        assert time.monotonic() - begun > 3, "longer than is waited for a next piece"
        until = time.monotonic() + 10
        while server.server_state.connections and time.monotonic() < until:
            time.sleep(0.05)
        assert not server.server_state.connections
        idle.close()
        slow.close()
    finally:
        server.should_exit = True
        thread.join()


def test_a_proxy_that_is_named_is_believed_and_no_other(door: Door) -> None:
    if door.context is not None:
        return  # where the addresses are those of the connections as well
    for proxy, is_believed in (("127.0.0.2", True), ("127.0.8.9", True), ("127.0.0.1", False)):
        said = {"X-Forwarded-Proto": "https", "X-Forwarded-For": f"198.51.100.{proxy[-1]}"}
        seen = Counter(door.status(key="rubbish", source=proxy, headers=said) for _ in range(65))
        assert seen[429] >= 3, seen
        other = door.status(key="rubbish", source=proxy, headers={**said, "X-Forwarded-For": f"203.0.113.{proxy[-1]}"})
        assert other == (401 if is_believed else 429), proxy
        status, over_tls = door.reply(key=door.key, source=proxy, headers=said)
        assert (status, over_tls is not None) == (200, is_believed)
    lines = [json.loads(line) for line in door.log.read_text().splitlines()]
    logged = Counter(line["address"] for line in lines if line["outcome"] in ("unauthenticated", "too-many-requests") and "address" in line)
    assert logged["203.0.113.2"] == logged["203.0.113.9"] == 1, logged
    assert logged["198.51.100.1"] == logged["203.0.113.1"] == 0, "what others than proxies say of an address is not believed"
    assert 60 <= logged["198.51.100.2"] <= 64 and 60 <= logged["198.51.100.9"] <= 64, "of 65, as many as a minute has"
    assert logged["127.0.0.1"] > 0, "tests before this one have used up a part of its minute"
    assert not any("address" in line for line in lines if line["who"])
    assert "rubbish" not in door.log.read_text()


def test_over_tls_browsers_are_told_to_stay_there(door: Door) -> None:
    told = door.reply()[1]
    assert (told is None) == (door.context is None)
    assert told is None or re.fullmatch(r"max-age=\d{8}", told)
