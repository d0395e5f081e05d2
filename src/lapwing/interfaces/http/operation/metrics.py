"""Counts for operators, as Prometheus reads them. Every number is a public fact: requests, codes, moments and misses, never a value.

The only histogram is of the moments at which answers were due, which public facts determine. No metric has the duration of anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from lapwing.interfaces.http.operation.worker_counts import LEFT_OUT, PASSING, WorkerCounts

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
"""Methods that are counted and logged by name. Callers can invent others of any length."""
COUNTS_DIRECTORY = "counts"
"""The directory, in the server's home, of the workers' counts."""
DATA_SETS_MAX = 1_000
"""Data sets that are shown individually, the first by name."""
_MOMENTS = "lapwing_answer_moment_seconds"
_ANSWERS, _MISSED = "lapwing_answers_total", "lapwing_moments_missed_total"
_ENDS = (*(2.0**power for power in range(-4, 11)), float("inf"))
_FAMILIES = {
    "lapwing_requests_total": ("counter", "Replies by method, route and status."),
    "lapwing_refusals_total": ("counter", "Refusals and errors by code."),
    _ANSWERS: ("counter", "Answers that read rows."),
    _MISSED: ("counter", "Answers that were late."),
    _MOMENTS: ("histogram", "Moments at which answers that read rows were due, determined by public facts."),
    PASSING: ("gauge", "Open connections."),
    LEFT_OUT: ("counter", "Counts that did not fit in the table."),
    "lapwing_workers": ("gauge", "Live workers."),
    "lapwing_workers_lost_total": ("counter", "Workers that ended unexpectedly."),
    "lapwing_data_sets": ("gauge", "Data sets that are served."),
    "lapwing_ledger_up": ("gauge", "Whether the ledger of a data set can be reached."),
    "lapwing_budget_left_ratio": ("gauge", "Share of the budget that is left."),
    "lapwing_data_set_closed": ("gauge", "Whether a data set is closed to analysts."),
    "lapwing_version_age_seconds": ("gauge", "Time since the newest version was prepared."),
    "lapwing_shadow_up": ("gauge", "Whether the database behind the wire's catalogue can be reached."),
}


def method_name(method: str) -> str:
    """A method, or OTHER."""
    return method if method in METHODS else "OTHER"


def sample_name(family: str, **labels: str) -> str:
    """A sample as Prometheus writes it."""
    assert family in _FAMILIES
    return _labelled(family, labels)


class Metrics:
    """The counts of this worker, and the totals of all workers. Safe to share between threads."""

    def __init__(self, directory: Path | None = None) -> None:
        self._counts = WorkerCounts(directory)

    def replied(self, method: str, route: str, status: int, code: str | None) -> None:
        """Count a reply."""
        self._counts.add(sample_name("lapwing_requests_total", method=method, route=route, status=str(status)), 1)
        if code is not None:
            self._counts.add(sample_name("lapwing_refusals_total", code=code), 1)

    def answered(self, data_set: str, due: float | None, missed: bool) -> None:
        """Count an answer that read rows and was due after ``due`` seconds; None if moments are not public."""
        self._counts.add(sample_name(_ANSWERS, data_set=data_set), 1)
        self._counts.add(sample_name(_MISSED, data_set=data_set), int(missed))
        if due is None:
            return
        for end in _ENDS:
            self._counts.add(_labelled(f"{_MOMENTS}_bucket", {"data_set": data_set, "le": _end_text(end)}), int(due <= end))
        self._counts.add(_labelled(f"{_MOMENTS}_sum", {"data_set": data_set}), round(due * 1e6))
        self._counts.add(_labelled(f"{_MOMENTS}_count", {"data_set": data_set}), 1)

    def connected(self, face: str, by: int) -> None:
        """Count connections that opened, or closed if ``by`` is negative."""
        self._counts.add(sample_name(PASSING, face=face), by)

    def text(self, data_sets: Iterable[str], gauges: dict[str, float]) -> str:
        """The exposition: what all workers counted, also of data sets without requests, and ``gauges`` unchanged."""
        totals = self._counts.totals()
        samples: dict[str, float] = {sample_name(family, data_set=one): 0 for one in data_sets for family in (_ANSWERS, _MISSED)}
        samples |= {sample: count / 1e6 if sample.startswith(f"{_MOMENTS}_sum") else count for sample, count in totals.counts.items()}
        samples |= {"lapwing_workers": totals.alive, "lapwing_workers_lost_total": totals.lost, **gauges}
        return "\n".join(_exposition(samples)) + "\n"

    def close(self) -> None:
        """Close the counts when the worker ends."""
        self._counts.close()


def _exposition(samples: dict[str, float]) -> Iterator[str]:
    of_family: dict[str, list[str]] = {family: [] for family in _FAMILIES}
    for sample in sorted(samples, key=_order):
        name = sample.partition("{")[0]
        of_family[name if name in of_family else name.rpartition("_")[0]].append(sample)
    for family, listed in of_family.items():
        kind, said = _FAMILIES[family]
        yield f"# HELP {family} {said}"
        yield f"# TYPE {family} {kind}"
        yield from (f"{sample} {samples[sample]}" for sample in listed)


def _order(sample: str) -> tuple[str, float]:
    """Buckets of a histogram come in the order of their ends."""
    before, mark, after = sample.partition(',le="')
    return before, float(after.removesuffix('"}')) if mark else 0.0


def _end_text(end: float) -> str:
    return "+Inf" if end == float("inf") else str(end)


def _labelled(name: str, labels: dict[str, str]) -> str:
    said = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
    return f"{name}{{{said}}}"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
