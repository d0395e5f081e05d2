"""Phrases that are never right do not occur: translated idiom in place of a verb, or a sentence whose subject is missing.

Each phrase has what to write instead. No single word is on the list, and no phrase that is right somewhere. Decision records and the
changelog quote the past.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.meta.tree import DOCS, ROOT, tracked_files

PHRASES = {
    "is taken back": "is revoked, is reverted",
    "no more than none": "0",
    "units than none": "counts are not negative",
    "whoever asked": "the analyst, the caller",
    "is looked at": "is read, is checked, is compared",
    "what is told to": "what the reader sees",
    "what a mistake in": "where a mistake",
    "heap up": "accumulate",
    "forgotten by the way": "purged",
    "the transaction's luck": "aborts the transaction",
    "have no words that are not known": "unknown fields are rejected",
    "look elsewhere": "redirect",
    "when nobody says": "by default",
    "showed who they are": "authenticated",
    "it is dear": "it is expensive",
    "is let go": "is accepted",
    "not as below": "and may differ from those below",
    "whom nobody else": "say who may read it",
    "as what it was": "verbatim",
    "a suspicion of one": "someone who thinks it 10 % likely",
}
PHRASES_MAX = 20
_ENDINGS = {".md", ".py", ".html", ".sql", ".toml", ".js", ".css"}
_BETWEEN = re.compile(r"(?:[\s#>]|\"\s*\n\s*f?\")+")


def _found(text: str) -> list[str]:
    """The phrases in a text, wherever its lines, comments or string literals are broken."""
    running = _BETWEEN.sub(" ", text).lower()
    return [phrase for phrase in PHRASES if re.search(rf"\b{re.escape(phrase)}\b", running)]


def _read(path: Path) -> bool:
    inside = path.relative_to(ROOT).parts
    is_ours = inside[0] in {"src", "docs"} or inside == ("README.md",)
    return is_ours and path.suffix in _ENDINGS and DOCS / "decisions" not in path.parents and "assets" not in inside


def test_phrases_that_are_never_right_do_not_occur() -> None:
    paths = [path for path in tracked_files() if _read(path)]
    assert len(paths) > 700
    assert [f"{path.relative_to(ROOT)}: {phrase}" for path in paths for phrase in _found(path.read_text(encoding="utf-8"))] == []


def test_a_phrase_is_found_across_lines() -> None:
    assert _found('"""The right is taken\n    back."""') == ["is taken back"]
    assert _found("# units heap\n# up") == ["heap up"]
    assert _found('"what is "\n    "told to"') == ["what is told to"]
    assert _found("A right is revoked.") == []


def test_the_list_is_short_and_has_no_common_word() -> None:
    assert len(PHRASES) <= PHRASES_MAX
    assert [phrase for phrase in PHRASES if " " not in phrase or phrase != phrase.lower()] == []
