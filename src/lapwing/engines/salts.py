"""Secrets that reach a query, derived from the ranking key."""

from __future__ import annotations

import hashlib
import hmac


def key_check(ranking_key: bytes) -> str:
    """Distinguishes one ranking key from another and reveals nothing else about it; stored with ranks, which only that key can continue."""
    return hmac.new(ranking_key, b"lapwing which key", hashlib.sha256).hexdigest()[:32]


def group_salt(ranking_key: bytes) -> str:
    """The secret by which Grouped chooses groups; derived, so that the ranking key itself never reaches an analyst's query."""
    return hmac.new(ranking_key, b"lapwing group choice", hashlib.sha256).hexdigest()
