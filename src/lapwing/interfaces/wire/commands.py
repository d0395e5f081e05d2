"""What a client's statement is, once it is recognised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lapwing.interfaces.wire.catalogue.query import WrittenQuery


@dataclass(frozen=True, slots=True)
class Ask:
    """A statement for the curator: it names a table of the data set, or uses Lapwing's own words. Never shown to the shadow."""

    text: str
    start: int = 0
    """The place of the text in the client's message."""


@dataclass(frozen=True, slots=True)
class AboutCatalogue:
    """A question about the declared schema, for the shadow: it names no table of the data set, and we wrote its text."""

    query: WrittenQuery

    @property
    def text(self) -> str:
        """What the shadow is asked."""
        return self.query.text


Query: TypeAlias = Ask | AboutCatalogue


@dataclass(frozen=True, slots=True)
class SetSetting:
    """A setting is changed, for the session or until the end of the transaction; None is its default."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class ShowOne:
    """A setting is asked for."""

    name: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """``BEGIN``, ``COMMIT``, ``ROLLBACK`` and savepoints: kept in mind, and of no other effect, since nothing is ever changed."""

    word: str


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """A cursor over a query, which is asked when the first row is fetched."""

    name: str
    query: Query
    hold: bool


@dataclass(frozen=True, slots=True)
class FetchRows:
    """Rows of a cursor; None are all that are left."""

    name: str
    count: int | None
    move: bool = False


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """A cursor is given up; None are all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class CopyOut:
    """The rows of a query as a stream of text, CSV or binary data."""

    query: Query
    form: str = "text"
    header: bool = False
    delimiter: str = ""
    null: str | None = None


@dataclass(frozen=True, slots=True)
class PrepareNamed:
    """A query is kept under a name."""

    name: str
    query: Query
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecuteNamed:
    """A kept query is run; each value is a text, or NULL."""

    name: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    """A kept query is given up; None are all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """What a session keeps is given up."""

    everything: bool


@dataclass(frozen=True, slots=True)
class NoEffect:
    """NoEffect, and changes nothing."""

    tag: str


Command: TypeAlias = (
    Query
    | SetSetting
    | ShowOne
    | Transaction
    | DeclareCursor
    | FetchRows
    | CloseCursor
    | CopyOut
    | PrepareNamed
    | ExecuteNamed
    | Deallocate
    | Discard
    | NoEffect
)
