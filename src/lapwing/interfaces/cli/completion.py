"""``lapwing completion``: a script for your shell that completes commands, their options and the tables of the data set.

The script is self-contained. It does not start Python at a key press, which would take longer than people wait. It reads the names of
tables from the catalogue and accepts only valid names: a shell must never receive other characters of a file that another user wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

_TABLES = r"s/^\[(tables|public)\.([a-z][a-z0-9_]*)\].*/\2/p"
"""For sed: the names of tables in a catalogue."""


class ShellName(StrEnum):
    """The shells that a script can be made for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def add_completion(app: typer.Typer) -> None:
    """Add ``lapwing completion`` to the commands."""
    app.command("completion", short_help="Print a script that completes commands in your shell.")(completion)


def completion(
    context: typer.Context, shell: Annotated[ShellName, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)]
) -> None:
    """Print a script for your shell that completes commands, options, and tables after `lapwing describe`.

    \b
    Example:
        lapwing completion bash > ~/.local/share/bash-completion/completions/lapwing
        lapwing completion zsh >> ~/.zshrc
        lapwing completion fish > ~/.config/fish/completions/lapwing.fish
    """
    places = list(_places(context, context.find_root().command))
    typer.echo("\n".join(_fish(places) if shell is ShellName.FISH else _bash(places, zsh=shell is ShellName.ZSH)))


@dataclass(frozen=True, slots=True)
class _Option:
    names: tuple[str, ...]
    takes_value: bool
    values: tuple[str, ...]
    """The values it may have, if they are listed."""
    help: str


@dataclass(frozen=True, slots=True)
class _Place:
    """A position on the command line: the words of a command, and what may follow them."""

    words: str
    next_words: tuple[tuple[str, str], ...]
    """Commands, and the values of an argument if they are listed, each with its help."""
    options: tuple[_Option, ...]


def _places(context: typer.Context, command: Any, words: str = "") -> Iterator[_Place]:
    """The positions of a command and of its subcommands. ``Any``: typer bundles click, and its classes are private."""
    inner = getattr(command, "commands", {})
    named = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    listed = [() if one.is_flag else tuple(item.value for item in one.shell_complete(context, "")) for one in named]
    options = [_Option(tuple(one.opts), not one.is_flag, values, one.help or "") for one, values in zip(named, listed, strict=True)]
    values = [(item.value, "") for one in command.params if one not in named for item in one.shell_complete(context, "")]
    yield _Place(
        words,
        (*((name, one.get_short_help_str(80)) for name, one in inner.items()), *values),
        (*options, _Option(("-h", "--help"), takes_value=False, values=(), help="Show help.")),
    )
    for name, one in inner.items():
        yield from _places(context, one, f"{words} {name}".lstrip())


def _with_value(places: list[_Place]) -> list[str]:
    """Options that take the next word as their value."""
    return sorted({name for place in places for option in place.options if option.takes_value for name in option.names})


def _bash(places: list[_Place], *, zsh: bool) -> Iterator[str]:
    """The script for bash and zsh. Zsh reads bash's syntax, but gives the variables ``path`` and ``words`` a special meaning."""
    if zsh:
        yield "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }"
        yield "autoload -Uz bashcompinit && bashcompinit"
    with_value = _with_value(places)
    yield from (
        "_lapwing() {",
        "  local at='' dir=. word i offered=''",
        '  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        "  COMPREPLY=()",
        "  for ((i = 1; i < COMP_CWORD; i++)); do",
        '    word="${COMP_WORDS[i]}"',
        '    case "$word" in',
        '      -C) i=$((i + 1)); dir="${COMP_WORDS[i]}" ;;',
        f"      {'|'.join(name for name in with_value if name != '-C')}) i=$((i + 1)) ;;",
        '      *) case "${at:+$at }$word" in',
        f'        {"|".join(_quoted(place.words) for place in places if place.words)}) at="${{at:+$at }}$word" ;;',
        "      esac ;;",
        "    esac",
        "  done",
        '  case "$at:$before:$current" in',
    )
    for place in places:
        for option in place.options:
            if option.values:
                yield f"    {'|'.join(f'{_quoted(place.words)}:{name}:*' for name in option.names)}) offered='{' '.join(option.values)}' ;;"
    yield f"    {'|'.join(f'*:{name}:*' for name in with_value)}) return ;;"
    for place in places:
        yield f"    {_quoted(place.words)}:*:-*) offered='{' '.join(name for option in place.options for name in option.names)}' ;;"
        if place.next_words:
            yield f"    {_quoted(place.words)}:*) offered='{' '.join(name for name, _ in place.next_words)}' ;;"
    yield from (
        '    describe:*) [ -d "$dir" ] && dir="$dir/lapwing.toml"',
        f"      offered=$(sed -nE '{_TABLES}' \"$dir\" 2>/dev/null) ;;",
        "  esac",
        '  COMPREPLY=($(compgen -W "$offered" -- "$current"))',
        "}",
        "complete -o default -F _lapwing lapwing",
    )


def _fish(places: list[_Place]) -> Iterator[str]:
    yield from (
        "function __lapwing_at",
        "  set -l path",
        "  set -l skip 0",
        "  for word in (commandline -opc)[2..-1]",
        "    if test $skip = 1",
        "      set skip 0",
        f"    else if contains -- $word {' '.join(_with_value(places))}",
        "      set skip 1",
        f'    else if contains -- (string trim -- "$path $word") {" ".join(_quoted(place.words) for place in places if place.words)}',
        '      set path (string trim -- "$path $word")',
        "    end",
        "  end",
        '  test "$path" = "$argv"',
        "end",
        "function __lapwing_tables",
        "  set -l words (commandline -opc)",
        "  set -l place .",
        "  if set -l at (contains -i -- -C $words)",
        "    set place $words[(math $at + 1)]",
        "  end",
        '  test -d "$place"; and set place "$place/lapwing.toml"',
        f"  sed -nE '{_TABLES}' \"$place\" 2>/dev/null",
        "end",
    )
    for place in places:
        here = f"complete -c lapwing -n {_quoted(f'__lapwing_at {place.words}'.strip())}"
        for name, said in place.next_words:
            yield f"{here} -f -a {name} -d {_quoted(said)}"
        for option in place.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = f" -x -a '{' '.join(option.values)}'" if option.values else " -r" if option.takes_value else ""
            yield f"{here} {names}{value} -d {_quoted(option.help)}"
    yield "complete -c lapwing -n '__lapwing_at describe' -f -a '(__lapwing_tables)'"


def _quoted(text: str) -> str:
    """In single quotes, for all shells. Backslashes are dropped and apostrophes replaced: Lapwing's texts need neither."""
    return "'" + " ".join(text.replace("\\", "").replace("'", "’").split()) + "'" if text else "''"
