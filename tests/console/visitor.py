"""A browser without a screen: it keeps cookies, and sends forms with what stands in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import httpx2 as httpx

from tests.server.under_test import ServerUnderTest


@dataclass
class _Forms(HTMLParser):
    """The forms of a page: where each goes, and its fields."""

    found: dict[str, dict[str, str]] = field(default_factory=dict)
    _action: str | None = None

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._action = said.get("action", "")
            self.found[self._action] = {}
        elif tag == "input" and self._action is not None and said.get("name"):
            self.found[self._action][said["name"]] = said.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._action = None


@dataclass
class Visitor:
    """Somebody before a browser."""

    server: ServerUnderTest
    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **other: Any) -> httpx.Response:
        """Look at a page; no redirect is followed."""
        return self._sent("GET", path, **other)

    def post(self, path: str, fields: dict[str, str], **other: Any) -> httpx.Response:
        """Send fields, as they are."""
        return self._sent("POST", path, data=fields, **other)

    def submit(self, page: str, action: str, **fields: str) -> httpx.Response:
        """Send the form of a page that goes to ``action``, with these fields filled in."""
        reply = self.get(page)
        assert reply.status_code == 200, (page, reply.status_code, reply.text)
        return self.post(action, forms_of(reply.text)[self._path(action)] | fields)

    def sign_in(self, name: str) -> None:
        """Sign in with the key of this person."""
        reply = self.submit("/console/sign-in", "/console/sign-in", key=self.server.keys[name])
        assert reply.status_code == 303, reply.text

    def token(self) -> str:
        """The token of this visitor's forms."""
        return forms_of(self.get("/console/").text)["/console/sign-out"]["form_token"]

    def _path(self, path: str) -> str:
        return path.replace("{d}", self.server.data_set)

    def _sent(self, method: str, path: str, **other: Any) -> httpx.Response:
        client = self.server.client
        client.cookies.clear()
        headers = {**other.pop("headers", {})}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        reply = client.request(method, self._path(path), headers=headers, follow_redirects=False, **other)
        self.cookies |= dict(reply.cookies)
        client.cookies.clear()
        return reply


def forms_of(text: str) -> dict[str, dict[str, str]]:
    """The fields of each form of a page, by where it goes."""
    parser = _Forms()
    parser.feed(text)
    return parser.found
