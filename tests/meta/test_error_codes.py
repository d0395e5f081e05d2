"""The page of error codes says exactly what the source raises."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from tests.meta.codes import ERROR_CLASSES, KEBAB, Found, scan
from tests.meta.tree import DOCS, ROOT, SOURCE, python_files

PAGE = DOCS / "reference" / "error-codes.md"
_ROW = re.compile(r"\| `(?P<code>[^`]+)` \| (?P<classes>[^|]+) \| (?P<actor>[^|]+) \| (?P<meaning>[^|]+) \|")


@cache
def found() -> Found:
    """What the source raises. Read when a test wants it: collecting is done by every worker."""
    return scan({str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in python_files(SOURCE)})


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the page's table."""

    code: str
    classes: frozenset[str]
    actor: str
    meaning: str


def _rows() -> list[Row]:
    rows = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            match = _ROW.fullmatch(line)
            assert match, f"not a row of four columns: {line}"
            classes = frozenset(re.findall(r"`(\w+)`", match["classes"]))
            rows.append(Row(code=match["code"], classes=classes, actor=match["actor"].strip(), meaning=match["meaning"].strip()))
    return rows


def test_every_code_raised_is_on_the_page() -> None:
    assert "incident" in found().raised_as, "the scan itself is broken"
    assert sorted(found().raised_as.keys() - {row.code for row in _rows()}) == []


def test_the_page_lists_no_dead_code() -> None:
    assert sorted({row.code for row in _rows()} - found().raised_as.keys()) == []


def test_each_code_is_listed_once_in_order_and_well_formed() -> None:
    codes = [row.code for row in _rows()]
    assert codes == sorted(set(codes))
    assert [code for code in codes if not KEBAB.fullmatch(code)] == []


def test_class_and_actor_on_the_page_agree_with_the_source() -> None:
    for row in _rows():
        raised_as = found().raised_as.get(row.code, set())
        # A code that travels through a helper has no class at the place it is written; the page then says which, and may say "warning".
        assert row.classes >= raised_as, f"{row.code}: raised as {sorted(raised_as)}, the page says {sorted(row.classes)}"
        assert row.classes <= raised_as or not raised_as, f"{row.code}: the page names a class it is not raised as"
        actors = {ERROR_CLASSES[name].actor.value for name in row.classes if name != "warning"} or {"owner"}
        assert row.actor == ", ".join(sorted(actors)), f"{row.code}: {sorted(actors)} must act, the page says {row.actor}"
        assert len(row.meaning) > 10


def test_every_code_can_be_read_from_the_source() -> None:
    assert found().unreadable == []


PLANTED = """
def refuse(code: str, message: str) -> Refused:
    return Refused(code, message)

class Report:
    def problem(self, path: str, code: str) -> None: ...

def f(report: Report, many: bool) -> None:
    raise errors.LedgerError("direct-code", "text")
    raise refuse("through-function", "text")
    report.problem("a.b", "through-method")
    Problem(code="through-keyword")
    raise Refused("one" if many else "other", "text")
    raise Refused(f"made-{many}", "text")
    raise Refused(problem.code, "text")
"""


def test_the_scan_follows_helpers_and_reports_computed_codes() -> None:
    found = scan({"planted.py": PLANTED})
    assert found.raised_as == {
        "direct-code": {"LedgerError"},
        "one": {"Refused"},
        "other": {"Refused"},
        "through-function": set(),
        "through-method": set(),
        "through-keyword": set(),
    }
    assert [place.rpartition(":")[0] for place in found.unreadable] == ["planted.py"]
