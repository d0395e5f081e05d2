"""Whether a release answers a statement, found by asking it."""

from __future__ import annotations

from collections.abc import Callable

from lapwing.errors import Refused


def is_covered(query: Callable[[], object]) -> bool:
    """False where this answers that the release does not cover it (``release-not-covered``); other refusals are raised."""
    try:
        query()
    except Refused as error:
        if error.code == "release-not-covered":
            return False
        raise
    return True
