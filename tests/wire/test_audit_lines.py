"""The audit log of the wire: a line before each charge or no charge, and the address of a login that failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lapwing.interfaces.http.configuration import ListenTo
from tests.faults.disk import SmallDisk, may_mount
from tests.ledger.cluster import Cluster
from tests.wire.raw import RawClient
from tests.wire.world import WireUnderTest, wire_over


def lines_of(wire: WireUnderTest) -> list[dict[str, Any]]:
    path = wire.server.app_state.configuration.audit_path(wire.server.home)
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def test_a_question_has_two_lines_and_a_failed_login_its_address(wire: WireUnderTest) -> None:
    with RawClient(wire.port, "ada", "lw_wrong", wire.server.data_set):
        pass
    failed = lines_of(wire)[-1]
    assert (failed["act"], failed["outcome"], failed["who"]) == ("connect", "unauthenticated", "")
    assert failed["address"] == "127.0.0.1"
    with wire.connect() as connection:
        connection.execute("SELECT COUNT(*) AS n FROM patients WHERE birth_year > 1931")
    opened, begun, ended = lines_of(wire)[-3:]
    assert opened["act"] == "connect" and "address" not in opened
    assert begun["request"] == ended["request"] and (begun["outcome"], ended["outcome"]) == ("begun", "00000")
    assert begun["charges"] == [] and len(ended["charges"]) >= 1


def test_without_room_for_the_line_nothing_is_charged(shared_cluster: Cluster, tmp_path: Path) -> None:
    disk = SmallDisk(1) if may_mount() else None
    log = Path("/dev/full") if disk is None else disk.path / "log"
    try:
        with wire_over(shared_cluster, tmp_path, listen=ListenTo(audit_log=str(log)), session_share=0.02) as wire:
            before = wire.spent()
            with wire.connect() as connection:
                if disk is not None:
                    disk.fill(0)
                    for _ in range(40):  # what is left of the last page of the log
                        wire.server.call("GET", "/v1/me")
                for _ in range(8):  # more than the session's share, if it were spent
                    with pytest.raises(psycopg.Error) as refused:
                        connection.execute("SELECT COUNT(*) AS n FROM patients")
                    assert refused.value.sqlstate == "53100"
                    assert refused.value.diag.message_detail == "lapwing code: audit-unwritable"
                assert wire.spent() == before
                if disk is not None:
                    disk.free()
                    assert connection.execute("SELECT COUNT(*) AS n FROM patients").fetchone() is not None
                    assert wire.spent() > before
    finally:
        if disk is not None:
            disk.close()
