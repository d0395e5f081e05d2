"""The description is the contract: calls made from it at random get only replies that it describes, and none makes the server fail."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.server.under_test import ServerUnderTest
from tests.support.sizes import size

pytestmark = pytest.mark.xdist_group("server: openapi")


def _sent(case: Any, server: ServerUnderTest, who: str) -> tuple[int, str, str]:
    """The status, the kind and the text of the reply to a made-up call."""
    parameters = dict(case.path_parameters or {})
    if "data_set" in parameters:
        parameters["data_set"] = server.data_set
    path = case.path
    for name, value in parameters.items():
        path = path.replace("{" + name + "}", str(value))
    body = case.body if isinstance(case.body, dict) else None
    headers = {name: str(value) for name, value in dict(case.headers or {}).items() if str(value).isascii()}
    reply = server.call(case.method, path, by=who, params=dict(case.query or {}), headers=headers, json=body)
    return int(reply.status_code), str(reply.headers.get("content-type", "")), str(reply.text)


def _try(operation: Any, server: ServerUnderTest, who: str) -> int:
    """Make calls of one operation; how many were made."""
    allowed, made = {int(status) for status in operation.definition.raw["responses"]}, [0]

    @settings(
        max_examples=size("calls of each operation"),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def one(case: Any) -> None:
        made[0] += 1
        status, kind, text = _sent(case, server, who)
        assert status in allowed | {404, 405}, (case.method, case.path, status, text)
        assert status < 500, text
        if status >= 400:
            assert kind == "application/problem+json"

    one()
    return made[0]


@pytest.mark.parametrize("who", ["ada", "olga", "nemo"])
def test_replies_are_as_described_and_the_server_never_fails(server: ServerUnderTest, who: str) -> None:
    described = server.client.get("/v1/openapi.json").json()
    operations: list[Any] = [found.ok() for found in schemathesis.openapi.from_dict(described).get_all_operations()]  # type: ignore[union-attr]
    tried = 0
    for operation in operations:
        if operation.path.endswith("/versions") and operation.method == "post" and who == "olga":
            continue  # each would prepare a version
        assert _try(operation, server, who) > 0
        tried += 1
    assert tried >= 20
