"""Random statements over groups within units: GROUP BY and DISTINCT by the unit and more, or by an identifier that one unit owns.

For tests only, hence seeded. Everything else about the statements is that of ``RelationalQueries``.
"""

from __future__ import annotations

from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, RealDomain, TextDomain, union, with_null
from tests.support.sql_pieces import Generated
from tests.support.sql_relations import Item, RelationalQueries, SomeRows


class InsideQueries(RelationalQueries):
    """A source of statements each of which has such groups somewhere."""

    def statement(self) -> Generated:
        """One over rows; what is done with answers is not looked at again."""
        self._names, self._with = 0, []
        self._made_inside = 0
        while True:
            source = self._source()
            if self._made_inside:
                return self._queries.about(source)
            self._names, self._with = 0, []

    def _item(self, depth: int) -> Item:
        if depth == 0 or self._rng.random() < 0.25:
            return super()._item(depth)
        before = len(self._with)
        made = self._rng.choice([self._grouped_inside, self._grouped_inside, self._distinct_inside, self._set_inside])(depth - 1)
        if made is None:
            del self._with[before:]
            return self._table(self._rng.choice(sorted(self._facts.tables)))
        self._made_inside += 1
        return made

    def _grouped_inside(self, depth: int) -> Item | None:
        """Aggregates over the rows of a unit that agree in more than the unit."""
        rows = self._rows(depth, joins=self._rng.choice((0, 0, 1)))
        owners = self._owners(rows)
        if not owners:
            return None
        columns = rows.columns()
        keys = self._keys_inside(columns)
        if not keys and set(owners) == {"u"}:
            return None
        made: dict[str, tuple[str, Domain]] = {"n": ("COUNT(*)", IntegerDomain(0, 9, nullable=False))}
        for number, name in enumerate(self._rng.sample(sorted(columns), min(2, len(columns)))):
            kept = f" FILTER (WHERE {self._queries.condition(columns, 1)})" if self._rng.random() < 0.3 else ""
            feature = self._feature(name, columns[name], kept, columns)
            if feature is not None:
                made[f"f{number}"] = feature
        having = f" HAVING COUNT(*) {self._rng.choice(('> 1', '<= 2', '<> 3'))}" if self._rng.random() < 0.3 else ""
        everything = {**{alias: sql for alias, (sql, _) in owners.items()}, **{alias: sql for alias, (sql, _) in keys.items()}}
        group = self._rng.choice((list(everything), list(everything.values()), [str(i + 1) for i in range(len(everything))]))
        listed = [*(f"{sql} AS {alias}" for alias, sql in everything.items()), *(f"{sql} AS {alias}" for alias, (sql, _) in made.items())]
        text = f"SELECT {', '.join(listed)} FROM {rows.sql}{self._where(rows)} GROUP BY {', '.join(group)}{having}"
        return self._placed_inside(text, owners, {**keys, **made})

    def _distinct_inside(self, depth: int) -> Item | None:
        """Combinations of columns, each once per unit."""
        rows = self._rows(depth, joins=self._rng.choice((0, 0, 1)))
        owners = self._owners(rows)
        if not owners:
            return None
        keys = self._keys_inside(rows.columns())
        if not keys:
            return None  # nothing could be asked about such rows
        everything = [f"{sql} AS {alias}" for alias, (sql, _) in (*owners.items(), *keys.items())]
        self._rng.shuffle(everything)
        return self._placed_inside(f"SELECT DISTINCT {', '.join(everything)} FROM {rows.sql}{self._where(rows)}", owners, keys)

    def _set_inside(self, depth: int) -> Item | None:
        """UNION, EXCEPT or INTERSECT of rows with their unit."""
        parts = [self._rows(depth, joins=self._rng.choice((0, 0, 1))) for _ in range(2)]
        word = self._rng.choice(("UNION", "EXCEPT", "INTERSECT"))
        pairs = [
            (a, b, union(domain, other))
            for a, domain in parts[0].columns().items()
            for b, other in parts[1].columns().items()
            if type(domain) is type(other) and not isinstance(domain, RealDomain)
            if word == "UNION" or not (domain.nullable or other.nullable)
        ]
        if not pairs or any(part.unit is None for part in parts):
            return None
        chosen = [(self._name("k"), *pair) for pair in self._rng.sample(pairs, min(2, len(pairs)))]
        selects = []
        for side, part in enumerate(parts):
            listed = [f"{part.unit} AS u", *(f"{each[side + 1]} AS {each[0]}" for each in chosen)]
            selects.append(f"SELECT {', '.join(listed)} FROM {part.sql}{self._where(part)}")
        sql, name = self._placed(f" {word} ".join(selects))
        return Item(sql, name, {alias: domain for alias, _, _, domain in chosen}, "u")

    def _placed_inside(self, text: str, owners: dict[str, tuple[str, tuple[str, str] | None]], made: dict[str, tuple[str, Domain]]) -> Item:
        sql, name = self._placed(text)
        origins = {alias: origin for alias, (_, origin) in owners.items() if origin is not None}
        return Item(sql, name, {alias: domain for alias, (_, domain) in made.items()}, "u" if "u" in owners else None, origins)

    def _owners(self, rows: SomeRows) -> dict[str, tuple[str, tuple[str, str] | None]]:
        """What says whose a group is: the unit, a key on the way to it, or both; by the name it gets, with the column it is."""
        found: dict[str, tuple[str, tuple[str, str] | None]] = {}
        if rows.unit is not None:
            found["u"] = (rows.unit, None)
        owned = {*self._references, *self._references.values()}
        keys = [(f"{i.name}.{column}", origin) for i in rows.items if i.certain for column, origin in i.origins.items() if origin in owned]
        if keys and (not found or self._rng.random() < 0.3):
            found[self._name("o")] = self._rng.choice(keys)
        if len(found) == 2 and self._rng.random() < 0.5:
            del found["u"]
        return found

    def _keys_inside(self, columns: dict[str, Domain]) -> dict[str, tuple[str, Domain]]:
        """Up to two keys, as they are or computed."""
        usable = [name for name, domain in columns.items() if not isinstance(domain, RealDomain) or domain.steps is not None]
        found: dict[str, tuple[str, Domain]] = {}
        for name in self._rng.sample(sorted(usable), min(self._rng.choice((0, 1, 1, 2)), len(usable))):
            domain, alias = columns[name], self._name("k")
            if isinstance(domain, DateDomain) and self._rng.random() < 0.5:
                found[alias] = (f"DATE_TRUNC('month', {name})", with_null(DateDomain(domain.lo - 31, domain.hi), True))
            elif isinstance(domain, IntegerDomain | TextDomain | BooleanDomain) and self._rng.random() < 0.2:
                found[alias] = (f"({self._queries.condition(columns, 1)})", BooleanDomain())
            else:
                found[alias] = (name, domain)
        return found
