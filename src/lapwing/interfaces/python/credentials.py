"""A token in its own file, which only its owner may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lapwing.errors import LapwingError

_BYTES_MAX = 65_536


def token_in(file: Path) -> str:
    """The token in a file: its only line. Refused (``token-file``) if anybody but its owner may read it."""
    try:
        with file.open("rb") as stream:
            if os.fstat(stream.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise LapwingError("token-file", "users other than its owner have access to the token file", hint=f"chmod 600 {file.name}")
            text = stream.read(_BYTES_MAX).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise LapwingError("token-file", "the token file cannot be read") from None
    if not text:
        raise LapwingError("token-file", "the token file is empty")
    return text
