"""The parts of the shell that need no terminal: where statements end, what is set, prices, and what is piped in."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable

import pytest
import typer
from docs.function_listing import LISTED
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from lapwing.asking.explaining.explanation import Explanation
from lapwing.asking.vocabulary import KEYWORDS, function_names
from lapwing.data_set import DataSet
from lapwing.data_set import open as open_data_set
from lapwing.errors import Refused
from lapwing.interfaces.cli.shell.commands import COMMANDS
from lapwing.interfaces.cli.shell.completing import ShellCompleter, Vocabulary
from lapwing.interfaces.cli.shell.pricing import LivePrice
from lapwing.interfaces.cli.shell.splitting import Split, is_finished, split, without_semicolon
from lapwing.interfaces.cli.shell.terms import SETTINGS, ShellTerms
from tests.unit.cli.conftest import Clinic
from tests.unit.cli.support import ROOT


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1; SELECT 2", ("SELECT 1",), " SELECT 2"),
        ("SELECT ';', \"a;b\", 'it''s;';", ("SELECT ';', \"a;b\", 'it''s;'",), ""),
        ("SELECT 1 -- a; b\n;", ("SELECT 1 -- a; b",), ""),
        ("SELECT /* ; /* ; */ ; */ 1;", ("SELECT /* ; /* ; */ ; */ 1",), ""),
        ("SELECT 'open;", (), "SELECT 'open;"),
        ("SELECT /* open;", (), "SELECT /* open;"),
        (";;  ;", (), ""),
    ],
)
def test_statements_end_at_semicolons_that_stand_in_nothing_else(text: str, statements: tuple[str, ...], rest: str) -> None:
    assert split(text) == Split(statements, rest)


def test_enter_hands_over_what_is_finished() -> None:
    assert [is_finished(text) for text in ("", "  ", "\\d", "SELECT 1;", "SELECT 1; ", "SELECT 1", "SELECT ';")] == [True] * 5 + [False] * 2
    assert [without_semicolon(text) for text in ("SELECT 1 ;", "SELECT 1", "a; b", "\\d x", "")] == ["SELECT 1", "SELECT 1", "", "", ""]


def test_what_is_set_is_what_is_asked_and_a_statement_goes_before_it() -> None:
    terms = ShellTerms()
    assert terms.asked("SELECT 1") == ("SELECT 1", {"dialect": "duckdb"})
    terms.set("epsilon", "0.2")
    terms.set("confidence", "0.9")
    terms.set("scaled_groups", "ON")
    asked = {"dialect": "duckdb", "confidence": "0.9", "scaled_groups": True}
    assert terms.asked("SELECT 1") == ("SELECT 1", {**asked, "epsilon": "0.2"})
    for free in ("WITH privacy (error) AS (SELECT 1) SELECT error FROM privacy", "SELECT 1 AS error -- WITH PRIVACY (error"):
        assert terms.asked(free) == (free, {**asked, "epsilon": "0.2"}), "it says no terms: privacy is a table there, or a comment"
    assert terms.asked("SELECT 'with privacy (epsilon'") == ("SELECT 'with privacy (epsilon'", {**asked, "epsilon": "0.2"})
    own = "SELECT 1 WITH PRIVACY (rho = 1, confidence = 0.8, scaled_groups = false)"
    assert terms.asked(own) == (own, {"dialect": "duckdb"})
    terms.set("error", "5%")
    assert (terms["epsilon"], terms.shown()) == ("", "error 5%, confidence 0.9")
    terms.set("scaled_groups", "")
    terms.set("confidence", "")
    assert terms.asked("SELECT 1")[0] == "SELECT 1\nWITH PRIVACY (error = '5%')"
    assert terms.asked("SHOW TABLES")[0] == "SHOW TABLES"
    with pytest.raises(typer.BadParameter):
        terms.asked("SELECT 1 WITH PRIVACY (confidence = 0.9)")
    terms.set("error", "")
    terms.set("reuse", "only")
    assert terms.asked("SELECT 1") == ("SELECT 1", {"dialect": "duckdb", "reuse": "only"})
    own = "SELECT 1 WITH PRIVACY (reuse = never)"
    assert terms.asked(own) == (own, {"dialect": "duckdb"}) and terms.asked("SHOW TABLES")[1] == {"dialect": "duckdb"}
    terms.set("reuse", "")
    assert terms.asked("SELECT 1") == ("SELECT 1", {"dialect": "duckdb"})
    terms.set("epsilon", "1/3")
    assert (terms["error"], terms.shown()) == ("", "epsilon 1/3")
    for name, value in (
        ("epsilon", "-1"),
        ("epsilon", "x"),
        ("error", "%"),
        ("dialect", "oracle"),
        ("reuse", "always"),
        ("confirm", "maybe"),
        ("nothing", "1"),
    ):
        with pytest.raises(typer.BadParameter):
            terms.set(name, value)
    assert terms["epsilon"] == "1/3"


def test_every_command_and_setting_is_on_the_page() -> None:
    page = (ROOT / "docs" / "how-to" / "shell.md").read_text(encoding="utf-8")
    for command in COMMANDS.values():
        assert f"| `{command.usage}` |" in page, command.usage
    for name in SETTINGS:
        assert f"| `{name}` |" in page, name


def test_every_function_of_the_reference_is_completed() -> None:
    listed = {name for meaning in LISTED for name in meaning.names if re.fullmatch(r"[A-Z_0-9]+", name)}
    assert len(listed) > 70
    assert listed - {*function_names(), *KEYWORDS} == set()


@pytest.fixture
def data_set(clinic: Clinic) -> Iterable[DataSet]:
    """The demonstration, opened."""
    with open_data_set(clinic.directory, home=clinic.home) as opened:
        yield opened


def test_words_are_completed_where_they_belong(data_set: DataSet) -> None:
    vocabulary = Vocabulary()
    vocabulary.fill(data_set)
    completer = ShellCompleter(vocabulary)

    def completed(text: str) -> list[str]:
        return [item.text for item in completer.get_completions(Document(text), CompleteEvent())]

    assert completed("SELECT * FROM pat") == ["patients"]
    assert completed("SELECT COUNT(*) FROM ") == []
    assert completed("SELECT smo") == ["smoker"]
    assert "region" not in completed("SELECT COUNT(*) FROM visits WHERE re"), "a column of another table"
    assert set(completed("SELECT patients.birth")) == {"birth_year"}
    assert {"COUNT", "COUNT_IF"} <= set(completed("SELECT cou"))
    assert "GROUP" in completed("SELECT 1 FROM visits gro") and "DATE_TRUNC" in completed("SELECT date_tr")
    assert completed("SELECT 12") == [] and completed("SELECT smoker") == []
    assert completed("\\b") == ["\\budget"] and completed("\\d pre") == ["prescriptions"] and completed("\\set eps") == ["epsilon"]
    assert completed("\\set epsilon 0") == []


def test_a_price_is_found_in_the_background_once_typing_rests(data_set: DataSet) -> None:
    explained: list[str] = []
    changed = threading.Event()

    def explain(statement: str) -> Explanation:
        explained.append(statement)
        if statement == "broken":
            raise ZeroDivisionError("a value of the data")
        return data_set.explain(statement, epsilon="0.1")

    watch = LivePrice(explain, changed.set)

    def price(statement: str) -> str:
        changed.clear()
        watch.look(statement)
        assert changed.wait(30)
        found = watch.known(statement)
        assert found is not None
        return f"{found.words}|{found.accuracy}|{found.free}|{found.refused}"

    watch.look("SELECT COUNT(*)")  # typed on before it is explained
    words = price("SELECT COUNT(*) AS n FROM patients")
    assert words.startswith("epsilon 0.1, 0.14% of the budget|n: gaussian, ±") and words.endswith("|False|False")
    assert explained == ["SELECT COUNT(*) AS n FROM patients"]
    assert price("SELECT nonsense FROM patients").startswith("[unknown-column] there is no column 'nonsense' here|")
    assert price("SHOW TABLES") == "free||True|False"
    assert price("broken") == "the price cannot be found: ZeroDivisionError||False|True"
    watch.look("SHOW TABLES")
    watch.forget()
    assert watch.known("SHOW TABLES") is None, "until it is found again"
    watch.stop()


def test_a_price_beyond_what_is_left_says_so(data_set: DataSet) -> None:
    from lapwing.interfaces.cli.shell.pricing import price_of, refusal

    assert price_of(data_set.explain("SELECT COUNT(*) AS n FROM patients", epsilon=3)).words.endswith(": MORE THAN ONE STATEMENT MAY COST")
    assert refusal(Refused("some-code", "no", hint="so")).words == "[some-code] no (so)"


def test_from_a_pipe_statements_run_up_to_the_first_failure(own_clinic: Clinic) -> None:
    assert own_clinic.run("prepare").status == 0
    script = (
        "-- a report\nSELECT COUNT(*) AS n\nFROM patients;\n\\set epsilon 0.05\n\\d\nSELECT COUNT(*) AS m FROM visits;"
        "SELECT nonsense FROM visits;\nSELECT 1;\n"
    )
    ran = own_clinic.run("shell", stdin=script)
    assert ran.status == 3
    assert ran.out.count("of the budget is left") == 2 and "cost epsilon 0.05" in ran.out and "prescriptions" in ran.out
    assert ran.err.startswith("[unknown-column] there is no column 'nonsense' here\n   1 | SELECT nonsense")
    assert "lapwing>" not in ran.out and "\x1b" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("", 0, ""),
        ("\\q\nSELECT nonsense FROM visits;", 0, ""),
        ("\\budget", 0, "promise"),
        ("\\history 2", 0, "when (UTC)"),
        ("\\set format json\n\\history 1", 0, '"kind"'),
        ("\\explain SELECT COUNT(*) AS n FROM patients;", 0, "price"),
        ("\\explain SELECT x FROM patients", 3, "[unknown-column]"),
        ("\\explain", 2, "takes a statement"),
        ("\\set", 0, "confirm"),
        ("\\set epsilon = 'x'", 2, "not a number above 0"),
        ("\\history all", 2, "1 to 1000"),
        ("\\d nothing", 3, "[unknown-table]"),
        ("\\what", 2, "there is no command \\what"),
        ("\\?", 0, "\\explain STATEMENT"),
        ("SELECT COUNT(*) FROM visits WITH PRIVACY (epsilon = 3)", 4, "[statement-limit]"),
        ("\\set error 1000\nSELECT COUNT(*) AS n FROM patients", 0, "± 95%"),
        ("\\set confidence 0.9\nSELECT COUNT(*) AS n FROM patients", 0, "± 90%"),
        ("\\set format csv\nSELECT COUNT(*) AS n FROM patients;", 0, "n,n_lo,n_hi,n_mark"),
    ],
    ids=lambda item: item.replace("\n", " ")[:30] if isinstance(item, str) else str(item),
)
def test_commands_and_how_they_end(clinic: Clinic, script: str, status: int, said: str) -> None:
    ran = clinic.run("shell", stdin=script)
    assert ran.status == status, ran.err
    assert said in ran.out + ran.err


def test_a_place_may_be_named_and_is_here_or_on_a_server(clinic: Clinic) -> None:
    assert clinic.run("shell", str(clinic.directory), stdin="SHOW TABLES").status == 0
    assert clinic.run("shell", str(clinic.directory), "--server", "http://127.0.0.1:1", stdin="").status == 2


def test_leaving_waits_for_a_price_that_is_being_found() -> None:
    """A process that ends while an engine works in one of its threads is aborted."""
    begun, found = threading.Event(), []

    def explain(statement: str) -> Explanation:
        begun.set()
        time.sleep(0.3)
        found.append(statement)
        raise Refused("sql-syntax", "not of interest")

    watch = LivePrice(explain, lambda: None)
    watch.look("SELECT 1")
    assert begun.wait(30)
    watch.stop()
    assert found == ["SELECT 1"]
