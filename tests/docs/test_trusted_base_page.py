"""The page on the trusted base lists the files there are, from the import graph, and cannot forget a package."""

from __future__ import annotations

import re

import grimp
import pytest
from docs.make_trusted_base import END, PAGE, START, STARTS, holders, made_now, package_of, packages, source_texts, trusted_modules

_FIGURE = re.compile(r"\| ([\d,]+) (?=\|)")


def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("lapwing", cache_dir=None)


def _tables_of_the_page() -> str:
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    made, found, _ = rest.partition(END)
    assert found
    return made.strip()


def test_the_page_is_up_to_date() -> None:
    """Files and functions are exact; figures may be a tenth off, or 100 lines, before they are out of date."""
    shown, now = _tables_of_the_page(), made_now()
    assert _FIGURE.sub("|  ", shown) == _FIGURE.sub("|  ", now), "run: python -m docs.make_trusted_base"
    figures = [[int(figure.replace(",", "")) for figure in _FIGURE.findall(text)] for text in (shown, now)]
    assert len(figures[0]) == len(figures[1]) > 20
    assert [pair for pair in zip(*figures, strict=True) if abs(pair[0] - pair[1]) > max(100, pair[1] / 10)] == []


def test_the_base_holds_the_gate_the_engines_and_the_ledgers() -> None:
    files = {name for package in packages(_graph()) for name in package.files}
    assert {"kernel/certify.py", "kernel/release.py", "catalog/facts.py", "render/spark.py", "engines/spark/snapshot.py"} <= files
    assert {"engines/postgres/snapshot.py", "engines/duckdb/prepare.py", "ledger/local/ledger.py", "ledger/postgres/ledger.py"} <= files
    assert {"ledger/postgres/sql/protocol.sql", "ledger/postgres/migrations/env.py"} <= files
    outside = ("sql/", "planning/", "answers/", "asking/", "owner/", "interfaces/", "audit/", "mechanisms/")
    assert not {name for name in files if name.startswith(outside)}


def test_a_package_that_comes_in_by_an_import_must_be_explained() -> None:
    graph = _graph()
    graph.add_import(importer="lapwing.engines.registry", imported="lapwing.planning.plan")
    assert "lapwing.planning.plan" in trusted_modules(graph)
    with pytest.raises(SystemExit, match="does not say why"):
        packages(graph)
    assert {package_of(start).partition("/")[0] for start in STARTS} == {"kernel", "catalog", "engines", "ledger"}


def test_a_function_that_holds_exact_values_is_found_wherever_it_is() -> None:
    planted = """
from lapwing.kernel.release import Released, release as draw

class Thing:
    def innocent(self) -> Released: ...
    def guilty(self) -> Released:
        def inner() -> Released:
            return draw(1, 2, 3)
        return inner()

def keyed(state: object) -> bytes:
    return state.ranking_key()
"""
    found = holders(_graph(), {"lapwing.interfaces.python.planted": planted, "lapwing.audit.planted": planted})
    file = "interfaces/python/planted.py"
    assert [(item.file, item.function) for item in found] == [(file, "Thing.guilty"), (file, "keyed")]
    assert {item.file.partition("/")[0] for item in holders(_graph(), source_texts())} == {"curator", "owner"}
