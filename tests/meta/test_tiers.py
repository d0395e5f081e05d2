"""The tiers of the checks: the page says what they run, every size is used, and a soak goes on where it was."""

from __future__ import annotations

import os
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.meta.tree import ROOT
from tests.support.nightly import NIGHTLY, escaped, is_nightly, third_of
from tests.support.sizes import PAGE, SIZES, page, soak_tests
from tests.support.slow_tests import SLOW

FILE = "tests/properties/test_sensitivity_oracle.py"
SOAKED = f"{FILE}::test_the_worlds_add_up_to_ten_thousand_pairs"


def test_the_page_is_what_the_sources_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tests.support.sizes > docs/reference/checks-in-tiers.md"


def test_a_soak_is_larger_and_every_size_is_used_where_it_says() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path.name != "sizes.py")
    for name, size in SIZES.items():
        assert size.soak > size.check > 0 and (size.nightly is None or size.soak >= size.nightly > size.check), name
        assert (ROOT / "tests" / size.where).is_file(), name
        # some names are put together: "oracle worlds, {relation}"
        assert (
            f'size("{name}")' in sources
            or f', "{name}")' in sources
            or f'"{name}",\n' in sources
            or name.startswith(("oracle worlds, ", "equal answers, "))
        ), name


def collected(*arguments: str, tier: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments],
        cwd=ROOT,
        env={**os.environ, "LAPWING_TIER": tier},
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in run.stdout.splitlines() if line.startswith("tests/")]


@pytest.mark.slow
def test_what_is_soaked_is_collected_in_that_tier_alone() -> None:
    assert SOAKED.removeprefix("tests/") in [test.name for test in soak_tests()]
    check, soak = collected(FILE, tier="check"), collected(FILE, tier="soak")
    assert SOAKED in soak and SOAKED not in check
    assert len(soak) > len(check) > 0


@pytest.mark.slow
def test_what_is_left_to_the_night_exists_and_is_collected_there_alone() -> None:
    paths = {path for pattern in NIGHTLY for path in ROOT.glob(pattern.split("::")[0]) if path.match("test_*.py")}
    files = sorted(path.relative_to(ROOT).as_posix() for path in paths)
    names = collected(*files, tier="nightly")
    for pattern in NIGHTLY:
        assert any(fnmatchcase(name, escaped(pattern)) for name in names), pattern
    one = sorted(
        {name.split("::")[0] for name in names if is_nightly(name)} & {name.split("::")[0] for name in names if not is_nightly(name)}
    )[0]
    assert collected(one, tier="check") == [name for name in names if name.startswith(one) and not is_nightly(name)] != []


def test_every_third_has_about_a_third_of_the_files() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    thirds = [sum(third_of(file) == third for file in files) for third in range(3)]
    assert sum(thirds) == len(files) and min(thirds) > len(files) / 4


@pytest.mark.slow
def test_every_slow_test_exists_and_has_a_reason() -> None:
    there = set(collected(*sorted({name.split("::")[0] for name in SLOW}), tier="check")) if SLOW else set()
    assert {name for name in SLOW if name not in there} == set()
    assert all(seconds > 0 and reason.strip() for seconds, reason in SLOW.values())


@pytest.mark.slow
def test_what_has_not_begun_in_time_is_skipped_and_counted() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--until", "1", "tests/meta/test_names.py"]
    ran = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "skipped" in ran.stdout.splitlines()[-1] and "passed" not in ran.stdout.splitlines()[-1]


@pytest.mark.slow
def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    kept = tmp_path / "soak" / "passed"
    command = [sys.executable, "-m", "pytest", "-q", "--resume", str(kept), SOAKED]
    environment = {**os.environ, "LAPWING_TIER": "soak"}
    first, second = (subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False) for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 5), first.stdout + second.stdout  # 5: no test is left
    assert kept.read_text(encoding="utf-8") == f"{SOAKED}\n"
    assert SOAKED not in collected("--resume", str(kept), tier="soak")
