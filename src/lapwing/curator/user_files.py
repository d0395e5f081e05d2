"""The location of the user's private files: beside the registry."""

from __future__ import annotations

import os
from pathlib import Path

from lapwing.ledger.local.registry import registry_home


def private_file(name: str) -> Path | None:
    """A file of this name that only the user can read, created empty if missing; None if that is impossible."""
    directory = registry_home()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError:
        return None
    return directory / name
