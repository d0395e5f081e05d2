"""A server of its own for each module that wants one: the demonstration, people in every role, keys and a provider of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lapwing.demo import write_demo
from tests.server.under_test import ServerUnderTest


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    """A server with a small demonstration, in this process."""
    with ServerUnderTest.over(lambda directory: write_demo(directory, patients=400), tmp_path_factory.mktemp("server")) as under_test:
        yield under_test
