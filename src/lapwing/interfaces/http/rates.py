"""Rate limits: a token bucket for each name in each worker."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import OrderedDict

NAMES_MAX = 100_000
"""Buckets that are kept. The least recently used is dropped first: it is full again anyway."""
NAME_LENGTH_MAX = 64


class Rates:
    """Buckets by name. Safe to share between threads."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._gate = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_to_wait(self, name: str) -> float:
        """0 if the call may proceed, which counts it; otherwise how long to wait."""
        now = time.monotonic()
        with self._gate:
            left, at = self._buckets.pop(name, (self._burst, now))
            left = min(self._burst, left + (now - at) * self._per_second)
            allowed = left >= 1.0
            self._buckets[name] = (left - 1.0 if allowed else left, now)
            while len(self._buckets) > NAMES_MAX:
                self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self._per_second


def sender(address: str) -> str:
    """The rate-limit key of an address: for IPv6 its /64 network, because one client has 2^64 addresses. A proxy may send text that is not
    an address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:NAME_LENGTH_MAX]
    if parsed.version == 4:
        return str(parsed)
    return str(parsed.ipv4_mapped or parsed.packed[:8].hex())
