"""The kinds of statements that a client can send, as parsed."""

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
    """A question about the declared schema, for the shadow: it names no table of the data set, and its text is rewritten."""

    query: WrittenQuery

    @property
    def text(self) -> str:
        """The statement for the shadow."""
        return self.query.text


Query: TypeAlias = Ask | AboutCatalogue


@dataclass(frozen=True, slots=True)
class SetSetting:
    """Changes a setting, for the session or until the end of the transaction; None is its default."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class ShowOne:
    """Shows a setting."""

    name: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """``BEGIN``, ``COMMIT``, ``ROLLBACK`` and savepoints: they only change the transaction state, since no statement changes data."""

    word: str


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """Declares a cursor over a query, which runs when the first row is fetched."""

    name: str
    query: Query
    hold: bool


@dataclass(frozen=True, slots=True)
class FetchRows:
    """Fetches rows of a cursor; None means all that are left."""

    name: str
    count: int | None
    move: bool = False


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """Closes a cursor; None means all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class CopyOut:
    """Copies the rows of a query as a stream of text, CSV or binary data."""

    query: Query
    form: str = "text"
    header: bool = False
    delimiter: str = ""
    null: str | None = None


@dataclass(frozen=True, slots=True)
class PrepareNamed:
    """Keeps a query under a name."""

    name: str
    query: Query
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecuteNamed:
    """Runs a kept query; each value is a text, or NULL."""

    name: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    """Drops a kept query; None means all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """Drops what a session keeps."""

    everything: bool


@dataclass(frozen=True, slots=True)
class NoEffect:
    """Is accepted and changes nothing."""

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
