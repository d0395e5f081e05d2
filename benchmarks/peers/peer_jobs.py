"""The loop of a peer's own process: jobs come in as lines of JSON, answers go out the same way. The standard library alone.

A job names a question and a bound; a peer answers as often as the job says. What a peer cannot do it says in words, which are kept.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

EPSILON, DELTA = 1.0, 1e-8
RHO = 0.0172053
"""The largest rho, rounded down, whose zCDP implies (1, 1e-8)-differential privacy."""
AMOUNT_MAX = 100.0
REGIONS = [f"region_{number:02d}" for number in range(50)]
PRODUCTS = list(range(1, 1_001))


@dataclass(frozen=True)
class Job:
    """One question at one bound. ``rows``: how many rows of a user count; ``groups``: in how many groups at most."""

    question: str
    rows: int
    groups: int
    draws: int


ChargedRelease = Iterable[tuple[Any, ...]]
"""Cells: keys, name of the output, value and, where the peer states an interval, its two ends."""


class CannotAnswer(Exception):
    """The peer has no way to answer this question; the message says what is missing."""


def run_jobs(load: Callable[[str], Any], answer: Callable[[Any, Job], ChargedRelease], version: str) -> None:
    """Read the data named on the command line, then answer the jobs of standard input."""
    data = load(sys.argv[1])
    for line in sys.stdin:
        job = Job(**json.loads(line))
        for draw in range(job.draws):
            head = {"question": job.question, "rows": job.rows, "groups": job.groups, "draw": draw, "version": version}
            started, cpu = time.perf_counter(), time.process_time()
            try:
                cells = [(list(map(str, keys)), name, float(value), *map(float, bar)) for keys, name, value, *bar in answer(data, job)]
            except CannotAnswer as error:
                _print({**head, "cannot": str(error), "cells": []})
                break
            except Exception as error:
                words = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                print(traceback.format_exc(), file=sys.stderr)
                _print({**head, "failed": words, "cells": []})
                break
            _print({**head, "seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu, "cells": cells})


def _print(record: dict[str, Any]) -> None:
    print("ANSWER " + json.dumps(record), flush=True)
