"""The slowest tests of the ordinary run, with the seconds that each took alone on two cores, and why it takes them.

A test of more than ``SECONDS_MAX`` needs an entry. A run names those that have none; it does not fail for it, because a busy machine makes
any test slow.
"""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

SECONDS_MAX = 30.0

SLOW: dict[str, tuple[float, str]] = {}


class SlowTests:
    """Adds up how long each test took, its setup and teardown included."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[re.sub(r"@[^@\]]+$", "", report.nodeid)] += report.duration  # without the group that xdist adds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            if seconds > SECONDS_MAX and name not in SLOW:
                terminalreporter.write_line(f"{seconds:.0f} s and no reason in tests/support/slow_tests.py: {name}")
