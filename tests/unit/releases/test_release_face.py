"""A release as a user has it: planned, bought once, asked for ever, saved, opened where there is no data."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

import lapwing
from lapwing import Marginals, SyntheticTable
from lapwing.asking import release_purchase as releasing
from lapwing.errors import LapwingError, LedgerError, Refused
from lapwing.receipts import new_key
from lapwing.releases import plan as planned
from lapwing.releases.report import release_html
from lapwing.releases.request import QuantileRequest, ReleaseRequest
from tests.support.rich_clinic import exact_rows, prepare_rich_clinic

EXACT = "100000"
PEOPLE = Marginals("sex", "region", "smoker", "birth_year", ways=2, bins={"birth_year": 10})
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM patients",
    "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex",
    "SELECT region, COUNT(*) AS n FROM patients WHERE smoker GROUP BY region",
    "SELECT COUNT(*) AS n FROM patients WHERE smoker IS NULL AND sex = 'f'",
    "SELECT sex, COUNT(*) AS n FROM patients WHERE birth_year >= 1980 GROUP BY sex",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("released")
    new_key(base / "keys")
    return prepare_rich_clinic(base, patients=3_000, epsilon=1_000_000, more=f'\n[ledger]\nkeys = "{base / "keys"}"\n')


@pytest.fixture(scope="module")
def clinic(place: Path) -> Iterator[lapwing.DataSet]:
    with lapwing.open(place / "clinic", home=place / "home") as data_set:
        yield data_set


def truth(place: Path, sql: str) -> list[tuple[object, ...]]:
    return sorted(exact_rows(place, sql), key=str)


def test_a_release_is_paid_once_and_answers_for_ever(clinic: lapwing.DataSet) -> None:
    plan = clinic.release(PEOPLE, name="once", epsilon="0.5")
    before = clinic.budget.spent
    explained = plan.explain()
    assert "sex x region" in explained and "price: epsilon 0.5 " in explained and clinic.budget.spent == before, "explaining is free"
    assert not plan.cost.free
    bought = plan.run()
    paid = clinic.budget.spent
    assert paid.loss > before.loss
    for sql in QUESTIONS:
        answer = bought.query(sql)
        assert answer.cost.free and "n" in answer.intervals and "answered from the release 'once'" in answer.notes[0]
    again = clinic.release(PEOPLE, name="once", epsilon="0.5")
    assert again.cost.free and "bought before" in again.explain() and again.run().terms.stored == bought.terms.stored
    assert clinic.release_named("once").terms.stored == bought.terms.stored
    assert clinic.budget.spent == paid
    history = clinic.history(limit=3)
    assert any("release once" in entry.detail or "release once" in str(entry) for entry in history)


def test_without_noise_that_counts_free_answers_are_the_bare_engines(clinic: lapwing.DataSet, place: Path) -> None:
    bought = clinic.release(PEOPLE, name="exact", epsilon=EXACT).run()
    for sql in QUESTIONS:
        answer = bought.query(sql)
        found = sorted([tuple(row.values()) for row in answer.table.to_pylist() if row["n"]], key=str)
        assert found == [row for row in truth(place, sql) if row[-1]], sql


def test_error_bars_hold_the_truth(clinic: lapwing.DataSet, place: Path) -> None:
    bought = clinic.release(PEOPLE, name="bars", epsilon="0.7").run()
    sql = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"
    answer, exact = bought.query(sql, confidence=0.9999), {str(region): int(str(count)) for region, count in truth(place, sql)}
    for row, bar in zip(answer.table.to_pylist(), answer.intervals["n"], strict=True):
        assert bar is not None and bar.lo <= exact.get(row["region"], 0) <= bar.hi


def test_units_with_many_rows_count_for_some_of_them(clinic: lapwing.DataSet, place: Path) -> None:
    plan = clinic.release(Marginals("clinic_id", "code", ways=2), name="visits", table="visits", epsilon=EXACT, rows_per_unit=2)
    assert "counts for at most 2 rows" in plan.explain()
    answer = plan.run().query("SELECT COUNT(*) AS n FROM visits")
    [(most,)] = truth(
        place, "SELECT SUM(LEAST(n, 2)) FROM (SELECT COUNT(*) AS n FROM visits WHERE patient_id IS NOT NULL GROUP BY patient_id)"
    )
    assert answer.table["n"][0].as_py() == pytest.approx(float(str(most)), rel=0.01)
    assert any("counts for at most 2 rows" in note for note in answer.notes)
    by_default = clinic.release(Marginals("clinic_id"), name="visits", table="visits", epsilon=1)
    assert 1 < by_default.planned.request.rows_per_unit <= 200


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT AVG(income) AS n FROM patients", "income"),
        ("SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1981", "birth_year"),
        ("SELECT COUNT(*) AS n FROM patients WHERE smoker AND sex = 'f' AND region = 'northam'", "together"),
    ],
)
def test_what_is_not_covered_is_refused_with_the_reason(clinic: lapwing.DataSet, sql: str, reason: str) -> None:
    bought = clinic.release(PEOPLE, name="once", epsilon="0.5").run()
    with pytest.raises(Refused) as refusal:
        bought.query(sql)
    assert refusal.value.code == "release-not-covered" and reason in str(refusal.value)
    assert not bought.covers(sql) and bought.covers(QUESTIONS[0])


def test_a_release_knows_of_its_own_table_alone(clinic: lapwing.DataSet) -> None:
    bought = clinic.release(PEOPLE, name="once", epsilon="0.5").run()
    with pytest.raises(Refused) as refusal:
        bought.query("SELECT COUNT(*) AS n FROM visits")
    assert refusal.value.code == "unknown-table"


def test_a_saved_release_answers_where_there_is_no_data(clinic: lapwing.DataSet, place: Path, tmp_path: Path) -> None:
    bought = clinic.release(PEOPLE, name="once", epsilon="0.5").run()
    file = lapwing.save_release(bought, tmp_path / "people.lapwing")
    opened = lapwing.open_release(file, keys=place / "keys")
    for sql in QUESTIONS:
        assert opened.query(sql).to_arrow().equals(bought.query(sql).to_arrow())
    assert opened.table(rows=100).equals(bought.table(rows=100))
    with pytest.raises(LapwingError) as failed:
        lapwing.save_release(bought, file)
    assert failed.value.code == "release-file"
    with zipfile.ZipFile(file) as archive:
        assert {"manifest.json", "answer.json", "receipt.json", "croissant.json"} == set(archive.namelist())
        written = b"".join(archive.read(name) for name in archive.namelist())
    assert str(place).encode() not in written and b"parquet" not in written, "nothing of where the data are"


def changed(file: Path, target: Path, name: str, change: Callable[[bytes], bytes | None]) -> Path:
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(target, "w") as other:
        for each in archive.namelist():
            content = change(archive.read(each)) if each == name else archive.read(each)
            if content is not None:
                other.writestr(each, content)
    return target


def test_a_file_that_was_changed_is_refused(clinic: lapwing.DataSet, place: Path, tmp_path: Path) -> None:
    file = lapwing.save_release(clinic.release(PEOPLE, name="once", epsilon="0.5").run(), tmp_path / "people.lapwing")

    def code(path: Path) -> str:
        with pytest.raises((LapwingError, LedgerError)) as failed:
            lapwing.open_release(path, keys=place / "keys")
        return failed.value.code

    def other_rows(content: bytes) -> bytes:
        body = json.loads(content)
        body["tables"][0]["rows_max"] += 1
        return json.dumps(body).encode()

    assert code(changed(file, tmp_path / "a", "answer.json", other_rows)) == "receipt-invalid"
    assert code(changed(file, tmp_path / "b", "receipt.json", lambda _: None)) == "receipt-invalid"
    assert code(changed(file, tmp_path / "c", "manifest.json", lambda old: old.replace(b'"region"', b'"rogion"'))) == "release-file"
    assert code(changed(file, tmp_path / "d", "manifest.json", lambda _: b"{}")) == "release-file"
    (tmp_path / "e").write_bytes(b"no archive")
    assert code(tmp_path / "e") == "release-file" and code(tmp_path / "absent") == "release-file"


def test_a_synthetic_table_has_the_columns_and_their_counts(clinic: lapwing.DataSet, place: Path) -> None:
    wanted = SyntheticTable("sex", "smoker", "birth_year", bins={"birth_year": 10})
    bought = clinic.release(wanted, name="rows", epsilon="20").run()
    assert bought.is_synthetic
    table = bought.table()
    assert table.column_names == ["sex", "smoker", "birth_year"] and abs(table.num_rows - 3_000) < 60
    with duckdb.connect() as made:
        made.register("t", table)
        shares = dict(made.execute("SELECT sex, COUNT(*) / 3000.0 FROM t GROUP BY sex").fetchall())
    for sex, share in truth(place, "SELECT sex, COUNT(*) / 3000.0 FROM patients GROUP BY sex"):
        assert float(shares.get(sex, 0)) == pytest.approx(float(str(share)), abs=0.03)
    assert bought.query("SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex").intervals["n"][0] is not None


def test_the_page_about_a_release_says_what_it_is(clinic: lapwing.DataSet) -> None:
    page = release_html(clinic.release(PEOPLE, name="once", epsilon="0.5").run())
    assert page.startswith("<!doctype html>") and page.count("<svg") == 4 and "<script" not in page and "http" not in page
    assert "± " in page and "birth_year" in page and "signed" in page
    synthetic = release_html(clinic.release(SyntheticTable("sex", "smoker"), name="rows2", epsilon="20").run())
    assert "not good for" in synthetic


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("release-columns", lambda: Marginals()),
        ("release-columns", lambda: Marginals("a", "a")),
        ("release-columns", lambda: Marginals("a", "b", bins={"c": 3})),
        ("release-ways", lambda: Marginals("a", "b", ways=3)),
        ("release-method", lambda: SyntheticTable("a", method="magic")),
        ("release-name", lambda: ReleaseRequest("no spaces", "t", (Marginals("a", ways=1),))),
    ],
)
def test_what_cannot_be_asked_for_is_refused_at_once(code: str, make: Callable[[], object]) -> None:
    with pytest.raises(Refused) as refusal:
        make()
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("code", "wanted", "options"),
    [
        ("unknown-column", Marginals("sex", "nonsense"), {"table": "patients"}),
        ("release-table", Marginals("sex", "cost"), {}),
        ("release-table", Marginals("patient_id", ways=1), {}),
        ("unknown-table", Marginals("sex", ways=1), {"table": "nowhere"}),
        ("rows-per-unit", Marginals("code", ways=1), {"table": "visits", "rows_per_unit": 0}),
        ("axis-unknown", Marginals("patient_id", ways=1), {"table": "patients"}),
    ],
)
def test_what_the_table_cannot_give_is_refused(
    clinic: lapwing.DataSet, code: str, wanted: QuantileRequest, options: dict[str, object]
) -> None:
    with pytest.raises(Refused) as refusal:
        clinic.release(wanted, name="no", **options)  # type: ignore[arg-type]
    assert refusal.value.code == code


@pytest.mark.parametrize(("limit", "most"), [("CELLS_MAX", 388), ("TABLES_MAX", 5)])
def test_a_release_that_is_too_large_is_refused(clinic: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch, limit: str, most: int) -> None:
    monkeypatch.setattr(planned, limit, most)
    with pytest.raises(Refused) as refusal:
        clinic.release(PEOPLE, name="no")
    assert refusal.value.code == "release-size"
    monkeypatch.setattr(planned, limit, most + 1)
    assert clinic.release(PEOPLE, name="yes").planned.cells == 389


def test_a_release_that_could_outlast_the_engine_is_refused_before_it_is_charged(
    clinic: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(releasing.ROWS_A_SECOND, "duckdb", 6 * 3_000 / 300 * 0.5)
    with pytest.raises(Refused) as refusal:
        clinic.release(PEOPLE, name="long")
    assert refusal.value.code == "release-size" and "seconds" in str(refusal.value)
    monkeypatch.setitem(releasing.ROWS_A_SECOND, "duckdb", 6 * 3_000 / 300 * 2.0)
    assert clinic.release(PEOPLE, name="long").planned.cells == 389


def test_a_release_that_is_not_there_is_refused(clinic: lapwing.DataSet) -> None:
    with pytest.raises(Refused) as refusal:
        clinic.release_named("never")
    assert refusal.value.code == "release-unknown"


def test_a_request_is_read_back_from_its_text() -> None:
    for wanted in (PEOPLE, Marginals("x", ways=1, bins={"x": ["0.5", 7]}), SyntheticTable("a", "b", method="pairs")):
        request = ReleaseRequest("n", "t", (wanted,), 3)
        assert ReleaseRequest.of_text(request.text()) == request
    with pytest.raises(ValueError, match="not a release"):
        ReleaseRequest.of_text("SELECT 1")
