"""Two worlds for tests of the server: data sets that differ in one patient, with the same numbers in place of noise, and a server on each.

Noisy values are drawn as ever and then replaced by the same numbers in both worlds, whatever they were, so that nothing has to be left out
of the comparison because of them: prices, bounds and notes that follow from earlier noisy answers are compared too. The patient who is in
one world alone has names and values that are found nowhere else: none of them leaves the server in any form.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.asking import bound_statement
from lapwing.curator import charged_release
from lapwing.interfaces.http.configuration import NewDataSettings, ServerLimits
from lapwing.interfaces.http.operation.traces import MILLISECOND
from lapwing.introspection import introspect
from lapwing.kernel.certify import Certified
from lapwing.kernel.exact import Exact
from lapwing.kernel.laws import Sampler
from lapwing.kernel.permit import Permit
from lapwing.kernel.release import NoisyTable, Released, release
from tests.server.collector import Collector, attributes, collector
from tests.server.under_test import ServerUnderTest

CANARY = "zq-canary-7f3a"
CANARY_NUMBER = 77_770_777
MOMENTS = frozenset({"at", "date", "x-request-id", "idempotency-key"})
"""What says when, or is drawn anew for each request."""
PATIENT = ServerLimits(requests_per_second=10_000.0, burst=100_000, failures_per_minute=100_000, wait_seconds=600.0)
"""Whether a busy machine lets a call wait for its answer, or tells it to look again, is not what is compared."""
ASKED_AT = 1_788_000_000_000_000
"""The clock of the curator is no secret, and would go on between two requests."""


def with_one_more(directory: Path) -> None:
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


class _StoppedClock(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> _StoppedClock:
        return cls.fromtimestamp(ASKED_AT // 1_000_000, tz)


@contextmanager
def same_noise() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charged_release, "release", _replaced)
        patch.setattr(bound_statement, "moment_of_asking", lambda: ASKED_AT)
        patch.setattr(introspect, "datetime", _StoppedClock)
        yield


def _number(*name: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(name).encode()).digest()[:2], "big") // 32


@contextmanager
def two_servers(
    writes: tuple[Callable[[Path], object], Callable[[Path], object]],
    homes: tuple[Path, Path],
    *,
    spans_min: int,
    new_data: NewDataSettings | None = None,
) -> Iterator[tuple[ServerUnderTest, ServerUnderTest]]:
    """A server on each world. When they have stopped, so that every span was sent, their traces are compared."""
    with ExitStack() as around:
        around.enter_context(same_noise())
        traces = [around.enter_context(collector()) for _ in writes]
        with ExitStack() as running:
            first, second = (
                running.enter_context(ServerUnderTest.over(write, home, traces=to.url, limits=PATIENT, new_data=new_data))
                for write, home, to in zip(writes, homes, traces, strict=True)
            )
            yield first, second
        assert _spans(traces[0]) == _spans(traces[1])
        assert len(traces[0].spans) >= spans_min
        assert any(span.name == "held until a public moment" for span in traces[0].spans)


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


def audit_log(world: ServerUnderTest) -> list[dict[str, Any]]:
    """Lines of the audit log without what is drawn anew; the number of a key is."""
    text = no_canary(world.app_state.configuration.audit_path(world.home).read_text())
    lines = [json.loads(line) for line in text.splitlines()]
    kept = [{key: value for key, value in line.items() if key not in ("at", "request")} for line in lines]
    return [line | {"credential": re.sub(r"key [0-9a-f]+", "key", line["credential"])} for line in kept]


def no_canary(text: str) -> str:
    """The same text, in which nothing of the patient is who lives in one world alone."""
    assert CANARY not in text
    assert str(CANARY_NUMBER) not in text
    return text


def counts(world: ServerUnderTest) -> list[str]:
    """What operators count, but for moments that were missed: other work on the machine of the tests misses them too. Nor ages."""
    text = no_canary(world.call("GET", "/metrics", by="ops").text)
    return [line for line in text.splitlines() if not line.startswith(("lapwing_moments_missed_total", "lapwing_version_age_seconds"))]
