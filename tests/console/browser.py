"""Pages as a browser shows them: the server on a port of this machine, Debian's chromium, and people who are signed in."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from lapwing.demo import write_demo
from lapwing.interfaces.http.identity.sessions import SignedIn
from lapwing.receipts import new_key
from tests.server.under_test import ServerUnderTest

AXE = "axe-core@4.14.0"
START_SECONDS = 30
WAIT_MILLISECONDS = 20_000
DESKTOP, PHONE = (1280, 860), (390, 800)
expect.set_options(timeout=WAIT_MILLISECONDS)  # a context's own default is for acts alone


@dataclass
class Visited:
    """A server that browsers can reach."""

    under_test: ServerUnderTest
    url: str

    def path(self, page: str = "") -> str:
        """The address of a page of the data set."""
        return f"{self.url}/console/d/{self.under_test.data_set}" + (f"/{page}" if page else "")

    def session_of(self, name: str) -> str:
        """A new session of somebody, as signing in would give it."""
        app_state = self.under_test.app_state
        key_id = self.under_test.keys[name].split("_")[1]
        return app_state.identities.sessions.begin(SignedIn(name, key_id), hours=1)

    @contextmanager
    def page(
        self, browser: Browser, name: str | None = "ada", *, size: tuple[int, int] = DESKTOP, dark: bool = False, script: bool = True
    ) -> Iterator[Page]:
        """A page of somebody who is signed in, or of nobody. Whatever it wants from elsewhere, or its policy forbids, is an error."""
        width, height = size
        screen = ViewportSize(width=width, height=height)
        context = browser.new_context(viewport=screen, color_scheme="dark" if dark else "light", java_script_enabled=script)
        context.set_default_timeout(WAIT_MILLISECONDS)
        if name is not None:
            context.add_cookies([{"name": "lapwing", "value": self.session_of(name), "url": self.url}])
        wrong: list[str] = []
        page = context.new_page()
        page.on("request", lambda request: None if request.url.startswith((self.url, "blob:", "data:")) else wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
        try:
            yield page
            assert wrong == [], wrong
        finally:
            context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser."""
    found = shutil.which("chromium")
    assert found is not None, "the tests of the console need Debian's chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def axe_source(folder: Path) -> str:
    """The source of axe-core, which is fetched into this folder."""
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--prefix", str(folder), AXE]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


@contextmanager
def reachable(under_test: ServerUnderTest) -> Iterator[Visited]:
    """The application of a server under test on a port, beside the client of the tests."""
    app = under_test.client.app
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, lifespan="off", log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, name="server of pages", daemon=True)
    thread.start()
    until = time.monotonic() + START_SECONDS
    while not server.started:
        assert time.monotonic() < until, "the server did not start"
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Visited(under_test, f"http://127.0.0.1:{port}")
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)


def write_signed_demo(directory: Path, *, patients: int = 2_000) -> None:
    """The demonstration, with receipts that are signed."""
    write_demo(directory, patients=patients)
    new_key(directory / "keys")
    catalogue = directory / "lapwing.toml"
    catalogue.write_text(catalogue.read_text() + '\n[ledger]\nkeys = "keys"\n', encoding="utf-8")


def typed(page: Page, sql: str, *, epsilon: str | None = None) -> None:
    """Put a statement into the editor, in place of what is there, and wait until it is priced or refused."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")  # else the browser tries to carry the style of a keyword over, and the policy forbids it
    page.keyboard.insert_text(sql)
    if epsilon is not None:
        page.fill("#epsilon", epsilon)
    settled(page)


def settled(page: Page) -> None:
    """Wait until what is shown is of the text that is there."""
    page.wait_for_selector("#price:not([aria-busy]) :is(.priced, .refused)")
