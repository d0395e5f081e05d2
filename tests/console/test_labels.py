"""Pages speak in words: kinds of columns and entries, titles of problems, and amounts that can be looked up."""

from __future__ import annotations

import re

from lapwing.interfaces.console.words.labels import ENTRIES, TYPES
from lapwing.kernel.domains import Kind
from lapwing.ledger.protocol import EntryKind
from tests.console.visitor import Visitor
from tests.server.under_test import ServerUnderTest

CELL = re.compile(r"<td>(.*?)</td>")


def _signed_in(server: ServerUnderTest, name: str) -> Visitor:
    visitor = Visitor(server)
    visitor.sign_in(name)
    return visitor


def test_every_kind_has_words() -> None:
    assert {kind.value for kind in EntryKind} <= set(ENTRIES)
    assert {kind.value for kind in Kind} <= set(TYPES)


def test_columns_are_of_kinds_that_people_know(server: ServerUnderTest) -> None:
    text = _signed_in(server, "ada").get("/console/d/{d}").text
    kinds = [CELL.findall(row)[0] for row in text.split('<th scope="row">')[1:]]
    assert len(kinds) > 10 and set(kinds) <= set(TYPES.values())
    assert {"identifier", "whole number", "yes or no", "date and time"} <= set(kinds)


def test_entries_are_told_in_words_and_what_they_count_in_is_explained(server: ServerUnderTest) -> None:
    aude = _signed_in(server, "aude")
    ledger = aude.get("/console/d/{d}/ledger").text
    assert re.search(r"<td>ledger created <code[^>]*>register</code></td>", ledger)
    for page in (ledger, aude.get("/console/d/{d}/report").text):
        assert 'popovertarget="about-rho">rho</button>' in page and 'id="about-rho"' in page


def test_titles_of_problems_have_no_codes(server: ServerUnderTest) -> None:
    ada = _signed_in(server, "ada")
    for path, title in (("/console/d/{d}/nowhere", "Nothing here"), ("/console/d/{d}/access", "Not allowed")):
        text = ada.get(path).text
        assert f"<title>{title} · Lapwing</title>" in text, path
        assert text.index('<div class="told"') < text.index('<p class="code">')  # the code comes last, after what happened
