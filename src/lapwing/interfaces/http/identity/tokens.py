"""Tokens of an OpenID provider: signed with the issuer's keys, for this server, not expired. Any other token is rejected."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import jwt

from lapwing.errors import CallRefused, LapwingError
from lapwing.interfaces.python.transport import private_or_encrypted

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Signatures with a public key. ``none`` and secrets shared with the provider are excluded and cannot be added."""
LEEWAY_SECONDS = 30
"""The allowed difference between clocks."""
KEYS_SECONDS = 300
"""How long the issuer's keys are cached."""
UNKNOWN_KEY_SECONDS = 10
"""A token that names an unknown key has the keys fetched again, but not more often than this."""
WAITING_MAX = 8
"""Calls that wait for the provider at once: each holds a thread, of which a worker has 40."""
_REPLY_BYTES_MAX = 2**20
_FETCH_SECONDS = 10

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, RecursionError, http.client.HTTPException)
"""Errors from a provider that is unreachable or replies something unexpected."""

Fetch = Callable[[str], Any]
"""The JSON at an address."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """The accepted issuers, and the claim that identifies a user."""

    url: str
    audience: str
    name_claim: str = "sub"
    groups_claim: str = "groups"


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """The holder of a token, and the holder's groups."""

    name: str
    groups: tuple[str, ...]


class _Staying(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: the provider's documents come from the requested address."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """A redirect is an error for the caller."""


def fetch_json(url: str, form: bytes | None = None, headers: Mapping[str, str] | None = None) -> Any:
    """Read JSON from the issuer: over https or from this machine, of bounded length, in bounded time, from the address itself.

    A ``form`` is sent there.
    """
    if not private_or_encrypted(url):
        raise ValueError("the address is neither https nor on this machine")
    until = time.monotonic() + _FETCH_SECONDS
    opener = urllib.request.OpenerDirector()  # without handlers for files and other protocols
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPDefaultErrorHandler,
        _Staying,
    ):
        opener.add_handler(handler())
    with opener.open(urllib.request.Request(url, data=form, headers=dict(headers or {})), timeout=_FETCH_SECONDS) as reply:
        content = b""
        while piece := reply.read1(65_536):
            content += piece
            if len(content) > _REPLY_BYTES_MAX or time.monotonic() > until:
                raise ValueError("the reply is too long or too slow")
    return json.loads(content)


@dataclass(slots=True)
class Tokens:
    """Checks tokens of one issuer. Safe to share between threads."""

    issuer: Issuer
    fetch: Fetch = fetch_json
    _keys: dict[str, jwt.PyJWK] = field(default_factory=dict)
    _fetched: float = float("-inf")
    _failed: float = float("-inf")
    _published: Mapping[str, Any] = field(default_factory=dict)
    _published_at: float = float("-inf")
    _gate: threading.Lock = field(default_factory=threading.Lock)
    _waiting: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(WAITING_MAX))

    def holder(self, token: str, *, nonce: str | None = None) -> TokenHolder | None:
        """The holder of the token; None if it is invalid or does not contain this ``nonce``."""
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
        if nonce is not None and claims.get("nonce") != nonce:
            return None
        name, groups = claims.get(self.issuer.name_claim), claims.get(self.issuer.groups_claim, [])
        if not isinstance(name, str) or not name:
            return None
        return TokenHolder(name, tuple(group for group in groups if isinstance(group, str)) if isinstance(groups, list) else ())

    def _key(self, key_id: object, algorithm: object) -> jwt.PyJWK | None:
        """The issuer's key of this name; keys without a name, or for another algorithm, are ignored."""
        if not isinstance(key_id, str) or algorithm not in ALGORITHMS:
            return None
        if self._should_fetch(key_id) and not self._is_good_meanwhile(key_id):
            with self.asking(), self._gate:
                if self._should_fetch(key_id):
                    self._fetch_keys()
        key = self._keys.get(key_id)
        return key if key is not None and key.algorithm_name == algorithm else None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Bounds the calls that wait for the provider; ``busy`` if there are too many, since strangers can make any number of calls."""
        if not self._waiting.acquire(blocking=False):
            raise CallRefused("busy", "too many calls wait for the identity provider", hint="ask again in a moment")
        try:
            yield
        finally:
            self._waiting.release()

    def _should_fetch(self, key_id: str) -> bool:
        age = time.monotonic() - self._fetched
        return age > KEYS_SECONDS or (key_id not in self._keys and age > UNKNOWN_KEY_SECONDS)

    def _is_good_meanwhile(self, key_id: str) -> bool:
        """Requests with a known key do not wait while another thread fetches the keys."""
        return key_id in self._keys and self._gate.locked() and time.monotonic() - self._fetched <= 2 * KEYS_SECONDS

    def _fetch_keys(self) -> None:
        """Fetch the keys again. Pre: the gate is held."""
        with self._not_at_once():
            self._keys, self._fetched = self._current_keys(), time.monotonic()

    def endpoint(self, name: str) -> str:
        """An address that the provider publishes, cached for a while and not fetched for each stranger who wants to sign in."""
        if self._is_published():
            return self._endpoint(name)
        with self.asking(), self._gate, self._not_at_once():
            return self._endpoint(name)

    @contextmanager
    def _not_at_once(self) -> Iterator[None]:
        """Ask the provider, but not shortly after it failed, however many strangers call. Pre: the gate is held."""
        if time.monotonic() - self._failed < UNKNOWN_KEY_SECONDS:
            raise LapwingError("issuer-unreachable", "the identity provider could not be reached a moment ago")
        try:
            yield
        except LapwingError:
            self._failed, self._published_at = time.monotonic(), float("-inf")
            raise

    def _is_published(self) -> bool:
        return time.monotonic() - self._published_at <= KEYS_SECONDS

    def _endpoint(self, name: str) -> str:
        """The address. Pre: the gate is held, or the provider's document is cached."""
        try:
            return self._published_endpoint(name)
        except _UNREADABLE as error:
            raise LapwingError("issuer-unreachable", "the identity provider cannot be reached") from error

    def _published_endpoint(self, name: str) -> str:
        if not self._is_published():
            found = self.fetch(f"{self.issuer.url.rstrip('/')}/.well-known/openid-configuration")
            if found["issuer"] != self.issuer.url:
                raise LapwingError("issuer-mismatch", "the provider names another issuer than the configuration")
            self._published, self._published_at = found, time.monotonic()
        where = str(self._published[name])
        if urlsplit(where).scheme != urlsplit(self.issuer.url).scheme:
            raise ValueError("a remote provider must not name an address on this machine")
        return where

    def _current_keys(self) -> dict[str, jwt.PyJWK]:
        try:
            listed = list(self.fetch(self._endpoint("jwks_uri"))["keys"])
        except _UNREADABLE as error:
            raise LapwingError("issuer-unreachable", "the keys of the identity provider cannot be read") from error
        keys = {}
        for item in listed:
            if isinstance(item, dict) and isinstance(item.get("kid"), str) and item.get("use", "sig") == "sig" and item.get("kty") != "oct":
                try:
                    keys[item["kid"]] = jwt.PyJWK(item)
                except (jwt.PyJWTError, ValueError, TypeError):
                    continue  # of an unknown kind
        return keys
