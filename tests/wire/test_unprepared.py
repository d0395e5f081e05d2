"""A data set that was never prepared, beside one that was: `lapwing serve` says so once, serves the other, and takes it in later."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import psycopg
import pytest

import lapwing
from lapwing.curator.catalogue_name import catalogue_name
from lapwing.demo import write_demo
from lapwing.interfaces.http.identity.identities import Identities
from lapwing.interfaces.http.identity.rights import Grant, Role
from tests.ledger.cluster import Cluster
from tests.server.fleet import Replica
from tests.server.process import free_port, lapwing_in
from tests.wire.raw import RawClient, error_fields
from tests.wire.world import shadow_url

COUNT = "SELECT COUNT(*) AS n FROM patients"


def test_it_is_named_at_the_start_refused_and_taken_in_once_it_is_prepared(
    shared_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chmod(tmp_path, 0o700)
    monkeypatch.setenv("LAPWING_HOME", str(tmp_path / "home"))
    for name in ("prepared", "not yet prepared"):
        write_demo(tmp_path / name, patients=60)
    with lapwing.open(tmp_path / "prepared") as data_set:
        data_set.prepare()
    ready, unready = (catalogue_name(tmp_path / name) for name in ("prepared", "not yet prepared"))
    home, port = tmp_path / "server", free_port()
    home.mkdir(mode=0o700)
    one = Replica(home, {})
    lines = ["[server]", f"port = {one.port}", "workers = 2", "[wire]", f"port = {port}", 'role = "unprepared"']
    lines += [f'shadow = "{shadow_url(shared_cluster, "postgres")}"', "[[data_set]]", f'catalogue = "{tmp_path / "not yet prepared"}"']
    lines += ["[[data_set]]", f'catalogue = "{tmp_path / "prepared"}"']
    (home / "lapwing-server.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    identities = Identities(f"sqlite:///{home / 'identities.db'}")
    identities.grant("ada", Grant(Role.ANALYST, "*"))
    identities.grant("bo", Grant(Role.ANALYST, ready))
    keys = {name: identities.new_key(name)[0] for name in ("ada", "bo")}
    identities.close()

    def refused(who: str) -> dict[str, str]:
        with RawClient(port, who, keys[who], unready) as client:
            letter, body = client.greeting[-1]
            assert letter == b"E"
            return error_fields(body)

    def asked(data_set: str) -> int:
        dsn = f"host=127.0.0.1 port={port} user=ada dbname={data_set} password={keys['ada']}"
        with psycopg.connect(dsn, autocommit=True) as connection:
            (row,) = connection.execute(COUNT).fetchall()
            return int(row[0])

    one.start()
    try:
        told = re.fullmatch(rf"data set {unready} is not on the wire: it has no prepared version\. .*: lapwing (.*)\n", one.log())
        assert told is not None, one.log()
        assert len({asked(ready) for _ in range(4)}) == 1
        for _ in range(4):  # whichever of the workers answers
            fields = refused("ada")
            assert (fields["S"], fields["C"]) == ("FATAL", "57P03")
            assert "no prepared version" in fields["M"]
        assert refused("bo")["C"] == "3D000", "whoever may not see it is told nothing of it"
        lapwing_in(tmp_path, *shlex.split(told[1]))
        assert len({asked(unready) for _ in range(4)}) == 1
        assert one.log() == told[0], "said once"
    finally:
        one.stop()
