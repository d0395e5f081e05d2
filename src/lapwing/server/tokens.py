"""Tokens of an OpenID provider: a signature that the issuer's keys check, for this server, not expired. Anything else is nobody."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jwt

from lapwing.errors import LapwingError

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Signatures with a public key. ``none`` and secrets shared with the provider are not among them and cannot be added."""
LEEWAY_SECONDS = 30
"""By how much clocks may differ."""
KEYS_SECONDS = 300
"""How long the issuer's keys are taken to be the same."""
UNKNOWN_KEY_SECONDS = 10
"""A token that names an unknown key makes them be fetched again, but not more often than this."""
_REPLY_BYTES_MAX = 2**20
_FETCH_SECONDS = 10

Fetch = Callable[[str], Any]
"""The JSON at an address."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """Whose tokens are accepted, and what in them says who somebody is."""

    url: str
    audience: str
    name_claim: str = "sub"
    groups_claim: str = "groups"


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """Who a token is of, and their groups."""

    name: str
    groups: tuple[str, ...]


def fetch_json(url: str) -> Any:
    """Read JSON from the issuer."""
    with urllib.request.urlopen(url, timeout=_FETCH_SECONDS) as reply:
        return json.loads(reply.read(_REPLY_BYTES_MAX))


@dataclass(slots=True)
class Tokens:
    """Checks tokens of one issuer. Safe to share between threads."""

    issuer: Issuer
    fetch: Fetch = fetch_json
    _keys: dict[str, jwt.PyJWK] = field(default_factory=dict)
    _fetched: float = float("-inf")
    _gate: threading.Lock = field(default_factory=threading.Lock)

    def holder(self, token: str) -> TokenHolder | None:
        """Who the token is of, or None."""
        try:
            header = jwt.get_unverified_header(token)
            key = self._key(header.get("kid"), header.get("alg"))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self.issuer.audience,
                issuer=self.issuer.url,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        name, groups = claims.get(self.issuer.name_claim), claims.get(self.issuer.groups_claim, [])
        if not isinstance(name, str) or not name:
            return None
        return TokenHolder(name, tuple(group for group in groups if isinstance(group, str)) if isinstance(groups, list) else ())

    def _key(self, key_id: object, algorithm: object) -> jwt.PyJWK | None:
        """The issuer's key of this name. One that has no name, or names another algorithm, signs nothing for us."""
        if not isinstance(key_id, str) or algorithm not in ALGORITHMS:
            return None
        with self._gate:
            age = time.monotonic() - self._fetched
            if age > KEYS_SECONDS or (key_id not in self._keys and age > UNKNOWN_KEY_SECONDS):
                self._keys, self._fetched = self._current_keys(), time.monotonic()
            key = self._keys.get(key_id)
        return key if key is not None and key.algorithm_name == algorithm else None

    def _current_keys(self) -> dict[str, jwt.PyJWK]:
        try:
            found = self.fetch(f"{self.issuer.url.rstrip('/')}/.well-known/openid-configuration")
            if found["issuer"] != self.issuer.url:
                raise LapwingError("issuer-mismatch", "the provider names another issuer than the configuration")
            listed = self.fetch(found["jwks_uri"])["keys"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LapwingError("issuer-unreachable", "the keys of the identity provider cannot be read") from error
        keys = {}
        for item in listed:
            if isinstance(item, dict) and isinstance(item.get("kid"), str) and item.get("use", "sig") == "sig" and item.get("kty") != "oct":
                try:
                    keys[item["kid"]] = jwt.PyJWK(item)
                except jwt.PyJWTError:
                    continue  # of a kind that is not known here
        return keys
