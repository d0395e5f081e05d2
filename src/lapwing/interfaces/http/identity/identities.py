"""API keys and grants, in a database that all replicas share: PostgreSQL, or a file for a single server.

A key is 256 random bits; only a hash of it is stored, which suffices because nobody can guess the key. A key may be limited to one data
set or one role of its owner.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa

from lapwing.errors import LapwingError
from lapwing.interfaces.http.identity.rights import EVERY, Grant, Identity, Role
from lapwing.interfaces.http.identity.scram_verifiers import Verifier, salt_of, verifier_of
from lapwing.interfaces.http.identity.sessions import Sessions
from lapwing.interfaces.http.private_files import make_private
from lapwing.interfaces.http.time_text import moment_text
from lapwing.ledger.limits import require_name

KEY_DAYS_DEFAULT = 90
KEY_DAYS_MAX = 366
GROUP_MARK = "group:"
"""The prefix of a name that denotes a group of the identity provider."""
INSUFFICIENT_PRIVILEGE = "42501"
"""The SQLSTATE; a retry would fail again."""
_KEY = re.compile(r"lw_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
SCHEMA_VERSION = 1
"""The version of the tables below. A database with a newer one is refused before anything in it is changed."""
_tables = sa.MetaData()
_state = sa.Table(
    "lapwing_identities",
    _tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("restored_at", sa.String(40)),
)
_keys = sa.Table(
    "lapwing_api_key",
    _tables,
    sa.Column("key_id", sa.String(16), primary_key=True),
    sa.Column("secret_sha256", sa.String(64), nullable=False),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("only_data_set", sa.String(200), nullable=False),
    sa.Column("only_role", sa.String(20), nullable=False),
    sa.Column("made_at", sa.String(40), nullable=False),
    sa.Column("expires_at", sa.String(40), nullable=False),
    sa.Column("revoked_at", sa.String(40)),
)
_grants = sa.Table(
    "lapwing_grant",
    _tables,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("data_set", sa.String(200), primary_key=True),
    sa.Column("role", sa.String(20), primary_key=True),
)
_verifiers = sa.Table(
    "lapwing_wire_verifier",
    _tables,
    sa.Column("key_id", sa.String(16), primary_key=True),
    sa.Column("name", sa.String(200), nullable=False),
    sa.Column("stored_key", sa.String(64), nullable=False),
    sa.Column("server_key", sa.String(64), nullable=False),
)
_secrets = sa.Table(
    "lapwing_wire_secret", _tables, sa.Column("number", sa.Integer, primary_key=True), sa.Column("secret", sa.String(64), nullable=False)
)


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """What is stored about an API key, without its secret."""

    key_id: str
    name: str
    only_data_set: str
    only_role: str
    made_at: str
    expires_at: str
    revoked_at: str | None


class Identities:
    """The store of keys, grants and sessions. Safe to share between threads."""

    def __init__(self, url: str) -> None:
        self._secret: bytes | None = None
        file = sa.make_url(url).database if url.startswith("sqlite:///") else None
        with _reached():
            if file:
                make_private(Path(file))
            self._engine = sa.create_engine(url, pool_pre_ping=True, pool_size=4)
            self.sessions = Sessions(self._engine)
            self._require_known_version()
            _tables.create_all(self._engine)
            self.sessions.create_table()
            self._write_version()

    def _require_known_version(self) -> None:
        if not sa.inspect(self._engine).has_table(_state.name):
            return  # new, or from the first release, which wrote no version and had the same tables
        with self._engine.connect() as connection:
            version = connection.execute(sa.select(sa.func.max(_state.c.version))).scalar()
        if version is not None and version > SCHEMA_VERSION:
            message = f"the database of API keys and grants has version {version}; this release supports {SCHEMA_VERSION}"
            raise LapwingError("identities-newer", message, hint="start the newer release again")

    def _write_version(self) -> None:
        """Write it once, even if several replicas start together."""
        with suppress(sa.exc.IntegrityError), self._engine.begin() as connection:
            if connection.execute(sa.select(_state.c.id)).first() is None:
                connection.execute(_state.insert().values(id=1, version=SCHEMA_VERSION))

    # -- after a restore ----------------------------------------------------------------------------------------------------------

    def mark_restored(self) -> int:
        """Revoke every API key and session and admit no one: revocations since the backup are unknown. Returns the number of keys."""
        now = moment_text(datetime.now(UTC))
        self.sessions.end_all()
        with self._engine.begin() as connection:
            connection.execute(_state.update().values(restored_at=now))
            return connection.execute(_keys.update().where(_keys.c.revoked_at.is_(None)).values(revoked_at=now)).rowcount

    def accept(self) -> bool:
        """Record that the owner has reviewed the grants; returns whether a review was due."""
        with self._engine.begin() as connection:
            return connection.execute(_state.update().where(_state.c.restored_at.is_not(None)).values(restored_at=None)).rowcount > 0

    def require_accepted(self) -> None:
        """Refuse to admit anybody by roles from a backup until the owner has reviewed them."""
        with _reached(), self._engine.connect() as connection:
            restored = connection.execute(sa.select(_state.c.restored_at)).scalar()
        if restored is not None:
            message = "API keys and grants were restored, and may have been withdrawn since the backup"
            raise LapwingError("identities-restored", message, hint="see `lapwing access list`, then `lapwing access accept REASON`")

    def close(self) -> None:
        """Close its connections."""
        self._engine.dispose()

    # -- grants -------------------------------------------------------------------------------------------------------------------

    def grant(self, name: str, grant: Grant) -> None:
        """Give a role to a person, or to a group of the identity provider (``group:NAME``). Granting it again changes nothing."""
        require_name(name)
        row = {"name": name, "data_set": grant.data_set, "role": grant.role.value}
        with self._engine.begin() as connection:
            if connection.execute(_where(grant, name)).first() is None:
                connection.execute(_grants.insert().values(row))

    def withdraw(self, name: str, grant: Grant) -> bool:
        """Withdraw a role; returns whether it was granted."""
        where = (_grants.c.name == name) & (_grants.c.data_set == grant.data_set) & (_grants.c.role == grant.role.value)
        with self._engine.begin() as connection:
            return connection.execute(_grants.delete().where(where)).rowcount > 0

    def grants(self) -> list[tuple[str, Grant]]:
        """Everything that is granted, by name."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(_grants).order_by(_grants.c.name, _grants.c.data_set, _grants.c.role)).all()
        return [(row.name, Grant(Role(row.role), row.data_set)) for row in rows]

    def granted_to(self, name: str, groups: Collection[str] = ()) -> frozenset[Grant]:
        """What is granted to a person, by their name or by one of their groups."""
        names = [name, *(f"{GROUP_MARK}{group}" for group in groups)]
        with _reached(), self._engine.connect() as connection:
            rows = connection.execute(sa.select(_grants).where(_grants.c.name.in_(names))).all()
        return frozenset(Grant(Role(row.role), row.data_set) for row in rows)

    # -- keys ---------------------------------------------------------------------------------------------------------------------

    def new_key(self, name: str, *, days: int = KEY_DAYS_DEFAULT, data_set: str = EVERY, role: Role | None = None) -> tuple[str, KeyEntry]:
        """A new key of a person, which is shown once, and its stored entry."""
        require_name(name)
        if name.startswith(GROUP_MARK):
            raise LapwingError("key-invalid", "a key belongs to a person, not to a group")
        if not 1 <= days <= KEY_DAYS_MAX:
            raise LapwingError("key-invalid", f"a key must be valid for 1 to {KEY_DAYS_MAX} days")
        now = datetime.now(UTC)
        key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        only_role = EVERY if role is None else role.value
        entry = KeyEntry(key_id, name, data_set, only_role, moment_text(now), moment_text(now + timedelta(days=days)), None)
        row = {"secret_sha256": _hash(secret)} | {field: getattr(entry, field) for field in KeyEntry.__slots__}
        key = f"lw_{key_id}_{secret}"
        kept = verifier_of(key, salt_of(self.wire_secret(), name))
        own = {"key_id": key_id, "name": name, "stored_key": kept.stored_key.hex(), "server_key": kept.server_key.hex()}
        with self._engine.begin() as connection:
            connection.execute(_keys.insert().values(row))
            connection.execute(_verifiers.insert().values(own))
        return key, entry

    def revoke(self, key_id: str) -> bool:
        """Revoke a key now; returns whether it was valid."""
        where = (_keys.c.key_id == key_id) & (_keys.c.revoked_at.is_(None))
        with self._engine.begin() as connection:
            return connection.execute(_keys.update().where(where).values(revoked_at=moment_text(datetime.now(UTC)))).rowcount > 0

    def all_keys(self) -> list[KeyEntry]:
        """Every key, newest first."""
        columns = [_keys.c[field] for field in KeyEntry.__slots__]
        with self._engine.connect() as connection:
            return [KeyEntry(*row) for row in connection.execute(sa.select(*columns).order_by(_keys.c.made_at.desc())).all()]

    def of_key(self, key: str) -> Identity | None:
        """The owner of this key; None for an unknown, revoked or expired key, without distinction."""
        shaped = _KEY.fullmatch(key)
        if shaped is None:
            return None
        with _reached(), self._engine.connect() as connection:
            row = connection.execute(sa.select(_keys).where(_keys.c.key_id == shaped[1])).first()
        # An unknown key takes the same comparison as a known one.
        kept = _hash("") if row is None else row.secret_sha256
        right = hmac.compare_digest(kept, _hash(shaped[2]))
        if row is None or not right or row.revoked_at is not None or row.expires_at <= moment_text(datetime.now(UTC)):
            return None
        granted = self.granted_to(row.name)
        return Identity(row.name, _narrowed(granted, row.only_data_set, row.only_role), f"key {row.key_id}")

    # -- the PostgreSQL wire --------------------------------------------------------------------------------------------------------

    def wire_secret(self) -> bytes:
        """Random bytes that all replicas share: salts, the shadow's passwords and form tokens are derived from them."""
        if self._secret is not None:
            return self._secret
        read = sa.select(_secrets.c.secret).where(_secrets.c.number == 1)
        with _reached():
            with self._engine.connect() as connection:
                row = connection.execute(read).first()
            if row is None:
                with suppress(sa.exc.IntegrityError), self._engine.begin() as connection:  # another replica may be first
                    connection.execute(_secrets.insert().values(number=1, secret=secrets.token_hex(32)))
                with self._engine.connect() as connection:
                    row = connection.execute(read).one()
        self._secret = bytes.fromhex(row.secret)
        return self._secret

    def verifiers_of(self, name: str) -> list[tuple[str, Verifier]]:
        """The stored verifier of each valid key of a person, to check a login."""
        now = moment_text(datetime.now(UTC))
        good = (_keys.c.key_id == _verifiers.c.key_id) & _keys.c.revoked_at.is_(None) & (_keys.c.expires_at > now)
        query = sa.select(_verifiers).join(_keys, good).where((_verifiers.c.name == name) & (_keys.c.name == name))
        with _reached(), self._engine.connect() as connection:
            rows = connection.execute(query.order_by(_verifiers.c.key_id)).all()
        return [(row.key_id, Verifier(bytes.fromhex(row.stored_key), bytes.fromhex(row.server_key))) for row in rows]

    def good_key_ids(self, key_ids: Collection[str]) -> set[str]:
        """Those of these keys that are valid now."""
        good = _keys.c.revoked_at.is_(None) & (_keys.c.expires_at > moment_text(datetime.now(UTC)))
        with _reached(), self._engine.connect() as connection:
            return set(connection.execute(sa.select(_keys.c.key_id).where(_keys.c.key_id.in_(key_ids) & good)).scalars())

    def of_key_id(self, key_id: str) -> Identity | None:
        """The owner of a key that was verified before; None if it is no longer valid."""
        with _reached(), self._engine.connect() as connection:
            row = connection.execute(sa.select(_keys).where(_keys.c.key_id == key_id)).first()
        if row is None or row.revoked_at is not None or row.expires_at <= moment_text(datetime.now(UTC)):
            return None
        return Identity(row.name, _narrowed(self.granted_to(row.name), row.only_data_set, row.only_role), f"key {row.key_id}")


@contextmanager
def _reached() -> Iterator[None]:
    """Reports database errors as Lapwing's own, because the driver's message may repeat the password."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, ImportError, OSError) as error:
        if getattr(getattr(error, "orig", None), "sqlstate", None) == INSUFFICIENT_PRIVILEGE:
            message = "the server's role lacks a right in the database of API keys and grants"
            raise LapwingError("identities-role", message, hint="its operator has to act") from error
        raise LapwingError("identities-unreachable", "the database of API keys and grants cannot be reached") from error


def _narrowed(grants: Collection[Grant], data_set: str, role: str) -> frozenset[Grant]:
    """The grants of a key's owner, limited to the data set and the role that the key is for."""
    kept = [grant for grant in grants if role in (EVERY, grant.role.value)]
    if data_set == EVERY:
        return frozenset(kept)
    return frozenset(Grant(grant.role, data_set) for grant in kept if grant.covers(data_set))


def _where(grant: Grant, name: str) -> sa.Select[tuple[str]]:
    return sa.select(_grants.c.name).where(
        (_grants.c.name == name) & (_grants.c.data_set == grant.data_set) & (_grants.c.role == grant.role.value)
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("ascii")).hexdigest()
