"""A server with the console for each module that wants one: in this process, over the demonstration, with people in every role."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from lapwing.demo import write_demo
from tests.console.browser import Visited, chromium, reachable, write_signed_demo
from tests.server.under_test import ServerUnderTest


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A server with a small demonstration."""
    with ServerUnderTest.over(lambda directory: write_demo(directory, patients=400), tmp_path_factory.mktemp("server")) as under_test:
        yield under_test


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One chromium for the tests of a module. While it is there, this thread has a running event loop: other tests could not begin one."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visited]:
    """A server that browsers can reach, with signed receipts."""
    with ServerUnderTest.over(write_signed_demo, tmp_path_factory.mktemp("visited")) as under_test, reachable(under_test) as found:
        yield found
