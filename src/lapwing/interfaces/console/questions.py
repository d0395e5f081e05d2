"""A statement and its price, as a form sends them and as an address keeps them: an answer can be sent to a colleague as a link."""

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
"""Longest form in an address; servers and proxies refuse longer ones."""
_TEXT_MAX = 70_000


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """What is asked. Without an epsilon the price is what the statement says, or the data set's own."""

    sql: str
    epsilon: str = ""

    @classmethod
    def of_form(cls, form: Mapping[str, str]) -> PageQuestion:
        """What was typed; browsers send line ends as two characters, and places in the text would be off."""
        return cls(form.get("sql", "").replace("\r\n", "\n"), form.get("epsilon", "").strip())

    @classmethod
    def of_token(cls, token: str) -> PageQuestion:
        """What an address keeps; ``body-invalid`` where it keeps something else."""
        try:
            if len(token) > TOKEN_LENGTH_MAX:
                raise ValueError
            packed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
            kept = json.loads(zlib.decompressobj().decompress(packed, _TEXT_MAX))
            if not isinstance(kept, list) or [type(part) for part in kept] != [str, str]:
                raise ValueError
            sql, epsilon = kept
            f"{sql}{epsilon}".encode()  # half a character is none
        except (ValueError, RecursionError, zlib.error) as error:
            raise CallRefused("body-invalid", "the address is not complete", hint="open it from the history, or ask again") from error
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
        """Whether the statement has a clause ``WITH PRIVACY (..)`` of its own."""
        return says_terms(self.sql)

    @property
    def says_price(self) -> bool:
        """Whether that clause names a price or an accuracy."""
        return says_price(self.sql)

    def body(self) -> AskedBody:
        """What the HTTP interface is sent. A price in the statement goes before the one beside it."""
        try:
            return AskedBody(sql=self.sql, epsilon=None if self.says_price or not self.epsilon else self.epsilon)
        except ValidationError as error:
            raise CallRefused("body-invalid", "there is no statement, or it is too long") from error
