"""A test marked ``second_look(reason)`` runs once more if it fails, and the summary shows what failed.

Draws are seeded (``repeatable_draws``), so chance in the noise is no reason. A reason is something outside the code: a browser that paints
late, a clock of a busy machine. Tests of charges, tokens, rights, noise, thresholds, selections and leaks never have a second look; their
folders and names are below, and a mark there fails the collection. More than a few second looks in one run are no chance: the run fails.
"""

from __future__ import annotations

import pytest

ONE_LOOK_FOLDERS = tuple(
    f"tests/{folder}/"
    for folder in ("attacks", "faults", "games", "kept", "ledger", "meta", "properties", "schedules", "statistical", "theory", "unit")
)
ONE_LOOK_WORDS = (
    "audit",
    "charge",
    "leak",
    "neighbours",
    "noise",
    "oracle",
    "rights",
    "selection",
    "spend",
    "threshold",
    "token",
    "worlds",
)
CHANCE_MAX = 3
"""If more tests than this pass only at the second look, the run fails."""


def is_forbidden(name: str) -> bool:
    """Whether a test of this name must never have a second look."""
    return name.startswith(ONE_LOOK_FOLDERS) or any(word in name for word in ONE_LOOK_WORDS)


class SecondLook:
    """The first failures, kept by the process that collects all reports."""

    def __init__(self) -> None:
        self.failed_once: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if (mark := item.get_closest_marker("second_look")) is not None:
                if is_forbidden(item.nodeid) or not (mark.args and str(mark.args[0]).strip()):
                    raise pytest.UsageError(f"{item.nodeid}: a second look needs a reason, and is not for tests of this kind")
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
        count = len(self.failed_once)
        terminalreporter.write_line(f"{count} tests needed a second look" + (f": more than {CHANCE_MAX}" if count > CHANCE_MAX else ""))
