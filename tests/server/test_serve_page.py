"""What the page and the README tell people to type is what the test of the process types."""

from __future__ import annotations

import re

from tests.meta.tree import DOCS, ROOT
from tests.server import test_process

_SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _typed(text: str) -> list[str]:
    """Commands of the shell blocks, without comments."""
    lines = [line.split("  #")[0].strip() for block in _SH.findall(text) for line in block.splitlines()]
    return [line for line in lines if line.startswith("lapwing ")]


def test_the_commands_of_the_pages_are_those_that_are_run() -> None:
    run = (ROOT / "tests" / "server" / "test_process.py").read_text(encoding="utf-8")
    assert test_process.STATEMENT
    page = _typed((DOCS / "how-to" / "serve.md").read_text(encoding="utf-8"))
    assert page == [
        "lapwing demo clinic",
        "lapwing -C clinic prepare",
        "lapwing serve clinic",
        "lapwing access grant ada analyst '*'",
        "lapwing access key ada",
        "lapwing --server http://127.0.0.1:8765 describe",
        'lapwing --server http://127.0.0.1:8765 ask "SELECT region, COUNT(*) AS n FROM patients GROUP BY region" --epsilon 0.2',
        "lapwing shell --server http://127.0.0.1:8765",
    ]
    assert [line for line in _typed((ROOT / "README.md").read_text(encoding="utf-8")) if line not in page] == []
    for words in ('"demo", "clinic"', '"-C", "clinic", "prepare"', '"serve", "clinic"', '"grant", "ada", "analyst", "*"', '"key", "ada"'):
        assert words in run
    for file, wanted in {"test_client.py": ('("describe",)', '"ask", STATEMENT'), "test_shell.py": ('"shell", "--server"',)}.items():
        text = (ROOT / "tests" / "server" / file).read_text(encoding="utf-8")
        assert [word for word in wanted if word not in text] == []
