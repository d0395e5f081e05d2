"""Sessions of the console, in the database that all replicas share: every worker knows them, and ending a session ends it everywhere.

The browser holds 256 random bits; only a hash of them is stored. A session stores the credential, not the rights: each request looks
these up, so a revoked key or a withdrawn role takes effect at once.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from lapwing.interfaces.http.time_text import moment_text

_tables = sa.MetaData()
_sessions = sa.Table(
    "lapwing_console_session",
    _tables,
    sa.Column("session_sha256", sa.String(64), primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("key_id", sa.String(16), nullable=False),
    sa.Column("groups", sa.Text, nullable=False),
    sa.Column("made_at", sa.String(40), nullable=False),
    sa.Column("seen_at", sa.String(40), nullable=False),
    sa.Column("expires_at", sa.String(40), nullable=False),
)
SEEN_SECONDS = 60
"""The time of last use is stored this often, not for each request."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The identity and its credential: an API key or, if that is empty, a token of the OpenID provider with these groups."""

    name: str
    key_id: str = ""
    groups: tuple[str, ...] = ()


class Sessions:
    """The store of sessions. Safe to share between threads."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def create_table(self) -> None:
        """Create the table if it does not exist."""
        _tables.create_all(self._engine)

    def begin(self, who: SignedIn, *, hours: float) -> str:
        """Create a session and return the browser's secret. Expired sessions are purged."""
        value, now = secrets.token_urlsafe(32), datetime.now(UTC)
        row = {
            "session_sha256": _hash(value),
            "name": who.name,
            "key_id": who.key_id,
            "groups": json.dumps(who.groups),
            "made_at": moment_text(now),
            "seen_at": moment_text(now),
            "expires_at": moment_text(now + timedelta(hours=hours)),
        }
        with self._engine.begin() as connection:
            connection.execute(_sessions.delete().where(_sessions.c.expires_at <= moment_text(now)))
            connection.execute(_sessions.insert().values(row))
        return value

    def find(self, value: str, *, idle_minutes: float) -> SignedIn | None:
        """The identity of a session; None if it never existed, has ended, or was idle for ``idle_minutes``."""
        now, mine = datetime.now(UTC), _sessions.c.session_sha256 == _hash(value)
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(_sessions).where(mine)).first()
        if row is None or row.expires_at <= moment_text(now) or row.seen_at <= moment_text(now - timedelta(minutes=idle_minutes)):
            return None
        if row.seen_at <= moment_text(now - timedelta(seconds=SEEN_SECONDS)):
            with self._engine.begin() as connection:
                connection.execute(_sessions.update().where(mine).values(seen_at=moment_text(now)))
        return SignedIn(row.name, row.key_id, tuple(json.loads(row.groups)))

    def end(self, value: str) -> None:
        """End a session if it exists."""
        with self._engine.begin() as connection:
            connection.execute(_sessions.delete().where(_sessions.c.session_sha256 == _hash(value)))

    def end_all(self) -> None:
        """End every session."""
        with self._engine.begin() as connection:
            connection.execute(_sessions.delete())


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
