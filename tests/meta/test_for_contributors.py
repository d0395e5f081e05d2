"""What is written down for those who carry on is whole and has not gone stale: licence, citation, versions, hooks, templates."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.meta.tree import ROOT

# The text as its authors publish it, to the byte.
APACHE_2_SHA256 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
_MAKE = re.compile(r"(?:^|`)make ([a-z][a-z-]*(?: [a-z][a-z-]*)*)(?= *(?:$|#|`))", re.MULTILINE)
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_RELEASED = re.compile(r"(\d+)\.(\d+)\.(\d+)(?: \((\d{4}-\d\d-\d\d)\))?")


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _yaml(name: str) -> Any:
    return yaml.safe_load(_text(name))


def _project() -> dict[str, Any]:
    return dict(tomllib.loads(_text("pyproject.toml"))["project"])


def _targets() -> set[str]:
    return set(_TARGET.findall(_text("Makefile")))


def test_the_licence_is_the_full_text() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2_SHA256
    assert _project()["license"] == "Apache-2.0"


def test_the_citation_names_this_version_and_licence() -> None:
    citation, project = _yaml("CITATION.cff"), _project()
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert citation["keywords"] == project["keywords"]
    assert citation["abstract"].strip() == project["description"]


def _numbers(sections: list[str]) -> list[tuple[int, ...]]:
    matches = [_RELEASED.fullmatch(section) for section in sections]
    assert all(matches), sections
    return [tuple(int(part) for part in match.groups()[:3]) for match in matches if match]


def test_the_changelog_has_versions_newest_first_and_the_one_of_the_code() -> None:
    unreleased, *sections = _SECTION.findall(_text("CHANGELOG.md"))
    numbers = _numbers(sections)
    assert unreleased == "Unreleased"
    assert numbers == sorted(set(numbers), reverse=True)
    assert tuple(int(part) for part in _project()["version"].split(".")) == numbers[0]


def _entries(text: str) -> list[str]:
    """Entries of a list, each as one line."""
    return [" ".join(entry.split()) for entry in re.findall(r"^- (.+(?:\n  .+)*)", text, re.MULTILINE)]


def test_the_changelog_has_every_entry_once() -> None:
    entries = _entries(_text("CHANGELOG.md"))
    assert len(entries) > 50
    assert [entry for entry in set(entries) if entries.count(entry) > 1] == []
    assert _entries("- one\n  more\n- two\n\ntext\n- one more") == ["one more", "two", "one more"]


def _hooks() -> Iterator[tuple[str, str]]:
    for source in _yaml(".pre-commit-config.yaml")["repos"]:
        for hook in source["hooks"]:
            yield source["repo"], hook["entry"]


def test_hooks_call_targets_that_exist_and_download_nothing() -> None:
    hooks = list(_hooks())
    assert {source for source, _ in hooks} == {"local"}
    assert {entry for _, entry in hooks} == {"make lint", "make contracts", "make types"}
    assert {entry.removeprefix("make ") for _, entry in hooks} <= _targets()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/how-to/run-the-checks.md", "docs/how-to/release.md"])
def test_pages_name_targets_that_exist(name: str) -> None:
    named = {target for words in _MAKE.findall(_text(name)) for target in words.split()}
    assert named
    assert sorted(named - _targets()) == []


def test_a_target_that_does_not_exist_is_found() -> None:
    assert _MAKE.findall("`make nothing`\nmake venv install  # both\nThey make `x` and make sure; to make it\npass") == [
        "nothing",
        "venv install",
    ]
    assert "nothing" not in _targets()


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem)
def test_templates_of_issues_are_forms(path: Any) -> None:
    form = _yaml(str(path.relative_to(ROOT)))
    if path.stem == "config":
        assert form.keys() <= {"blank_issues_enabled", "contact_links"}
        return
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert fields
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields)


def test_contributors_are_told_where_reports_of_leaks_go() -> None:
    assert "SECURITY.md" in _text("CONTRIBUTING.md")
    assert "SECURITY.md" in _text(".github/ISSUE_TEMPLATE/defect.yml")
