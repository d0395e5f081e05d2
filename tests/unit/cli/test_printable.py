"""What came from outside cannot act on the terminal it is printed on; names are not empty; folders mean the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from lapwing.catalog import load
from lapwing.demo import write_demo
from lapwing.interfaces.cli.terminal import printable
from lapwing.ledger.connect import place_of
from tests.unit.cli.support import run, run_process

CLEARS = "\x1b[2J\x1b]0;title\x07\x9b31m\u202e"


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    write_demo(tmp_path / "clinic", patients=100)
    assert run("-C", tmp_path / "clinic", "prepare", home=tmp_path / "home").status == 0
    return tmp_path / "clinic"


def test_signs_that_act_are_spelt() -> None:
    assert printable("a\tb\nc é ± █") == "a\tb\nc é ± █"
    assert printable("\x1b[31m\r\x9b\u202e") == "\\u001b[31m\\u000d\\u009b\\u202e"


@pytest.mark.slow
@pytest.mark.parametrize("colours", [{}, {"FORCE_COLOR": "1", "TERM": "xterm-256color"}])
def test_a_statement_and_a_name_cannot_act_on_a_terminal(clinic: Path, tmp_path: Path, colours: dict[str, str]) -> None:
    home = tmp_path / "home"
    statement = f"SELECT COUNT(*) AS n FROM patients -- {CLEARS}"
    asked = run_process("-C", clinic, "ask", statement, "--epsilon", "0.1", "--analyst", f"ana{CLEARS}", home=home, variables=colours)
    assert asked.status == 0, asked.err
    closed = run_process("-C", clinic, "close", f"why {CLEARS}", home=home, variables=colours)
    history = run_process("-C", clinic, "history", home=home, variables=colours)
    refused = run_process("-C", clinic, "ask", f"SELECT {CLEARS} FROM patients", home=home, variables=colours)
    as_json = run_process("-C", clinic, "history", "--format", "json", home=home, variables=colours)
    for ran in (asked, closed, history, refused, as_json):
        for text in (ran.out, ran.err):
            assert not any(sign in text for sign in ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\u202e"))
    assert "\\u001b[2J" in history.out.replace("\n", "")


def test_an_empty_name_is_refused(clinic: Path, tmp_path: Path) -> None:
    for option in ("--analyst", "--request-id"):
        refused = run("-C", clinic, "ask", "SELECT COUNT(*) FROM patients", "--epsilon", "0.1", option, "", home=tmp_path / "home")
        assert refused.status == 3 and "[request-invalid]" in refused.err


def test_a_folder_in_the_environment_is_relative_to_where_the_command_runs_as_its_options_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_demo(tmp_path / "clinic", patients=100)
    with (tmp_path / "clinic" / "lapwing.toml").open("a") as catalogue:
        catalogue.write('\n[ledger]\nkeys = "../keys"\n')
    monkeypatch.chdir(tmp_path)
    declaration = load(tmp_path / "clinic" / "lapwing.toml")

    def keys(environment: dict[str, str]) -> Path | None:
        return place_of(declaration, local=tmp_path, home=None, query_timeout_seconds=1, environment=environment).keys

    assert keys({}) == tmp_path / "keys"
    assert keys({"LAPWING_KEYS": "mine"}) == tmp_path / "mine"
