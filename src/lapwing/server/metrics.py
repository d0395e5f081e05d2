"""Counts for operators, as Prometheus reads them. Every number is a public fact: requests, codes, misses of moments; never a value."""

from __future__ import annotations

import threading
from collections import Counter

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
"""Those that are counted and logged by their names. Whoever calls may make up others, as long as they like."""


def method_name(method: str) -> str:
    """A method, or OTHER."""
    return method if method in METHODS else "OTHER"


class Metrics:
    """Counters of one worker. Safe to share between threads."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._codes: Counter[str] = Counter()

    def replied(self, method: str, route: str, status: int, code: str | None) -> None:
        """A reply left."""
        with self._gate:
            self._requests[(method, route, str(status))] += 1
            if code is not None:
                self._codes[code] += 1

    def text(self, moments: dict[str, tuple[int, int]]) -> str:
        """The exposition; ``moments`` has the answers of each data set and how many of them missed their moment."""
        with self._gate:
            requests, codes = sorted(self._requests.items()), sorted(self._codes.items())
        lines = ["# HELP lapwing_requests_total Replies by method, route and status.", "# TYPE lapwing_requests_total counter"]
        lines += [f'lapwing_requests_total{{method="{m}",route="{r}",status="{s}"}} {count}' for (m, r, s), count in requests]
        lines += ["# HELP lapwing_refusals_total Refusals and errors by code.", "# TYPE lapwing_refusals_total counter"]
        lines += [f'lapwing_refusals_total{{code="{code}"}} {count}' for code, count in codes]
        lines += ["# HELP lapwing_answers_total Answers that read rows.", "# TYPE lapwing_answers_total counter"]
        lines += [f'lapwing_answers_total{{data_set="{_escaped(name)}"}} {answers}' for name, (answers, _) in sorted(moments.items())]
        lines += [
            "# HELP lapwing_moments_missed_total Answers that were late.",
            "# TYPE lapwing_moments_missed_total counter",
        ]
        lines += [f'lapwing_moments_missed_total{{data_set="{_escaped(name)}"}} {missed}' for name, (_, missed) in sorted(moments.items())]
        return "\n".join(lines) + "\n"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
