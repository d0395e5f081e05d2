"""SCRAM-SHA-256 (RFC 5802, RFC 7677): the server's side for analysts, and the client's side towards the shadow database."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from lapwing.interfaces.http.identity.scram_verifiers import ITERATIONS, Verifier, salted_password, verifier_of

MECHANISM = "SCRAM-SHA-256"


class ScramFailed(Exception):
    """The exchange proves no valid password."""


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _attributes(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        if len(part) < 2 or part[1] != "=" or part[0] in found:
            raise ScramFailed("malformed")
        found[part[0]] = part[2:]
    return found


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ScramFailed("malformed") from error


@dataclass(slots=True)
class ServerExchange:
    """One login. ``known`` are the verifiers of the claimed user's valid keys: an empty list must be indistinguishable."""

    salt: bytes
    known: Sequence[tuple[str, Verifier]]
    _nonce: str = field(default_factory=lambda: base64.b64encode(secrets.token_bytes(18)).decode())
    _header: str = ""
    _so_far: str = ""

    def first(self, told: bytes) -> bytes:
        """The server's first message, in reply to the client's first."""
        text = _ascii(told)
        header, mark, rest = text.partition(",,")
        if not mark or header not in ("n", "y"):
            raise ScramFailed("channel binding and authorization identities are not supported")
        attributes = _attributes(rest)
        if not {"n", "r"} <= attributes.keys() or not attributes["r"]:
            raise ScramFailed("malformed")
        self._nonce = attributes["r"] + self._nonce
        self._header = base64.b64encode(f"{header},,".encode()).decode()
        reply = f"r={self._nonce},s={base64.b64encode(self.salt).decode()},i={ITERATIONS}"
        self._so_far = f"{rest},{reply}"
        return reply.encode()

    def final(self, told: bytes) -> tuple[str, bytes]:
        """The id of the key and the server's last message, or :class:`ScramFailed`. Every known key is always tried."""
        text = _ascii(told)
        without, mark, _ = text.rpartition(",p=")
        attributes = _attributes(text)
        if not mark or attributes.get("c") != self._header or attributes.get("r") != self._nonce or "p" not in attributes:
            raise ScramFailed("malformed")
        proof, signed = _bytes(attributes["p"]), f"{self._so_far},{without}".encode()
        if len(proof) != 32:
            raise ScramFailed("malformed")
        found: tuple[str, bytes] | None = None
        for key_id, verifier in (*self.known, ("", verifier_of(secrets.token_urlsafe(32), self.salt, iterations=1))):
            signature = _hmac(verifier.stored_key, signed)
            client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
            if hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key) and key_id:
                found = key_id, b"v=" + base64.b64encode(_hmac(verifier.server_key, signed))
        if found is None:
            raise ScramFailed("wrong")
        return found


@dataclass(slots=True)
class ClientExchange:
    """A login at another server, which must prove that it also knows the password."""

    password: str
    _nonce: str = field(default_factory=lambda: base64.b64encode(secrets.token_bytes(18)).decode())
    _server_signature: bytes = b""

    def first(self) -> bytes:
        """The client's first message."""
        return f"n,,n=,r={self._nonce}".encode()

    def final(self, told: bytes) -> bytes:
        """The client's last message, in reply to the server's first."""
        attributes = _attributes(_ascii(told))
        if not attributes.get("r", "").startswith(self._nonce) or not {"s", "i"} <= attributes.keys():
            raise ScramFailed("malformed")
        salted = salted_password(self.password, _bytes(attributes["s"]), int(attributes["i"]))
        client_key = _hmac(salted, b"Client Key")
        without = f"c=biws,r={attributes['r']}"
        signed = f"n=,r={self._nonce},{_ascii(told)},{without}".encode()
        self._server_signature = _hmac(_hmac(salted, b"Server Key"), signed)
        signature = _hmac(hashlib.sha256(client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{without},p={base64.b64encode(proof).decode()}".encode()

    def check(self, told: bytes) -> None:
        """Require that the server proves that it knows the password."""
        if not hmac.compare_digest(_bytes(_attributes(_ascii(told)).get("v", "")), self._server_signature):
            raise ScramFailed("the server does not know the password")


def _ascii(told: bytes) -> str:
    try:
        return told.decode("ascii")
    except UnicodeDecodeError as error:
        raise ScramFailed("malformed") from error
