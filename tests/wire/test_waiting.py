"""A question that takes longer than the server waits at a time is begun once, and its answer is sent when it is there."""

from __future__ import annotations

import json
import threading

import pytest

from lapwing.answers.answer import Answer
from lapwing.asking.ask import ask
from lapwing.asking.options import AskRequest
from lapwing.curator.curator import Curator
from tests.wire.world import WireUnderTest

LONG = "SELECT smoker, COUNT(*) AS n FROM patients WHERE birth_year > 1931 GROUP BY smoker"
MEANWHILE = "SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1932"


def test_a_long_question_is_begun_once(wire: WireUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    served = wire.server.app_state.desk.served[wire.server.data_set]
    monkeypatch.setattr(served, "_limits", served._limits.model_copy(update={"wait_seconds": 0.2}))
    begun: list[str] = []
    go_on = threading.Event()

    def slow(curator: Curator, request: AskRequest) -> Answer:
        begun.append(request.sql)
        if request.sql == LONG:
            go_on.wait(30)
        return ask(curator, request)

    monkeypatch.setattr("lapwing.interfaces.wire.request.ask", slow)
    with wire.connect() as first, wire.connect() as second:
        threading.Timer(1.5, go_on.set).start()
        answered = threading.Thread(target=lambda: second.execute(MEANWHILE).fetchall())
        answered.start()
        assert len(first.execute(LONG).fetchall()) == 3
        answered.join(30)
    assert begun.count(LONG) == 1
    lines = [
        line for line in wire.server.app_state.configuration.audit_path(wire.server.home).read_text().splitlines() if "begun" not in line
    ][-2:]
    assert sorted(len(json.loads(line)["charges"]) for line in lines) == [1, 1]
