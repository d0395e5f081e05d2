"""The operating system's entropy: the source of every random bit of this package. Nothing is kept between calls.

Tests replace ``random_bytes`` to repeat their draws. Nothing in the product does, and no setting, variable or argument can.
"""

from __future__ import annotations

import os


def random_bytes(size: int) -> bytes:
    """This many independent, uniform bytes."""
    return os.urandom(size)


def random_bits(number: int) -> int:
    """A uniform integer of this many bits."""
    return int.from_bytes(random_bytes((number + 7) // 8), "little") >> -number % 8


def random_below(size: int) -> int:
    """An integer from 0 to ``size - 1``, each with the same chance: numbers of as many bits, until one is below ``size``."""
    bits = (size - 1).bit_length()
    while (drawn := random_bits(bits)) >= size:
        pass
    return drawn
