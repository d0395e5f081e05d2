"""The folder of the kernel is the gate and nothing else: exactly the modules that ``certify``, ``release`` and ``count_stream`` import.

Whoever audits the gate reads this folder; a file in it that the gate does not need would be read for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import grimp

from tests.meta.tree import SOURCE, python_files

GATE = ("lapwing.kernel.certify", "lapwing.kernel.release", "lapwing.kernel.count_stream")
BESIDE_THE_KERNEL = {"lapwing.errors"}
LINES_MAX = 5_700
"""100 more since open text has functions: five rules of domains, in ``text_functions``; 50 more since groups may be a product of axes;
20 more since the domain of a part of an expression is found once; 80 more since decimals are counted in steps;
100 more since blocks of time have days, corrections and a cost of one person."""
KERNEL = SOURCE / "kernel"


def import_graph() -> grimp.ImportGraph:
    """Who imports whom in ``lapwing``."""
    return grimp.build_graph("lapwing", cache_dir=None)


def imported_by_the_gate(graph: grimp.ImportGraph) -> frozenset[str]:
    """The three modules and all that they import, directly or through others. Importing a module runs its packages too: those are aside."""
    modules = {module for entry in GATE for module in (entry, *graph.find_upstream_modules(entry))}
    return frozenset(module for module in modules if graph.find_children(module) == set())


def not_needed_by_the_gate(files: Iterable[Path], needed: Iterable[str]) -> list[str]:
    """Files that define a module which is not among those needed. A package's own file says nothing but what its package is for."""
    modules = {path: ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in files if path.name != "__init__.py"}
    return sorted(str(path.relative_to(SOURCE)) for path, module in modules.items() if module not in set(needed))


def test_every_file_of_the_kernel_is_imported_by_the_gate() -> None:
    assert not_needed_by_the_gate(python_files(KERNEL), imported_by_the_gate(import_graph())) == []


def test_the_gate_imports_nothing_outside_the_kernel_but_the_errors() -> None:
    outside = {module for module in imported_by_the_gate(import_graph()) if not module.startswith("lapwing.kernel.")}
    assert outside == BESIDE_THE_KERNEL


def test_packages_of_the_kernel_hold_no_code() -> None:
    packages = [path for path in python_files(KERNEL) if path.name == "__init__.py"]
    assert packages
    for path in packages:
        code = [line for line in path.read_text(encoding="utf-8").split('"""')[::2] if line.strip()]
        assert code == [], path


def test_the_kernel_can_be_read_in_a_day() -> None:
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(KERNEL))
    assert 3_000 < lines <= LINES_MAX


def test_a_planted_file_is_found_unless_the_gate_imports_it() -> None:
    planted, files = "lapwing.kernel.planted", [*python_files(KERNEL), KERNEL / "planted.py"]
    graph = import_graph()
    graph.add_module(planted)
    assert not_needed_by_the_gate(files, imported_by_the_gate(graph)) == ["kernel/planted.py"]
    graph.add_import(importer="lapwing.planning.plan", imported=planted)
    assert not_needed_by_the_gate(files, imported_by_the_gate(graph)) == ["kernel/planted.py"]
    graph.add_import(importer="lapwing.kernel.thresholds", imported=planted)
    assert not_needed_by_the_gate(files, imported_by_the_gate(graph)) == []
