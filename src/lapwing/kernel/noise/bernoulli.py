"""Exact coins from the operating system's entropy: rational chances, and chances ``exp(-x)`` for rational x. No float takes part.

Proof: ``docs/proofs/quantiles.md``, section on drawing. The coins are those of Canonne, Kamath and Steinke 2020.
"""

from __future__ import annotations

from fractions import Fraction

from lapwing.kernel.noise.entropy import random_below, random_bits


def coin(chance: Fraction) -> bool:
    """True with this chance, from 0 to 1."""
    return random_below(chance.denominator) < chance.numerator


def heads(coins: int, halvings: int) -> int:
    """How many of ``coins`` coins, each with chance ``2 ** -halvings``, are true: true ones are tossed again, ``halvings`` times."""
    for _ in range(halvings):
        if not coins:
            break
        coins = random_bits(coins).bit_count()
    return coins


def coin_exp(x: Fraction) -> bool:
    """True with chance ``exp(-x)``, for ``x >= 0``. Takes a few steps for any x: each whole 1 in it is a separate coin."""
    while x > 1:
        if not _coin_exp_to_one(Fraction(1)):
            return False
        x -= 1
    return _coin_exp_to_one(x)


def _coin_exp_to_one(x: Fraction) -> bool:
    """True with chance ``exp(-x)``, for x from 0 to 1: the alternating series, one term per coin."""
    terms = 1
    while coin(x / terms):
        terms += 1
    return terms % 2 == 1


def coin_two_over_e() -> bool:
    """True with chance ``2 / e``: the series ``1 - 1/3 + 1/12 - ...``, whose terms fall by the factors 1/3, 1/4, 1/5 and so on."""
    terms = 0
    while coin(Fraction(1, terms + 3)):
        terms += 1
    return terms % 2 == 0
