"""The files that ``lapwing ask`` leaves on request: the receipt, and the stored answer that it was signed for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lapwing.cli.exits import usage_error

if TYPE_CHECKING:
    from lapwing.answers.answer import Answer
    from lapwing.curator.life import Curator


def require_writable(curator: Curator, *, receipt: Path | None, stored: Path | None) -> None:
    """Refuse before anything is charged what could not be written afterwards, or would overwrite something."""
    from lapwing.receipts import no_signing_key

    if receipt is not None and curator.place.keys is None:
        raise no_signing_key()
    for file in (receipt, stored):
        if file is not None and file.exists():
            raise usage_error(f"{file} is already there")
        if file is not None and not file.parent.is_dir():
            raise usage_error(f"{file} cannot be written: there is no such directory")


def write_stored(answer: Answer, *, receipt: Path | None, stored: Path | None) -> None:
    """Write the files. The stored answer is written byte for byte: its digest is in the receipt."""
    from lapwing.receipts import receipt_text

    if receipt is not None:
        _write(receipt, b"" if answer.receipt is None else receipt_text(answer.receipt).encode() + b"\n")
    if stored is not None:
        _write(stored, answer.stored or b"")


def _write(file: Path, content: bytes) -> None:
    if not content:
        raise usage_error("nothing was measured, so nothing is stored and there is no receipt")
    try:
        with file.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        raise usage_error(f"{file} cannot be written: {error.strerror}; ask again, which is free") from None
