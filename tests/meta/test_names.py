"""One name, one thing: no two public classes of the package are called the same, so that a reader never has to ask which one is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from tests.meta.tree import SOURCE, python_files


def _public_classes(path: Path) -> Iterable[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def _named_twice(files: Iterable[Path]) -> dict[str, list[str]]:
    """Public classes at the top of a module, each with the modules that have one of that name, where these are several."""
    modules: dict[str, list[str]] = {}
    for path in files:
        for name in _public_classes(path):
            modules.setdefault(name, []).append(path.name)
    return {name: where for name, where in modules.items() if len(where) > 1}


def test_no_public_class_name_exists_twice() -> None:
    files = python_files(SOURCE)
    assert sum(1 for path in files for _ in _public_classes(path)) > 300
    assert _named_twice(files) == {}


def test_a_name_given_twice_is_told_with_both_places(tmp_path: Path) -> None:
    for name, text in {"one.py": "class Part: ...\nclass _Own: ...\n", "other.py": "class Part: ...\nclass _Own: ...\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert _named_twice(sorted(tmp_path.iterdir())) == {"Part": ["one.py", "other.py"]}
