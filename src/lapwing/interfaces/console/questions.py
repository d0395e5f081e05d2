"""A statement and its price, from a form or in an address, so that an answer can be sent to a colleague as a link."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from lapwing.errors import CallRefused
from lapwing.interfaces.http.shapes import AskedBody
from lapwing.interfaces.http.statement_words import says_price, says_terms

TOKEN_LENGTH_MAX = 24_000
"""The longest token in an address; servers and proxies refuse longer ones."""
_TEXT_MAX = 70_000


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """A question. Without an epsilon, the price is the statement's own or the data set's default."""

    sql: str
    epsilon: str = ""

    @classmethod
    def of_form(cls, form: Mapping[str, str]) -> PageQuestion:
        """The question in a form. Browsers send line ends as two characters, which would shift positions in the text."""
        return cls(form.get("sql", "").replace("\r\n", "\n"), form.get("epsilon", "").strip())

    @classmethod
    def of_token(cls, token: str) -> PageQuestion:
        """The question in an address; ``body-invalid`` if the token is invalid."""
        try:
            if len(token) > TOKEN_LENGTH_MAX:
                raise ValueError
            packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            kept = json.loads(zlib.decompressobj().decompress(packed, _TEXT_MAX))
            if not isinstance(kept, list) or [type(part) for part in kept] != [str, str]:
                raise ValueError
            sql, epsilon = kept
            f"{sql}{epsilon}".encode()  # a lone surrogate cannot be encoded
        except (ValueError, RecursionError, zlib.error) as error:
            raise CallRefused("body-invalid", "the address is incomplete", hint="open it from the history, or ask again") from error
        return cls(sql, epsilon)

    def token(self) -> str:
        """Inverse of :meth:`of_token`."""
        text = json.dumps([self.sql, self.epsilon], ensure_ascii=False, separators=(",", ":"))
        found = base64.urlsafe_b64encode(zlib.compress(text.encode("utf-8", "replace"), 9)).decode("ascii").rstrip("=")
        if len(found) > TOKEN_LENGTH_MAX:
            raise CallRefused("body-too-large", "the statement is too long for a page", hint="ask it from Python or the command line")
        return found

    @property
    def says_terms(self) -> bool:
        """Whether the statement has its own clause ``WITH PRIVACY (..)``."""
        return says_terms(self.sql)

    @property
    def says_price(self) -> bool:
        """Whether that clause names a price or an accuracy."""
        return says_price(self.sql)

    def body(self) -> AskedBody:
        """The request body for the HTTP interface. A price in the statement takes precedence over the field."""
        try:
            return AskedBody(sql=self.sql, epsilon=None if self.says_price or not self.epsilon else self.epsilon)
        except ValidationError as error:
            raise CallRefused("body-invalid", "there is no statement, or it is too long") from error
