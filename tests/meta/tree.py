"""Where the repository's own files are, for the tests that look at the tree itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "lapwing"
DOCS = ROOT / "docs"

_NOT_OURS = {".git", ".venv", "build", "dist", "_build", "generated", "__pycache__"}


def tracked_files() -> tuple[Path, ...]:
    """The files under version control or, where git cannot say (an unpacked archive), every file that is not a build product."""
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False)
    if listing.returncode == 0:
        paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
        return tuple(path for path in paths if path.is_file())
    return tuple(path for path in sorted(ROOT.rglob("*")) if path.is_file() and not _is_build_product(path))


def _is_build_product(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return any(part in _NOT_OURS or part.endswith(("_cache", ".egg-info")) for part in parts)


def text_lines(paths: tuple[Path, ...]) -> Iterator[tuple[str, int, str]]:
    """Each line of each file that is text: the file's name within the repository, the line's number from 1, the line."""
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            yield str(path.relative_to(ROOT)), number, line


def python_files(folder: Path) -> tuple[Path, ...]:
    """Every Python file below a folder, in a stable order."""
    return tuple(sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts))
