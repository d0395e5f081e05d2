"""How pages are built: nothing that keeps somebody out (axe-core), little to load, and nothing from elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from lapwing.interfaces.console.assets import FOLDER
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.http.configuration import NewDataSettings
from tests.console.browser import DESKTOP, PHONE, Visited, axe_source, reachable, settled, typed, write_signed_demo
from tests.meta.tree import ROOT
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("console: browser")

LONG_ANSWERS = (
    "SELECT day, COUNT(*) AS visits FROM visits GROUP BY day ORDER BY day",
    "SELECT DATE_TRUNC('month', day) AS month, kind, COUNT(*) AS visits FROM visits JOIN clinics USING (clinic_id) GROUP BY month, kind",
    "SELECT region, sex, birth_year, COUNT(*) AS n FROM patients WHERE birth_year > 2015 GROUP BY 1, 2, 3 ORDER BY n DESC",
)
"""A band over many days, a line for each series, and groups in pages."""
STATEMENT = "SELECT region, COUNT(*) AS n, AVG(income) AS income FROM patients GROUP BY region"
FIRST_PAGE_BYTES_MAX = 300_000
FRONTEND = ROOT / "frontend"


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core."""
    return axe_source(tmp_path_factory.mktemp("axe"))


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    """A server on which a data set can be declared, from files with times."""
    home = tmp_path_factory.mktemp("visited")
    (home / "files").mkdir()
    rows = "".join(f'{number},2024-03-01 12:{number:02},"York, Maine"\n' for number in range(60))
    for name in ("dark", "light"):  # a file is of one data set
        (home / "files" / f"{name}.csv").write_text(f"Reader,Taken,City\n{rows}", encoding="utf-8")
    settings = NewDataSettings(sources="files")
    with ServerUnderTest.over(write_signed_demo, home, new_data=settings) as under_test, reachable(under_test) as found:
        yield found


@pytest.fixture(scope="module")
def addresses(visited: Visited) -> dict[str, list[str]]:
    """Every page, by who looks at it."""
    assert visited.under_test.ask(STATEMENT, epsilon="0.2").status_code == 200
    charge = visited.under_test.call("GET", "/v1/data-sets/{d}/history").json()["entries"][0]["charge"]
    token, refused = PageQuestion(STATEMENT, "0.2").token(), PageQuestion("SELECT region FROM patientz", "0.2").token()
    asked = [f"ask?q={token}", f"ask?q={refused}", f"answer?q={token}", f"answer?q={refused}"]
    both = [visited.url + "/console/", visited.path("nowhere")]
    return {
        "ada": [*both, *(visited.path(page) for page in ("", "ask", *asked, "history", "budget", f"receipts/{charge}"))],
        "aude": [visited.path(page) for page in ("", "ledger", "report", f"receipts/{charge}", "ask")],
        "olga": [visited.url + "/console/words", *(visited.path(page) for page in ("spending", "access", "versions", "incidents"))],
        "": [visited.url + "/console/sign-in"],
    }


def _findings(page: Page, axe: str) -> list[dict[str, Any]]:
    page.evaluate(axe)
    found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run()).violations")
    return [
        {"rule": item["id"], "impact": item["impact"], "where": [node["target"] for node in item["nodes"]][:3], "page": page.url[:90]}
        for item in found
    ]


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (PHONE, True)], ids=["desktop light", "phone dark"])
def test_nobody_is_kept_out(
    visited: Visited, browser: Browser, axe: str, addresses: dict[str, list[str]], size: tuple[int, int], dark: bool
) -> None:
    findings, seen = [], 0
    for who, listed in addresses.items():
        with visited.page(browser, who or None, size=size, dark=dark) as page:
            for address in listed:
                page.goto(address)
                findings += _findings(page, axe)
                seen += 1
    assert findings == []
    assert seen >= 21


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, True), (PHONE, False)], ids=["desktop dark", "phone light"])
def test_nobody_is_kept_out_of_what_follows_on_an_act(
    visited: Visited, browser: Browser, axe: str, size: tuple[int, int], dark: bool
) -> None:
    """A draft that came back, a session that is over, each question about a new data set, its refusals, and a preparation that stopped."""
    findings = []
    with visited.page(browser, "ada", size=size, dark=dark) as page:
        page.goto(visited.path("ask"))
        typed(page, STATEMENT.replace("region", "sex"))
        page.click(".priced summary")
        page.reload()
        settled(page)
        findings += _findings(page, axe)
        page.context.clear_cookies()
        page.locator(".cm-content").press("Space")
        page.get_by_role("link", name="Sign in again").wait_for()
        findings += _findings(page, axe)
        page.goto(f"{visited.url}/console/sign-in")
        page.fill("#key", "lw_wrong")
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        findings += _findings(page, axe)
    name = "dark" if dark else "light"
    with visited.page(browser, "olga", size=size, dark=dark) as page:

        def go_on(heading: str) -> None:
            page.click("button[value=next]")
            page.get_by_role("heading", level=2, name=heading).wait_for()
            findings.extend(_findings(page, axe))

        page.goto(f"{visited.url}/console/new")
        findings += _findings(page, axe)
        page.check(f"[name='take:file:{name}.csv']")
        go_on("Who is protected?")
        page.check(f"[value='{name}.reader']")
        page.fill("#unit", "reader")
        go_on("Which values are public?")
        page.select_option(f"[name=kind-{name}-taken]", "date")
        page.select_option(f"[name=kind-{name}-city]", "list")
        page.fill(f"[name=words-{name}-city]", "York, Maine\nLeeds")
        page.click("button[value=next]")
        page.get_by_role("alert").wait_for()
        findings += _findings(page, axe)
        page.fill(f"[name=least-{name}-taken]", "2024-01-01")
        page.fill(f"[name=most-of-{name}-taken]", "2024-12-31")
        go_on("How much may the answers reveal?")
        go_on("Is this right?")
        page.click("button[value=next]")
        page.get_by_role("button", name="Prepare").click()
        page.get_by_role("heading", name="Version 1 is not prepared").wait_for()
        findings += _findings(page, axe)
    assert findings == []


@pytest.mark.parametrize(("size", "dark"), [(DESKTOP, False), (PHONE, True)], ids=["desktop light", "phone dark"])
def test_long_answers_keep_nobody_out(visited: Visited, browser: Browser, axe: str, size: tuple[int, int], dark: bool) -> None:
    """Whatever axe-core finds is a finding here; a chart has its name and its words."""
    findings = []
    for sql in LONG_ANSWERS:
        assert visited.under_test.ask(sql, epsilon="0.2").status_code == 200
        with visited.page(browser, size=size, dark=dark) as page:
            page.goto(visited.path(f"answer?part=2&q={PageQuestion(sql, '0.2').token()}"))
            findings += _findings(page, axe)
            expect(page.get_by_role("img", name=" by ")).to_have_count(1)
            expect(page.get_by_role("navigation", name="Pages of the table")).to_contain_text("Rows 51 to")
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert findings == []


def test_the_numbers_are_beside_the_chart_where_there_is_room(visited: Visited, browser: Browser) -> None:
    assert visited.under_test.ask(STATEMENT, epsilon="0.2").status_code == 200
    address = visited.path(f"answer?q={PageQuestion(STATEMENT, '0.2').token()}")
    for width, beside in ((1440, True), (1024, False), (390, False)):
        with visited.page(browser, size=(width, 900)) as page:
            page.goto(address)
            main, chart, numbers = (page.locator(place).bounding_box() for place in ("main", "section.chart", "section.numbers"))
            assert main is not None and chart is not None and numbers is not None
            assert (numbers["x"] >= chart["x"] + chart["width"]) == beside, width
            if beside:
                assert numbers["x"] + numbers["width"] - chart["x"] > 0.9 * main["width"], "the width of the page is used"
                assert numbers["y"] < chart["y"] + 50


def _loaded(page: Page, address: str) -> dict[str, int]:
    """What a page loads, and how many bytes each comes in."""
    sizes: dict[str, int] = {}

    def note(reply: Response) -> None:
        body = reply.body() if reply.status == 200 else b""
        # The server sends texts of assets compressed; the browser unpacks them before they can be counted.
        compressed = reply.headers.get("content-encoding") == "gzip"
        sizes[reply.url] = len(gzip.compress(body, 9)) if compressed else len(body)

    page.on("response", note)
    page.goto(address, wait_until="networkidle")
    page.remove_listener("response", note)
    return sizes


def test_the_first_page_is_light_and_all_is_from_here(visited: Visited, browser: Browser, addresses: dict[str, list[str]]) -> None:
    weights = {}
    for name, who, address in (
        ("sign-in", None, addresses[""][0]),
        ("data sets", "ada", addresses["ada"][0]),
        ("ask", "ada", visited.path("ask")),
        ("answer", "ada", next(address for address in addresses["ada"] if "/answer" in address)),
    ):
        with visited.page(browser, who) as page:
            loaded = _loaded(page, address)
        assert all(url.startswith(visited.url) for url in loaded), name
        assert len(loaded) >= 3
        weights[name] = sum(loaded.values())
    assert max(weights.values()) <= FIRST_PAGE_BYTES_MAX, weights
    assert weights["sign-in"] <= 100_000, weights


def test_assets_are_sent_compressed(visited: Visited) -> None:
    page = visited.under_test.client.get("/console/sign-in").text
    address = page.split('rel="stylesheet" href="')[1].split('"')[0]
    reply = visited.under_test.client.get(address, headers={"Accept-Encoding": "gzip"})
    assert reply.headers["content-encoding"] == "gzip"
    plain = visited.under_test.client.get(address, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert reply.text == plain.text


# -- what is shipped of others' work ------------------------------------------------------------------------------------------------------


def _digests(folder: Path) -> dict[str, str]:
    built = [path for path in sorted(folder.iterdir()) if path.suffix == ".woff2" or path.name in ("editor.js", "licences.txt")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built}


def test_what_is_shipped_is_what_was_built() -> None:
    kept = json.loads((FRONTEND / "built.json").read_text())
    assert kept["assets"] == _digests(FOLDER)
    sources = {name: hashlib.sha256((FRONTEND / name).read_bytes()).hexdigest() for name in ("build.mjs", "editor.js", "package.json")}
    assert kept["sources"] == sources, "build again: npm install && npm run build, in frontend"


def test_every_package_that_is_shipped_has_its_licence() -> None:
    licences = (FOLDER / "licences.txt").read_text()
    for name, version in json.loads((FRONTEND / "package.json").read_text())["dependencies"].items():
        assert f"{name} {version}\n" in licences, name
    assert "Permission is hereby granted" in licences
    assert "SIL OPEN FONT LICENSE" in licences.upper()


@pytest.mark.soak("digests of the assets and of what they were built from are compared")
def test_building_again_gives_the_same(tmp_path: Path) -> None:
    for name in ("build.mjs", "editor.js", "package.json"):
        (tmp_path / name).write_bytes((FRONTEND / name).read_bytes())
    (tmp_path / "assets").mkdir()
    install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
    subprocess.run(install, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    subprocess.run(["node", "build.mjs", str(tmp_path / "assets")], cwd=tmp_path, check=True, capture_output=True, timeout=600)
    assert _digests(tmp_path / "assets") == _digests(FOLDER)
