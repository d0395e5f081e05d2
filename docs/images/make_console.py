"""Takes pictures of every page of the console, at the width of a desk and of a phone: a server over made-up data, and Debian's chromium.

python -m docs.images.make_console            # those that the documentation shows, into docs/images/console
python -m docs.images.make_console /tmp/all   # all of them, to look at

It needs what the tests need: chromium, and PostgreSQL for a ledger that knows analysts. Answers are noisy, so no two runs are the same.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

from lapwing.engines.duckdb.snapshot import DuckDBSnapshot
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.http.configuration import NewDataSettings
from tests.console.browser import DESKTOP, PHONE, Visited, chromium, reachable, settled
from tests.console.test_new_owner import write_loans
from tests.ledger.cluster import Cluster
from tests.ledger.wired import new_wired
from tests.server.under_test import ServerUnderTest

HERE = Path(__file__).resolve().parent / "console"
HEIGHT_MAX = 1_500
COLOURS = 128
"""Pages have few colours, and charts some more; a palette makes half of the bytes."""
PATIENTS = 5_000
BY_REGION = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY n DESC LIMIT 8"
BY_YEAR = "SELECT EXTRACT(YEAR FROM day) AS year, kind, COUNT(*) AS visits FROM visits JOIN clinics USING (clinic_id) GROUP BY year, kind"
BY_QUARTER = (
    "SELECT DATE_TRUNC('quarter', day) AS quarter, kind, COUNT(DISTINCT patient_id) AS patients\n"
    "FROM visits JOIN clinics USING (clinic_id) GROUP BY quarter, kind ORDER BY quarter"
)
REFUSED = "SELECT COUNT(*) FROM patients WHERE incom > 50000"
KEPT = frozenset(
    {
        "ask-desktop",
        "ask-phone",
        "answer-desktop",
        "answer-phone",
        "answer-lines-desktop",
        "answer-lines-phone",
        "refused-phone",
        "tables-desktop",
        "budget-phone",
        "who-desktop",
        "values-desktop",
        "values-phone",
        "versions-desktop",
        "spending-desktop",
        "spending-phone",
        "access-desktop",
        "access-phone",
        "incidents-desktop",
        "incidents-phone",
        "ledger-desktop",
        "receipt-desktop",
        "report-phone",
    }
)
"""Pictures that the documentation has."""


@dataclass(frozen=True)
class Shot:
    """A page as somebody sees it; ``act`` does what has to be done first, such as answering the questions before."""

    name: str
    who: str | None
    path: str
    act: Callable[[Page], object] = lambda page: None


def shots(visited: Visited) -> list[Shot]:
    """Every page, in the order of the documentation."""
    d = f"/console/d/{visited.under_test.data_set}"
    region, heat, refused = (PageQuestion(sql, "0.2").token() for sql in (BY_REGION, BY_YEAR, REFUSED))
    dearer, lines = PageQuestion(BY_REGION, "0.5").token(), PageQuestion(BY_QUARTER, "1").token()
    entries = visited.under_test.call("GET", "/v1/data-sets/{d}/history").json()["entries"]
    charge = next(entry["charge"] for entry in entries if entry["kind"] == "commit")
    return [
        Shot("sign-in", None, "/console/sign-in"),
        Shot("data-sets", "ada", "/console/"),
        Shot("tables", "ada", d),
        Shot("ask", "ada", f"{d}/ask?q={dearer}", settled),
        Shot("refused", "ada", f"{d}/ask?q={refused}", settled),
        Shot("answer", "ada", f"{d}/answer?q={region}"),
        Shot("answer-lines", "ada", f"{d}/answer?q={lines}"),
        Shot("answer-map", "ada", f"{d}/answer?q={heat}"),
        Shot("history", "ada", f"{d}/history"),
        Shot("budget", "ada", f"{d}/budget"),
        Shot("words", "ada", "/console/words"),
        Shot("file", "olga", "/console/new"),
        Shot("who", "olga", "/console/new", _to_who),
        Shot("values", "olga", "/console/new", _to_values),
        Shot("much", "olga", "/console/new", _to_much),
        Shot("check", "olga", "/console/new", _to_check),
        Shot("versions", "olga", f"{d}/versions"),
        Shot("spending", "olga", f"{d}/spending"),
        Shot("access", "otto", f"{d}/access", lambda page: page.click("text=Admit or suspend an analyst")),
        Shot("ledger", "aude", f"{d}/ledger"),
        Shot("receipt", "aude", f"{d}/receipts/{charge}"),
        Shot("report", "aude", f"{d}/report"),
        Shot("nothing", "ada", f"{d}/nowhere"),
    ]


def _go_on(page: Page) -> None:
    page.get_by_role("button", name="Go on").click()


def _to_who(page: Page) -> None:
    page.get_by_label("loans.csv").check()
    _go_on(page)


def _to_values(page: Page) -> None:
    _to_who(page)
    page.get_by_label("Reader").check()
    page.get_by_label("What do you call one of them?").fill("reader")
    page.get_by_label("How many rows can one of them have at most?").fill("60")
    _go_on(page)
    page.select_option("[name=kind-loans-branch]", "list")
    page.fill("[name=words-loans-branch]", "central\nharbour\nhill\nstation")


def _to_much(page: Page) -> None:
    _to_values(page)
    for column, least, most in (("day", "2025-01-01", "2025-12-31"), ("days_kept", "0", "120")):
        page.fill(f"[name=least-loans-{column}]", least)
        page.fill(f"[name=most-of-loans-{column}]", most)
    _go_on(page)


def _to_check(page: Page) -> None:
    _to_much(page)
    _go_on(page)


@contextmanager
def served() -> Iterator[Visited]:
    """A server over the demonstration, with a ledger on PostgreSQL in which something has happened."""
    cluster = Cluster(["log_parameter_max_length=0"])
    try:
        with tempfile.TemporaryDirectory(prefix="lapwing-pictures-") as folder:
            home = Path(folder)
            (home / "files").mkdir()
            write_loans(home / "files" / "loans.csv", readers=200)
            dsn, settings = cluster.dsn(cluster.new_database()), NewDataSettings(sources="files")
            with (
                ServerUnderTest.over(lambda _: new_wired(home, dsn, patients=PATIENTS), home, new_data=settings) as under_test,
                reachable(under_test) as found,
            ):
                _live_in(under_test)
                yield found
    finally:
        cluster.close()


def _live_in(server: ServerUnderTest) -> None:
    """Analysts with shares, questions, a wish and a proposal that wait."""
    for name, share in (("ada", 0.5), ("bo", 0.2)):
        body = {"share": share, "reason": "the study of winter"}
        assert server.call("PUT", f"/v1/data-sets/{{d}}/analysts/{name}", by="olga", json=body).status_code == 200
    for sql in ("SELECT smoker, AVG(income) AS income FROM patients GROUP BY smoker", BY_YEAR, BY_REGION):
        assert server.ask(sql, epsilon="0.2").status_code == 200, sql
    assert server.ask(BY_QUARTER, epsilon="1").status_code == 200
    assert server.call("POST", "/v1/data-sets/{d}/requests", json={"share": 0.6, "reason": "two tables are left"}).status_code == 201
    proposal = {"what": "budget", "epsilon": "2.5", "reason": "be careful"}
    assert server.call("POST", "/v1/data-sets/{d}/proposals", by="olga", json=proposal).status_code == 201


def _fail_once(server: ServerUnderTest) -> None:
    """An incident: the engine fails, and the data set is closed."""
    whole = DuckDBSnapshot.run

    def failing(*_: object, **__: object) -> None:
        raise OSError("a disk is full")

    DuckDBSnapshot.run = failing  # type: ignore[method-assign, assignment]
    try:
        assert server.ask("SELECT COUNT(*) AS n FROM visits WHERE minutes > 41", epsilon="0.1").status_code == 500
    finally:
        DuckDBSnapshot.run = whole  # type: ignore[method-assign]


def take(visited: Visited, browser: Browser, shot: Shot, size: tuple[int, int], *, dark: bool = False) -> bytes:
    """One picture, with a small palette."""
    with visited.page(browser, shot.who, size=size, dark=dark) as page:
        page.goto(visited.url + shot.path)
        shot.act(page)
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if wider > 0:
            print(f"{shot.name} is {wider} pixels wider than the screen of {size[0]}", file=sys.stderr)
        page.mouse.move(0, 0)
        high = min(page.evaluate("document.documentElement.scrollHeight"), HEIGHT_MAX)
        whole = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": size[0], "height": high}, animations="disabled")
    out = io.BytesIO()
    few = Image.open(io.BytesIO(whole)).convert("RGB").quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(out, "PNG", optimize=True)
    return out.getvalue()


def main(target: Path | None) -> None:
    """Take those that are kept, or all."""
    folder = HERE if target is None else target
    folder.mkdir(parents=True, exist_ok=True)
    with served() as visited, chromium() as browser:
        listed = shots(visited)
        for shot in [*listed, Shot("incidents", "olga", f"/console/d/{visited.under_test.data_set}/incidents")]:
            if shot.name == "incidents":
                _fail_once(visited.under_test)
            for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
                if target is None and f"{shot.name}-{name}" not in KEPT:
                    continue
                picture = take(visited, browser, shot, size)
                (folder / f"{shot.name}-{name}.png").write_bytes(picture)
                print(f"{shot.name}-{name}: {len(picture):,} bytes", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
