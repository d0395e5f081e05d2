"""All pages in a real browser: the search finds what people type, and nothing keeps a reader out (axe-core, both colour schemes)."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Browser, Page

from tests.console.browser import DESKTOP, PHONE, axe_source, chromium
from tests.docs.pages import ROOT
from tests.support.repeatable_draws import RUN
from tests.support.sizes import size

pytestmark = pytest.mark.xdist_group("docs: browser")

DOCS = ROOT / "docs"
MADE = DOCS / "_build" / "html"
"""Where ``make docs`` puts them."""
FIRST = 3
WANTED = {
    "install": "how-to/install",
    "back up": "how-to/back-up-a-server",
    "backup": "how-to/back-up-a-server",
    "error bar": "how-to/read-an-answer",
    "superset": "how-to/superset",
    "grafana": "how-to/grafana",
    "metabase": "how-to/metabase",
    "forgot key": "how-to/serve",
    "noise too large": "explanation/accuracy",
    "price": "tutorials/how-far-a-budget-goes",
    "refused": "reference/refusals",
    "delete data set": "explanation/life-cycle",
    "docker": "how-to/run-in-a-container",
    "container": "how-to/run-in-a-container",
    "upgrade": "how-to/upgrade-a-server",
}
_FOUND = "() => /Search finished|did not match/.test(document.querySelector('.search-summary')?.innerText || '')"
_HREFS = "links => links.map(link => link.getAttribute('href'))"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pages, as ``make docs`` left them if no page is newer; else built here, without those of modules, which take the longest."""
    index = MADE / "searchindex.js"
    newest = max(path.stat().st_mtime for path in [*DOCS.rglob("*.md"), *(DOCS / "_static").iterdir(), DOCS / "conf.py"])
    if index.is_file() and index.stat().st_mtime > newest:
        return MADE
    source, target = tmp_path_factory.mktemp("pages"), tmp_path_factory.mktemp("built")
    shutil.copytree(DOCS, source, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_build", "generated", "api.md"))
    subprocess.run([sys.executable, "-m", "sphinx", "-Q", "-b", "html", "-c", str(DOCS), str(source), str(target)], check=True, cwd=ROOT)
    return target


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for this file."""
    with chromium() as started:
        yield started


def _results(page: Page, built: Path, words: str) -> list[str]:
    """Names of the pages that the search finds, best first, each once."""
    page.goto(f"{(built / 'search.html').as_uri()}?q={quote_plus(words)}")
    page.wait_for_function(_FOUND)
    addresses: list[str] = page.locator("#search-results li > a").evaluate_all(_HREFS)
    return [*dict.fromkeys(address.partition(".html")[0] for address in addresses)]


def test_the_search_finds_what_people_type(built: Path, browser: Browser) -> None:
    page = browser.new_page()
    found = {words: _results(page, built, words)[:FIRST] for words in WANTED}
    assert {words: pages for words, pages in found.items() if WANTED[words] not in pages} == {}
    assert _results(page, built, "xylophone") == []


def _findings(page: Page, axe: str) -> list[tuple[str, Any]]:
    page.evaluate(axe)
    found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [(item["id"], item["nodes"][0]["target"]) for item in found]


@pytest.mark.parametrize(("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop light", "phone dark"])
def test_no_page_keeps_a_reader_out(
    built: Path, browser: Browser, tmp_path_factory: pytest.TempPathFactory, viewport: tuple[int, int], scheme: Any
) -> None:
    axe = axe_source(tmp_path_factory.mktemp("axe"))
    page = browser.new_page(viewport={"width": viewport[0], "height": viewport[1]}, color_scheme=scheme)
    findings = {}
    pages = sorted(built.rglob("*.html"))
    assert len(pages) > 150
    for path in random.Random(RUN).sample(pages, min(size("pages, barriers"), len(pages))):
        page.goto(path.as_uri())
        if found := _findings(page, axe):
            findings[str(path.relative_to(built))] = found
    assert findings == {}
