"""The workflows of the project's host run what a contributor runs, and a linter for workflows finds nothing in them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.tree import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"


def _linted(directory: Path) -> subprocess.CompletedProcess[str]:
    linter = shutil.which("zizmor", path=str(Path(sys.executable).parent))
    assert linter is not None, "zizmor is part of the extra dev"
    command = [linter, "--offline", "--strict-collection", "--no-progress", str(directory)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_linter_finds_nothing() -> None:
    ended = _linted(WORKFLOWS)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "finding"),
    [
        ("runs-on:", "runs-onn:", "runs-on"),
        ("actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683", "actions/checkout@v4", "unpinned-uses"),
        ('.ci/run "$TIERS"', ".ci/run ${{ github.head_ref }}", "template-injection"),
    ],
)
def test_the_linter_finds_a_planted_mistake(tmp_path: Path, right: str, wrong: str, finding: str) -> None:
    text = (WORKFLOWS / "check.yml").read_text(encoding="utf-8")
    assert right in text
    (tmp_path / "check.yml").write_text(text.replace(right, wrong), encoding="utf-8")
    ended = _linted(tmp_path / "check.yml")
    assert ended.returncode != 0 and finding in ended.stdout + ended.stderr


def test_they_run_the_checks_and_build_both_archives() -> None:
    check, release = ((WORKFLOWS / f"{name}.yml").read_text(encoding="utf-8") for name in ("check", "release"))
    assert ".ci/run" in check and ".ci/run" in release and "make venv install dist" in release
