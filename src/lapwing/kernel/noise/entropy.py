"""The operating system's entropy: where every random bit of this package comes from.

Nothing is kept between calls, so there is no state that a fork could copy, two threads could share, or somebody could seed or read. The
tests replace ``random_bytes`` to repeat their draws; nothing in the product does, and no setting, variable or argument can.
"""

from __future__ import annotations

import os


def random_bytes(size: int) -> bytes:
    """This many independent, uniform bytes."""
    return os.urandom(size)


def random_bits(number: int) -> int:
    """A uniform integer of this many bits."""
    size = (number + 7) // 8
    return int.from_bytes(random_bytes(size), "little") >> (8 * size - number)


def random_below(size: int) -> int:
    """An integer from 0 to ``size - 1``, each with the same chance: numbers of as many bits, until one is below ``size``."""
    bits = (size - 1).bit_length()
    while (drawn := random_bits(bits)) >= size:
        pass
    return drawn
