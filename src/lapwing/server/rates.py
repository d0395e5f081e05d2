"""How often somebody may call: a bucket that fills at a steady rate, for each name, in each worker."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

NAMES_MAX = 100_000
"""Buckets that are kept; the one used longest ago is forgotten first, when it is full again anyway."""


class Rates:
    """Buckets by name. Safe to share between threads."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._gate = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, name: str, *, take: bool = True) -> float:
        """0 where the call may go on, and it is counted; else how long to wait. Without ``take`` it is not counted."""
        now = time.monotonic()
        with self._gate:
            left, at = self._buckets.pop(name, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._per_second)
            allowed = left >= 1.0
            self._buckets[name] = (left - 1.0 if allowed and take else left, now)
            while len(self._buckets) > NAMES_MAX:
                self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self._per_second
