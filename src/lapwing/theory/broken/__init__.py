"""A collection of mechanisms that are less private than they claim, each with a counter-example and a correct version.

Each exhibit is a family: a function of one parameter, the ``decay`` of its noise, that returns a
:class:`~lapwing.theory.broken.specimen.Specimen`. :func:`lapwing.theory.verify.verify` rejects the wrong mechanism of each with a pair of
neighbours and a set of outputs, and accepts the correct one for the same claim. They serve for teaching, and as tests of an auditor.
"""

from __future__ import annotations

from fractions import Fraction

from lapwing.theory.broken import counts, keys_and_users, selection, sparse_vector
from lapwing.theory.broken.specimen import Specimen

FAMILIES = (*counts.SPECIMENS, *selection.SPECIMENS, *sparse_vector.SPECIMENS, *keys_and_users.SPECIMENS)
"""All families, each a function of a decay."""


def collection(decay: Fraction = Fraction(1, 2)) -> tuple[Specimen, ...]:
    """Every exhibit at this decay (a fraction strictly between 0 and 1)."""
    return tuple(family(decay) for family in FAMILIES)
