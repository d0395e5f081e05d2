"""Two worlds that differ in one patient, the same requests in both: every reply and every line of a log is the same but for noisy values.

Noisy values are drawn as ever and then replaced by the same numbers in both worlds, whatever they were, so that nothing has to be left out
of the comparison because of them: prices, bounds and notes that follow from earlier noisy answers are compared too. The patient who is in
one world alone has names and values that are found nowhere else: none of them leaves the server in any form.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.audit.second_list import second_list
from lapwing.curator import charged_release
from lapwing.demo import write_demo
from lapwing.engines.duckdb.snapshot import DuckDBSnapshot
from lapwing.errors import Incident
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact
from lapwing.kernel.laws import Sampler
from lapwing.kernel.permit import Permit
from lapwing.kernel.release import NoisyTable, Released, release
from lapwing.server.configuration import ServerLimits
from lapwing.server.traces import MILLISECOND
from tests.server.collector import Collector, attributes, collector
from tests.server.office import ServerUnderTest
from tests.support.sizes import size

pytestmark = pytest.mark.xdist_group("server: two worlds")

CANARY = "zq-canary-7f3a"
CANARY_NUMBER = 77_770_777
MOMENTS = frozenset({"at", "date", "x-request-id", "idempotency-key"})
"""What says when, or is drawn anew for each request."""
EPSILON = "0.002"
STATEMENTS = size("two worlds, statements")

PATIENT = ServerLimits(requests_per_second=10_000.0, burst=100_000, failures_per_minute=100_000, wait_seconds=600.0)
"""Whether a busy machine lets a call wait for its answer, or tells it to look again, is not what is compared."""
CLOCK = re.compile(r"NOW\(\) is [0-9-]+ [0-9:]+")
"""The clock of the curator is no secret, and goes on between two requests."""
Seen = tuple[int, dict[str, str], Any]


def _with_one_more(directory: Path) -> None:
    """Add a patient whose every open value is a canary."""
    tables = {name: pq.read_table(directory / f"{name}.parquet") for name in ("patients", "visits", "prescriptions")}
    patient = _changed(tables["patients"].slice(0, 1), patient_id=CANARY_NUMBER, region=CANARY)
    visits = _changed(tables["visits"].slice(0, 3), patient_id=CANARY_NUMBER, visit_id=[CANARY_NUMBER + i for i in range(3)])
    drugs = _changed(tables["prescriptions"].slice(0, 3), visit_id=[CANARY_NUMBER + i for i in range(3)], drug=CANARY)
    for name, more in (("patients", patient), ("visits", visits), ("prescriptions", drugs)):
        pq.write_table(pa.concat_tables([tables[name], more]), directory / f"{name}.parquet")


def _changed(rows: pa.Table, **values: Any) -> pa.Table:
    for name, value in values.items():
        place, field = rows.schema.get_field_index(name), rows.schema.field(name)
        listed = value if isinstance(value, list) else [value] * rows.num_rows
        rows = rows.set_column(place, field, pa.array(listed).cast(field.type))
    return rows


def _replaced(certified: Certified, permit: Permit, exact: Exact, *, sampler: Sampler = Sampler.LAPWING) -> Released:
    """The release, with every noisy number replaced by one that depends on the plan alone; groups that were found are none."""
    real = release(certified, permit, exact, sampler=sampler)
    return replace(real, tables=tuple(_fixed(table, f"{certified.digest}/{i}") for i, table in enumerate(real.tables)))


def _fixed(table: NoisyTable, name: str) -> NoisyTable:
    shown = table.groups if table.threshold is None else ()
    columns = tuple(replace(item, values=tuple(_number(name, item.name, i) for i in range(len(shown)))) for item in table.columns)
    quantiles = tuple(replace(item, values=tuple(tuple(0 for _ in shown) for _ in item.values)) for item in table.quantiles)
    return replace(table, groups=shown, columns=columns, quantiles=quantiles)


@contextmanager
def _same_noise() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charged_release, "release", _replaced)
        yield


def _number(*name: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(name).encode()).digest()[:2], "big") // 32


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerUnderTest, ServerUnderTest]]:
    """A server on each world; the second has one patient more."""
    plain = tmp_path_factory.mktemp("plain") / "clinic"
    write_demo(plain, patients=300)

    def other(directory: Path) -> None:
        shutil.copytree(plain, directory)
        _with_one_more(directory)

    with (
        _same_noise(),
        collector() as of_first,
        collector() as of_second,
    ):
        same: Callable[[Path], object] = lambda directory: shutil.copytree(plain, directory)  # noqa: E731
        with (
            ServerUnderTest.over(same, tmp_path_factory.mktemp("w0"), traces=of_first.url, limits=PATIENT) as first,
            ServerUnderTest.over(other, tmp_path_factory.mktemp("w1"), traces=of_second.url, limits=PATIENT) as second,
        ):
            yield first, second
        # Everything is sent when the servers stop.
        assert _spans(of_first) == _spans(of_second)
        assert len(of_first.spans) >= size("two worlds, requests")
        assert any(span.name == "held until a public moment" for span in of_first.spans)


def _spans(traces: Collector) -> list[tuple[str, dict[str, Any]]]:
    """What spans say, in their order; without the number that is drawn anew for each request. Lengths are those that public facts allow."""
    sent = b"".join(traces.bodies)
    assert CANARY.encode() not in sent
    assert str(CANARY_NUMBER).encode() not in sent
    for span in traces.spans:
        length = span.end_time_unix_nano - span.start_time_unix_nano
        shortest = 10 * MILLISECOND if span.name == "held until a public moment" else MILLISECOND
        assert length % shortest == 0, span.name
        assert (length // shortest).bit_count() == 1, span.name
    listed = [(span.name, {key: value for key, value in attributes(span).items() if key != "lapwing.request"}) for span in traces.spans]
    return sorted(listed, key=repr)


def _requests() -> list[tuple[str, str, str, Any]]:
    """Who calls what: statements of all kinds, answered and refused, and every other route."""
    listed = [item.sql for item in second_list()]
    statements = listed[:: max(1, len(listed) // STATEMENTS)]
    calls: list[tuple[str, str, str, Any]] = []
    for sql in statements:
        calls.append(("ada", "POST", "explain", {"sql": sql, "epsilon": EPSILON}))
        calls.append(("ada", "POST", "ask", {"sql": sql, "epsilon": EPSILON}))
    calls += [("ada", "POST", "replay", {"sql": sql, "epsilon": EPSILON}) for sql in statements[::3]]
    calls += [
        ("ada", "POST", "ask", {"sql": f"SELECT COUNT(*) AS n FROM patients WHERE region = '{CANARY[:4]}'", "epsilon": EPSILON}),
        ("ada", "POST", "ask", {"sql": "SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug", "epsilon": "0.1"}),
        ("ada", "POST", "ask", {"sql": "SELECT COUNT(*) FROM visits", "epsilon": "100"}),
        ("ada", "POST", "ask", {"sql": "rubbish", "epsilon": EPSILON}),
    ]
    for who in ("ada", "olga", "aude", "ops", "nemo"):
        calls += [
            (who, "GET", path, None)
            for path in (
                "",
                "budget",
                "history?limit=1000",
                "versions",
                "terms",
                "incidents",
                "receipts/1",
                "tables/visits",
                "tables/nowhere",
            )
        ]
    return calls


def _seen(world: ServerUnderTest, call: tuple[str, str, str, Any]) -> Seen:
    who, method, path, body = call
    reply = world.call(method, f"/v1/data-sets/{{d}}/{path}".rstrip("/"), by=who, json=body)
    assert CANARY not in reply.text
    assert str(CANARY_NUMBER) not in reply.text
    headers = {name: value for name, value in reply.headers.items() if name not in MOMENTS}
    return int(reply.status_code), headers, _masked(reply.json())


def _masked(value: Any) -> Any:
    """The same without moments."""
    match value:
        case dict():
            return {key: None if key in MOMENTS else _masked(item) for key, item in value.items()}
        case list():
            return [_masked(item) for item in value]
        case str():
            return CLOCK.sub("NOW() is then", value)
        case _:
            return value


def test_replies_and_logs_are_the_same_but_for_noise(
    worlds: tuple[ServerUnderTest, ServerUnderTest], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    calls = _requests()
    assert len(calls) >= size("two worlds, requests")
    kinds = set()
    for call in calls:
        first, second = (_seen(world, call) for world in worlds)
        assert first == second, call
        kinds.add(first[0])
    assert kinds >= {200, 402, 403, 404, 422}
    logs = [_log(world) for world in worlds]
    assert logs[0] == logs[1]
    assert len(logs[0]) >= len(calls)
    for text in (caplog.text, *(world.call("GET", "/metrics", by="ops").text for world in worlds)):
        assert CANARY not in text
        assert str(CANARY_NUMBER) not in text


def test_a_fault_is_the_same_in_both(worlds: tuple[ServerUnderTest, ServerUnderTest], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ValueError(f"could not convert {CANARY}")

    monkeypatch.setattr(DuckDBSnapshot, "run", failing)
    call = ("ada", "POST", "ask", {"sql": "SELECT COUNT(*) AS n FROM visits WHERE minutes > 77", "epsilon": EPSILON})
    first, second = (_seen(world, call) for world in worlds)
    assert first == second
    assert first[0] == 500
    after = [_seen(world, call) for world in worlds]
    assert after[0] == after[1]
    assert (after[0][0], after[0][2]["code"]) == (423, "data-set-closed")
    assert Incident().code == "incident"


def _log(world: ServerUnderTest) -> list[dict[str, Any]]:
    """Lines of the audit log without what is drawn anew; the number of a key is."""
    text = world.office.configuration.audit_path(world.home).read_text()
    assert CANARY not in text
    assert str(CANARY_NUMBER) not in text
    lines = [json.loads(line) for line in text.splitlines()]
    kept = [{key: value for key, value in line.items() if key not in ("at", "request")} for line in lines]
    return [line | {"credential": re.sub(r"key [0-9a-f]+", "key", line["credential"])} for line in kept]
