"""A small prepared demonstration, shared by the tests that only read it or spend a little of its budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.cli.support import Ran, run


@dataclass(frozen=True, slots=True)
class Clinic:
    """A demonstration data set on disk, and the registry it is registered in."""

    directory: Path
    home: Path

    def run(self, *arguments: str, stdin: str | None = None, variables: Mapping[str, str] | None = None) -> Ran:
        """``lapwing -C <directory> ...``"""
        return run("-C", self.directory, *arguments, home=self.home, stdin=stdin, variables=variables)


def make_clinic(base: Path, *, patients: int) -> Clinic:
    """A demonstration, not yet prepared."""
    clinic = Clinic(base / "clinic", base / "home")
    made = run("demo", clinic.directory, "--patients", str(patients), home=clinic.home)
    assert made.status == 0, made.err
    return clinic


@pytest.fixture(scope="session")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Clinic:
    """500 patients, prepared."""
    made = make_clinic(tmp_path_factory.mktemp("cli"), patients=500)
    prepared = made.run("prepare")
    assert prepared.status == 0, prepared.err
    return made


@pytest.fixture
def own_clinic(tmp_path: Path) -> Clinic:
    """A handful of patients, not prepared, for a test of its own."""
    return make_clinic(tmp_path, patients=20)
