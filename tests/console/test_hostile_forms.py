"""Addresses and forms that no page made: each is told what is wrong with it, and nothing goes wrong inside the server."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from functools import partial

import pytest

from tests.console.browser import write_signed_demo
from tests.console.visitor import Visitor
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("console: security")
ADDRESSES = {
    "deep": b"[" * 60_000,
    "nothing": b"null",
    "a number": b"7",
    "a text": b'"ab"',
    "names": b'{"a": 1, "b": 2}',
    "three": b'["SELECT 1", "", ""]',
    "numbers": b"[1, 2]",
    "half a character": b'["SELECT COUNT(*) FROM patients -- \\ud800", "1"]',
    "half a price": b'["SELECT COUNT(*) FROM patients", "\\udfff"]',
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """One that signs receipts."""
    write = partial(write_signed_demo, patients=100)
    with ServerUnderTest.over(write, tmp_path_factory.mktemp("forms")) as under_test:
        yield under_test


@pytest.fixture(scope="module")
def ada(server: ServerUnderTest) -> Visitor:
    visitor = Visitor(server)
    visitor.sign_in("ada")
    return visitor


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_that_no_page_made(ada: Visitor, name: str) -> None:
    token = base64.urlsafe_b64encode(zlib.compress(ADDRESSES[name])).decode()
    for page in ("ask", "answer", "answer/csv", "answer/svg", "answer/ipynb", "answer/json", "answer/parquet"):
        reply = ada.get(f"/console/d/{{d}}/{page}?q={token}")
        assert reply.status_code == 422, (page, reply.status_code)
        assert "The address is incomplete" in reply.text


@pytest.mark.parametrize("number", ["abc", "1.5", "-1", "9" * 40, "%00", "1e3"])
def test_a_number_that_no_charge_has_is_no_address(ada: Visitor, server: ServerUnderTest, number: str) -> None:
    for page in ("receipts", "history"):
        reply = ada.get(f"/console/d/{{d}}/{page}/{number}")
        assert reply.status_code == 404 and "Input should" not in reply.text, (page, reply.status_code)
    assert server.call("GET", f"/v1/data-sets/{{d}}/receipts/{number}").status_code == 404


@pytest.mark.parametrize("receipt", ["", "  ", "{}", "[" * 15_000, "9" * 30_000, "\x00", "null", '{"statement": 1}'], ids=range(8))
def test_what_is_no_receipt(ada: Visitor, receipt: str) -> None:
    reply = ada.post("/console/d/{d}/receipts", {"form_token": ada.token(), "receipt": receipt})
    assert reply.status_code == 422, reply.status_code
    assert "internal error" not in reply.text.lower()
