"""What is protected, and which data sets count as neighbours.

A *unit* is what the guarantee protects: everything one person (or row, or event) contributed. Two data sets are neighbours when they
differ in one unit. All rules of the kernel are stated for these two relations only.
"""

from __future__ import annotations

from enum import Enum


class Neighbours(Enum):
    """Which pairs of data sets the guarantee compares."""

    UNBOUNDED = "unbounded"
    """One unit added or removed."""

    BOUNDED = "bounded"
    """One unit replaced by another, which may also contribute nothing."""
