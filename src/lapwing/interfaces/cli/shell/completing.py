"""Completion of what is typed: commands, tables, columns of the tables that the statement names, functions and keywords."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from lapwing.asking.vocabulary import AGGREGATES, KEYWORDS, TYPES, function_names
from lapwing.interfaces.cli.shell.commands import COMMANDS
from lapwing.interfaces.cli.shell.splitting import is_command
from lapwing.interfaces.cli.shell.terms import SETTINGS
from lapwing.interfaces.cli.terminal import printable

if TYPE_CHECKING:
    from lapwing.data_set import DataSet
    from lapwing.interfaces.python.remote import RemoteDataSet

_WORD = re.compile(r"\w+$")
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_TABLE_COMES = re.compile(r"\b(?:from|join|describe)\s+$", re.IGNORECASE)
_QUALIFIER = re.compile(r"(\w+)\.\w*$")


@dataclass(slots=True)
class Vocabulary:
    """What can be completed; filled in the background, since a server takes a moment."""

    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = AGGREGATES

    def fill(self, data_set: DataSet | RemoteDataSet) -> None:
        """Look up tables, columns and functions."""
        for table in data_set.tables:
            self.columns[table] = ()
        for table in list(self.columns):
            described = data_set.describe(table).table
            self.columns = {**self.columns, table: tuple(described.column("column").to_pylist())}
        self.functions = function_names()

    def named_in(self, statement: str) -> list[str]:
        """The tables named in a statement; all of them if there is none yet."""
        words = set(re.findall(r"\w+", statement.lower()))
        return [table for table in self.columns if table.lower() in words] or list(self.columns)


@dataclass(slots=True)
class ShellCompleter(Completer):
    """Completes the word before the cursor."""

    vocabulary: Vocabulary

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What the word may become: tables and columns first, then functions, then keywords."""
        before = document.text_before_cursor
        if is_command(before):
            yield from self._of_command(before)
            return
        found = _WORD.search(before)
        word = found.group() if found else ""
        rest = before[: len(before) - len(word)]
        if (not word and not rest.endswith(".")) or word.isdigit():
            return
        for text, kind in self._words(rest, document.text):
            if text.lower().startswith(word.lower()) and text.lower() != word.lower():
                yield Completion(text, -len(word), display=printable(text), display_meta=printable(kind))

    def _words(self, rest: str, statement: str) -> Iterable[tuple[str, str]]:
        tables = self.vocabulary.columns
        if (qualified := _QUALIFIER.search(rest)) is not None:
            for name in next((tables[table] for table in tables if table.lower() == qualified.group(1).lower()), ()):
                yield _typed(name), qualified.group(1)
            return
        if _TABLE_COMES.search(rest):
            yield from ((_typed(table), "table") for table in tables)
            return
        seen: dict[str, str] = {}
        for table in self.vocabulary.named_in(statement):
            for name in tables[table]:
                seen[name] = f"{seen[name]}, {table}" if name in seen else table
        yield from ((_typed(name), where) for name, where in seen.items())
        yield from ((_typed(table), "table") for table in tables)
        yield from ((name, "function") for name in self.vocabulary.functions)
        yield from ((word, "") for word in (*KEYWORDS, *TYPES))

    def _of_command(self, before: str) -> Iterable[Completion]:
        words = before.lstrip().split(" ")
        if len(words) == 1:
            choices: Iterable[str] = COMMANDS
        elif len(words) == 2 and words[0] == "\\d":
            choices = self.vocabulary.columns
        elif len(words) == 2 and words[0] == "\\set":
            choices = SETTINGS
        else:
            choices = ()
        for choice in choices:
            if choice.startswith(words[-1]) and choice != words[-1]:
                yield Completion(choice, -len(words[-1]), display=printable(choice))


def _typed(name: str) -> str:
    """A name as it is typed into a statement."""
    return name if _NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'
