"""The shell's own commands: a backslash, a word, and perhaps something after it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """How a command is typed, and what it does."""

    usage: str
    meaning: str


COMMANDS: dict[str, ShellCommand] = {
    "\\d": ShellCommand("\\d [TABLE]", "the tables, or the columns of one"),
    "\\budget": ShellCommand("\\budget", "what is spent and what is left"),
    "\\history": ShellCommand("\\history [N]", "the newest N entries of the ledger (20)"),
    "\\explain": ShellCommand("\\explain STATEMENT", "price, bounds and accuracy of a statement; free"),
    "\\set": ShellCommand("\\set [NAME [VALUE]]", "show the settings, set one, or reset it"),
    "\\?": ShellCommand("\\?", "this list"),
    "\\q": ShellCommand("\\q", "leave; so does Ctrl-D"),
}
