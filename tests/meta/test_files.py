"""Rules about the files themselves: their length, and what must never be written into them."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.meta.tree import DOCS, ROOT, SOURCE, python_files, text_lines, tracked_files

KERNEL_LINES_MAX = 350
LINES_MAX = 500
MODULES_MAX = 24
FLAT = frozenset({"kernel"})
"""Folders that may hold more modules: the kernel's closure test and its readers want one folder."""

# Written in pieces, so that this file does not contain what it looks for.
_MACHINE_FOLDERS = ("work", "root", "home", "opt")
MACHINE_PATH = re.compile(rf"(?<![\w.)}}~-])/(?:{'|'.join(_MACHINE_FOLDERS)})\b")
_REGISTRIES = ("py" + "pi", "python" + "hosted", "ana" + "conda", "npm" + "js", "crates")
REGISTRY_HOST = re.compile(rf"\b(?:{'|'.join(_REGISTRIES)})\.(?:org|com|io)\b", re.IGNORECASE)


def _too_long(lines_by_file: dict[Path, int]) -> list[str]:
    kernel = SOURCE / "kernel"
    return [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path, lines in lines_by_file.items()
        if lines > (KERNEL_LINES_MAX if kernel in path.parents else LINES_MAX)
    ]


def test_no_python_file_is_too_long_to_read_in_one_sitting() -> None:
    files = python_files(SOURCE) + python_files(ROOT / "tests")
    assert len(files) > 10
    assert _too_long({path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}) == []


def test_the_length_rule_is_stricter_for_the_kernel() -> None:
    kernel, other = SOURCE / "kernel" / "planted.py", SOURCE / "catalog" / "planted.py"
    assert _too_long({kernel: KERNEL_LINES_MAX, other: LINES_MAX}) == []
    assert len(_too_long({kernel: KERNEL_LINES_MAX + 1, other: LINES_MAX + 1})) == 2


def _crowded(files: Sequence[Path], root: Path) -> dict[str, int]:
    """Folders with more modules than a reader takes in at once, each with their number."""
    counts = Counter(str(path.parent.relative_to(root)) for path in files if path.name != "__init__.py")
    return {folder: count for folder, count in counts.items() if count > MODULES_MAX and folder not in FLAT}


def test_no_folder_holds_too_many_modules() -> None:
    files = python_files(SOURCE)
    assert len(files) > 500
    assert _crowded(files, SOURCE) == {}


def test_a_crowded_folder_is_reported_with_its_number_of_modules() -> None:
    files = [SOURCE / "sql" / f"module_{number}.py" for number in range(MODULES_MAX + 1)]
    assert _crowded([*files, SOURCE / "sql" / "__init__.py"], SOURCE) == {"sql": MODULES_MAX + 1}
    assert _crowded(files[1:], SOURCE) == {}


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY_HOST], ids=["a path of some machine", "a package registry's host"])
def test_no_tracked_file_contains(pattern: re.Pattern[str]) -> None:
    files = tracked_files()
    assert ROOT / "pyproject.toml" in files
    assert [f"{name}:{number}: {line.strip()}" for name, number, line in text_lines(files) if pattern.search(line)] == []


def test_the_patterns_find_what_they_are_for() -> None:
    folder, host = _MACHINE_FOLDERS[0], _REGISTRIES[0]
    for line in (f"cd /{folder}/x", f'"/{folder}"', f"file:///{folder}/x", f"(/{folder}/x)", f"=/{folder}/x"):
        assert MACHINE_PATH.search(line), line
    for line in (f"src/{folder}/x", f"/{folder}ing", f"~/{folder}", f"./{folder}"):
        assert not MACHINE_PATH.search(line), line
    assert REGISTRY_HOST.search(f"--index-url https://{host}.org/simple")
    assert not REGISTRY_HOST.search("published on a registry")


def test_constraints_name_versions_and_nothing_else() -> None:
    requirement = re.compile(r"[a-z0-9][a-z0-9-]*==[0-9][0-9a-z.]*( ; [a-z_]+ [A-Za-z_0-9 <>=!.'*()]+)?")
    lines = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert len(lines) > 20
    assert [line for line in lines if not requirement.fullmatch(line)] == []


def test_the_pins_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = [*project["dependencies"], *(item for extra in project["optional-dependencies"].values() for item in extra)]
    pins = dict(requirement.split("==") for requirement in required if "==" in requirement)
    assert pins.keys() == {"duckdb", "opendp", "sqlglot"}
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    page = (DOCS / "explanation" / "trusted-base.md").read_text(encoding="utf-8").lower()
    for name, version in pins.items():
        assert f"{name}=={version}" in constraints
        assert f"{name} `{version}`" in page
