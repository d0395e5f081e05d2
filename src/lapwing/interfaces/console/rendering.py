"""Renders templates: every text is escaped, and each page allows the browser to load only files of this server."""

from __future__ import annotations

import secrets
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import lapwing
from lapwing.answers.display.number_format import figure, share_text
from lapwing.interfaces.console.assets import asset
from lapwing.interfaces.console.navigation import ROOT, data_set_path, entries_for, navigation
from lapwing.interfaces.console.questions import PageQuestion
from lapwing.interfaces.console.words import BY_KEY, picture
from lapwing.interfaces.console.words.labels import ENTRIES, LINES, TYPES, labelled
from lapwing.interfaces.http.identity.rights import Identity

TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """The templates. An unknown name is an error, not an empty text."""
    found = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.globals |= {"asset": asset, "page_of": data_set_path, "root": ROOT, "version": lapwing.__version__}
    found.globals["rewritten_token"] = lambda sql, question: PageQuestion(sql, question.epsilon).token()
    found.globals |= {"words": BY_KEY, "picture_of_word": _picture_of_word}
    found.globals |= {"entry_words": ENTRIES, "type_words": TYPES, "line_words": LINES}
    found.filters |= {"labelled": labelled, "figure": figure, "share": share_text, "count": _count}
    return found


def rendered(
    request: Request, template: str, *, status: int = 200, identity: Identity | None = None, token: str = "", **values: Any
) -> HTMLResponse:
    """A page. ``token`` is for its forms; if ``data_set`` is among the values, the page shows the data set's navigation."""
    nonce = secrets.token_urlsafe(16)
    data_set = values.get("data_set")
    around = {
        "who": None if identity is None else identity.name,
        "token": token,
        "nonce": nonce,
        "path": request.url.path,
        "navigation": [] if identity is None or not data_set else navigation(entries_for(identity, data_set), data_set, request.url.path),
        "data_set": data_set,
    }
    text = environment().get_template(template).render(around | values)
    return HTMLResponse(text, status_code=status, headers={"Content-Security-Policy": policy(nonce)})


def policy(nonce: str) -> str:
    """What a page may load: files of this server. Styles that the editor creates carry the page's nonce; scripts can only be files."""
    return (
        "default-src 'none'; script-src 'self'; "
        f"style-src 'self' 'nonce-{nonce}'; img-src 'self'; font-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _picture_of_word(key: str, name: str) -> Markup:
    """The picture of a term; ``name`` makes its id unique if the page shows the picture twice."""
    return Markup(picture(BY_KEY[key], name=name))


def _count(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
