"""Every error code is provoked by a test: some test asserts that it got it. (How that is found: :mod:`tests.meta.provoked`.)"""

from __future__ import annotations

import pytest

from tests.meta.provoked import provoked
from tests.meta.test_error_codes import found
from tests.meta.tree import DOCS, ROOT, python_files

TESTS = ROOT / "tests"
COMPARED = (TESTS / "unit" / "catalog" / "mistakes.txt", DOCS / "reference" / "refusals.md")
"""Texts that tests compare with what is printed; a code stands there in brackets, as in print."""


def _sources() -> dict[str, str]:
    """All tests but those about the tree itself, which name codes without provoking them."""
    files = [path for path in python_files(TESTS) if TESTS / "meta" not in path.parents]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text(encoding="utf-8") for path in files}


def test_every_code_is_provoked_by_a_test() -> None:
    compared = [path.read_text(encoding="utf-8") for path in COMPARED]
    raised = found().raised_as
    assert len(raised) > 200
    assert sorted(raised.keys() - provoked(_sources(), compared, raised)) == []


JUDGING = {
    "compared": 'def test() -> None:\n    assert error.value.code == "planted-code"',
    "one of several": 'def test() -> None:\n    assert error.code in ("other", "planted-code")',
    "in what was printed": 'def test() -> None:\n    assert "[planted-code]" in ran.err',
    "matched": 'def test() -> None:\n    with pytest.raises(Refused, match="planted-code"):\n        act()',
    "handed on": 'def refused_with(code: str) -> None: ...\n\ndef test() -> None:\n    refused_with("planted-code")',
    "a case": '@pytest.mark.parametrize(("act", "code"), [(f, "planted-code")])\ndef test(act, code) -> None:\n    assert got.code == code',
    "a table": 'TABLE = {"SELECT": "planted-code"}\n\ndef test() -> None:\n    assert TABLE[text] == error.code',
}
NOT_JUDGING = {
    "a docstring": 'def test() -> None:\n    """Refused with planted-code."""\n    assert error.code == "other"',
    "a comment": 'def test() -> None:\n    assert error.code == "other"  # planted-code',
    "another call": 'def test() -> None:\n    act("planted-code")\n    assert error.code == "other"',
    "a variable": 'def test() -> None:\n    wanted = "planted-code"\n    assert error.code == "other"',
    "raised by the test itself": 'def test() -> None:\n    raise LedgerError("planted-code", "")',
    "a table that nobody compares with a code": 'TABLE = ["planted-code"]\n\ndef test() -> None:\n    assert TABLE',
    "part of another word": 'def test() -> None:\n    assert error.code == "planted-code-too"',
}


@pytest.mark.parametrize("how", JUDGING)
def test_a_code_counts_that_is(how: str) -> None:
    assert provoked({"tests.planted": JUDGING[how]}, (), {"planted-code"}) == {"planted-code"}


@pytest.mark.parametrize("where", NOT_JUDGING)
def test_a_code_does_not_count_in(where: str) -> None:
    assert provoked({"tests.planted": NOT_JUDGING[where]}, (), {"planted-code"}) == set()


def test_a_table_counts_where_its_importer_compares_it() -> None:
    table = {"tests.table": 'REFUSED = ["planted-code"]'}
    judge = "from tests.table import REFUSED\n\ndef test() -> None:\n    assert error.code in REFUSED"
    assert provoked(table, (), {"planted-code"}) == set()
    assert provoked(table | {"tests.judge": judge}, (), {"planted-code"}) == {"planted-code"}
    assert provoked({}, ["[planted-code] cannot be read"], {"planted-code", "other"}) == {"planted-code"}
