"""A test that fails is run once more where chance may fail it, and what failed is shown either way.

Noise has no seed, and browsers and processes have their own pace, so among ten thousand tests one may fail in a run and say nothing about
the code. Where a failure would mean a leak, a wrong charge or a wrong proof there is no second look, and more than a few in one run are no
chance: the run fails.
"""

from __future__ import annotations

import pytest

LOOKED_AT_AGAIN = ("tests/console/", "tests/docs/", "tests/engines/", "tests/server/", "tests/statistical/", "tests/unit/", "tests/wire/")
NEVER_AGAIN = ("tests/unit/kernel/", "two_worlds", "oracle", "test_audit", "rights", "fuzz", "neighbours")
"""Parts of names of tests of which one failure is enough."""
CHANCE_MAX = 3
"""More tests than so many that fail once and pass then are not taken for chance."""


def is_looked_at_again(name: str) -> bool:
    """Whether this test may fail by chance, by its name."""
    return name.startswith(LOOKED_AT_AGAIN) and not any(part in name for part in NEVER_AGAIN)


class SecondLook:
    """What failed at the first look, kept by the process that all reports go to."""

    def __init__(self) -> None:
        self.failed_once: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if is_looked_at_again(item.nodeid):
                item.add_marker(pytest.mark.flaky(reruns=1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        outcome: str = report.outcome
        if outcome == "rerun":  # what pytest-rerunfailures says of a failure that is followed by another run
            self.failed_once[report.nodeid] = report.longreprtext

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if len(self.failed_once) > CHANCE_MAX and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name, text in self.failed_once.items():
            terminalreporter.section(f"failed at the first look: {name}")
            terminalreporter.write_line(text)
        if len(self.failed_once) > CHANCE_MAX:
            terminalreporter.section(f"{len(self.failed_once)} tests failed at the first look: more than {CHANCE_MAX} are not chance")
