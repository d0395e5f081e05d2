"""The audit log: a line before each charge or no charge, whole lines, new files, and strangers who do not fill the disk."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lapwing.demo import write_demo
from lapwing.errors import CallRefused
from lapwing.interfaces.http.configuration import ListenTo
from lapwing.interfaces.http.operation.audit_log import AuditLog
from tests.faults.disk import SmallDisk, may_mount
from tests.server.under_test import ServerUnderTest

ROOT = Path(__file__).parents[2]
WRITERS, LINES = 4, 400
SAID = {"who": "ada", "credential": "key 1", "act": "ask", "data_set": "clinic"}


def lines_of(*paths: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in paths for line in path.read_text(encoding="ascii").splitlines()]


@contextmanager
def small_disk() -> Iterator[SmallDisk]:
    if not may_mount():
        pytest.skip("no file system may be mounted here")
    disk = SmallDisk(1)
    try:
        yield disk
    finally:
        disk.close()


@contextmanager
def server_with(home: Path, log: Path) -> Iterator[ServerUnderTest]:
    with ServerUnderTest.over(lambda to: write_demo(to, patients=300), home, listen=ListenTo(audit_log=str(log))) as server:
        yield server


def ledger_of(server: ServerUnderTest) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = server.call("GET", "/v1/data-sets/{d}/history?limit=1000", by="olga").json()["entries"]
    return entries


def test_a_question_has_a_line_before_its_charge_and_one_at_its_end(tmp_path: Path) -> None:
    with server_with(tmp_path, tmp_path / "log") as server:
        for _ in range(2):
            assert server.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1").status_code == 200
        [reserved] = [entry for entry in ledger_of(server) if entry["kind"] == "reserve" and entry["analyst"] == "ada"]
    begun, ended, again = [line for line in lines_of(tmp_path / "log") if line["act"] == "ask"]
    assert begun["request"] == ended["request"] and (begun["outcome"], ended["outcome"]) == ("begun", "200")
    assert begun["at"][:23] <= reserved["at"][:23] <= ended["at"][:23]
    assert (begun["charges"], ended["charges"], again["charges"]) == ([], [reserved["charge"]], [reserved["charge"]])
    assert again["outcome"] == "200" and again["request"] != begun["request"], "what is free has one line"
    assert {**begun, "outcome": "", "at": "", "charges": []} == {**ended, "outcome": "", "at": "", "charges": []}


def test_without_room_for_the_line_nothing_is_charged(tmp_path: Path) -> None:
    with small_disk() as disk, server_with(tmp_path, disk.path / "log") as server:
        assert server.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1").status_code == 200
        before = ledger_of(server)
        disk.fill(0)
        for _ in range(40):  # what is left of the last page of the log
            server.call("GET", "/v1/me")
        refused = server.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.1")
        assert (refused.status_code, refused.json()["code"]) == (503, "audit-unwritable")
        free = server.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1")
        assert free.status_code == 200, "what was paid for is answered"
        (tmp_path / "clinic" / ".lapwing" / "statistics.json").unlink()  # a preparation buys them anew
        prepared = server.call("POST", "/v1/data-sets/{d}/versions", by="olga", json={})
        assert (prepared.status_code, prepared.json()["code"]) == (503, "audit-unwritable")
        charged = [entry for entry in ledger_of(server) if entry["kind"] == "reserve"]
        assert charged == [entry for entry in before if entry["kind"] == "reserve"]
        disk.free()
        assert server.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.1").status_code == 200
        lines = lines_of(disk.path / "log")
        assert sum(line.get("lines", 0) for line in lines if line["act"] == "left-out" and line["outcome"] == "audit-unwritable") > 3
        assert [line["outcome"] for line in lines][-2:] == ["begun", "200"]


def test_a_device_that_is_always_full_charges_nothing(tmp_path: Path) -> None:
    """Where no file system may be mounted this is all there is."""
    with server_with(tmp_path, Path("/dev/full")) as server:
        before = ledger_of(server)
        refused = server.ask("SELECT COUNT(*) AS n FROM patients", epsilon="0.1")
        assert (refused.status_code, refused.json()["code"]) == (503, "audit-unwritable")
        assert ledger_of(server) == before


def test_lines_are_whole_where_room_ends_in_the_middle_of_one() -> None:
    with small_disk() as disk:
        log = AuditLog(disk.path / "log")
        disk.fill(4096 * 3)
        written = [log.write(**SAID, outcome="200", request=f"{number:0100d}", charges=()) for number in range(200)]
        assert 10 < sum(written) < 200
        assert [line["request"] for line in lines_of(disk.path / "log")] == [f"{number:0100d}" for number in range(sum(written))]
        with pytest.raises(CallRefused) as refused:
            log.begin(**SAID, request="1")
        assert refused.value.code == "audit-unwritable"
        disk.free()
        log.begin(**SAID, request="1")
        log.close()
        *_, counted, begun = lines_of(disk.path / "log")
        assert (counted["act"], counted["lines"], begun["outcome"]) == ("left-out", 200 - sum(written), "begun")


def _writes(path: Path, writer: int) -> None:
    log = AuditLog(path)
    for number in range(LINES):
        if number % 20:
            assert log.write(**SAID, outcome="200", request=f"{writer}-{number}", charges=())
        else:
            log.begin(**SAID, request=f"{writer}-{number}")
        time.sleep(0.001)
    log.close()


def snippet(log: Path) -> str:
    """What the page says to give to logrotate, for this file and whoever runs this."""
    page = (ROOT / "docs" / "how-to" / "observe.md").read_text(encoding="utf-8")
    found = re.search(r"```\n(\S+audit\.jsonl) \{\n(.*?)\n\}\n```", page, re.DOTALL)
    assert found is not None
    kept = [line for line in found[2].splitlines() if not line.strip().startswith("su ")]
    return "\n".join([f"{log} {{", *kept, "}", ""])


def rotated(log: Path, kept: int) -> None:
    """As logrotate does it, by itself where it is installed: the older files move up, and the log becomes the first of them."""
    program = shutil.which("logrotate")
    if program is not None:
        file = log.with_name("logrotate.conf")
        file.write_text(snippet(log), encoding="utf-8")
        file.chmod(0o600)
        subprocess.run([program, "--force", "--state", str(log.with_name("state")), str(file)], check=True, capture_output=True)
        return
    for number in range(kept, 0, -1):
        log.with_name(f"{log.name}.{number}").rename(log.with_name(f"{log.name}.{number + 1}"))
    log.rename(log.with_name(f"{log.name}.1"))


def test_the_page_gives_logrotate_what_the_log_needs(tmp_path: Path) -> None:
    words = [line.split()[0] for line in snippet(tmp_path / "log").splitlines()[1:-1]]
    assert "nocreate" in words and "delaycompress" in words, "we make the new file, and the old one may still get a line"
    assert not {"copytruncate", "copy", "create"} & set(words), "those lose lines, or make a file that others read"


def test_no_line_is_lost_or_torn_when_files_change_under_several_workers(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    AuditLog(log).close()
    umask = os.umask(0)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_writes, args=(log, number)) for number in range(WRITERS)]
    try:
        for one in writers:
            one.start()
        kept = 0
        while any(one.is_alive() for one in writers):
            time.sleep(0.05)
            if log.exists() and log.stat().st_size:
                rotated(log, kept)
                kept += 1
    finally:
        os.umask(umask)
        for one in writers:
            one.join(60)
    assert [one.exitcode for one in writers] == [0] * WRITERS and kept > 3
    files = [path for path in tmp_path.iterdir() if path.name.startswith(log.name)]
    texts = [
        subprocess.run(["gzip", "-dc", str(path)], check=True, capture_output=True).stdout.decode("ascii")
        if path.suffix == ".gz"
        else path.read_text(encoding="ascii")
        for path in files
    ]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    expected = Counter(f"{writer}-{number}" for writer in range(WRITERS) for number in range(LINES))
    assert Counter(line["request"] for line in lines) == expected
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_after_a_change_of_files_the_old_one_stays_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    workers = [AuditLog(log), AuditLog(log)]
    for one in workers:
        one.write(**SAID, outcome="200", request="old", charges=())
    rotated(log, 0)
    old = (tmp_path / "audit.jsonl.1").read_bytes()
    log.touch(0o644)
    log.chmod(0o644)
    for one in workers:
        one.write(**SAID, outcome="200", request="new", charges=())
        one.close()
    assert (tmp_path / "audit.jsonl.1").read_bytes() == old
    assert [line["request"] for line in lines_of(log)] == ["new", "new"]
    assert log.stat().st_mode & 0o777 == 0o640, "one that somebody made is not for everybody"


def test_a_failed_login_has_its_address_and_a_success_has_none(tmp_path: Path) -> None:
    with server_with(tmp_path, tmp_path / "log") as server:
        server.call("GET", "/v1/me", token="lw_" + "0" * 16 + "_" + "a" * 43)
        server.call("GET", "/v1/me")
        server.client.get("/console/sign-in")
    wrong, good, page = lines_of(tmp_path / "log")
    assert (wrong["outcome"], wrong["who"], wrong["address"]) == ("unauthenticated", "", "testclient")
    assert (good["outcome"], good["who"]) == ("200", "ada") and "address" not in good
    assert page["address"] == "testclient"


def test_strangers_have_so_many_lines_and_the_rest_is_counted(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log", strangers_per_minute=10)

    def failed(address: str) -> bool:
        return log.write(who="", credential="", act="GET /v1/me", data_set="", outcome="unauthenticated", request="", address=address)

    begun = time.monotonic()
    one = sum(failed("198.51.100.7") for _ in range(500))
    assert 10 <= one <= 12, "each address has its share"
    network = sum(failed(f"2001:db8::{number:x}") for number in range(500))
    assert 10 <= network <= 12, "and whoever has an IPv6 network is one address"
    all_others = sum(failed(f"203.0.{number // 250}.{number % 250}") for number in range(1000))
    assert one + network + all_others <= 102 + (time.monotonic() - begun) * 2, "all together have ten times as many"
    assert log.write(**SAID, outcome="200", request="", charges=()), "who is known is written"
    log.close()
    lines = lines_of(tmp_path / "log")
    counted = [line for line in lines if line["act"] == "left-out"]
    assert sum(line["lines"] for line in counted) == 2000 - one - network - all_others and len(counted) <= 2
    assert {line["outcome"] for line in counted} == {"too-many-requests"}
    assert len(lines) < 110 and max(len(line["address"]) for line in lines if "address" in line) <= 64
