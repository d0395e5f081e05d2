"""What each kind of change asks of the owner, and that no silent change can widen the promise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapwing.catalog import BudgetDecl, Declaration, load, parse
from lapwing.catalog.changes import Change, Verdict, classify, of_versions, worst
from lapwing.errors import CatalogueError
from tests.unit.catalog.mistakes import CLINIC

KEEPS, NEXT, PREPARE, OVERRIDE = Verdict.KEEPS, Verdict.NEXT_VERSION, Verdict.NEEDS_PREPARE, Verdict.NEEDS_OVERRIDE
OLD = parse(CLINIC)

CASES = [
    ("format = 1", "format = 1 # a comment", None, None),
    ('unit = "visit_id -> visits.visit_id"', 'unit = "visit_id->visits.visit_id"', None, None),
    ('unit = "patient"\n', 'unit = "patient"\nnoise = "opendp"\n', "dataset.noise", KEEPS),
    ("Visits to twelve clinics", "Visits to 12 clinics", "dataset.description", KEEPS),
    ("units = 50_000", "units = 60_000", "dataset.units", NEXT),
    ("[defaults]\nepsilon = 0.1", "[defaults]\nepsilon = 0.2", "defaults.epsilon", KEEPS),
    ("confidence = 0.95", "confidence = 0.99", "defaults.confidence", KEEPS),
    ("not listed, a long tail", "free text", "tables.prescriptions.columns.drug.description", KEEPS),
    ('unit = "patient_id"\n', 'unit = "patient_id"\ndescription = "one row each"\n', "tables.patients.description", KEEPS),
    ('key = "code"', 'key = "code"\ndescription = "ICD"', "public.diagnoses.description", KEEPS),
    ("delta_keys_share = 0.5", "delta_keys_share = 0.5\nnorms_share = 0.2", "budget.norms_share", NEXT),
    ("epsilon = 3", "epsilon = 2", "budget.epsilon", KEEPS),
    ("epsilon = 3", "epsilon = 6", "budget.epsilon", KEEPS),
    ('epsilon = 3\ndelta = "2^-40"\nceiling = { epsilon = 6 }', 'epsilon = 7\ndelta = "2^-40"', "budget.epsilon", OVERRIDE),
    ("{ epsilon = 6 }", "{ epsilon = 5 }", "budget.ceiling", KEEPS),
    ("{ epsilon = 6 }", "{ epsilon = 3 }", "budget.ceiling", KEEPS),
    ("{ epsilon = 6 }", "{ epsilon = 6.5 }", "budget.ceiling", OVERRIDE),
    ('"2^-40"', '"2^-41"', "budget.delta", OVERRIDE),
    ('"2^-40"', '"2^-39"', "budget.delta", OVERRIDE),
    ("delta_keys_share = 0.5", "delta_keys_share = 0.4", "budget.delta_keys_share", OVERRIDE),
    ("delta_keys_share = 0.5", "delta_keys_share = 0.6", "budget.delta_keys_share", OVERRIDE),
    ("delta_keys_share = 0.5", "delta_keys_share = 0.5\norder = 32", "budget.order", OVERRIDE),
    (
        'delta = "2^-40"\nceiling = { epsilon = 6 }\ndelta_keys_share = 0.5',
        "delta = 0\nceiling = { epsilon = 6 }",
        "budget.delta",
        OVERRIDE,
    ),
    ("max = 480", "max = 240", "tables.visits.columns.minutes", PREPARE),
    ('["f", "m", "x"]', '["f", "m"]', "tables.patients.columns.sex", PREPARE),
    ('other = "elsewhere"', 'other = "west-5"', "tables.patients.columns.region", PREPARE),
    ("steps = 100", "steps = 1000", "tables.visits.columns.cost", PREPARE),
    ("rows_per_unit_max = 200", "rows_per_unit_max = 100", "tables.visits.rows_per_unit_max", PREPARE),
    ("one_row_per_unit = true", "one_row_per_unit = false", "tables.patients.one_row_per_unit", PREPARE),
    ("rows_max = 50_000_000", "rows_max = 60_000_000", "tables.visits.rows_max", PREPARE),
    ('from = "dose (mg)"', 'from = "dose"', "tables.prescriptions.columns.dose_mg.from", PREPARE),
    ('smoker = { type = "boolean" }\n', "", "tables.patients.columns.smoker", PREPARE),
    (
        'smoker = { type = "boolean" }\n',
        'smoker = { type = "boolean" }\nowner = { type = "boolean" }\n',
        "tables.patients.columns.owner",
        PREPARE,
    ),
    ("clinics.csv", "clinics.parquet", "public.clinics.source", PREPARE),
    ('key = "clinic_id"', 'key = "city"', "public.clinics.key", PREPARE),
    ('city = { type = "text" }\n', "", "public.clinics.columns.city", PREPARE),
    ('id = "clinic-2026"', 'id = "clinic-2027"', "dataset.id", OVERRIDE),
    ('unit = "patient"\n', 'unit = "household"\n', "dataset.unit", OVERRIDE),
    ("unbounded", "bounded", "dataset.neighbours", OVERRIDE),
    ("patients.parquet", "people.parquet", "tables.patients.source", OVERRIDE),
    ("patient_id -> patients.patient_id", "patient_id", "tables.visits.unit", OVERRIDE),
    (
        'patient_id = { type = "key" }',
        'patient_id = { type = "key", from = "household" }',
        "tables.visits.columns.patient_id.from",
        OVERRIDE,
    ),
]


@pytest.mark.parametrize(("old", "new", "where", "verdict"), CASES, ids=[f"{case[2]}: {case[1]}"[:60] for case in CASES])
def test_one_change(old: str, new: str, where: str | None, verdict: Verdict | None) -> None:
    text = CLINIC.replace(old, new, 1)
    assert text != CLINIC
    changes = classify(OLD, parse(text))
    if where is None:
        assert changes == ()
        assert worst(changes) is KEEPS
    else:
        assert (where, verdict) in [(change.where, change.verdict) for change in changes]
        assert worst(changes) is verdict
    assert all(change.why and "fresh" not in change.why for change in changes)
    # How much may be asked is policy, whoever has to agree to it; what answers were charged for is none.
    assert (of_versions(changes) == ()) is (verdict in (None, KEEPS) or where in ("budget.epsilon", "budget.ceiling"))


def test_nothing_changed() -> None:
    assert classify(OLD, parse(CLINIC)) == ()


def test_bounded_units_belong_to_a_version() -> None:
    bounded = CLINIC.replace("unbounded", "bounded")
    (change,) = classify(parse(bounded), parse(bounded.replace("50_000", "50_001", 1)))
    assert (change.where, change.verdict) == ("dataset.units", PREPARE)


def without_section(text: str, *names: str) -> str:
    """The text without some tables."""
    kept = [part for part in text.split("\n\n") if not any(part.startswith(f"[{name}") for name in names)]
    return "\n\n".join(kept)


def test_tables_come_and_go() -> None:
    smaller = parse(without_section(CLINIC, "tables.prescriptions"))
    assert [(change.where, change.verdict) for change in classify(OLD, smaller)] == [("tables.prescriptions", OVERRIDE)]
    assert [(change.where, change.verdict) for change in classify(smaller, OLD)] == [("tables.prescriptions", OVERRIDE)]
    fewer = parse(without_section(CLINIC, "public.clinics"))
    assert [(change.where, change.verdict) for change in classify(OLD, fewer)] == [("public.clinics", PREPARE)]
    assert [(change.where, change.verdict) for change in classify(fewer, OLD)] == [("public.clinics", PREPARE)]


def test_a_protected_table_made_public_is_named_as_such() -> None:
    public = '\n\n[public.pills]\nsource = "prescriptions.parquet"\nkey = "drug"\ncolumns.drug = { type = "text" }\n'
    changes = classify(OLD, parse(without_section(CLINIC, "tables.prescriptions").rstrip() + public))
    assert Change("tables.prescriptions", OVERRIDE, "rows that were protected would become public") in changes


def test_a_catalogue_that_moved_reads_other_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lapwing.toml").write_text(CLINIC)
    changes = classify(load(tmp_path / "a" / "lapwing.toml"), load(tmp_path / "b" / "lapwing.toml"))
    protected = [change.where for change in changes if change.verdict is OVERRIDE]
    assert protected == ["tables.patients.source", "tables.visits.source", "tables.prescriptions.source"]


def test_how_a_change_reads() -> None:
    (change,) = classify(OLD, parse(CLINIC.replace("max = 480", "max = 240")))
    assert str(change) == "tables.visits.columns.minutes: needs-prepare: values are clamped and mapped when a version is prepared"


amount = st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(3), Fraction(6)])
budgets = st.builds(
    lambda epsilon, above, delta, share: BudgetDecl(epsilon, delta, share if delta else Fraction(1, 2), epsilon + above),
    amount,
    st.sampled_from([Fraction(0), Fraction(2)]),
    st.sampled_from([Fraction(0), Fraction(1, 2**40), Fraction(1, 2**39), Fraction(3, 2**41)]),
    st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]),
)


def spendable(declaration: Declaration) -> tuple[int, int]:
    """What may ever be spent: the totals of the ceiling."""
    ceiling = declaration.ceiling()
    return ceiling.loss_total, ceiling.delta_total


@settings(max_examples=200, deadline=None)
@given(budgets, budgets)
def test_a_budget_that_keeps_can_never_spend_more_than_was_promised(old: BudgetDecl, new: BudgetDecl) -> None:
    """Whatever follows, without an override neither total can pass what the old ceiling allowed; and an override is needed otherwise."""
    before, after = replace(OLD, declared_budget=old), replace(OLD, declared_budget=new)
    changes = classify(before, after)
    assert (changes == ()) is (old == new)
    widens = any(now > then for now, then in zip(spendable(after), spendable(before), strict=True))
    if old.account is not new.account:
        assert worst(changes) is OVERRIDE
    elif worst(changes) is KEEPS:
        assert not widens
        assert after.budget().delta_conversion == before.budget().delta_conversion
        assert after.budget().delta_keys == before.budget().delta_keys
    if widens and old.account is new.account:
        assert worst(changes) is OVERRIDE


edits = st.lists(st.sampled_from([(old, new) for old, new, _, _ in CASES]), max_size=4)


def edited(pairs: list[tuple[str, str]]) -> Declaration | None:
    """The clinic after several edits, if they can be made together."""
    text = CLINIC
    for old, new in pairs:
        text = text.replace(old, new, 1)
    try:
        return parse(text)
    except CatalogueError:
        return None


@settings(max_examples=60, deadline=None)
@given(edits, edits)
def test_another_fingerprint_is_never_silent(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> None:
    old, new = edited(first), edited(second)
    if old is not None and new is not None:
        changes = classify(old, new)
        assert (changes == ()) is (old == new)
        if old.fingerprint() != new.fingerprint():
            assert worst(changes) is OVERRIDE
