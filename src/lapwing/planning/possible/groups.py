"""All groups that a statement can have, in a fixed order, from public facts alone: values of its keys that meet its conditions.

Keys and conditions that share columns are evaluated together, on every combination of the values of those columns; what shares none is
combined freely. A condition on too many values is left out, so that there may be more groups than can occur, never fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from lapwing.kernel.domains import Domain, KeyDomain, TextDomain, TimestampDomain
from lapwing.kernel.expressions import Column, Expression, Literal, Value, columns_of
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import Relation
from lapwing.kernel.stability import domain_of, shape_of
from lapwing.planning.possible.listing import ENUMERATED_MAX, LISTED_MAX, ListedValues, Uses, enumerated, grid_value, listed, uses_of
from lapwing.planning.possible.narrowing import narrowed
from lapwing.planning.possible.rows import PossibleRows, PublicRows, RelationReader
from lapwing.statements import substituted

Group: TypeAlias = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Columns whose values are listed together: one column, or the rows of a public table."""

    names: tuple[str, ...]
    columns: tuple[ListedValues, ...]

    def __len__(self) -> int:
        return len(self.columns[0])


@dataclass(frozen=True, slots=True)
class Combinations:
    """Every combination of rows of the blocks that meets the conditions, and what the keys are in it."""

    blocks: tuple[Block, ...]
    domains: Mapping[str, Domain]
    conditions: tuple[Expression, ...]
    keys: tuple[Expression, ...]


Evaluate: TypeAlias = Callable[[Combinations, int], list[Group] | None]
"""Distinct values of the keys; without keys, one empty group if any combination is left. None where there are more than the number."""


@dataclass(frozen=True, slots=True)
class Possible:
    """The groups that a statement can have; None where they cannot be listed or are too many."""

    groups: tuple[Group, ...] | None
    causes: frozenset[str] = frozenset()
    """Why some of them may be impossible all the same; empty where every one can occur."""


def no_public_rows(_: str) -> None:
    """Where the rows of public tables are not at hand, all that is known of them is their columns' domains."""


class GroupFinder:
    """Finds the groups of relations of one version; what was found is kept, since a statement is planned several times."""

    def __init__(self, evaluate: Evaluate, public: PublicRows = no_public_rows) -> None:
        self._evaluate, self._public = evaluate, public
        self._found: dict[tuple[Relation, tuple[tuple[str, Expression], ...], int], Possible] = {}

    def find(self, source: Relation, keys: tuple[tuple[str, Expression], ...], facts: Facts, *, cells_max: int) -> Possible:
        """Every group there can be. Without keys: the one empty group, or none where no row can meet the conditions."""
        asked = (source, keys, cells_max)
        if asked not in self._found:
            self._found[asked] = _possible(source, keys, facts, cells_max, self._evaluate, self._public)
        return self._found[asked]


def _possible(
    source: Relation, keys: Sequence[tuple[str, Expression]], facts: Facts, cells_max: int, evaluate: Evaluate, public: PublicRows
) -> Possible:
    causes: frozenset[str] = frozenset()

    def values_of(rows: PossibleRows, value: Expression) -> tuple[Value, ...] | None:
        nonlocal causes
        found = _Enumeration(rows, (value,), evaluate, LISTED_MAX).groups()
        causes |= found.causes
        return None if found.groups is None else tuple(value for (value,) in found.groups)

    found: dict[Group, None] = {}
    for rows in RelationReader(facts, public, values_of).read(source):
        one = _Enumeration(rows, tuple(substituted(key, rows.columns) for _, key in keys), evaluate, cells_max).groups()
        causes |= one.causes
        if one.groups is None:
            return Possible(None)
        found |= dict.fromkeys(one.groups)
        if len(found) > cells_max:
            return Possible(None)
    columns = shape_of(source, facts).columns
    places = [place_in(domain_of(key, columns)) for _, key in keys]
    ordered = sorted(found, key=lambda group: tuple(place(value) for place, value in zip(places, group, strict=True)))
    return Possible(tuple(ordered), causes)


def place_in(domain: Domain) -> Callable[[Value], tuple[bool, Value]]:
    """Values in their own order, declared text in that of the declaration; NULL last."""
    if isinstance(domain, TextDomain) and domain.values is not None:
        numbers = {value: number for number, value in enumerate(domain.values)}
        return lambda value: (value is None, numbers.get(str(value), len(numbers)))
    return lambda value: (value is None, 0 if value is None else value)


@dataclass(slots=True)
class _Cluster:
    """Blocks that are enumerated together."""

    blocks: set[int]
    keys: list[int] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)


class _Enumeration:
    """The values of keys over one way in which rows come about."""

    def __init__(self, rows: PossibleRows, keys: tuple[Expression, ...], evaluate: Evaluate, cells_max: int) -> None:
        self._keys, self._evaluate, self._cells_max = keys, evaluate, cells_max
        self._causes = set(rows.causes)
        in_tables = {name for table in rows.tables for name in table.variables}
        own = {name: domain for name, domain in rows.variables.items() if name not in in_tables and name not in rows.listed}
        narrow, conditions = narrowed(rows.conditions, own)
        self._domains = {**rows.variables, **narrow}
        self._conditions = [condition for condition in conditions if self._is_plain(condition)]
        self._listings = self._listed(rows)
        self._blocks = [
            Block(table.variables, tuple(ListedValues(column) for column in zip(*table.rows, strict=True)))
            if table.rows
            else Block(table.variables, (ListedValues(()),) * len(table.variables))
            for table in rows.tables
        ]
        self._block_of = {name: number for number, table in enumerate(rows.tables) for name in table.variables}
        for name, listing in self._listings.items():
            if listing is not None:
                self._block_of[name] = len(self._blocks)
                self._blocks.append(Block((name,), (listing,)))

    def _is_plain(self, condition: Expression) -> bool:
        """Whether it can be evaluated: identifiers are compared in the engine's own way."""
        if any(isinstance(self._domains[name], KeyDomain) for name in columns_of(condition)):
            self._causes.add("a condition on an identifier")
            return False
        return True

    def _listed(self, rows: PossibleRows) -> dict[str, ListedValues | None]:
        listings: dict[str, ListedValues | None] = {}
        for name, domain in self._domains.items():
            if any(name in table.variables for table in rows.tables):
                continue
            if name in rows.listed:
                values = rows.listed[name]
                listings[name] = ListedValues(tuple(value for value in values if value is not None), None in values)
                continue
            listings[name] = enumerated(domain, self._uses(name) if isinstance(domain, TimestampDomain) else ())
        return listings

    def _uses(self, name: str) -> list[Uses]:
        """How keys use a column of timestamps, and conditions that can be kept; a raw key cannot be listed at all."""
        found: list[Uses] = []
        for key in self._keys:
            if name in columns_of(key):
                found.append(uses_of(key, name) or Uses(1))
        for condition in list(self._conditions):
            if name in columns_of(condition):
                uses = uses_of(condition, name)
                if uses is None:
                    self._causes.add("a condition on moments that cannot be listed")
                    self._conditions.remove(condition)
                else:
                    found.append(uses)
        return found

    def groups(self) -> Possible:
        """All combinations of the keys' values."""
        if any(listing is not None and not len(listing) for listing in self._listings.values()):
            return Possible((), frozenset(self._causes))
        alone: dict[int, tuple[Value, ...]] = {}
        clusters: list[_Cluster] = []
        for number, key in enumerate(self._keys):
            blocks = self._blocks_of(key)
            if blocks is None or self._combinations(blocks) > ENUMERATED_MAX:
                values = listed(domain_of(key, self._domains))
                if values is None:
                    return Possible(None)
                alone[number] = values
                if columns_of(key):
                    self._causes.add("a key over values that cannot be listed")
            else:
                self._merged(clusters, _Cluster(blocks, [number]))
        self._add_conditions(clusters)
        lists: list[tuple[list[int], list[Group]]] = [([number], [(value,) for value in values]) for number, values in alone.items()]
        for cluster in clusters:
            found = self._of_cluster(cluster)
            if found is None:
                return Possible(None)
            lists.append((cluster.keys, found))
        if math.prod(len(found) for _, found in lists) > self._cells_max:
            return Possible(None)
        order = [number for numbers, _ in lists for number in numbers]
        places = [order.index(number) for number in range(len(self._keys))]
        whole = (tuple(value for part in parts for value in part) for parts in product(*(found for _, found in lists)))
        return Possible(tuple(tuple(group[place] for place in places) for group in whole), frozenset(self._causes))

    def _blocks_of(self, expression: Expression) -> set[int] | None:
        names = columns_of(expression)
        return {self._block_of[name] for name in names} if all(name in self._block_of for name in names) else None

    def _combinations(self, blocks: set[int]) -> int:
        return math.prod(len(self._blocks[number]) for number in blocks)

    @staticmethod
    def _merged(clusters: list[_Cluster], new: _Cluster) -> None:
        for cluster in [each for each in clusters if each.blocks & new.blocks]:
            clusters.remove(cluster)
            new.blocks |= cluster.blocks
            new.keys += cluster.keys
            new.conditions += cluster.conditions
        clusters.append(new)

    def _add_conditions(self, clusters: list[_Cluster]) -> None:
        """Each condition with what it shares columns with, the ones over fewest values first."""
        listed = [(blocks, condition) for condition in self._conditions if (blocks := self._blocks_of(condition)) is not None]
        if len(listed) < len(self._conditions):
            self._causes.add("a condition on values that cannot be listed")
        for blocks, condition in sorted(listed, key=lambda each: self._combinations(each[0])):
            whole = blocks.union(*(cluster.blocks for cluster in clusters if cluster.blocks & blocks))
            if self._combinations(whole) > ENUMERATED_MAX:
                self._causes.add("a condition on too many combinations of values")
            else:
                self._merged(clusters, _Cluster(set(blocks), [], [condition]))

    def _of_cluster(self, cluster: _Cluster) -> list[Group] | None:
        keys = tuple(self._keys[number] for number in cluster.keys)
        if len(keys) == 1 and not cluster.conditions and (plain := self._plain_values(keys[0])) is not None:
            return plain
        blocks = tuple(self._blocks[number] for number in sorted(cluster.blocks))
        if not all(len(block) for block in blocks):
            return []
        names = {name for block in blocks for name in block.names}
        domains = {name: self._domains[name] for name in names}
        limit = min(LISTED_MAX, self._cells_max) if len(keys) == 1 else self._cells_max
        return self._evaluate(Combinations(blocks, domains, tuple(cluster.conditions), keys), limit)

    def _plain_values(self, key: Expression) -> list[Group] | None:
        """The values of a key that are known without evaluating anything."""
        if isinstance(key, Literal):
            return [(key.value,)]
        if isinstance(key, Column):
            block = self._blocks[self._block_of[key.name]]
            listing = block.columns[block.names.index(key.name)]
            if len(listing) > LISTED_MAX:
                return None
            domain, null = self._domains[key.name], [None] if listing.null else []
            values = [grid_value(value, domain) for value in listing.values] if isinstance(listing.values, range) else listing.values
            return [(value,) for value in dict.fromkeys((*values, *null))]
        return None
