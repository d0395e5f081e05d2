"""Every statement on the pages about Grafana, Metabase and Superset is answered as the page says, and free when it is drawn again."""

from __future__ import annotations

import re

import psycopg
import pytest

from tests.docs.pages import ROOT
from tests.wire.world import WireUnderTest

SETTINGS = {
    "grafana": "",
    "metabase": "-c lapwing.intervals=on -c lapwing.noise_as_null=on",
    "superset": "-c lapwing.intervals=named -c lapwing.noise_as_null=on",
}
WRITTEN = {"${__from:date:YYYY-MM-DD}": "2024-03-01", "${__to:date:YYYY-MM-DD}": "2025-02-28"}
"""Grafana's variables, as it writes them."""


def _statements(page: str) -> list[str]:
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    for variable, value in WRITTEN.items():
        text = text.replace(variable, value)
    return [block for block in re.findall(r"```sql\n(.*?)```", text, re.DOTALL) if "WHERE 1 = 0" not in block]


ALL = [(page, statement) for page in SETTINGS for statement in _statements(page)]


def test_the_pages_name_the_settings_that_are_used_here() -> None:
    for page, settings in SETTINGS.items():
        text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8").replace("%20", " ")
        assert settings in text and _statements(page), page


def _answer(wire: WireUnderTest, page: str, statement: str) -> tuple[list[str], list[tuple[object, ...]]]:
    with psycopg.connect(wire.dsn(options=SETTINGS[page]), autocommit=True) as connection:
        cursor = connection.execute(statement)
        while cursor.nextset():
            pass
        return [column.name for column in cursor.description or ()], cursor.fetchall()


@pytest.mark.parametrize(("page", "statement"), ALL, ids=[f"{page} {number}" for number, (page, _) in enumerate(ALL)])
def test_a_statement_of_a_page_is_answered_with_its_bars_and_free_again(wire: WireUnderTest, page: str, statement: str) -> None:
    names, rows = _answer(wire, page, statement)
    spent = wire.spent()
    assert _answer(wire, page, statement) == (names, rows) and wire.spent() == spent
    assert rows
    ends = [(low, names.index(low.replace("_lower", "_upper").replace("_lo", "_hi"))) for low in names if "_lo" in low]
    assert ends or "noise_as_null" in statement
    for low, high in ends:
        value = names.index(low.removesuffix("_lower").removesuffix("_lo"))
        assert all(row[names.index(low)] <= row[high] for row in rows), names  # type: ignore[operator]
        shown = [row for row in rows if row[value] is not None]
        assert all(row[names.index(low)] <= row[value] <= row[high] for row in shown), names  # type: ignore[operator]
