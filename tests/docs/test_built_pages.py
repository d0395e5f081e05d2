"""The documentation as it is built: nothing is asked from another host, formulas need no script, and code can be copied."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.console.browser import PHONE, chromium
from tests.docs.pages import ROOT
from tests.docs.test_front_door import READERS

DOCS = ROOT / "docs"
PAGES = ("index.md", "reference/words.md", "proofs/union-of-filters.md", "how-to/read-an-answer.md")
BUILDERS_OWN = "what-only-the-builder-knows"
_LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
_OTHER_HOST = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
_IN_STYLE = re.compile(r"@import|url\(\s*['\"]?(?:[a-z]+:)?//", re.IGNORECASE)


class _Loaded(HTMLParser):
    """What a page has a browser load, and which elements it has."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in ("stylesheet", "icon", "preload", "modulepreload", "manifest"):
            return
        address = given.get(_LOADS.get(tag, ""))
        if address is not None:
            self.addresses.append(address)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few pages, built with the real configuration. Links to the others lead nowhere here, which is why warnings are let be."""
    source, target = tmp_path_factory.mktemp("pages"), tmp_path_factory.mktemp("built")
    for page in PAGES:
        (source / page).parent.mkdir(exist_ok=True)
        shutil.copy(DOCS / page, source / page)
    shutil.copytree(DOCS / "images", source / "images")
    (source / "signatures.rst").write_text("Signatures\n==========\n\n.. automodule:: lapwing.ledger.connect\n   :members:\n")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-Q", "-b", "html", "-c", str(DOCS), str(source), str(target)],
        check=True,
        cwd=ROOT,
        env={**os.environ, "BUILDERS_OWN": BUILDERS_OWN},
    )
    return target


def test_the_picture_of_the_first_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("make_front", DOCS / "images" / "make_front.py")
    assert spec is not None and spec.loader is not None
    make_front = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_front)
    drawn: dict[str, str] = make_front.pictures()
    assert len(drawn) == 4
    assert {name: (DOCS / "images" / name).read_text(encoding="utf-8") for name in drawn} == drawn, "run: python docs/images/make_front.py"


def _read(page: Path) -> _Loaded:
    loaded = _Loaded()
    loaded.feed(page.read_text(encoding="utf-8"))
    return loaded


def test_no_page_loads_anything_from_another_host(built: Path) -> None:
    pages = [*built.rglob("*.html")]
    assert len(pages) >= len(PAGES)
    addresses = {address for page in pages for address in _read(page).addresses}
    assert any("lapwing.css" in address for address in addresses)
    assert sorted(address for address in addresses if _OTHER_HOST.match(address)) == []
    sheets = [*built.rglob("*.css")]
    assert sheets
    assert [sheet.name for sheet in sheets if _IN_STYLE.search(sheet.read_text(encoding="utf-8"))] == []


def test_what_would_be_loaded_from_elsewhere_is_found() -> None:
    page = _Loaded()
    page.feed(
        '<script src="https://x.invalid/a.js"></script><link rel="stylesheet" href="//y.invalid/b.css"><a href="https://z.invalid">c</a>'
    )
    assert [address for address in page.addresses if _OTHER_HOST.match(address)] == ["https://x.invalid/a.js", "//y.invalid/b.css"]


def test_signatures_show_defaults_as_written_and_no_variable_of_the_builder(built: Path) -> None:
    page = (built / "signatures.html").read_text(encoding="utf-8")
    assert "place_of" in page and "os.environ" in page
    texts = [path.read_text(encoding="utf-8") for path in built.rglob("*") if path.suffix in (".html", ".js")]
    assert not [text for text in texts if BUILDERS_OWN in text or "BUILDERS_OWN" in text]


def test_formulas_are_drawn_without_a_script(built: Path) -> None:
    page = built / "proofs" / "union-of-filters.html"
    text = page.read_text(encoding="utf-8")
    assert text.count("<math") > 50
    loaded = _read(page)
    assert {"math", "mfrac", "msub"} <= loaded.tags
    assert not [address for address in loaded.addresses if re.search("mathjax|katex", address, re.IGNORECASE)]
    assert not re.search(r"\\\(|\\begin", text)


def test_code_has_a_button_to_copy_it_and_the_search_ranks(built: Path) -> None:
    page = (built / "how-to" / "read-an-answer.html").read_text(encoding="utf-8")
    assert "copybutton.js" in page
    assert "copybutton.css" in page
    ranking = (DOCS / "_static" / "ranking.js").read_text(encoding="utf-8").strip()
    assert ranking in (built / "_static" / "language_data.js").read_text(encoding="utf-8")


def test_code_that_is_wider_than_a_phone_is_reached_with_the_keyboard_and_other_code_is_passed_over(built: Path) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": PHONE[0], "height": PHONE[1]})
        page.goto((built / "how-to" / "read-an-answer.html").as_uri())
        seen: list[tuple[bool, int]] = page.locator(".highlight pre").evaluate_all(
            "blocks => blocks.map(block => [block.scrollWidth > block.clientWidth, block.tabIndex])"
        )
        stops = sum(wide for wide, _ in seen)
        assert 0 < stops < len(seen) and all((place == 0) == wide for wide, place in seen)


def test_the_index_leads_from_the_words_people_type_to_a_page(built: Path) -> None:
    """The search puts these entries first; tests/docs/test_whole_docs.py types the words."""
    text = (built / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    place = index["docnames"].index("how-to/read-an-answer")
    assert [(page, main) for page, _, main in index["indexentries"]["error bar"]] == [(place, True)]


def test_the_first_page_has_six_doors_and_a_picture_for_each_theme_and_width(built: Path) -> None:
    page = built / "index.html"
    text = page.read_text(encoding="utf-8")
    assert text.count('class="door docutils container"') == len(READERS)
    assert [name for name in READERS if not re.search(rf"<h2[^>]*>{name}</h2>", text)] == []
    pictures = {address.rpartition("/")[2] for address in _read(page).addresses if "front-" in address}
    assert pictures == {f"front-{size}-{theme}.svg" for size in ("wide", "narrow") for theme in ("light", "dark")}
