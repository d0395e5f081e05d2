"""Noise that a test can draw again: the one place where a run replaces the source of random bytes in ``lapwing.kernel.noise.entropy``.

Every test has a stream of its own, seeded by the name of the run (``LAPWING_SEED``) and the test's name, so a failure repeats whatever else
runs beside it. A fixture that several tests share has the stream of the fixture's name. A failure shows the name of the run. Tokens,
nonces, ranking keys, OpenDP and processes that a test starts are as random as ever, and so are tests marked ``unseeded``, which ask for the
source itself.

The ordinary run is always named the same. ``make nightly`` names each run anew.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Generator
from typing import TypeAlias

import numpy as np
import pytest

from lapwing.kernel.noise import entropy
from tests.support.nightly import without_group

Source: TypeAlias = Callable[[int], bytes]

RUN = os.environ.get("LAPWING_SEED", "every day")
"""The name of the run, which all seeds depend on."""

IS_ORDINARY = RUN == "every day"


class Stream:
    """Bytes that follow from a name, for any number of threads."""

    def __init__(self, name: str) -> None:
        digest = hashlib.sha256(f"{RUN}\n{name}".encode()).digest()
        self._numbers = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))
        self._lock = threading.Lock()

    def __call__(self, size: int) -> bytes:
        with self._lock:
            return self._numbers.bytes(size)


class RepeatableDraws:
    """Gives each test and each shared fixture its stream."""

    def __init__(self) -> None:
        self._system: Source = entropy.random_bytes

    def _use(self, source: Source) -> None:
        setattr(entropy, "random_bytes", source)  # noqa: B010

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """With each setup: a test that is run again draws the same noise again."""
        self._use(self._system if item.get_closest_marker("unseeded") else Stream(without_group(item.nodeid)))

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self) -> None:
        self._use(self._system)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        before = entropy.random_bytes
        if fixturedef.scope != "function":
            self._use(Stream(f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"))
        try:
            return (yield)
        finally:
            self._use(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            report.sections.append(("random draws", f"LAPWING_SEED={RUN!r} pytest '{without_group(item.nodeid)}' draws the same noise"))
        return report
