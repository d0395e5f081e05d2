"""Writes the tables of the page on the trusted base from the import graph, so that the page cannot forget a file.

    python -m docs.make_trusted_base

The base starts at the code that decides and draws (``certify``, ``release``, ``CountStream``), at the catalogue, which says what is
protected, at every engine, which holds rows, and at every ledger, which holds the account. It contains all of these and everything they
import. A second table lists the functions of other packages that hold exact values or secrets. A module that an import brings into the base
without a reason given here is an error.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "lapwing"
PAGE = ROOT / "docs" / "explanation" / "trusted-base.md"
START, END = "<!-- made by docs/make_trusted_base.py: change it there -->", "<!-- made until here -->"

STARTS = (
    "lapwing.kernel.certify",
    "lapwing.kernel.release",
    "lapwing.kernel.count_stream",
    "lapwing.catalog",
    "lapwing.engines",
    "lapwing.ledger",
)
"""Modules, or packages with all that is in them, at which the base starts."""

WHY = {
    "kernel": "the rules, the check of each finished plan by them, and the noise",
    "catalog": "makes the facts that the kernel believes: unit, bounds, keys, neighbours, budget",
    "render": "turns a certified plan into an engine's text, and what arrives into values",
    "engines": "what engines share: preparation, salts and ranks, arriving values, state",
    "engines/duckdb": "one unit and one rank for every row; exact integers as they are; on DuckDB",
    "engines/postgres": "the same on PostgreSQL: roles, schemas, read-only snapshots",
    "engines/spark": "the same on Apache Spark: sessions, files of a version, bucketed tables",
    "ledger": "what ledgers share: requests, limits, answers that wait to be stored",
    "ledger/local": "no answer without a durable charge, no charge beyond the budget; in a file",
    "ledger/postgres": "the same in a PostgreSQL database: its procedures, roles and anchors",
    "receipts": "signs what was charged and answered, with the owner's private key",
    "prices": "the epsilon that a refusal for cost names",
    "errors": "errors carry a code and fixed words, and no value from the data",
}
"""Packages of the base, in the order of the table. A module belongs to the longest prefix of its path that is listed here."""

EXACT_VALUES = {
    "lapwing.kernel.release": {"release"},
    "lapwing.kernel.count_stream": {"CountStream"},
    "lapwing.engines.losses": {"TableLosses", "report_of"},
    "lapwing.engines.state": {"KEPT_FILES"},
}
"""What takes or gives exact values or secrets, by module: a function outside the base that names one of these holds them."""
SECRETS = {"ranking_key"}
"""Methods that give secrets, whatever object has them."""
ON_INVENTED_DATA = ("audit", "demo")
"""Packages that use it on invented data, so nothing could leak."""


@dataclass(frozen=True, slots=True)
class Package:
    """One row of the first table."""

    name: str
    files: tuple[str, ...]
    lines: int


@dataclass(frozen=True, slots=True)
class Holder:
    """A function outside the base that holds exact values or secrets."""

    file: str
    function: str
    lines: int


def trusted_modules(graph: grimp.ImportGraph) -> set[str]:
    """Where the base starts, and all that it imports. (Packages count: their own files run too.)"""
    starts = {module for start in STARTS for module in (start, *graph.find_descendants(start))}
    return starts.union(*(graph.find_upstream_modules(module) for module in starts))


def packages(graph: grimp.ImportGraph) -> tuple[Package, ...]:
    """The base by package. Files that are not modules count too: SQL, and the migrations of a database."""
    files: dict[str, list[Path]] = {name: [] for name in WHY}
    modules_of: dict[Path, str] = {}
    for module in trusted_modules(graph):
        folder = SOURCE.joinpath(*module.split(".")[1:])
        if folder.is_dir():
            modules_of[folder] = module
        path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        files[package_of(module)].append(path)
    modules = {SOURCE.joinpath(*module.split(".")[1:]) for module in graph.modules}
    for path in (*SOURCE.rglob("*.sql"), *SOURCE.rglob("*.py")):
        is_module = (path.parent if path.name == "__init__.py" else path.with_suffix("")) in modules
        package = next((modules_of[folder] for folder in path.parents if folder in modules_of), None)
        if package is not None and (path.suffix == ".sql" or not is_module):
            files[package_of(package)].append(path)
    return tuple(Package(name, tuple(sorted(_shown(path) for path in paths)), sum(map(_lines, paths))) for name, paths in files.items())


def package_of(module: str) -> str:
    """The package of a trusted module. A package without an explanation is an error."""
    parts = module.split(".")[1:]
    for length in range(len(parts), 0, -1):
        if (name := "/".join(parts[:length])) in WHY:
            return name
    raise SystemExit(f"{module} is in the trusted base, and docs/make_trusted_base.py does not say why")


def holders(graph: grimp.ImportGraph, sources: Mapping[str, str]) -> tuple[Holder, ...]:
    """Functions of modules outside the base that name what takes or gives exact values or secrets."""
    base = trusted_modules(graph)
    found: list[Holder] = []
    for module, text in sorted(sources.items()):
        if module in base or (module.split(".")[1:2] and module.split(".")[1] in ON_INVENTED_DATA):
            continue
        tree = ast.parse(text)
        names = set(_imported(tree))
        for path, node in _functions(tree, ""):
            if any(_names_one(inner, names) for inner in ast.walk(node)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                found.append(Holder(module.removeprefix("lapwing.").replace(".", "/") + ".py", path, lines))
    return tuple(found)


def _names_one(node: ast.AST, names: set[str]) -> bool:
    return (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.Attribute) and node.attr in SECRETS)


def _imported(tree: ast.Module) -> Iterator[str]:
    """Names under which a module knows what takes or gives exact values or secrets."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in EXACT_VALUES:
            yield from (alias.asname or alias.name for alias in node.names if alias.name in EXACT_VALUES[node.module])


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions and methods; what is defined inside a function belongs to it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _shown(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def tables(all_packages: tuple[Package, ...], all_holders: tuple[Holder, ...]) -> str:
    """Both tables, with rounded figures: exact ones would be wrong every day."""
    head = "| package of `lapwing` | files | lines, about | what it does that must be right |\n|---|---|---|---|"
    body = [f"| `{package.name}` | {len(package.files)} | {_about(package.lines)} | {WHY[package.name]} |" for package in all_packages]
    total_files, total_lines = sum(len(package.files) for package in all_packages), sum(package.lines for package in all_packages)
    total = f"| together | {total_files} | {_about(total_lines)} | |"
    listed = [_listed(package) for package in all_packages]
    held = "| function outside these packages that holds exact values or secrets | lines, about |\n|---|---|"
    held_body = [f"| `{item.function}` in `{item.file}` | {max(5, round(item.lines / 5) * 5)} |" for item in all_holders]
    return "\n".join([head, *body, total, "", *listed, "", held, *held_body])


def _listed(package: Package) -> str:
    """The files of a package, as one item of a list."""
    names = [f"`{name.removeprefix(f'{package.name}/')}`" for name in package.files]
    return textwrap.fill(f"- `{package.name}`: {', '.join(names)}", width=140, subsequent_indent="  ", break_on_hyphens=False)


def _about(lines: int) -> str:
    return f"{max(50, round(lines / 50) * 50):,}"


def page(text: str, made: str) -> str:
    """The page with its tables made anew."""
    pattern = re.compile(re.escape(START) + ".*" + re.escape(END), re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise SystemExit("the page has no place for the tables")
    return pattern.sub(lambda _: f"{START}\n\n{made}\n\n{END}", text)


def source_texts() -> dict[str, str]:
    """The text of every module."""
    return {
        ".".join(("lapwing", *path.relative_to(SOURCE).with_suffix("").parts)): path.read_text(encoding="utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "__init__.py"
    }


def made_now() -> str:
    """The tables of the source as it is."""
    graph = grimp.build_graph("lapwing", cache_dir=None)
    return tables(packages(graph), holders(graph, source_texts()))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), made_now()), encoding="utf-8")
