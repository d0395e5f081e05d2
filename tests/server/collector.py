"""A collector of traces: an HTTP server that receives what OpenTelemetry sends, and keeps it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector:
    """What was received, in bytes and as spans."""

    url: str
    bodies: list[bytes] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    def receive(self, body: bytes) -> None:
        """Keep one batch."""
        self.bodies.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.services |= {item.value.string_value for item in resource.resource.attributes if item.key == "service.name"}
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]


def attributes(span: Span) -> dict[str, str | int]:
    """The attributes of a span, by name."""
    return {item.key: item.value.string_value or item.value.int_value for item in span.attributes}


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector on a port of this machine."""
    kept = Collector("")

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            kept.receive(self.rfile.read(int(self.headers["Content-Length"])))
            reply = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    kept.url = f"http://127.0.0.1:{listening.server_address[1]}/v1/traces"
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        yield kept
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
