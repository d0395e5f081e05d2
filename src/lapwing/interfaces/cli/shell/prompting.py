"""The shell at a terminal: a prompt with history and completion, and the price below it while a statement is typed."""

from __future__ import annotations

import shutil
import sys
import threading
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import create_output
from prompt_toolkit.styles import Style

from lapwing.answers.display.number_format import shortened
from lapwing.curator.user_files import private_file
from lapwing.errors import LapwingError
from lapwing.interfaces.cli import terminal
from lapwing.interfaces.cli.asking import is_confirmed
from lapwing.interfaces.cli.exits import report_error
from lapwing.interfaces.cli.shell.completing import ShellCompleter, Vocabulary
from lapwing.interfaces.cli.shell.pricing import STOP_SECONDS, LivePrice, price_of
from lapwing.interfaces.cli.shell.session import ShellSession
from lapwing.interfaces.cli.shell.splitting import is_finished, without_semicolon
from lapwing.interfaces.cli.shell.terms import ALWAYS, NEVER

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer

HISTORY_FILE = "shell_history"
PROMPT, CONTINUED = "lapwing> ", "      -> "
_EMPTY = "the price of what you type is shown here, before Enter pays"
_STYLE = Style.from_dict({"bottom-toolbar": "noreverse", "bottom-toolbar.price": "bold", "bottom-toolbar.refused": ""})


class ShellPrompt:
    """The prompt of a session."""

    def __init__(self, session: ShellSession) -> None:
        self._session = session
        self._vocabulary = Vocabulary()
        kept = private_file(HISTORY_FILE)
        # Output goes through a stream that escapes control characters; the prompt writes its own, and needs the bare stream.
        output = create_output(stdout=getattr(sys.stdout, "rich_proxied_file", sys.stdout))
        self._prompt: PromptSession[str] = PromptSession(
            history=InMemoryHistory() if kept is None else FileHistory(str(kept)),
            auto_suggest=AutoSuggestFromHistory(),
            completer=ShellCompleter(self._vocabulary),
            complete_while_typing=True,
            multiline=True,
            prompt_continuation=lambda width, number, wrapped: CONTINUED,
            key_bindings=_keys(),
            bottom_toolbar=self._toolbar,
            style=_STYLE,
            output=output,
        )
        self._prompt.default_buffer.on_text_changed += self._typed
        self._watch = LivePrice(session.explain, self._prompt.app.invalidate)

    def run(self) -> None:
        """Read and run until the analyst leaves."""
        filling = threading.Thread(target=self._fill, name="lapwing-words", daemon=True)
        filling.start()
        session = self._session
        while not session.is_over:
            if session.take_answered():
                terminal.write_note("A statement that you left running is answered. Ask it again to see the answer: it is free.")
            try:
                text = self._prompt.prompt(PROMPT)
            except KeyboardInterrupt:
                continue
            except EOFError:
                break
            if text.strip():
                session.run(text, pays=self._pays)
                self._watch.forget()
                terminal.write("")
        self._watch.stop()
        filling.join(STOP_SECONDS)

    def _fill(self) -> None:
        try:
            self._vocabulary.fill(self._session.data_set)
        except LapwingError:
            return  # then there is less to complete; asking reports what is wrong

    def _typed(self, buffer: Buffer) -> None:
        self._watch.look(without_semicolon(buffer.text))

    def _toolbar(self) -> StyleAndTextTuples:
        """The price of what is typed, its accuracy, the settings and the remaining budget."""
        columns = max(shutil.get_terminal_size().columns - 1, 20)
        statement = without_semicolon(self._prompt.default_buffer.text)
        price = self._watch.known(statement) if statement else None
        session = self._session
        left = "" if session.share_left is None else f", {session.share_left:.1%} of the budget left"
        state = shortened(f"{session.data_set.name}: {session.terms.shown()}{left}", columns)
        if price is None:
            first, second, style = ("…" if statement else _EMPTY), "", ""
        else:
            first, second = price.words, price.accuracy
            style = "class:bottom-toolbar.refused" if price.refused else "class:bottom-toolbar.price"
        lines = [(style, first), ("", second), ("", state)]
        shown: StyleAndTextTuples = []
        for number, (line_style, line) in enumerate(lines):
            shown.append((line_style, ("\n" if number else "") + terminal.printable(shortened(line, columns))))
        return shown

    def _pays(self, statement: str) -> bool:
        """Whether to ask: the price was on the screen and is not a large part of the budget, or the user confirms it now."""
        when, seen = self._session.terms["confirm"], self._watch.known(statement)
        if when == NEVER or (seen is not None and (seen.free or when != ALWAYS) and not (seen.refused or seen.large)):
            return True
        try:
            price = price_of(self._session.explain(statement))
        except LapwingError as error:
            self._session.status = report_error(error, statement)
            return False
        if price.free:
            return True
        terminal.write(f"price: {price.words}" + (f"\n{price.accuracy}" if price.accuracy else ""))
        return is_confirmed("Pay? [y/N] ")


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    @keys.add("c-j")  # Enter that was pressed before the prompt was there
    def _(event: KeyPressEvent) -> None:
        """Enter accepts a selected completion; otherwise it submits a finished text, or begins a new line."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif is_finished(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys
