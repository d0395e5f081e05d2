"""One name, one thing: no two public classes of one package have the same name. Across packages, the package tells them apart."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from tests.meta.tree import SOURCE, python_files


def _public_classes(path: Path) -> Iterable[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))


def _package(path: Path, root: Path) -> str:
    """The package of a module; each interface is a package of its own."""
    folders = path.relative_to(root).parts[:-1]
    return ".".join(folders[: 2 if folders[:1] == ("interfaces",) else 1])


def _named_twice(files: Iterable[Path], root: Path) -> dict[str, list[str]]:
    """Public classes at the top of a module, each with the modules of its package that have one of that name, where these are several."""
    modules: dict[str, list[str]] = {}
    for path in files:
        for name in _public_classes(path):
            modules.setdefault(f"{_package(path, root)}.{name}", []).append(path.name)
    return {name: where for name, where in modules.items() if len(where) > 1}


def test_no_public_class_name_exists_twice_in_a_package() -> None:
    files = python_files(SOURCE)
    assert sum(1 for path in files for _ in _public_classes(path)) > 300
    assert _named_twice(files, SOURCE) == {}


def test_a_name_given_twice_in_a_package_is_reported_with_both_places(tmp_path: Path) -> None:
    for name in ("sql/one.py", "sql/rows/other.py", "releases/one.py", "interfaces/http/one.py", "interfaces/wire/one.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("class Part: ...\nclass _Own: ...\n", encoding="utf-8")
    assert _named_twice(sorted(tmp_path.rglob("*.py")), tmp_path) == {"sql.Part": ["one.py", "other.py"]}
