"""Does a change leave every public answer as it was? Writes what a checkout says of 1,300 statements, and compares two such files.

    python -m benchmarks.same_answers write after.jsonl --data /tmp/data                            # of this checkout
    PYTHONPATH=OTHER/src python -m benchmarks.same_answers write before.jsonl --data /tmp/data      # of another one
    python -m benchmarks.same_answers compare before.jsonl after.jsonl

For moves of modules, new names and refactorings. The statements are the conformance lists and those that the tests of the SQL front accept
and refuse; they are always read from the checkout of this script. The rows and catalogues are written into the folder of ``--data`` by the
first run, and copied from there by the next, so that both checkouts prepare the same bytes.

First every statement is explained, then those that were accepted are asked (``--asked`` of them, spread over the lists; all by default),
then releases are planned, bought and asked. The source of random bytes is replaced by a stream that depends on the name of the step alone,
so that equal code draws equal noise, and one more or one fewer draw in one answer changes no other. Nothing but the public interface of the
package is used. Statements with NOW() are others each time: their digests, rows and stored bytes are not compared.

Each record has exact fields, which must be equal, and texts, which may be worded anew on purpose. Exact are: codes of refusals, the place
they point to, digests of plans, prices, predicted errors, columns and their types, values, error bars, marks, stored bytes and what is
left of the budget. Texts are: notes, messages, hints and whatever is shown. ``compare`` ends with status 1 where an exact field differs, or
a statement is in one of the files alone; texts that differ are listed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.markdown import show, table

import lapwing
from lapwing.errors import LapwingError
from tests.unit.sql.accepted import ACCEPTED
from tests.unit.sql.refused import REFUSED

LISTS = Path(__file__).resolve().parents[1] / "src" / "lapwing" / "demo"
OF_MOMENT = re.compile(r"\b(NOW|TODAY|GETDATE|(CURRENT|LOCAL|TRANSACTION|STATEMENT)_?(DATE|TIME)\w*)\b", re.IGNORECASE)
FOLLOW_THE_MOMENT = ("digest", "rows", "stored")
"""Fields that such a statement has anew each time; they are counted, not compared."""
KEY_BYTES = 32
"""Of the key by which a data set ranks the rows of a unit."""
Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement and where it comes from."""

    name: str
    sql: str
    dialect: str = "duckdb"

    @property
    def of_moment(self) -> bool:
        """Whether it depends on when it is asked: then it is another statement each time."""
        return OF_MOMENT.search(self.sql) is not None


@dataclass(frozen=True, slots=True)
class World:
    """A data set, what is asked about it, and which releases are bought of it."""

    name: str
    catalogue: str
    units: int
    statements: Callable[[], list[Asked]]
    releases: Callable[[], list[tuple[Mapping[str, Any], Sequence[Any], Sequence[str]]]] = list
    """Arguments of a release, what is wanted of it, and what it is asked."""


def _numbered(file: str) -> list[Asked]:
    """A list whose statements have a name and a title, and maybe the code of a refusal and a rewrite."""
    text = (LISTS / file).read_text(encoding="utf-8")
    entry = re.compile(
        r"^-- ([a-z]\d\d): .+\n(?:-- (?:refused|lacks): .+\n)?((?:(?!--).+\n)+)(?:-- instead\n((?:(?!--).+\n)+))?", re.MULTILINE
    )
    found = []
    for name, sql, rewrite in entry.findall(text):
        found.append(Asked(f"{file} {name}", _bare(sql)))
        if rewrite:
            found.append(Asked(f"{file} {name} instead", _bare(rewrite)))
    return found


def _written(file: str) -> list[Asked]:
    """A list whose statements have a kind, a name, maybe a dialect, and what becomes of them."""
    text = (LISTS / file).read_text(encoding="utf-8")
    entry = re.compile(r"^-- (\w+ [\w-]+)(?: (duckdb|postgres))?: [\w-]+\n(?:-- why: .+\n)?(.+);$", re.MULTILINE)
    return [Asked(f"{file} {name}", sql, dialect or "duckdb") for name, dialect, sql in entry.findall(text)]


def _bare(sql: str) -> str:
    return sql.strip().removesuffix(";")


def _about_the_clinic() -> list[Asked]:
    tested = [Asked(f"accepted {name}", _bare(sql)) for name, sql in ACCEPTED.items()]
    tested += [Asked(f"refused {name}", _bare(sql)) for name, (_, sql) in REFUSED.items()]
    own = ["SHOW TABLES", "SHOW PRIVACY BUDGET", "DESCRIBE visits", "EXPLAIN PRIVACY SELECT COUNT(*) FROM visits", "SELECT", "", "SELECT 1"]
    return [*_numbered("conformance.sql"), *_written("second_list.sql"), *tested, *(Asked(f"own {sql}", sql) for sql in own)]


def _releases_of_the_clinic() -> list[tuple[Mapping[str, Any], Sequence[Any], Sequence[str]]]:
    people = ("sex", "region", "smoker")
    return [
        (
            {"name": "pairs", "table": "patients"},
            [lapwing.Marginals(*people, ways=2)],
            ["SELECT region, COUNT(*) AS n FROM patients WHERE smoker GROUP BY region", "SELECT AVG(income) FROM patients"],
        ),
        (
            {"name": "ages", "table": "patients"},
            [lapwing.RangeTree("birth_year")],
            ["SELECT COUNT(*) AS n FROM patients WHERE birth_year BETWEEN 1950 AND 1969", "SELECT MEDIAN(birth_year) AS m FROM patients"],
        ),
        (
            {"name": "people", "table": "patients"},
            [lapwing.SyntheticTable(*people, "vaccinated")],
            ["SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex"],
        ),
        (
            {"name": "visits", "table": "visits", "rows_per_unit": 5},
            [lapwing.Marginals("clinic_id", "code", ways=1)],
            ["SELECT code, COUNT(*) AS n FROM visits GROUP BY code"],
        ),
        ({"name": "none", "table": "visits"}, [lapwing.Marginals("nothing", ways=1)], []),
    ]


WORLDS = (
    World("clinic", "clinic.toml", 2_000, _about_the_clinic, _releases_of_the_clinic),
    World("shop", "shop.toml", 500, lambda: _written("third_list.sql")),
    World("tpch", "tpch.toml", 400, lambda: _numbered("tpch.sql")),
    World("hits", "hits.toml", 1_000, lambda: _numbered("clickbench.sql")),
)
CHANGES = (
    (r"@(PATIENTS|UNITS)@", "{units}"),
    (r"@ID@", "{name}"),
    (r"^epsilon = 3 ", "epsilon = 100 "),
    (r"^epsilon = 0\.1 ", "epsilon = 0.5 "),
    (r"ceiling = \{ epsilon = 6 \}", "ceiling = {{ epsilon = 100 }}"),
    (r"^per_(statement|day) = 0\.\d", "per_\\1 = 1"),
)
"""To a catalogue: names that do not depend on the folder, and a budget for all statements of the list."""


def write_world(world: World, directory: Path) -> None:
    """The sources of a world and its catalogue."""
    from lapwing.demo import hits_rows, rows, shop_rows, tpch_rows

    tables: dict[str, Callable[[int], Mapping[str, pa.Table]]] = {
        "clinic": rows.all_tables,
        "shop": shop_rows.all_tables,
        "tpch": tpch_rows.all_tables,
        "hits": hits_rows.all_tables,
    }
    directory.mkdir(parents=True)
    for name, content in tables[world.name](world.units).items():
        pq.write_table(content, directory / f"{name}.parquet", compression="zstd")
    text = (LISTS / world.catalogue).read_text(encoding="utf-8")
    for pattern, instead in CHANGES:
        text = re.sub(pattern, instead.format(units=world.units, name=world.name), text, flags=re.MULTILINE)
    (directory / "lapwing.toml").write_text(text, encoding="utf-8")


class _Stream:
    """Bytes that follow from a name, for any number of threads."""

    def __init__(self, name: str) -> None:
        digest = hashlib.sha256(name.encode()).digest()
        self._numbers = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))  # noqa: TID251
        self._lock = threading.Lock()

    def __call__(self, size: int) -> bytes:
        with self._lock:
            return self._numbers.bytes(size)


@contextmanager
def repeatable(name: str) -> Iterator[None]:
    """Inside, random bytes follow from a name: for this comparison alone, on made-up rows."""
    with patch.object(os, "urandom", _Stream(name)):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, DuckDB has one thread: with more, groups that are not declared come in any order, and each takes the next of the draws."""
    connect = duckdb.connect

    def connected(
        database: str = ":memory:", read_only: bool = False, config: Mapping[str, Any] | None = None
    ) -> duckdb.DuckDBPyConnection:
        return connect(database, read_only, {**(config or {}), "threads": "1"})

    with patch.object(duckdb, "connect", connected):
        yield


@contextmanager
def same_keys(name: str) -> Iterator[None]:
    """Inside, the ranking key that a new data set draws for itself follows from a name too; shorter tokens stay as random as ever."""
    draw, stream = secrets.token_bytes, _Stream(f"key of {name}")

    def token_bytes(size: int | None = None) -> bytes:
        return stream(size) if size == KEY_BYTES else draw(size)

    with repeatable(name), patch.object(secrets, "token_bytes", token_bytes):
        yield


def _refusal(error: Exception) -> Record:
    """What an error says; any other than the package's own is a defect, and is compared all the same."""
    if not isinstance(error, LapwingError):
        return {"exact": {"code": f"ended in {type(error).__name__}"}, "texts": {"message": str(error)}}
    place = None if error.span is None else [error.span.start, error.span.end]
    return {"exact": {"code": error.code, "place": place}, "texts": {"message": error.message, "hint": error.hint}}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number, text and truth value inside, with where it is."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        yield f"{path}.length", len(value)
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}.{place}")
    else:
        yield path, value if value is None or isinstance(value, bool | int | float | str) else str(value)


def explained(data_set: lapwing.DataSet, asked: Asked) -> Record:
    """What is said before a statement is asked."""
    try:
        found = data_set.explain(asked.sql, dialect=asked.dialect)
    except Exception as error:
        return _refusal(error)
    leaves = dict(_leaves(found.to_dict()))
    texts = {path: value for path, value in leaves.items() if isinstance(value, str) and not path.endswith("digest")}
    exact = {path: value for path, value in leaves.items() if path not in texts}
    return {"exact": {"code": None, "epsilon": found.cost.epsilon, **exact}, "texts": {**texts, "shown": str(found)}}


def answered(data_set: lapwing.DataSet, asked: Asked) -> Record:
    """What is answered, and what is left of the budget then."""
    try:
        answer = data_set.ask(asked.sql, dialect=asked.dialect)
    except Exception as error:
        return _refusal(error)
    return _answer(answer)


def _shown(answer: lapwing.Answer) -> str:
    """As a terminal has it. A defect there is written down, and ends nothing."""
    try:
        return str(answer)
    except Exception as error:
        return f"ended in {type(error).__name__}: {error}"


def _answer(answer: lapwing.Answer) -> Record:
    about = answer.to_dict()
    texts = {"notes": about.pop("notes"), "shown": _shown(answer)}
    stored = None if answer.stored is None else answer.stored.hex()
    # A table about the data set itself has its explanations in its cells; it has no bars, and is shown.
    if stored is None and not answer.intervals and any("explain" in str(column["name"]) for column in about["columns"]):
        texts["rows"] = about.pop("rows")
    return {"exact": {"code": None, **json.loads(json.dumps(about, default=str)), "stored": stored}, "texts": texts}


def released(data_set: lapwing.DataSet, world: World) -> Iterator[tuple[str, Record]]:
    """Releases: their plans, what was bought, the rows they hold and what they answer."""
    for terms, wanted, questions in world.releases():
        name = str(terms["name"])
        with repeatable(f"{world.name} release {name}"):
            try:
                plan = data_set.release(*wanted, epsilon="0.5", **terms)
                bought = plan.run()
            except Exception as error:
                yield name, _refusal(error)
                continue
            rows = bought.table().to_pylist() if bought.is_synthetic else []
            exact = {"code": None, "cost": plan.cost.to_dict(), "cells": bought.cells, "columns": list(bought.columns), "rows": rows}
            yield name, {"exact": json.loads(json.dumps(exact, default=str)), "texts": {"shown": str(plan.explain())}}
            for number, sql in enumerate(questions):
                try:
                    yield f"{name} question {number}", _answer(bought.query(sql))
                except Exception as error:
                    yield f"{name} question {number}", _refusal(error)


def records(world: World, directory: Path, *, asked_most: int | None) -> Iterator[Record]:
    """All records of a world, whose sources lie in this directory."""
    with same_keys(world.name):
        data_set = lapwing.open(directory, home=directory / "home", analyst="somebody")
        data_set.prepare()
    listed = world.statements()
    accepted = []
    with data_set:
        for one in listed:
            with repeatable(f"{world.name} explain {one.name}"):
                found = explained(data_set, one)
            if found["exact"]["code"] is None:
                accepted.append(one)
            yield {"step": "explain", "world": world.name, "name": one.name, "of_moment": one.of_moment, **found}
        step = 1 if asked_most is None else max(1, -(-len(accepted) // max(asked_most, 1)))
        for one in accepted[::step]:
            with repeatable(f"{world.name} ask {one.name}"):
                found = answered(data_set, one)
            yield {"step": "ask", "world": world.name, "name": one.name, "of_moment": one.of_moment, **found}
        for name, found in released(data_set, world):
            yield {"step": "release", "world": world.name, "name": name, **found}
        history = [[str(entry.kind), entry.charge_id, entry.cost.loss, entry.cost.delta] for entry in data_set.history(limit=100_000)]
        yield {"step": "ledger", "world": world.name, "name": "history", "exact": {"entries": history}, "texts": {}}


def write(target: Path, *, data: Path | None, asked_most: int | None, chosen: Sequence[str]) -> None:
    """One record a line."""
    show(f"the package is that of {Path(lapwing.__file__).parent}")
    worlds = [world for world in WORLDS if not chosen or world.name in chosen]
    with tempfile.TemporaryDirectory() as scratch, target.open("w", encoding="utf-8") as lines, one_thread():
        sources = Path(scratch) / "sources" if data is None else data
        for world in worlds:
            begun, counts = time.monotonic(), Counter[str]()
            if not (sources / world.name).exists():
                write_world(world, sources / world.name)
            shutil.copytree(sources / world.name, Path(scratch) / world.name)
            for record in records(world, Path(scratch) / world.name, asked_most=asked_most):
                lines.write(json.dumps(record, sort_keys=True) + "\n")
                counts[record["step"] + (" refused" if record["exact"].get("code") else "")] += 1
            show(f"{world.name}: {dict(counts)}, {time.monotonic() - begun:.0f} s")


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not the same in both files."""

    record: str
    field: str
    before: str
    after: str


def _read(path: Path) -> dict[tuple[str, str, str], Record]:
    found: dict[tuple[str, str, str], Record] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        found[record["step"], record["world"], record["name"]] = record
    return found


def _differing(name: str, before: Record, after: Record) -> Iterator[Difference]:
    for field in sorted(before.keys() | after.keys()):
        one, other = (json.dumps(side[field]) if field in side else "(not there)" for side in (before, after))
        if one != other:
            yield Difference(name, field, one, other)


def compare(before: Path, after: Path, *, shown: int) -> bool:
    """Print what differs; whether every exact field is the same."""
    one, other = _read(before), _read(after)
    alone = sorted(one.keys() ^ other.keys())
    exact: list[Difference] = []
    by_moment = 0
    texts: list[Difference] = []
    rows = []
    for step in dict.fromkeys(key[0] for key in [*one, *other]):
        keys = [key for key in one if key[0] == step and key in other]
        unlike: list[Difference] = []
        reworded: list[Difference] = []
        for key in keys:
            for difference in _differing(" | ".join(key), one[key]["exact"], other[key]["exact"]):
                if one[key].get("of_moment") and difference.field.endswith(FOLLOW_THE_MOMENT):
                    by_moment += 1
                else:
                    unlike.append(difference)
            reworded += _differing(" | ".join(key), one[key]["texts"], other[key]["texts"])
        refused = sum(one[key]["exact"].get("code") is not None for key in keys)
        fields = sum(len(one[key]["exact"]) for key in keys)
        names = [len({found.record for found in listed}) for listed in (unlike, reworded)]
        rows.append([step, *(f"{number:,}" for number in (len(keys), refused, fields, *names))])
        exact, texts = exact + unlike, texts + reworded
    table("What was compared", ["step", "records", "of these refused", "exact fields", "records that differ", "with other texts"], rows)
    show("", f"fields that follow the moment of asking: {by_moment}")
    show("", f"in one file alone: {len(alone)}", *(f"- {' | '.join(key)}" for key in alone[:shown]))
    for title, found in (("Exact fields that differ", exact), ("Texts that differ", texts)):
        show("", f"{title}: {len(found)}")
        for difference in found[:shown]:
            show(f"- {difference.record}, {difference.field}:", f"  - {difference.before[:300]}", f"  + {difference.after[:300]}")
        if len(found) > shown:
            show(f"- and {len(found) - shown} more (--shown)")
    return not exact and not alone


def main() -> None:
    """Write, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="write what this checkout says")
    writing.add_argument("target", type=Path)
    writing.add_argument("--data", type=Path, help="folder of the rows and catalogues; written by the first run")
    writing.add_argument("--asked", type=int, help="about how many statements of each list are asked; all if not given")
    writing.add_argument("--world", action="append", default=[], choices=[world.name for world in WORLDS])
    comparing = commands.add_parser("compare", help="compare two such files")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--shown", type=int, default=40, help="how many differences of each sort are printed")
    given = parser.parse_args()
    if given.command == "write":
        write(given.target, data=given.data, asked_most=given.asked, chosen=given.world)
    else:
        sys.exit(0 if compare(given.before, given.after, shown=given.shown) else 1)


if __name__ == "__main__":
    main()
