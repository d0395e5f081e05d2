"""``lapwing audit``: it prints claims beside what is refuted of them, ends with 6 when one is, and leaves the owner's data alone."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.audit.claims import Concentrated, Pure
from lapwing.audit.report import exact_line
from lapwing.interfaces.cli import auditing
from lapwing.interfaces.cli.exits import ExitStatus
from lapwing.interfaces.cli.views import ReportFormat
from tests.unit.cli.conftest import Clinic
from tests.unit.cli.support import run

REGIONS = "SELECT sex, AVG(income) AS a, COUNT(*) AS n FROM patients GROUP BY sex"


@pytest.mark.slow
def test_statements_are_audited_without_a_row_or_the_ledger(clinic: Clinic, tmp_path: Path) -> None:
    """With every protected source and the ledger gone, the audit does the same: it never needed them."""
    copy = Clinic(tmp_path / "copy", tmp_path / "home")
    shutil.copytree(clinic.directory, copy.directory)
    for file in ("patients.parquet", "visits.parquet", "prescriptions.parquet", ".lapwing/ledger.sqlite", ".lapwing/v000001.duckdb"):
        (copy.directory / file).unlink()
    left = sorted(path.name for path in copy.directory.rglob("*"))
    drugs = "SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug"
    ran = copy.run("audit", REGIONS, drugs, "--samples", "500", "--asks", "20", "--format", "json")
    assert ran.status == 0, ran.err
    found = json.loads(ran.out)
    assert found["refuted"] == 0 and found["confidence"] == 0.99
    assert [line["setting"] for line in found["lines"]] == ["exact difference", "released at once", "asked one by one"] * 2
    assert {line["name"] for line in found["lines"]} == {REGIONS, drugs}
    for line in found["lines"]:
        assert line["measure"] == "rho" and 0 <= line["lower_bound"] <= line["claimed"]
    assert found["lines"][0]["lower_bound"] > 0.9 * found["lines"][0]["claimed"], "the invented unit is an extreme one"
    assert found["lines"][3]["delta"] > 0 == found["lines"][0]["delta"]
    assert sorted(path.name for path in copy.directory.rglob("*")) == left, "nothing is left behind"


def test_without_a_statement_each_table_is_counted(own_clinic: Clinic) -> None:
    """No preparation is needed; the table is text in a pipe."""
    ran = own_clinic.run("audit", "--samples", "300", "--asks", "0")
    assert ran.status == 0, ran.err
    assert ran.out.count("SELECT COUNT(*) AS n FROM ") == 6
    assert "None of 6 claims is refuted. Confidence 99 % for all lines together." in ran.out
    assert "\x1b" not in ran.out and not (own_clinic.directory / ".lapwing").exists()


def test_bounded_and_pure_data_sets(own_clinic: Clinic) -> None:
    catalogue = own_clinic.directory / "lapwing.toml"
    text = catalogue.read_text().replace('neighbours = "unbounded"', 'neighbours = "bounded"').replace('delta = "2^-40"', "delta = 0")
    catalogue.write_text(text)
    ran = own_clinic.run(
        "audit", "SELECT SUM(cost) AS c FROM visits", "--samples", "300", "--asks", "20", "--format", "json", "--epsilon", "1"
    )
    assert ran.status == 0, ran.err
    exact, *_ = json.loads(ran.out)["lines"]
    assert exact["measure"] == "epsilon" and exact["claimed"] == pytest.approx(1) and 0.4 < exact["lower_bound"] / exact["claimed"] <= 1


@pytest.mark.slow
def test_a_refusal_is_a_refusal(own_clinic: Clinic) -> None:
    ran = own_clinic.run("audit", "SELECT * FROM patients")
    assert ran.status == ExitStatus.REFUSED and "rows-not-aggregates" in ran.err
    assert own_clinic.run("audit", "--samples", "1").status == ExitStatus.USAGE
    assert own_clinic.run("audit", "--epsilon", "many", "--samples", "100").status == ExitStatus.REFUSED
    assert run("-C", own_clinic.directory / "nowhere", "audit", home=own_clinic.home).status == ExitStatus.OWNER


def test_a_refuted_claim_ends_with_six(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two lines that an audit could have found, one of them above its claim."""
    lines = [exact_line(Pure(Fraction(1)), share=0.5, name="fine"), exact_line(Concentrated(Fraction(1, 2)), share=1.25, name="wrong")]
    monkeypatch.setattr(auditing, "_statements", lambda *_arguments, **_terms: lines)
    terms = {"epsilon": "1", "samples": 100, "asks": 0, "mechanisms": False, "plans": False}
    assert auditing.audited(tmp_path, [], **terms, form=ReportFormat.TABLE) is ExitStatus.REFUTED  # type: ignore[arg-type]
    shown = capsys.readouterr().out
    assert "1 of 2 claims are refuted: wrong." in shown and "0.6250  exact  refuted" in shown
    assert auditing.audited(tmp_path, [], **terms, form=ReportFormat.JSON) is ExitStatus.REFUTED  # type: ignore[arg-type]
    assert json.loads(capsys.readouterr().out)["refuted"] == 1


@pytest.mark.slow
def test_mechanisms_need_no_catalogue(tmp_path: Path) -> None:
    ran = run("-C", tmp_path, "audit", "--mechanisms", "--samples", "400", "--format", "json", home=tmp_path)
    assert ran.status == 0, ran.err
    lines = json.loads(ran.out)["lines"]
    assert len(lines) > 20 and {"Laplace", "Gaussian", "response", "selection", "threshold"} == {line["setting"] for line in lines}
