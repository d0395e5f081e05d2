"""Terms are explained once: in two sentences each, with a picture; the page of the documentation is made from them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from docs.make_words import DOCS, PAGE, PICTURES, SHEET, page, pictures

from lapwing.interfaces.console.charts import style_sheet
from lapwing.interfaces.console.words import BY_KEY, TERMS, Term, picture

_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_ASKED_FOR = (
    *("epsilon", "delta", "rho", "unit", "neighbours", "clipping", "hidden-groups", "error-bar", "budget", "charge", "receipt"),
    *("incident", "version", "release", "sensitivity", "mechanism"),
)


def test_the_page_and_its_pictures_are_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m docs.make_words"
    assert {path.name: path.read_text(encoding="utf-8") for path in PICTURES.iterdir()} == pictures(), "run: python -m docs.make_words"


def test_the_style_that_pages_load_is_up_to_date() -> None:
    assert SHEET.read_text(encoding="utf-8") == style_sheet(), "run: python -m docs.make_words"


def test_every_term_that_pages_use_is_there_once() -> None:
    assert len(BY_KEY) == len(TERMS)
    assert [key for key in _ASKED_FOR if key not in BY_KEY] == []
    assert len({term.name for term in TERMS}) == len(TERMS)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.key)
def test_a_term_has_two_sentences_a_picture_and_a_page(term: Term) -> None:
    assert len(_SENTENCE_END.findall(term.meaning)) == 2
    assert term.meaning.endswith(".")
    assert len(term.meaning) <= 330
    assert (DOCS / f"{term.page}.md").is_file()
    drawn = ElementTree.fromstring(picture(term))
    assert [one.text for one in drawn if one.tag.endswith("title")] == [term.shows]
    assert len(list(drawn.iter())) >= 4
    assert not [one for one in drawn.iter() if one.get("style")]
    used = {name for one in drawn.iter() for name in one.get("class", "").split()} - {"lw-word"}
    assert [name for name in used if f".{name}" not in style_sheet()] == []
