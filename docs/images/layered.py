"""Places the boxes of a drawing in rows, so that every arrow points down and none passes through a box.

The usual steps: a row for each box, a narrow place in every row that an arrow crosses, an order within each row with few crossings, and
positions near what each box is connected to. Nothing is random, so the same graph gives the same drawing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

Point = tuple[float, float]
Edge = tuple[str, str]
Node = str | tuple[Edge, int]
"""A box, or the place where an arrow crosses a row."""

LANE, GAP_X, GAP_Y, SWEEPS = 10.0, 26.0, 58.0, 40


@dataclass(frozen=True)
class Layout:
    """Where everything is: the upper left corner of each box, and the points that each arrow passes."""

    places: dict[str, Point]
    ways: dict[Edge, list[Point]]
    width: float
    height: float


def rows_of(names: Iterable[str], edges: Iterable[Edge]) -> dict[str, int]:
    """The row of each box, from the top: as low as possible, but right below what leads to it for a box from which no arrow starts."""
    below: dict[str, set[str]] = defaultdict(set)
    above: dict[str, set[str]] = defaultdict(set)
    for upper, lower in edges:
        below[upper].add(lower)
        above[lower].add(upper)

    def height(name: str) -> int:
        return 1 + max((height(lower) for lower in below[name]), default=-1)

    heights = {name: height(name) for name in names}
    top = max(heights.values())
    rows = {name: top - heights[name] for name in heights}
    for name in rows:
        if not below[name] and above[name]:
            rows[name] = 1 + max(rows[upper] for upper in above[name])
    return rows


def _crossings(upper: Sequence[Node], lower: Sequence[Node], links: set[tuple[Node, Node]]) -> int:
    at, to = {node: i for i, node in enumerate(upper)}, {node: i for i, node in enumerate(lower)}
    ends = [(at[a], to[b]) for a, b in links if a in at and b in to]
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(ends, 2))


class _Rows:
    """The rows while their order is being looked for."""

    def __init__(self, names: Sequence[str], edges: Iterable[Edge]) -> None:
        row = rows_of(names, edges)
        self.order: list[list[Node]] = [[] for _ in range(1 + max(row.values()))]
        self.chains: dict[Edge, list[Node]] = {}
        self.links: set[tuple[Node, Node]] = set()
        for name in names:
            self.order[row[name]].append(name)
        for edge in sorted(edges):
            chain: list[Node] = [edge[0], *((edge, at) for at in range(row[edge[0]] + 1, row[edge[1]])), edge[1]]
            for node in chain[1:-1]:
                self.order[node[1]].append(node)  # type: ignore[index]
            self.chains[edge] = chain
            self.links |= set(pairwise(chain))
        self.near: dict[Node, list[Node]] = defaultdict(list)
        for a, b in sorted(self.links, key=str):
            self.near[a].append(b)
            self.near[b].append(a)

    def crossings(self) -> int:
        return sum(_crossings(upper, lower, self.links) for upper, lower in pairwise(self.order))

    def settle(self) -> None:
        """Order each row by where its neighbours are, swap neighbours while that helps, and keep the best order seen."""
        best, least = [list(row) for row in self.order], self.crossings()
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            for number in range(len(self.order)) if down else reversed(range(len(self.order))):
                self._by_neighbours(number, number - 1 if down else number + 1)
            self._swap()
            if (now := self.crossings()) < least:
                best, least = [list(row) for row in self.order], now
        self.order = best

    def _by_neighbours(self, number: int, other: int) -> None:
        if not 0 <= other < len(self.order):
            return
        at = {node: (i + 0.5) / len(self.order[other]) for i, node in enumerate(self.order[other])}
        own = {node: (i + 0.5) / len(self.order[number]) for i, node in enumerate(self.order[number])}

        def wish(node: Node) -> float:
            ends = [at[near] for near in self.near[node] if near in at]
            return sum(ends) / len(ends) if ends else own[node]

        self.order[number].sort(key=wish)

    def _swap(self) -> None:
        better = True
        while better:
            better = False
            for row in self.order:
                for i in range(len(row) - 1):
                    before = self.crossings()
                    row[i], row[i + 1] = row[i + 1], row[i]
                    if self.crossings() < before:
                        better = True
                    else:
                        row[i], row[i + 1] = row[i + 1], row[i]


def _spread(wishes: list[float], weights: list[float], distances: list[float]) -> list[float]:
    """Positions nearest to the wishes (in weighted squares) with at least these distances from one to the next: isotonic regression."""
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    blocks: list[tuple[float, float, int]] = []
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        value, count = wish - offset, 1
        while blocks and blocks[-1][0] >= value:
            other, other_weight, other_count = blocks.pop()
            value = (value * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + other_count
        blocks.append((value, weight, count))
    values = [value for value, _, count in blocks for _ in range(count)]
    return [value + offset for value, offset in zip(values, offsets, strict=True)]


def _positions(rows: _Rows, box: float) -> dict[Node, float]:
    """The middle of each box and of each crossing."""

    def wide(node: Node) -> float:
        return box if isinstance(node, str) else LANE

    x: dict[Node, float] = {}
    for row in rows.order:
        at = -sum(wide(node) + GAP_X for node in row) / 2
        for node in row:
            x[node] = at + wide(node) / 2
            at += wide(node) + GAP_X
    for sweep in range(200):
        for row in rows.order if sweep % 2 == 0 else reversed(rows.order):
            wishes = [sum(x[near] for near in rows.near[node]) / len(rows.near[node]) if rows.near[node] else x[node] for node in row]
            weights = [1.0 if isinstance(node, str) else 4.0 for node in row]
            distances = [(wide(a) + wide(b)) / 2 + GAP_X for a, b in pairwise(row)]
            x.update(zip(row, _spread(wishes, weights, distances), strict=True))
    left = min(x[node] - wide(node) / 2 for node in x)
    return {node: at - left for node, at in x.items()}


def _port(rows: _Rows, x: dict[Node, float], node: Node, near: Node, *, below: bool, box: float) -> float:
    """Where on the edge of a box an arrow begins or ends: in the order of the other ends, around the middle."""
    if not isinstance(node, str):
        return x[node]
    others = sorted({b if below else a for a, b in rows.links if (a if below else b) == node}, key=lambda other: (x[other], str(other)))
    step = min(24.0, (box - 40) / max(1, len(others) - 1))
    return x[node] + (others.index(near) - (len(others) - 1) / 2) * step


def arrange(names: Sequence[str], edges: Iterable[Edge], *, box: tuple[int, int]) -> Layout:
    """Lay out a graph without circles."""
    width, high = box
    edges = frozenset(edges)
    rows = _Rows(names, edges)
    rows.settle()
    x = _positions(rows, width)
    y = {node: number * (high + GAP_Y) for number, row in enumerate(rows.order) for node in row}
    ways: dict[Edge, list[Point]] = {}
    for edge, chain in rows.chains.items():
        points: list[Point] = [(_port(rows, x, chain[0], chain[1], below=True, box=width), y[chain[0]] + high)]
        for node in chain[1:-1]:
            points += [(x[node], y[node]), (x[node], y[node] + high)]
        points.append((_port(rows, x, chain[-1], chain[-2], below=False, box=width), y[chain[-1]]))
        ways[edge] = points
    places = {name: (x[name] - width / 2, y[name]) for name in names}
    across = max(at + (width if isinstance(node, str) else LANE) / 2 for node, at in x.items())
    return Layout(places, ways, across, max(y.values()) + high)
