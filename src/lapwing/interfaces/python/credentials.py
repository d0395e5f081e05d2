"""A token in its own file, which only its owner may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lapwing.errors import LapwingError

_BYTES_MAX = 65_536


def token_in(file: Path) -> str:
    """The token in a file: its only line. Refused (``token-file``) where others than its owner may read it."""
    try:
        with file.open("rb") as stream:
            if os.fstat(stream.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise LapwingError("token-file", "others than its owner may use the file of the token", hint=f"chmod 600 {file.name}")
            text = stream.read(_BYTES_MAX).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise LapwingError("token-file", "the file of the token cannot be read") from None
    if not text:
        raise LapwingError("token-file", "the file of the token is empty")
    return text
