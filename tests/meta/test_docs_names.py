"""The documentation names what exists: public names in the reference, proved functions in the proofs."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

import lapwing
from lapwing.interfaces.wire.settings import OWN as SETTINGS_OF_THE_WIRE
from tests.meta.tree import DOCS, ROOT, SOURCE, python_files, tracked_files

_CODE_FONT = re.compile(r"`([^`\n]+)`")
_DOTTED = re.compile(r"lapwing(?:\.\w+)+")
_CALL = re.compile(r"([A-Za-z_]\w*)\(.*\)")
_FILE = re.compile(r"[\w/]+\.py")

PROOFS = tuple(sorted(path for path in (DOCS / "proofs").glob("*.md") if path.name != "index.md"))


def _code_font(text: str) -> set[str]:
    return set(_CODE_FONT.findall(text))


def _undocumented(names: Iterable[str], pages: Iterable[str]) -> list[str]:
    shown = {piece.removeprefix("lapwing.").partition("(")[0] for page in pages for piece in _code_font(page)}
    return sorted(set(names) - shown)


def test_every_public_name_is_in_the_reference() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md")]
    assert _undocumented(["NoSuchName"], pages) == ["NoSuchName"]
    assert _undocumented(getattr(lapwing, "__all__", ()), pages) == []


def test_every_public_name_exists() -> None:
    exported = getattr(lapwing, "__all__", ())
    assert len(set(exported)) == len(exported)
    assert [name for name in exported if not hasattr(lapwing, name)] == []


def _resolves(dotted: str) -> bool:
    """Whether a dotted name is a module of ours or something inside one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@cache
def _defined() -> frozenset[str]:
    """Names of all functions, methods and classes in the source."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in python_files(SOURCE))
    return frozenset(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))


_NOT_MODULES = (".toml", ".db")
"""Names of files that look like names of modules."""


def _dangling(text: str) -> list[str]:
    """Dotted names of ours in code font that nothing has."""
    dotted = {match.group() for piece in _code_font(text) for match in _DOTTED.finditer(piece)}
    return sorted(name for name in dotted if not name.endswith(_NOT_MODULES) and name not in SETTINGS_OF_THE_WIRE and not _resolves(name))


def test_no_page_names_a_module_or_function_that_is_gone() -> None:
    """The changelog and decision records tell of the past, and may."""
    pages = [path for path in tracked_files() if path.suffix == ".md" and path.name != "CHANGELOG.md" and path.parent.name != "decisions"]
    assert len(pages) > 50
    assert [f"{page.relative_to(ROOT)}: {name}" for page in pages for name in _dangling(page.read_text(encoding="utf-8"))] == []
    assert _dangling("`lapwing.errors.Refused`, `lapwing.toml` and `lapwing.nowhere.at_all`") == ["lapwing.nowhere.at_all"]


def _wrong_in_proof(text: str, defined: frozenset[str]) -> list[str]:
    """What a proof says about the code that is not so; a proof that names no function of ours at all is wrong too."""
    pieces = _code_font(text)
    dotted = {match.group() for piece in pieces for match in _DOTTED.finditer(piece)}
    called = {match.group(1) for piece in pieces if (match := _CALL.fullmatch(piece))}
    files = {piece for piece in pieces if _FILE.fullmatch(piece)}
    wrong = [name for name in dotted if not _resolves(name) and not (ROOT / "src" / name.replace(".", "/")).with_suffix(".py").exists()]
    wrong += [f"{name}()" for name in called - defined]
    wrong += [name for name in files if not any((base / name).exists() for base in (ROOT, ROOT / "src", SOURCE, SOURCE / "kernel"))]
    bare = {piece.partition("(")[0].rpartition(".")[2] for piece in pieces}
    if not bare & defined:
        wrong.append("names no function of the source")
    return sorted(wrong)


@pytest.mark.parametrize("page", PROOFS, ids=lambda page: page.stem)
def test_a_proof_names_functions_that_exist(page: Path) -> None:
    assert _wrong_in_proof(page.read_text(encoding="utf-8"), _defined()) == []


def test_a_wrong_name_in_a_proof_is_found() -> None:
    defined = frozenset(["rule"])
    assert _wrong_in_proof("It proves `lapwing.errors.LapwingError` and `rule`.", defined) == []
    assert _wrong_in_proof("Nothing in code font.", defined) == ["names no function of the source"]
    assert _wrong_in_proof("`rule`, `lapwing.errors.Missing`", defined) == ["lapwing.errors.Missing"]
    assert _wrong_in_proof("`rule`, `missing(x)`, `kernel/missing.py`", defined) == ["kernel/missing.py", "missing()"]
