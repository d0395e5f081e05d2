"""The page on scale shows what the model says of the committed figures, and the limits stand where the page says they do."""

from __future__ import annotations

import pytest
from benchmarks.scale import CLUSTER, MEASURED, constants_of, fit, lines_of, read, report, shuffle_bytes

from lapwing.catalog import Settings
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "explanation" / "scale.md"
CORES = 2
"""Cores of the machine that the page takes for the least."""


def test_a_line_is_found_again() -> None:
    line = fit([(10**6, 0.5 + 2e-6 * 10**6), (10**7, 0.5 + 2e-6 * 10**7), (10**8, 0.5 + 2e-6 * 10**8)])
    assert line.start_seconds == pytest.approx(0.5)
    assert line.slope_seconds == pytest.approx(2e-6)
    assert all(abs(off) < 1e-9 for _, off in line.residuals)


def test_what_is_no_line_is_off() -> None:
    line = fit([(10**6, 1.0), (10**7, 100.0), (10**8, 10_000.0)])
    assert line.start_seconds == 0
    assert max(abs(off) for _, off in line.residuals) > 0.5


def test_the_tables_of_the_page_are_those_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    report(MEASURED)
    page = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|") and "---" not in line]
    assert len(rows) > 20
    assert [row for row in rows if row not in page] == []


def test_the_limits_follow_from_the_model() -> None:
    figures, settings = read(MEASURED, "duckdb"), Settings()
    lines, constants = lines_of(figures), constants_of(figures)
    # the largest answer with known keys: noise in less than a minute, and less memory than the engine may use
    assert settings.known_cells_max * constants.noise_seconds < 60
    assert settings.known_cells_max * constants.group_bytes < settings.memory_limit_bytes
    # a table of the default size, over all rows, by plans that are not refused: well within the time for a statement
    slowest = max(
        line.at(settings.rows_max_default) for plan, line in lines.items() if plan in ("ranked scan", "weighted", "clipped", "grouped")
    )
    assert slowest / CORES < settings.query_timeout_seconds
    # stored answers: a million groups with a few columns of 8 bytes each fit many times over
    assert settings.known_cells_max * 8 * 8 < settings.answer_bytes_max
    assert shuffle_bytes(CLUSTER, 50) == 1.6e12
