"""Pseudorandom public numbers: everyone with the release can compute them again.

They decide where a fit starts and which value of a bin a synthetic row gets. **They are never noise.** Noise hides rows only because no one
can compute it, and it comes from ``kernel.noise`` alone. Here the opposite is required: the same release always gives the same table, and
the table contains only information from the release. Hence a hash of the release's digest (SHAKE-256), and no generator of a library, whose
stream may change with its version. See docs/decisions/0056-synthetic-rows-are-computed-from-the-release.md.
"""

from __future__ import annotations

import hashlib
import math
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

_BITS = 53


class PublicNumbers:
    """A stream of uniform numbers, a function of ``digest`` and of their purpose."""

    __slots__ = ("_drawn", "_key")

    def __init__(self, digest: bytes, purpose: str) -> None:
        self._key = b"lapwing public numbers 1\x00" + purpose.encode() + b"\x00" + digest
        self._drawn = 0

    def uniform(self, number: int) -> Floats:
        """This many numbers from 0, included, to 1, excluded."""
        self._drawn += 1
        stream = hashlib.shake_256(self._key + self._drawn.to_bytes(8, "big")).digest(8 * number)
        words = np.frombuffer(stream, dtype=">u8") >> np.uint64(64 - _BITS)
        return np.ldexp(words.astype(np.float64), -_BITS)

    def normal(self, number: int) -> Floats:
        """This many numbers spread like a standard Gaussian: Box and Muller (1958)."""
        half = -(-number // 2)
        radius, angle = np.sqrt(-2 * np.log1p(-self.uniform(half))), 2 * math.pi * self.uniform(half)
        both: Floats = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return both[:number]

    def order(self, number: int) -> Integers:
        """The numbers from 0 to ``number`` - 1, shuffled."""
        return np.argsort(self.uniform(number), kind="stable").astype(np.int64)
