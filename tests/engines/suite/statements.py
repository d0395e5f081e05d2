"""Statements that the suite asks on every engine: generated ones, the conformance list and hand-made shapes, each on its kind of world."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

from lapwing.audit import worlds
from lapwing.audit.lists.conformance import listed_statements
from lapwing.audit.plan_shapes import Shape, shapes
from lapwing.audit.quantile_shapes import quantile_shapes
from lapwing.catalog import Declaration, Settings, load
from lapwing.errors import Refused
from lapwing.kernel.accounting import Account
from lapwing.kernel.expressions import Call, Function
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Plan
from lapwing.sql import DIALECTS
from lapwing.sql.text.privacy_words import Question, read_words
from tests.differential.statements import Statements
from tests.support import clinic_worlds
from tests.support.clinic_worlds import REFERENCES, UNIT_COLUMNS, Caps
from tests.support.hostile import CATALOGUE, CATALOGUE_SOURCES, PLACES_SOURCES, hostile_rows, write_rows
from tests.support.reference import Raw
from tests.support.sql_shapes import MANY_ROWS, SqlShape, relational_shapes, sql_shapes

KINDS = [("unbounded", Account.PURE), ("unbounded", Account.APPROXIMATE), ("bounded", Account.PURE), ("bounded", Account.APPROXIMATE)]
PEOPLE_UNITS = {"people": "person_id", "visits": "person_id"}
TRANSCENDENTAL = frozenset({Function.LN, Function.LOG_2, Function.LOG_10, Function.EXP, Function.SIN, Function.COS})
"""Functions whose last bit may differ between engines; a grid integer made of one may differ by one step."""


def people(directory: Path, relation: str, account: Account, *, seed: int) -> Declaration:
    """A random world of people, visits and drugs."""
    world = worlds.random_world(random.Random(seed), units=9)
    return worlds.declare(world, directory, neighbours=relation, delta=_delta(account), seed=seed)


def clinic(directory: Path, relation: str, account: Account, *, seed: int) -> Declaration:
    """A random clinic: the tables of the conformance list."""
    rng = random.Random(seed)
    whole = clinic_worlds.strangers(rng)
    for unit in range(1, 13):
        whole += clinic_worlds.unit_rows(rng, unit)
    return clinic_worlds.declare(whole, directory, neighbours=relation, delta=_delta(account), seed=seed, caps=Caps())


def hostile(directory: Path, *, seed: int) -> Declaration:
    """A table of hostile rows, with no character of code 0, which not every engine has."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "lapwing.toml").write_text(CATALOGUE.replace("epsilon = 1\n", 'epsilon = 1\ndelta = "2^-30"\n'), encoding="utf-8")
    declaration = load(directory / "lapwing.toml")
    raw = hostile_rows(declaration.table("hostile"), rows=80, seed=seed, sources=CATALOGUE_SOURCES, numbered="row_id")
    write_rows(directory / "hostile.parquet", [without_zero(row) for row in raw], CATALOGUE_SOURCES)
    places = hostile_rows(declaration.public_table("places"), rows=40, seed=seed, sources=PLACES_SOURCES)
    write_rows(directory / "places.parquet", [without_zero(row) for row in places], PLACES_SOURCES)
    return declaration


def without_zero(row: Mapping[str, Raw]) -> dict[str, Raw]:
    """The row with another sign for the character of code 0."""
    return {name: value.replace("\0", "\u2400") if isinstance(value, str) else value for name, value in row.items()}


def _delta(account: Account) -> str:
    return "0" if account is Account.PURE else '"2^-30"'


def generated(facts: Facts, *, count: int, seed: int) -> dict[str, SqlShape]:
    """Statements about one table and public ones, over all facts whose tables have a unit of their own."""
    units = PEOPLE_UNITS if "people" in facts.tables else {}
    return sql_shapes(facts, units, count=count, seed=seed)


def generated_relations(facts: Facts, *, count: int, seed: int) -> dict[str, SqlShape]:
    """Joins, subqueries and nestings."""
    return relational_shapes(facts, UNIT_COLUMNS, REFERENCES, count=count, seed=seed)


_PER_UNIT = "OVER (PARTITION BY patient_id ORDER BY"
WINDOWS = (
    f"SELECT code, before, COUNT(*) FROM (SELECT code, LAG(code) {_PER_UNIT} clinic_id) AS before FROM visits) AS t GROUP BY 1, 2",
    f"SELECT SUM(a), SUM(b) FROM (SELECT LEAD(minutes, 2) {_PER_UNIT} code DESC) AS a, LAG(cost, 1, 0) {_PER_UNIT} day NULLS FIRST) AS b "
    "FROM visits) AS t",
    f"SELECT code, COUNT(*) FROM (SELECT code, ROW_NUMBER() {_PER_UNIT} started DESC) AS n FROM visits) AS t WHERE n <= 2 GROUP BY code",
    f"SELECT r, d, COUNT(*) FROM (SELECT RANK() {_PER_UNIT} code) AS r, DENSE_RANK() {_PER_UNIT} day) AS d FROM visits) t GROUP BY 1, 2",
    f"SELECT first, COUNT(*) FROM (SELECT FIRST_VALUE(code) {_PER_UNIT} clinic_id) AS first FROM visits) AS t GROUP BY first",
    f"SELECT last, COUNT(*) FROM (SELECT LAST_VALUE(clinic_id) {_PER_UNIT} cost ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) "
    "AS last FROM visits) AS t GROUP BY last",
    f"SELECT SUM(a), SUM(b), SUM(c) FROM (SELECT SUM(minutes) {_PER_UNIT} code) AS a, COUNT(cost) {_PER_UNIT} day ROWS UNBOUNDED PRECEDING)"
    " AS b, MAX(cost) OVER (PARTITION BY patient_id, clinic_id) AS c FROM visits) AS t",
    "SELECT AVG(cost), COUNT(*) FROM (SELECT DISTINCT ON (patient_id) cost FROM visits ORDER BY patient_id, day DESC) AS t",
    f"SELECT COUNT(*) FROM (SELECT started, LAG(started) {_PER_UNIT} started) AS before FROM visits) AS t "
    "WHERE before IS NULL OR started > before + INTERVAL '30 days'",
    f"SELECT drug_before, COUNT(*) FROM (SELECT LAG(code) {_PER_UNIT} income < 10, v.code) AS drug_before FROM "
    "(SELECT v.patient_id, v.code, p.income FROM visits v JOIN patients p ON p.patient_id = v.patient_id) AS v) AS t GROUP BY 1",
)
"""Every window within a unit, mostly with rows that the order does not tell apart."""


def windows() -> dict[str, SqlShape]:
    """The statements with windows, priced as if units had many rows."""
    return {text: SqlShape(text, Fraction(1), MANY_ROWS, UNIT_COLUMNS, REFERENCES) for text in WINDOWS}


def hand_made(account: Account) -> dict[str, Shape]:
    """One plan of each shape, of whatever bounding and measure there is."""
    return {**shapes(account), **quantile_shapes(account)}


@lru_cache
def conformance(account: Account) -> dict[str, SqlShape]:
    """The statements of the conformance list that measure something, priced as if units had many rows, so that bounds bind."""
    found = {}
    for listed in listed_statements():
        if listed.answered and listed.name not in ("c24", "c58") and not (account is Account.PURE and listed.name == "c15"):
            words = read_words(listed.sql, settings=Settings())
            assert isinstance(words, Question)
            found[listed.name] = SqlShape(words.statement, Fraction(1), MANY_ROWS, UNIT_COLUMNS, REFERENCES)
    return found


def of_every_type(facts: Facts, *, count: int) -> dict[str, SqlShape]:
    """Random statements of both dialects over columns of every type, as many as measure something."""
    found: dict[str, SqlShape] = {}
    for number, dialect in enumerate(DIALECTS):
        made = Statements(7, dialect)
        while len(found) < count * (number + 1) // len(DIALECTS):
            text = made.statement()
            shape = SqlShape(text, Fraction(1), None, {"t": "u"}, dialect=dialect)
            try:
                if shape.planned(facts).measured is not None:
                    found[f"{dialect}: {text}"] = shape
            except Refused:
                continue
    return found


def functions_in(plan: Plan) -> set[Function]:
    """Every function that occurs anywhere in a plan."""
    found: set[Function] = set()
    waiting: list[object] = [plan]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call):
            found.add(node.function)
        if is_dataclass(node):
            waiting += [getattr(node, field.name) for field in fields(node)]
        elif isinstance(node, tuple | list):
            waiting += node
        elif isinstance(node, Mapping):
            waiting += node.values()
    return found
