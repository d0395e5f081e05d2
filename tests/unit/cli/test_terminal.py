"""How it looks: colours that can be read on light and dark, plain text in a pipe, nothing slow before help is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.color import Color

from lapwing.interfaces.cli.app import app
from lapwing.interfaces.cli.exits import ExitStatus
from lapwing.interfaces.cli.terminal import ACCENT, ALARM, CAUTION, plain_table
from lapwing.interfaces.cli.views import ROWS_SHOWN_MAX
from tests.unit.cli.conftest import Clinic
from tests.unit.cli.support import ROOT, run, run_process

STATEMENT = "SELECT region, COUNT(*) AS patients FROM patients GROUP BY region ORDER BY region"
TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "100"}
BACKGROUNDS = {"white": (255, 255, 255), "cream": (253, 246, 227), "black": (0, 0, 0), "charcoal": (30, 30, 30), "deep blue": (0, 43, 54)}
_CODE = re.compile(r"\x1b\[([0-9;]*)m")


def _luminance(colour: tuple[int, int, int]) -> float:
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("style", [ACCENT, CAUTION, ALARM])
def test_every_colour_stands_out_on_light_and_dark(style: str, background: str) -> None:
    """3 to 1 is what the accessibility guidelines ask of large or bold text and of signs; plain text keeps the terminal's own colour."""
    colour = Color.parse(style)
    assert colour.number is not None and colour.number >= 16, "the first sixteen are the theme's, and can be anything"
    triplet = colour.get_truecolor()
    assert _contrast((triplet.red, triplet.green, triplet.blue), BACKGROUNDS[background]) >= 3


def test_contrast_is_measured_as_the_guidelines_say() -> None:
    assert _contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert _contrast((255, 255, 0), (255, 255, 255)) < 1.1


def _codes(text: str) -> set[str]:
    return set(_CODE.findall(text))


def test_a_terminal_gets_a_table_in_our_colours_only(clinic: Clinic) -> None:
    ran = clinic.run("ask", STATEMENT, "--epsilon", "0.3", variables=TERMINAL)
    assert ran.status == 0, ran.err
    assert _codes(ran.out) <= {"0", "1", "38;5;31", "38;5;166"} and "38;5;31" in _codes(ran.out)
    assert "───" in ran.out
    refused = clinic.run("ask", "SELECT * FROM patients", variables=TERMINAL)
    assert refused.status == 3 and refused.err.startswith("\x1b[1;38;5;196m[") and _codes(refused.err) == {"1;38;5;196", "0"}
    for command, sign in (("budget", "█"), ("history", "───"), ("explain", "price")):
        shown = clinic.run(command, *([STATEMENT] if command == "explain" else []), variables=TERMINAL)
        assert _codes(shown.out) <= {"0", "1", "38;5;31", "1;38;5;31"} and sign in shown.out


def test_preparing_shows_a_bar_in_our_colours_on_standard_error_only(own_clinic: Clinic) -> None:
    shown = own_clinic.run("prepare", variables=TERMINAL)
    assert shown.status == 0 and "preparing visits" in shown.err and "━" in shown.err and "\x1b" not in shown.out
    assert _codes(shown.err) <= {"0", "38;5;31", "39"}


def test_no_color_and_small_terminals_get_no_colour(clinic: Clinic) -> None:
    for variables in ({"NO_COLOR": "1"}, {"TERM": "xterm"}):
        ran = clinic.run("budget", variables={**TERMINAL, **variables})
        assert "% spent" in ran.out and _codes(ran.out) <= {"0", "1"}


def test_a_pipe_gets_plain_text(clinic: Clinic) -> None:
    for arguments in (["ask", STATEMENT, "--epsilon", "0.3"], ["explain", STATEMENT], ["budget"], ["history"], ["check"]):
        ran = clinic.run(*arguments)
        assert ran.status == 0, ran.err
        assert "\x1b" not in ran.out + ran.err and "─" not in ran.out


def test_long_answers_are_cut_on_a_terminal_only(clinic: Clinic) -> None:
    statement = "SELECT birth_year, sex, COUNT(*) AS n FROM patients GROUP BY birth_year, sex"
    shown = clinic.run("ask", statement, variables=TERMINAL)
    assert "and 103 rows more: use --format csv" in shown.out and shown.out.count("\n") < ROWS_SHOWN_MAX + 20
    piped = clinic.run("ask", statement)
    assert len(piped.out.partition("\n\n")[0].splitlines()) == 2 + 101 * 3


def test_a_stream_that_cannot_show_a_sign_does_not_end_the_command(clinic: Clinic) -> None:
    ran = run_process(
        "-C", clinic.directory, "ask", STATEMENT, "--epsilon", "0.3", home=clinic.home, variables={"PYTHONIOENCODING": "ascii"}
    )
    assert ran.status == 0 and "? 95%" in ran.out


def test_plain_tables_line_up() -> None:
    text = plain_table(("name", "n"), [["a", "1"], ["longer", "100"]], right=(False, True))
    assert text.splitlines() == ["name      n", "------  ---", "a         1", "longer  100"]


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    """What keeps ``lapwing --help`` quick, in a form that does not depend on how busy the machine is."""
    heavy = ("duckdb", "numpy", "opendp", "pandas", "prompt_toolkit", "pyarrow", "pydantic", "rich", "sqlglot")
    code = (
        "import sys\nfrom lapwing.interfaces.cli import main\ntry:\n    main()\nexcept SystemExit as ended:\n"
        f"    print([name for name in {heavy!r} if name in sys.modules], ended.code, file=sys.stderr)\n"
    )
    ran = run_process("--help", home=tmp_path, code=code)
    assert ran.out.startswith("Usage: lapwing") and ran.err == "[] 0\n"


def test_every_command_teaches_by_an_example_and_is_in_the_reference(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback is not None]
    assert len(names) == 20
    for name in names:
        shown = run(name, "--help", home=tmp_path).out
        assert f"lapwing {name}" in shown.partition("Example:")[2].replace("-C clinic ", ""), name
        assert re.search(rf"^## `lapwing {name}\b", page, re.MULTILINE), name
        described = re.search(rf"^## `lapwing {name}\b.*?(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert described is not None
        for option in set(re.findall(r"^  (--[a-z-]+)", shown, re.MULTILINE)):
            assert f"| `{option}" in described[0], (name, option)


def test_exit_statuses_are_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d) \|", page, re.MULTILINE) == [str(status.value) for status in ExitStatus]
