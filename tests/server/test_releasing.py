"""Releases over HTTP: planned for free, bought once by those who may ask, read for ever, brought home in a file."""

from __future__ import annotations

import asyncio
import inspect
import time
from pathlib import Path
from typing import Any

import pytest

import lapwing
from lapwing import Marginals, RangeTree, SyntheticTable
from lapwing.demo import write_demo
from lapwing.errors import Refused
from lapwing.interfaces.http.configuration import MomentSettings
from lapwing.interfaces.python.remote import AsyncDataSet, RemoteDataSet
from lapwing.interfaces.python.remote_releases import RemoteRelease
from lapwing.owner.release_file import release_in
from tests.server.under_test import ServerUnderTest

pytestmark = pytest.mark.xdist_group("server: releasing")

BODY: dict[str, Any] = {
    "name": "people",
    "wanted": [
        {"kind": "marginals", "columns": ["sex", "region"]},
        {"kind": "tree", "columns": ["sex", "birth_year"], "branch": 8},
        {"kind": "synthetic", "columns": ["sex", "smoker"], "method": "pairs"},
    ],
    "epsilon": "0.2",
    "shares": [2, 1, "1/2"],
}
SQL = "SELECT sex, COUNT(*) AS n FROM patients WHERE birth_year BETWEEN 1950 AND 1979 GROUP BY sex"


def spent(server: ServerUnderTest) -> str:
    return str(server.call("GET", "/v1/data-sets/{d}/budget").json()["loss"]["spent"])


def test_it_is_planned_for_free_bought_once_and_read_for_ever(server: ServerUnderTest) -> None:
    before = spent(server)
    planned = server.call("POST", "/v1/data-sets/{d}/releases/plan", json=BODY).json()
    assert planned["text"].startswith("release people: 3 parts, of patients") and planned["tables"] > 5
    assert spent(server) == before, "planning is free"
    bought = server.call("POST", "/v1/data-sets/{d}/releases", json=BODY, headers={"Idempotency-Key": "once"})
    assert bought.status_code == 200 and bought.json()["kind"] == "marginals, tree, synthetic"
    assert bought.json()["cells"] == planned["cells"]
    paid = spent(server)
    assert paid != before
    file = server.call("POST", "/v1/data-sets/{d}/releases", json=BODY, headers={"Idempotency-Key": "once", "Accept": "application/zip"})
    assert file.headers["content-type"] == "application/zip"
    [listed] = server.call("GET", "/v1/data-sets/{d}/releases").json()["releases"]
    assert listed == bought.json()
    there = server.call("POST", "/v1/data-sets/{d}/releases/people/query", json={"sql": SQL}).json()
    here = release_in(server.call("GET", "/v1/data-sets/{d}/releases/people").content)
    assert there["rows"] == here.query(SQL).to_dict()["rows"] == release_in(file.content).query(SQL).to_dict()["rows"]
    assert here.table(rows=40).equals(release_in(file.content).table(rows=40))
    assert server.ask(SQL, epsilon="0.001", reuse="only").json()["rows"] == there["rows"]
    again = server.call("POST", "/v1/data-sets/{d}/replay", json={"sql": SQL, "epsilon": "2", "reuse": "only"})
    assert again.json()["rows"] == there["rows"]
    fresh = server.call("POST", "/v1/data-sets/{d}/replay", json={"sql": SQL, "epsilon": "0.001", "reuse": "never"})
    assert fresh.json()["code"] == "not-answered-before"
    assert spent(server) == paid


def test_an_answer_from_a_release_shows_what_is_left_now(server: ServerUnderTest) -> None:
    server.call("POST", "/v1/data-sets/{d}/releases", json=BODY)
    question = {"sql": "SELECT COUNT(*) AS n FROM patients"}
    first = server.call("POST", "/v1/data-sets/{d}/releases/people/query", json=question).json()
    server.ask("SELECT COUNT(*) AS n FROM visits", epsilon="0.05")
    second = server.call("POST", "/v1/data-sets/{d}/releases/people/query", json=question).json()
    assert first["rows"] == second["rows"] and first["remaining"] != second["remaining"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"wanted": []}, "body-invalid"),
        ({"wanted": [{"kind": "magic", "columns": ["sex"]}]}, "body-invalid"),
        ({"wanted": [{"kind": "marginals", "columns": ["sex"], "secret": 1}]}, "body-invalid"),
        ({"name": "no spaces"}, "body-invalid"),
        ({"shares": [1]}, "release-parts"),
        ({"shares": ["1e99999999", 1, 1]}, "number-unreadable"),
        ({"epsilon": "1e99999999"}, "number-unreadable"),
        ({"wanted": [{"kind": "tree", "columns": ["birth_year"], "bins": {"birth_year": ["1e99999999"]}}], "shares": []}, "axis-bins"),
        ({"wanted": [{"kind": "marginals", "columns": ["nonsense"]}], "shares": []}, "release-table"),
        ({"wanted": [{"kind": "marginals", "columns": ["patient_id"]}], "table": "patients", "shares": []}, "axis-unknown"),
        ({"epsilon": "100"}, "statement-limit"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_is_refused_at_once(server: ServerUnderTest, change: dict[str, Any], code: str) -> None:
    before, began = spent(server), time.monotonic()
    reply = server.call("POST", "/v1/data-sets/{d}/releases", json=BODY | change)
    assert reply.json()["code"] == code, reply.text
    assert reply.status_code in (402, 422) and spent(server) == before and time.monotonic() - began < 5.0


def test_what_a_release_does_not_have_is_told(server: ServerUnderTest) -> None:
    server.call("POST", "/v1/data-sets/{d}/releases", json=BODY)
    path = "/v1/data-sets/{d}/releases/people/query"
    uncovered = server.call("POST", path, json={"sql": "SELECT COUNT(*) AS n FROM patients WHERE vaccinated"})
    assert (uncovered.status_code, uncovered.json()["code"]) == (422, "release-not-covered")
    for method, there in (("GET", "/v1/data-sets/{d}/releases/never"), ("POST", "/v1/data-sets/{d}/releases/never/query")):
        assert server.call(method, there, json={"sql": SQL} if method == "POST" else None).json()["code"] == "release-unknown"
    table = server.call("POST", path, json={"sql": SQL}, headers={"Accept": "text/csv"})
    assert table.text.startswith("sex,n,n_lo,n_hi")
    assert server.call("POST", path, json={"sql": SQL}, headers={"Accept": "image/png"}).status_code == 406


def test_what_comes_of_buying_waits_for_a_public_moment(tmp_path: Path) -> None:
    moments = MomentSettings(base_seconds=0.5)
    with ServerUnderTest.over(lambda directory: write_demo(directory, patients=100), tmp_path, moments=moments) as server:
        server.call("GET", "/v1/data-sets/{d}")
        began = time.monotonic()
        assert server.call("POST", "/v1/data-sets/{d}/releases", json=BODY).status_code == 200
        assert time.monotonic() - began >= 0.5
        for method, path, body in (
            ("POST", "/v1/data-sets/{d}/releases", BODY),
            ("POST", "/v1/data-sets/{d}/releases/people/query", {"sql": SQL}),
        ):
            began = time.monotonic()
            assert server.call(method, path, json=body).status_code == 200
            assert time.monotonic() - began < 0.45, "no row is read"


class _Here:
    """The transport of a remote data set, to a server in this process."""

    def __init__(self, server: ServerUnderTest) -> None:
        self.server = server

    def send(
        self, method: str, path: tuple[str, ...], *, body: Any = None, headers: Any = None, query: str = "", again: bool = True
    ) -> Any:
        from lapwing.interfaces.python.problems import error_of
        from lapwing.interfaces.python.transport import Reply

        reply = self.server.call(method, "/" + "/".join(path) + query, json=body, headers=headers or {})
        if reply.status_code >= 300:
            raise error_of(reply.status_code, reply.content)
        return Reply(reply.status_code, reply.content, {name.lower(): value for name, value in reply.headers.items()})


def test_a_remote_data_set_has_releases_in_the_same_words(server: ServerUnderTest) -> None:
    remote = RemoteDataSet(_Here(server), server.data_set)  # type: ignore[arg-type]
    wanted = (Marginals("sex", "region"), RangeTree("birth_year", by="sex"), SyntheticTable("sex", "smoker", method="pairs"))
    plan = remote.release(*wanted, name="remote", epsilon="0.1", shares=[1, 2, 1])
    assert "3 parts, of patients" in str(plan) and plan.explain() == str(plan) and not plan.cost.free
    bought = plan.run(request_id="remote-1")
    assert bought.terms.stored == plan.run(request_id="remote-1").terms.stored
    assert remote.release(*wanted, name="remote", epsilon="0.1", shares=[1, 2, 1]).cost.free
    listed = {one.name: one for one in remote.releases()}["remote"]
    assert (listed.columns, listed.kind, listed.cells, listed.is_synthetic) == (bought.columns, bought.kind, bought.cells, True)
    for found in (listed, remote.release_named("remote"), listed.opened()):
        assert found.query(SQL).to_arrow().equals(bought.query(SQL).to_arrow())
        assert found.covers(SQL) and not found.covers("SELECT COUNT(*) AS n FROM patients WHERE vaccinated")
        assert found.table(rows=30).equals(bought.table(rows=30))
    with pytest.raises(Refused) as refusal:
        remote.release_named("never")
    assert refusal.value.code == "release-unknown"

    async def awaited() -> lapwing.Release:
        waiting = AsyncDataSet(remote)
        planned = await waiting.release(*wanted, name="remote", epsilon="0.1", shares=[1, 2, 1])
        assert planned.cost.free and planned.explain() and "remote" in [one.name for one in await waiting.releases()]
        assert (await waiting.release_named("remote")).name == "remote"
        return await planned.run()

    assert asyncio.run(awaited()).terms.stored == bought.terms.stored


def test_a_release_there_has_members_of_a_release_here() -> None:
    here = {name for name in dir(lapwing.Release) if not name.startswith("_")}
    there = {name for name in dir(RemoteRelease) if not name.startswith("_")} - {"opened"}
    assert there <= here
    for name in there:
        assert (
            inspect.signature(getattr(RemoteRelease, name)).parameters.keys()
            == inspect.signature(getattr(lapwing.Release, name)).parameters.keys()
        )
