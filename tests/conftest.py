"""What every run has: its tier, where a stopped run goes on, and tests that share what a machine should have once."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.ledger.cluster import Cluster, server_programs
from tests.support.memory import keep_temporary_files_in_memory
from tests.support.nightly import is_nightly, is_nightly_file, third_of, without_group
from tests.support.repeatable_draws import IS_ORDINARY, RUN, RepeatableDraws
from tests.support.second_look import SecondLook
from tests.support.sizes import ROOT, TIER, Tier
from tests.support.slow_tests import SlowTests

# How long one example takes says how busy the machine is, and nothing about the code. An ordinary run tries the same examples each time.
settings.register_profile("tests", deadline=None, derandomize=IS_ORDINARY)
settings.load_profile("tests")

JAVA_GROUP = "java"
"""Tests that run on one worker, so that there is one Java in a run."""


class Passed:
    """The tests that passed so far, in a file: one name a line."""

    def __init__(self, path: Path, *, writes: bool) -> None:
        self.path, self._writes = path, writes
        self.names = set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has passed when its teardown has, and nothing before it failed."""
        name = without_group(report.nodeid)
        if not report.passed:
            self._failed.add(name)
        elif report.when == "teardown" and name not in self._failed and self._writes:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(name + "\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--third", type=int, choices=range(3), help="run one third of the tests, by their files")
    parser.addoption(
        "--until", type=float, metavar="SECONDS", help="skip what has not begun when the clock shows so many seconds since 1970"
    )
    parser.addoption("--resume", metavar="FILE", help="leave out the tests that passed according to FILE, and add to it those that pass")


def pytest_configure(config: pytest.Config) -> None:
    keep_temporary_files_in_memory()
    config.pluginmanager.register(RepeatableDraws(), "repeatable draws")
    config.pluginmanager.register(SecondLook(), "second look")
    config.pluginmanager.register(SlowTests(), "slow tests")
    path = config.getoption("--resume")
    if path is not None:
        # Workers report to the process that started them, and that one writes.
        config.pluginmanager.register(Passed(Path(path), writes=not hasattr(config, "workerinput")), "passed")


def pytest_report_header() -> str:
    return f"tier: {TIER}, draws: {RUN}"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Reading all files takes each worker a quarter of a minute."""
    name = collection_path.relative_to(ROOT).as_posix() if collection_path.is_relative_to(ROOT) else ""
    return True if TIER is Tier.CHECK and collection_path.suffix == ".py" and is_nightly_file(name) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what another tier runs, another third, and what has passed; group the others."""
    passed, third = config.pluginmanager.get_plugin("passed"), config.getoption("--third")
    left_out = [
        item
        for item in items
        if (TIER is not Tier.SOAK and item.get_closest_marker("soak") is not None)
        or (TIER is Tier.CHECK and is_nightly(item.nodeid))
        or (third is not None and third_of(item.nodeid) != third)
        or (passed is not None and item.nodeid in passed.names)
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
    for item in items:
        group = _group_of(item)
        if group is not None:
            item.add_marker(pytest.mark.xdist_group(group))


def pytest_runtest_setup(item: pytest.Item) -> None:
    until = item.config.getoption("--until")
    if until is not None and time.time() > until:
        pytest.skip("out of time")


def _group_of(item: pytest.Item) -> str | None:
    if item.nodeid.startswith(("tests/engines/", "tests/docs/")) and "spark" in item.nodeid.lower():
        return JAVA_GROUP
    # The suite of all engines asks for an engine by its name.
    suite = item.nodeid.startswith("tests/engines/suite/") and "postgres" in item.nodeid.lower()
    if suite or "shared_cluster" in getattr(item, "fixturenames", ()):
        return f"postgres: {item.path.parent.relative_to(ROOT)}"
    return None


@pytest.fixture(scope="session", autouse=True)
def register_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Data sets of the tests are registered in no home of a user: a path that comes again next time would be another's there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAPWING_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[Cluster]:
    """The PostgreSQL server of all tests of a worker that need a database and leave the server alone; others start one of their own.

    Tests of one folder are on one worker, because they share databases. Those of another folder may be on another worker, with another
    server, so that they need not wait for each other.
    """
    if server_programs() is None and not os.environ.get("CI"):
        pytest.skip("PostgreSQL is not installed")
    running = Cluster(["log_parameter_max_length=0"])
    yield running
    running.close()
