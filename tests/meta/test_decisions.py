"""The index of decision records has a line for each record, with a summary and a status, and says which numbers were not used."""

from __future__ import annotations

import re

import pytest

from tests.meta.tree import DOCS

FOLDER = DOCS / "decisions"
INDEX = (FOLDER / "index.md").read_text(encoding="utf-8")
RECORDS = tuple(sorted(path for path in FOLDER.glob("0*.md")))
_LINE = re.compile(r"^\| \[(\d{4})\]\(([\w.-]+)\) \| (.+?) \| (.+) \|$", re.MULTILINE)
_STATUS = re.compile(r"accepted|(?:[\w ]+ )?(?:replaced|changed|extended|completed)\b.* by \[\d{4}\]|not built")


def test_every_record_has_one_line_in_order() -> None:
    assert len(RECORDS) > 80
    assert [name for _, name, _, _ in _LINE.findall(INDEX)] == [path.name for path in RECORDS]
    assert all(name.startswith(number) for number, name, _, _ in _LINE.findall(INDEX))


def test_a_summary_is_a_sentence_and_a_status_is_known() -> None:
    summaries = [summary for _, _, summary, _ in _LINE.findall(INDEX)]
    assert [summary for summary in summaries if not (summary.endswith(".") and 7 <= len(summary.split()) <= 32)] == []
    assert [status for _, _, _, status in _LINE.findall(INDEX) if not _STATUS.match(status)] == []


def test_numbers_without_a_record_are_named() -> None:
    numbers = {int(path.name[:4]) for path in RECORDS}
    unused = {number for number in range(1, max(numbers)) if number not in numbers}
    assert unused == {int(number) for number in re.findall(r"\b\d{4}\b", INDEX.partition("The numbers ")[2].partition("\n")[0])}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name[:4])
def test_a_record_that_was_replaced_says_so_and_names_its_successor(path: object) -> None:
    number, name = next((number, name) for number, name, _, _ in _LINE.findall(INDEX) if (FOLDER / name) == path)
    status = next(status for other, _, _, status in _LINE.findall(INDEX) if other == number)
    successors = re.findall(r"replaced (?:in part )?by \[(\d{4})\]", status)
    head = (FOLDER / name).read_text(encoding="utf-8")[:400]
    assert [successor for successor in successors if successor not in head] == []
