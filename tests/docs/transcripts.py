"""Console transcripts in the documentation: the commands are run, and what they print is compared with what the page says.

A refusal is text made from public facts, so it is compared byte for byte. An answer is noisy, so its shape is compared: the text with
numbers, widths of columns and the generated id of the demonstration masked.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sybil import Example
from typer.testing import CliRunner

from lapwing.interfaces.cli.app import app

PROMPT = "$ "
_SHELL = re.compile(r"[|<>;&*~]|\$\w")
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
_DEMO_ID = re.compile(r"\bclinic-[0-9a-f]{8}\b")
_OF_TERMINALS = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "TERM")


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a transcript and what the page says it prints."""

    text: str
    output: str
    written: str = ""
    """The lines of the command as they stand on the page."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended and what it wrote, on both streams as they come on a terminal."""

    status: int
    output: str


def commands(block: str) -> Iterator[Command]:
    """The commands of a console block. A line that ends with a backslash continues on the next one."""
    lines = block.rstrip("\n").split("\n")
    if not lines[0].startswith(PROMPT):
        raise ValueError(f"a transcript starts with a command: {lines[0]!r}")
    while lines:
        written = [lines.pop(0)]
        while written[-1].endswith("\\"):
            written.append(lines.pop(0))
        text = "".join(line.removesuffix("\\") if i == 0 else line.removesuffix("\\").lstrip() for i, line in enumerate(written))
        output = []
        while lines and not lines[0].startswith(PROMPT):
            output.append(lines.pop(0))
        yield Command(text.removeprefix(PROMPT), "\n".join(output).strip("\n"), "\n".join(written))


def run(command: str) -> Ran:
    """Run a command in the current directory: ``lapwing`` by itself in this process, which is quicker, anything else in a shell."""
    words = shlex.split(command)
    if words[0] != "lapwing" or _SHELL.search(re.sub(r"'[^']*'|\"[^\"$]*\"", "", command)):
        return _run_in_shell(command)
    result = CliRunner().invoke(app, words[1:], env=dict.fromkeys(_OF_TERMINALS, None))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(int(result.exit_code), result.output.strip("\n"))


def _run_in_shell(command: str) -> Ran:
    variables = {name: value for name, value in os.environ.items() if name not in _OF_TERMINALS}
    path = os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[2] / "src"), os.environ.get("PYTHONPATH", "")]))
    function = f'lapwing() {{ {shlex.quote(sys.executable)} -m lapwing.interfaces.cli "$@"; }}\n'
    ended = subprocess.run(
        ["bash", "-c", function + command],
        env={**variables, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Ran(ended.returncode, ended.stdout.strip("\n"))


def masked(text: str) -> str:
    """The shape of an output: numbers, ids, rules and widths of columns do not count.

    Nor does the way a unit's rows are bounded and what that is predicted to leave out: both follow noisy statistics.
    """
    text = _NUMBER.sub("#", _DEMO_ID.sub("clinic-ID", text))
    text = re.sub(r"-?# \+#", "#", text)  # an error bar with both sides, where they differ enough
    text = re.sub(r"-{2,}", "--", text)
    text = re.sub(r"^bounding +(?:ranked|clipped|grouped):.*$", "bounding", text, flags=re.MULTILINE)
    lines = [re.sub(r" +", " ", line).strip() for line in text.split("\n")]
    return "\n".join(line for line in lines if not line.startswith(("predicted ", "note: rows beyond the bound", "note: about #")))


def difference(command: Command, ran: Ran) -> str | None:
    """What is wrong with a transcript, or nothing."""
    same = command.output == ran.output if ran.status else masked(command.output) == masked(ran.output)
    if same:
        return None
    how = "byte for byte" if ran.status else "with numbers masked"
    return f"$ {command.text}\nended with {ran.status} and printed ({how} not what the page says):\n{ran.output}"


def evaluate_console(example: Example) -> str | None:
    """For Sybil: run a block and compare."""
    wrong = [difference(command, run(command.text)) for command in commands(str(example.parsed))]
    return "\n\n".join(text for text in wrong if text) or None


def evaluate_file(example: Example) -> None:
    """For Sybil: a block with a caption is a file of that name, below the current directory."""
    caption = (example.region.lexemes.get("options") or {}).get("caption", "")
    path = Path(caption)
    if not caption or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"line {example.line}: the caption of a block must be the name of a file below this directory")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(example.parsed), encoding="utf-8")
