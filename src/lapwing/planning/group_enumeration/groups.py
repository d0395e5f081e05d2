"""All possible groups of a statement, in a fixed order, from public facts alone: values of its keys that meet its conditions.

Keys and conditions that share columns are evaluated together, on every combination of the values of those columns; the others are
combined freely. A condition on too many values is ignored, so there may be more groups than can occur, never fewer.
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
from lapwing.planning.group_enumeration.listing import (
    ENUMERATED_MAX,
    LISTED_MAX,
    ListedValues,
    TimestampUse,
    TooManyGroups,
    enumerated,
    grid_value,
    listed,
    size_of,
    uses_of,
)
from lapwing.planning.group_enumeration.narrowing import narrowed
from lapwing.planning.group_enumeration.rows import PossibleRows, PublicRows, RelationReader
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
    """Every combination of rows of the blocks that meets the conditions, and the keys in it."""

    blocks: tuple[Block, ...]
    domains: Mapping[str, Domain]
    conditions: tuple[Expression, ...]
    keys: tuple[Expression, ...]


Evaluate: TypeAlias = Callable[[Combinations, int], list[Group] | None]
"""Distinct values of the keys; without keys, one empty group if any combination is left. None where there are more than the number."""


@dataclass(frozen=True, slots=True)
class PossibleGroups:
    """The groups that a statement can have; None where they cannot be listed or are too many."""

    groups: tuple[Group, ...] | None
    causes: frozenset[str] = frozenset()
    """The reason why some of them may be impossible; empty if all can occur."""
    too_many: TooManyGroups | None = None
    """The exceeded limit, if there are no groups because they are too many."""


def no_public_rows(_: str) -> None:
    """If the rows of public tables are not available, only their columns' domains are known."""


class GroupFinder:
    """Finds the groups of relations of one version; results are cached, since a statement is planned several times."""

    def __init__(self, evaluate: Evaluate, public: PublicRows = no_public_rows) -> None:
        self._evaluate, self._public = evaluate, public
        self._found: dict[tuple[Relation, tuple[tuple[str, Expression], ...], _Limits], PossibleGroups] = {}

    def find(
        self, source: Relation, keys: tuple[tuple[str, Expression], ...], facts: Facts, *, cells_max: int, values_max: int = LISTED_MAX
    ) -> PossibleGroups:
        """Every possible group. Without keys: the one empty group, or none where no row can meet the conditions."""
        asked = (source, keys, _Limits(cells_max, values_max))
        if asked not in self._found:
            self._found[asked] = _possible(source, keys, facts, asked[2], self._evaluate, self._public)
        return self._found[asked]


@dataclass(frozen=True, slots=True)
class _Limits:
    """Most groups, and most values of one key, that are listed."""

    cells: int
    values: int

    def of_cells(self, count: int | None, *, is_list: bool = False) -> PossibleGroups:
        """No groups, because their total is too large."""
        return PossibleGroups(None, too_many=TooManyGroups("", count, self.cells, "known_cells_max", is_list))

    def of_values(self, name: str, key: Domain, count: int | None) -> PossibleGroups:
        """No groups, because one key has too many values."""
        return PossibleGroups(None, too_many=TooManyGroups(name, count, self.values, "key_values_max", _is_list(key)))


def _is_list(domain: Domain) -> bool:
    """Whether its values are a list that was declared."""
    return isinstance(domain, TextDomain) and domain.values is not None


def _possible(
    source: Relation, keys: Sequence[tuple[str, Expression]], facts: Facts, limits: _Limits, evaluate: Evaluate, public: PublicRows
) -> PossibleGroups:
    causes: frozenset[str] = frozenset()

    def values_of(rows: PossibleRows, value: Expression) -> tuple[Value, ...] | None:
        nonlocal causes
        found = _Enumeration(rows, (("", value),), evaluate, _Limits(limits.values + 1, limits.values)).groups()
        causes |= found.causes
        return None if found.groups is None else tuple(value for (value,) in found.groups)

    found: dict[Group, None] = {}
    names = [f"the key {key.name!r}" if isinstance(key, Column) else f"key {number} of GROUP BY" for number, (_, key) in enumerate(keys, 1)]
    for rows in RelationReader(facts, public, values_of).read(source):
        parts = [substituted(key, rows.columns) for _, key in keys]
        one = _Enumeration(rows, tuple(zip(names, parts, strict=True)), evaluate, limits).groups()
        causes |= one.causes
        if one.groups is None:
            return one
        found |= dict.fromkeys(one.groups)
        if len(found) > limits.cells:
            return limits.of_cells(None)
    columns = shape_of(source, facts).columns
    places = [place_in(domain_of(key, columns)) for _, key in keys]
    ordered = sorted(found, key=lambda group: tuple(place(value) for place, value in zip(places, group, strict=True)))
    return PossibleGroups(tuple(ordered), causes)


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
    """The values of keys over one origin of rows."""

    def __init__(self, rows: PossibleRows, keys: tuple[tuple[str, Expression], ...], evaluate: Evaluate, limits: _Limits) -> None:
        self._names, self._keys = tuple(name for name, _ in keys), tuple(key for _, key in keys)
        self._evaluate, self._limits = evaluate, limits
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
        """Whether it can be evaluated: the engine compares identifiers in its own way."""
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

    def _uses(self, name: str) -> list[TimestampUse]:
        """How keys use a column of timestamps, and the conditions that can be kept; a raw key cannot be listed."""
        found: list[TimestampUse] = []
        for key in self._keys:
            if name in columns_of(key):
                found.append(uses_of(key, name) or TimestampUse(1))
        for condition in list(self._conditions):
            if name in columns_of(condition):
                uses = uses_of(condition, name)
                if uses is None:
                    self._causes.add("a condition on moments that cannot be listed")
                    self._conditions.remove(condition)
                else:
                    found.append(uses)
        return found

    def groups(self) -> PossibleGroups:
        """All combinations of the keys' values."""
        if any(listing is not None and not len(listing) for listing in self._listings.values()):
            return PossibleGroups((), frozenset(self._causes))
        alone: dict[int, tuple[Value, ...]] = {}
        clusters: list[_Cluster] = []
        too_many: list[PossibleGroups] = []
        for number, key in enumerate(self._keys):
            blocks = self._blocks_of(key)
            if blocks is None or self._combinations(blocks) > ENUMERATED_MAX:
                domain = domain_of(key, self._domains)
                values, size = listed(domain, self._limits.values), size_of(domain)
                if size is None:
                    return PossibleGroups(None)
                if values is None:
                    too_many.append(self._limits.of_values(self._names[number], domain, size))
                    continue
                alone[number] = values
                if columns_of(key):
                    self._causes.add("a key over values that cannot be listed")
            else:
                self._merged(clusters, _Cluster(blocks, [number]))
        self._add_conditions(clusters)
        lists: list[tuple[list[int], list[Group]]] = [([number], [(value,) for value in values]) for number, values in alone.items()]
        for cluster in clusters:
            found = self._of_cluster(cluster)
            if isinstance(found, PossibleGroups):
                too_many.append(found)
            else:
                lists.append((cluster.keys, found))
        if too_many:  # a declared list comes first: it decides the outcome of the statement
            return next((each for each in too_many if each.too_many is not None and each.too_many.is_list), too_many[0])
        many = math.prod(len(found) for _, found in lists)
        if many > self._limits.cells:
            is_list = len(self._keys) == 1 and _is_list(domain_of(self._keys[0], self._domains))
            return self._limits.of_cells(many, is_list=is_list)
        order = [number for numbers, _ in lists for number in numbers]
        places = [order.index(number) for number in range(len(self._keys))]
        whole = (tuple(value for part in parts for value in part) for parts in product(*(found for _, found in lists)))
        return PossibleGroups(tuple(tuple(group[place] for place in places) for group in whole), frozenset(self._causes))

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
        """Each condition with the keys and conditions that share its columns, those over fewest values first."""
        listed = [(blocks, condition) for condition in self._conditions if (blocks := self._blocks_of(condition)) is not None]
        if len(listed) < len(self._conditions):
            self._causes.add("a condition on values that cannot be listed")
        for blocks, condition in sorted(listed, key=lambda each: self._combinations(each[0])):
            whole = blocks.union(*(cluster.blocks for cluster in clusters if cluster.blocks & blocks))
            if self._combinations(whole) > ENUMERATED_MAX:
                self._causes.add("a condition on too many combinations of values")
            else:
                self._merged(clusters, _Cluster(set(blocks), [], [condition]))

    def _of_cluster(self, cluster: _Cluster) -> list[Group] | PossibleGroups:
        """The groups of a cluster, or the limit that they exceed."""
        keys = tuple(self._keys[number] for number in cluster.keys)
        if len(keys) == 1 and not cluster.conditions and (plain := self._plain_values(cluster.keys[0])) is not None:
            return self._few(cluster.keys[0], plain, counted=True) if isinstance(plain, list) else plain
        blocks = tuple(self._blocks[number] for number in sorted(cluster.blocks))
        if not all(len(block) for block in blocks):
            return []
        names = {name for block in blocks for name in block.names}
        domains = {name: self._domains[name] for name in names}
        limit = min(self._limits.values + 1, self._limits.cells) if len(keys) == 1 else self._limits.cells
        found = self._evaluate(Combinations(blocks, domains, tuple(cluster.conditions), keys), limit)
        if len(keys) == 1:
            return self._few(cluster.keys[0], found, counted=False)
        return self._limits.of_cells(None) if found is None else found

    def _few(self, number: int, found: list[Group] | None, *, counted: bool) -> list[Group] | PossibleGroups:
        """The values of one key, unless they are too many; ``counted``: these are all of them."""
        limits = self._limits
        if found is not None and (len(found) <= limits.values or len(found) - ((None,) in found) <= limits.values):
            return found
        domain, many = domain_of(self._keys[number], self._domains), None
        if found is not None and counted:
            many = len(found) - ((None,) in found)
        if found is None and limits.cells <= limits.values:
            return limits.of_cells(None, is_list=len(self._keys) == 1 and _is_list(domain))
        return limits.of_values(self._names[number], domain, many)

    def _plain_values(self, number: int) -> list[Group] | PossibleGroups | None:
        """The values of a key that are known without evaluating anything, or the limit that they exceed."""
        key = self._keys[number]
        if isinstance(key, Literal):
            return [(key.value,)]
        if isinstance(key, Column):
            block = self._blocks[self._block_of[key.name]]
            listing = block.columns[block.names.index(key.name)]
            domain, null = self._domains[key.name], [None] if listing.null else []
            if isinstance(listing.values, range) and len(listing.values) > self._limits.values:
                return self._limits.of_values(self._names[number], domain, len(listing.values))
            values = [grid_value(value, domain) for value in listing.values] if isinstance(listing.values, range) else listing.values
            return [(value,) for value in dict.fromkeys((*values, *null))]
        return None
