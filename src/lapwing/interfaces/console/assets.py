"""Style sheets, scripts, fonts and pictures of the package, at an address that changes with them, so that browsers may cache them."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import Response

from lapwing.errors import CallRefused
from lapwing.interfaces.console.navigation import ROOT

FOLDER = Path(__file__).parent / "assets"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
_COMPRESSED = (".css", ".js", ".svg", ".txt")
router = APIRouter(prefix=f"{ROOT}/assets")


@cache
def contents() -> dict[str, tuple[bytes, bytes | None]]:
    """Each file by its name, plain and, if useful, compressed."""
    files = sorted(path for path in FOLDER.iterdir() if path.suffix in _KINDS)
    plain = {path.name: path.read_bytes() for path in files}
    return {name: (content, gzip.compress(content, 9, mtime=0) if name.endswith(_COMPRESSED) else None) for name, content in plain.items()}


@cache
def digest() -> str:
    """The digest of all files together."""
    whole = hashlib.sha256()
    for name, (content, _) in contents().items():
        whole.update(f"{name} {len(content)} ".encode() + content)
    return whole.hexdigest()[:16]


def asset(name: str) -> str:
    """The address of a file; a missing one is an error in a template."""
    if name not in contents():
        raise KeyError(name)
    return f"{ROOT}/assets/{digest()}/{name}"


@router.get("/{of}/{name}")
async def file(of: str, name: str, request: Request) -> Response:
    """One file. Only the names in the package are served."""
    request.state.is_file_of_pages = True
    if of != digest() or name not in contents():
        raise CallRefused("not-found", "there is nothing at this address")
    content, compressed = contents()[name]
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        content, headers = compressed, headers | {"Content-Encoding": "gzip"}
    return Response(content, media_type=_KINDS[Path(name).suffix], headers=headers)
