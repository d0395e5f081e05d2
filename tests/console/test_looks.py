"""How pages are built: nothing that keeps somebody out (axe-core), little to load, and nothing from elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response

from lapwing.console.assets import FOLDER
from lapwing.console.questions import PageQuestion
from tests.console.browser import DESKTOP, PHONE, Visited, axe_source
from tests.meta.tree import ROOT

pytestmark = pytest.mark.xdist_group("console: browser")

STATEMENT = "SELECT region, COUNT(*) AS n, AVG(income) AS income FROM patients GROUP BY region"
FIRST_PAGE_BYTES_MAX = 300_000
FRONTEND = ROOT / "frontend"


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core."""
    return axe_source(tmp_path_factory.mktemp("axe"))


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
        if item["impact"] in ("serious", "critical")
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
