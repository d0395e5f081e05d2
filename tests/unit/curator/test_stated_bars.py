"""Every ± of an explanation and of a release's report says how sure it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lapwing
from lapwing.data_set import DataSet
from lapwing.data_set import open as open_data_set
from lapwing.demo import write_demo
from lapwing.releases.report import release_html

STATEMENTS = (
    "SELECT region, COUNT(*) AS n, AVG(income) AS income FROM patients GROUP BY region",
    "SELECT AVG(cost) AS cost, MEDIAN(minutes) AS minutes FROM visits",
    "SELECT clinic_id, SUM(cost) AS cost FROM visits GROUP BY clinic_id WITH PRIVACY (epsilon = 0.5, scaled_groups = true)",
)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataSet]:
    base: Path = tmp_path_factory.mktemp("bars")
    write_demo(base / "clinic", patients=2_000)
    with open_data_set(base / "clinic", home=base / "home") as opened:
        opened.prepare()
        yield opened


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_line_with_a_bar_says_at_which_confidence(clinic: DataSet, statement: str) -> None:
    epsilon = None if "PRIVACY" in statement else "0.5"
    clinic.ask(statement, epsilon=epsilon)  # so that what its bounds are chosen from is bought, and all of it can be predicted
    with_bars = [(name, text) for name, text in clinic.explain(statement, epsilon=epsilon).lines if "±" in text]
    assert len(with_bars) >= 2
    assert [(name, text) for name, text in with_bars if not re.search(r"±[0-9,.e+]+( ranks)? at 95%", text)] == []


def test_the_report_of_a_release_says_it_too(clinic: DataSet) -> None:
    released = clinic.release(lapwing.Marginals("sex", "smoker"), name="both", epsilon="0.2").run()
    cells = re.findall(r"[^<>]*±[^<>]*", release_html(released))
    assert cells and [cell for cell in cells if "(95 %)" not in cell and not re.fullmatch(r"± [0-9,.]+", cell)] == []
