"""The shell on a server whose answers take their time: what is left goes on, is charged once, and is there when asked again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lapwing
from tests.server.process import Running, lapwing_in, started
from tests.unit.cli.screen import Screen

pytestmark = pytest.mark.xdist_group("server: shell")

ANSWER_AFTER_SECONDS = 4.0
ENTER = "\r"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that holds every answer back for some seconds."""
    directory = tmp_path_factory.mktemp("slow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAPWING_HOME", str(directory / "home"))
        lapwing_in(directory, "demo", "clinic", "--patients", "400")
        lapwing_in(directory, "-C", "clinic", "prepare")
        with started(directory, ("serve", "clinic"), more=f"answer_after = {ANSWER_AFTER_SECONDS}\n") as (process, url):
            lapwing_in(directory, "access", "grant", "ada", "analyst", "*")
            yield Running(process, url, directory, lapwing_in(directory, "access", "key", "ada").strip())


def test_an_answer_that_was_left_is_charged_once_and_is_there_when_asked_again(running: Running, tmp_path: Path) -> None:
    screen = Screen("shell", "--server", running.url, home=tmp_path, variables={"LAPWING_TOKEN": running.key})
    try:
        screen.wait_for("lapwing>")
        screen.type("SELECT COUNT(*) AS n FROM patients")
        screen.wait_for("n: gaussian, ±")
        screen.type(";" + ENTER)
        screen.wait_for("waiting for the answer")
        screen.interrupt()
        assert "charged once" in screen.wait_for("continues and may be charged")
        screen.type("SELECT COUNT(*) AS n FROM patients;" + ENTER)
        screen.wait_for("cost epsilon")
        screen.type("\\history" + ENTER)
        screen.wait_for("commit")
        screen.type("\\q" + ENTER)
        assert screen.ended() == 0
    finally:
        screen.close()
    with lapwing.connect(running.url, token=running.key) as data_set:
        kinds = [entry.kind.value for entry in data_set.history()]
        assert sorted(kinds) == ["commit", "reserve"], "one charge"


def test_an_interrupted_command_says_how_to_have_the_answer(running: Running, tmp_path: Path) -> None:
    statement = "SELECT COUNT(*) AS n FROM visits"
    screen = Screen("--server", running.url, "ask", statement, home=tmp_path, variables={"LAPWING_TOKEN": running.key})
    try:
        screen.wait_for("waiting for the answer")
        screen.interrupt()
        shown = screen.wait_for("charged once")
        assert screen.ended() == 130
    finally:
        screen.close()
    name = shown.partition("--request-id ")[2].split()[0]
    with lapwing.connect(running.url, token=running.key) as data_set:
        answer = data_set.ask(statement, request_id=name)
        charged = [entry for entry in data_set.history() if entry.detail == statement]
    assert len(answer) == 1
    assert len(charged) == 1, "the same request, charged once"
