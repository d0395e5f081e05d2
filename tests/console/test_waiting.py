"""An answer that takes longer than a page waits: the page says so, looks again by itself, and the answer is charged once."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from lapwing.demo import write_demo
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.http.configuration import MomentSettings, ServerLimits
from tests.console.visitor import Visitor, forms_of
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("console: sessions")
PATIENCE_SECONDS = 60
STATEMENT = {"sql": "SELECT COUNT(*) AS n FROM patients", "epsilon": "0.1"}


def test_an_answer_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    limits = ServerLimits(wait_seconds=2.0, requests_per_second=1_000.0, burst=10_000)
    slow = MomentSettings(base_seconds=6.0)
    with ServerUnderTest.over(lambda path: write_demo(path, patients=100), tmp_path, limits=limits, moments=slow) as server:
        ada = Visitor(server)
        ada.sign_in("ada")
        until = time.monotonic() + PATIENCE_SECONDS
        while ada.get("/console/d/{d}/ask").status_code != 200:  # the data set is being opened
            assert time.monotonic() < until
        price = ada.post("/console/d/{d}/price", {"form_token": ada.token()} | STATEMENT)
        fields = forms_of(price.text)[f"/console/d/{server.data_set}/ask"]
        sent = ada.post("/console/d/{d}/ask", fields | STATEMENT)
        assert sent.status_code == 303, sent.text
        assert sent.headers["location"].endswith("&wait=1")
        page = ada.get(sent.headers["location"])
        assert "Being answered" in page.text
        again = re.search(r'http-equiv="refresh" content="2;url=([^"]+)"', page.text)
        assert again is not None
        address, until = again[1].replace("&amp;", "&"), time.monotonic() + PATIENCE_SECONDS
        while "Being answered" in (page := ada.get(address)).text:
            assert time.monotonic() < until
            time.sleep(0.5)
        assert "<h1>Answer</h1>" in page.text
        kinds = [entry["kind"] for entry in server.call("GET", "/v1/data-sets/{d}/history").json()["entries"]]
        assert kinds == ["commit", "reserve"]


def test_a_page_does_not_look_again_for_ever(tmp_path: Path) -> None:
    with ServerUnderTest.over(lambda path: write_demo(path, patients=50), tmp_path) as server:
        ada = Visitor(server)
        ada.sign_in("ada")
        token = ada.submit("/console/d/{d}/ask", "/console/d/{d}/ask", **STATEMENT)
        assert token.status_code == 409, "no price was on the screen"
        assert "Nothing was spent" in token.text
        q = PageQuestion(**STATEMENT).token()
        assert 'http-equiv="refresh"' in ada.get("/console/d/{d}/answer", params={"q": q, "wait": "299"}).text
        assert 'http-equiv="refresh"' not in ada.get("/console/d/{d}/answer", params={"q": q, "wait": "300"}).text
        assert ada.get("/console/d/{d}/answer", params={"q": q, "wait": "301"}).status_code == 422
