"""Traces for operators, in OpenTelemetry: a span for each call, and one for each time that an outcome was withheld.

A span records when something began and how long it took, to the nanosecond. So there is none for reading rows, drawing noise or storing
the answer: their duration may depend on rows. The span of a hold ends at the public moment itself, not when a thread woke up. The span of
a call is rounded up to 1, 2, 4, ... milliseconds, since a call beside a long scan is slower (docs/decisions/0050).
A caller's own trace is not continued: a stranger must not choose what is recorded under which name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import lapwing
from lapwing.errors import LapwingError
from lapwing.interfaces.http.call_notes import CallNotes

MILLISECOND = 1_000_000
"""A millisecond in nanoseconds; the shortest span."""


@dataclass(frozen=True, slots=True)
class RepliedCall:
    """A call whose reply was sent. It holds no person's name, no statement and no value."""

    method: str
    route: str
    status: int
    code: str | None
    act: str
    data_set: str
    """Empty if the caller may not see it."""
    request: str
    began: int
    ended: int


class Tracing(Protocol):
    """Receives spans."""

    def replied(self, call: RepliedCall, notes: CallNotes) -> None:
        """Record a call whose reply was sent."""
        ...

    def close(self) -> None:
        """Send what is waiting."""
        ...


class NoTraces:
    """Traces are disabled."""

    def replied(self, call: RepliedCall, notes: CallNotes) -> None:
        """Record nothing."""

    def close(self) -> None:
        """Do nothing: no span is waiting."""


class SentTraces:
    """Sends spans to a collector, in batches, from a separate thread."""

    def __init__(self, endpoint: str) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise LapwingError("extra-missing", "traces need more libraries", hint="pip install 'lapwing[traces]'") from error
        self._provider = TracerProvider(resource=Resource({"service.name": "lapwing", "service.version": lapwing.__version__}))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
        self._tracer = self._provider.get_tracer("lapwing.server")

    def replied(self, call: RepliedCall, notes: CallNotes) -> None:
        """Record the span of a call, and below it those of its holds."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        said = {
            "lapwing.code": call.code or "",
            "lapwing.act": call.act,
            "lapwing.data_set": call.data_set,
            "lapwing.request": call.request,
        }
        attributes: dict[str, str | int] = {
            "http.request.method": call.method,
            "http.route": call.route,
            "http.response.status_code": call.status,
            **{name: text for name, text in said.items() if text},
        }
        name = f"{call.method} {call.route}"
        span = self._tracer.start_span(name, Context(), kind=SpanKind.SERVER, attributes=attributes, start_time=call.began)
        inside = set_span_in_context(span, Context())
        for began, moment in tuple(notes.holds):
            self._tracer.start_span("held until a public moment", inside, start_time=began).end(moment)
        if call.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end(call.began + coarse(call.ended - call.began))

    def close(self) -> None:
        """Send what is waiting."""
        self._provider.shutdown()


def coarse(nanoseconds: int) -> int:
    """The duration rounded up to 1, 2, 4, ... milliseconds."""
    length = MILLISECOND
    while length < nanoseconds:
        length *= 2
    return length


def traces_to(endpoint: str | None) -> Tracing:
    """Traces to this collector, or none."""
    return NoTraces() if endpoint is None else SentTraces(endpoint)
