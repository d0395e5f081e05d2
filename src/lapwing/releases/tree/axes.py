"""The axes of a tree of ranges: one column in leaves, and in wider and wider nodes, each of whole nodes of the level below."""

from __future__ import annotations

from fractions import Fraction

from lapwing.errors import Refused
from lapwing.kernel.domains import Domain
from lapwing.releases.marginals.axes import BINS_MAX, Axis, axis_of
from lapwing.releases.tree.range_tree import tree_widths


def tree_axes(column: str, domain: Domain, *, branch: int, bins: int | tuple[Fraction, ...] | None) -> tuple[Axis, ...]:
    """An axis for each level of :func:`tree_widths`, widest nodes first; the last one has the leaves.

    NULL is a bin of each level, beside the tree: a row is in one bin of each level anyway, so that the count of NULLs costs nothing more.
    """
    leaf = axis_of(column, domain, bins=bins)
    axis_of(column, domain, bins=1)  # a column without an order has no ranges
    starts = _starts(leaf)
    widths = tree_widths(len(starts), branch=branch)
    if len(widths) > 1 and -(-len(starts) // widths[-2]) > BINS_MAX:
        message = f"a tree over {len(starts):,} leaves of {column!r} has more than {BINS_MAX:,} nodes above its leaves"
        raise Refused("axis-bins", message, hint="cut the column into fewer bins, or use more branches")
    return (*(_level(leaf, starts[::width]) for width in widths[:-1]), leaf)


def leaf_width(axis: Axis, leaf: Axis) -> int:
    """How many leaves a node of a level has."""
    own, starts = _starts(axis), _starts(leaf)
    return len(starts) if len(own) == 1 else starts.index(own[1])


def _level(leaf: Axis, starts: tuple[Fraction, ...]) -> Axis:
    return axis_of(leaf.column, leaf.domain, bins=1 if len(starts) == 1 else starts[1:])


def _starts(axis: Axis) -> tuple[Fraction, ...]:
    """The least value of each bin."""
    if axis.edges is not None:
        return axis.edges[:-1]
    assert axis.values is not None
    return tuple(Fraction(value) for value in axis.values if isinstance(value, int))
