"""Waiting for a slow answer: a terminal or a notebook shows the elapsed time, and the user can interrupt it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

SHOWN_AFTER_SECONDS = 1.5
"""Nothing is shown before: most answers are ready by then."""
_EVERY_SECONDS = 0.25

Waiting = Callable[[float], None]
"""Called periodically with the seconds spent waiting for an answer."""
Result = TypeVar("Result")


def begun(work: Callable[[], Result]) -> Future[Result]:
    """Start work in a separate thread, which does not keep the process alive."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="lapwing-waiting", daemon=True).start()
    return future


def waited_for(work: Callable[[], Result], waiting: Waiting | None = None) -> Result:
    """The result of ``work``. ``waiting`` is called while it takes long; by default a terminal or a notebook shows the time.

    Interrupting the wait does not interrupt the work.
    """
    display = _display() if waiting is None else None
    if waiting is None and display is None:
        return work()
    future, start = begun(work), time.monotonic()
    wait([future], timeout=SHOWN_AFTER_SECONDS)
    if future.done():
        return future.result()
    if waiting is not None:
        return _told(future, start, waiting)
    assert display is not None
    with display() as show:
        return _told(future, start, show)


def _told(future: Future[Result], start: float, waiting: Waiting) -> Result:
    while not future.done():
        waiting(time.monotonic() - start)
        wait([future], timeout=_EVERY_SECONDS)
    return future.result()


def waiting_text(seconds: float) -> str:
    """The text to show."""
    return f"waiting for the answer, {seconds:.0f} s"


def _display() -> Callable[[], Any] | None:
    """The display of the time; None without a terminal or a notebook."""
    if threading.current_thread() is not threading.main_thread():
        return None
    if _in_notebook():
        return _in_the_notebook
    return on_terminal if sys.stderr.isatty() else None


def _in_notebook() -> bool:
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def on_terminal() -> Iterator[Waiting]:
    """Shows a line on standard error, which disappears at the end."""
    from rich.console import Console

    # a command escapes control characters; ``rich_proxied_file`` is its bare stream, for what the console draws
    stream = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    with line_shown(Console(file=stream, highlight=False), waiting_text(0)) as show:
        yield lambda seconds: show(waiting_text(seconds))


@contextmanager
def line_shown(console: Console, text: str) -> Iterator[Callable[[str], None]]:
    """Shows a text and a spinner on a terminal, on one line that disappears at the end; nothing without a terminal.

    The standard streams are not redirected: rich would replace the stream that escapes control characters.
    """
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    def plain(text: str) -> Text:
        return Text(text, no_wrap=True, overflow="ellipsis")

    spinner = Spinner("dots", plain(text), style="color(31)")
    with Live(spinner, console=console, refresh_per_second=12.5, transient=True, redirect_stdout=False, redirect_stderr=False):
        yield lambda text: spinner.update(text=plain(text))


@contextmanager
def _in_the_notebook() -> Iterator[Waiting]:
    from IPython.display import HTML, display

    handle: Any = display(HTML(""), display_id=True)  # type: ignore[no-untyped-call]
    try:
        yield lambda seconds: handle.update(HTML(f"<i>{waiting_text(seconds)}</i>"))  # type: ignore[no-untyped-call]
    finally:
        handle.update(HTML(""))  # type: ignore[no-untyped-call]
