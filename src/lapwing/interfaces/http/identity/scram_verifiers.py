"""What is stored of an API key so that it can be a password on the PostgreSQL wire: enough to check a login, not enough to log in."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass

ITERATIONS = 4_096
"""A key is 256 random bits: it cannot be guessed, even without a slow hash."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """Keys to check a client's proof of the password, and to make the server's own proof."""

    stored_key: bytes
    server_key: bytes


def salted_password(password: str, salt: bytes, iterations: int) -> bytes:
    """What both sides compute from the password."""
    return hashlib.pbkdf2_hmac("sha256", password.encode("utf-8"), salt, iterations)


def verifier_of(password: str, salt: bytes, *, iterations: int = ITERATIONS) -> Verifier:
    """The stored verifier of a password."""
    salted = salted_password(password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return Verifier(hashlib.sha256(client_key).digest(), hmac.digest(salted, b"Server Key", "sha256"))


def salt_of(secret: bytes, name: str) -> bytes:
    """The salt of all keys of a person: a function of the name, so that an unknown name gets one like any other."""
    return hmac.digest(secret, b"salt of " + name.encode("utf-8"), "sha256")[:16]
