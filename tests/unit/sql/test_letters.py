"""Small letters and capitals mean the same in every word that is not a text or a quoted name."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from lapwing.audit.lists.conformance import listed_statements
from lapwing.audit.lists.second_list import second_list
from lapwing.errors import Refused
from tests.unit.sql.accepted import ACCEPTED
from tests.unit.sql.clinic import bound
from tests.unit.sql.from_tools import TOOLS
from tests.unit.sql.inside_units import INSIDE
from tests.unit.sql.over_answers import OVER_ANSWERS
from tests.unit.sql.refused import REFUSED

_AS_WRITTEN = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$.*?\$\$|--[^\n]*|/\*.*?\*/)""", re.DOTALL)
LISTS = {
    "accepted": list(ACCEPTED.values()),
    "refused": [text for _, text in REFUSED.values()],
    "tools": [entry if isinstance(entry, str) else entry[0] for entry in TOOLS.values()],
    "over answers": list(OVER_ANSWERS.values()),
    "inside units": [entry if isinstance(entry, str) else entry[0] for entry in INSIDE.values()],
    "conformance": [listed.sql for listed in listed_statements()],
    "second": [listed.sql for listed in second_list()],
}


def spelt(text: str, spell: Callable[[str], str]) -> str:
    """A statement in other letters; texts, quoted names and comments stay as they are."""
    return "".join(part if number % 2 else spell(part) for number, part in enumerate(_AS_WRITTEN.split(text)))


def outcome(text: str) -> str:
    """What a statement is bound to, or the code it is refused with; names of columns may be in other letters."""
    try:
        return repr(bound(text)).lower()
    except Refused as error:
        return error.code


@pytest.mark.parametrize("name", LISTS)
def test_the_case_of_letters_does_not_matter(name: str) -> None:
    different = []
    for text in LISTS[name]:
        as_written = outcome(text)
        different += [each for each in (spelt(text, str.lower), spelt(text, str.upper)) if outcome(each) != as_written]
    assert different == []


@pytest.mark.parametrize(
    "frame",
    [
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
        "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        "RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW",
        "ROWS 3 PRECEDING",
        "RANGE UNBOUNDED PRECEDING",
    ],
)
def test_a_frame_in_small_letters_is_read(frame: str) -> None:
    text = f"SELECT day, SUM(COUNT(*)) OVER (ORDER BY day {frame}) AS s FROM visits GROUP BY day"
    assert outcome(text) == outcome(spelt(text, str.lower)) != "window-unsupported"
    inside = "SELECT COUNT(*) FROM (SELECT SUM(minutes) OVER (PARTITION BY patient_id ORDER BY day {}) AS s FROM visits) AS t WHERE s > 9"
    assert outcome(inside.format(frame)) == outcome(inside.format(frame.lower()))
