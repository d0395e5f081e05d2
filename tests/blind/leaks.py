"""Leaks that somebody could build in: each lets out something of the rows that no noise hides and nobody pays for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow.parquet as pq
import pytest

from lapwing.answers.answer import Answer
from lapwing.asking import release_purchase as releasing
from lapwing.contribution.rows_per_unit import fitted
from lapwing.curator import charged_release
from lapwing.curator import curator as life
from lapwing.curator.curator import Curator
from lapwing.curator.stored_tables import encode
from lapwing.engines.duckdb.snapshot import DuckDBSnapshot
from lapwing.kernel import count_stream, release
from lapwing.kernel.exact import Exact
from lapwing.kernel.noise.entropy import random_below

Plant = Callable[[pytest.MonkeyPatch], None]


def _rows(curator: Curator, table: str) -> int:
    return int(pq.read_metadata(curator.path.parent / f"{table}.parquet").num_rows)


def _total(exact: Exact) -> int:
    return sum(sum(vector) for table in exact._tables for vector in table._vectors)


def bars_are_as_long_as_the_exact_sum(patch: pytest.MonkeyPatch) -> None:
    noisy = release._noisy

    def planted(certified: Any, how: Any, values: Any) -> Any:
        return replace(noisy(certified, how, values), rounding=Fraction(sum(values)))

    patch.setattr(release, "_noisy", planted)


def a_note_says_that_a_group_is_empty(patch: pytest.MonkeyPatch) -> None:
    dense = release.dense_vectors
    made: Any = Answer.__init__
    empty = [0]

    def counted(*terms: Any) -> Any:
        vectors = dense(*terms)
        empty[0] = sum(vector.count(0) for vector in vectors)
        return vectors

    def planted(self: Answer, *terms: Any, **words: Any) -> None:
        *others, notes = terms
        made(self, *others, (*notes, "a group has no rows") if empty[0] else notes, **words)

    patch.setattr(release, "dense_vectors", counted)
    patch.setattr(Answer, "__init__", planted)


def a_release_is_planned_for_the_rows_there_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(releasing, "rows_of", lambda curator, table: float(_rows(curator, table)))


def bounds_follow_from_the_exact_histogram(patch: pytest.MonkeyPatch) -> None:
    real = Curator.contributions

    def planted(self: Curator) -> Any:
        known = self.state.statistics()
        shares = {table: _rows(self, table) for table in known}
        return {
            table: fitted(item["edges"], [shares[table] >> place for place, _ in enumerate(item["noisy"])], item["deviation"])
            for table, item in known.items()
        } or real(self)

    patch.setattr(Curator, "contributions", planted)


def groups_are_in_the_order_of_their_rows(patch: pytest.MonkeyPatch) -> None:
    real = release._release_query

    def planted(certified: Any, how: Any, table: Any) -> Any:
        found = real(certified, how, table)
        if not found.groups or found.threshold is not None or not table._vectors:
            return found
        rows = dict(zip(table._groups, table._vectors[0], strict=True))
        order = sorted(range(len(found.groups)), key=lambda place: -rows.get(found.groups[place], 0))
        columns = tuple(replace(column, values=tuple(column.values[place] for place in order)) for column in found.columns)
        return replace(found, groups=tuple(found.groups[place] for place in order), columns=columns)

    patch.setattr(release, "_release_query", planted)


def a_sum_of_nothing_is_a_fault(patch: pytest.MonkeyPatch) -> None:
    real = DuckDBSnapshot.run

    def planted(self: DuckDBSnapshot, certified: Any) -> Exact:
        exact = real(self, certified)
        if any(table._vectors for table in exact._tables) and _total(exact) == 0:
            raise ValueError("nothing to add up")
        return exact

    patch.setattr(DuckDBSnapshot, "run", planted)


def what_counts_few_rows_is_kept_as_free(patch: pytest.MonkeyPatch) -> None:
    real, seen = release.release, list[int]()

    def watched(certified: Any, permit: Any, exact: Exact, **words: Any) -> Any:
        seen.append(_total(exact))
        return real(certified, permit, exact, **words)

    def planted(*terms: Any, **words: Any) -> Any:
        answered = charged_release.charged_release(*terms, **words)
        return replace(answered, free=seen[-1] < 100)

    patch.setattr(charged_release, "release", watched)
    patch.setattr(life, "charged_release", planted)


def a_stream_stays_near_where_nothing_is_counted(patch: pytest.MonkeyPatch) -> None:
    real = count_stream.CountStream.tell

    def planted(self: Any, condition: Any, exact: Exact, *, near: int) -> int | None:
        told = real(self, condition, exact, near=near)
        return told if _total(exact) else None

    patch.setattr(count_stream.CountStream, "tell", planted)


def a_quantile_of_nothing_is_the_lower_end(patch: pytest.MonkeyPatch) -> None:
    real = release._chosen

    def planted(certified: Any, groups: Any, rows: Any, facts: Any) -> Any:
        chosen = real(certified, groups, rows, facts)
        ends = [certified.mechanism.lower if not rows.get(group) else None for group in groups]
        values = tuple(tuple(v if end is None else end for v, end in zip(column, ends, strict=True)) for column in chosen.values)
        return replace(chosen, values=values)

    patch.setattr(release, "_chosen", planted)


def the_stored_answer_has_room_for_the_groups_there_are(patch: pytest.MonkeyPatch) -> None:
    real, seen = release.release, list[int]()

    def watched(certified: Any, permit: Any, exact: Exact, **words: Any) -> Any:
        seen.append(sum(len(table._groups) for table in exact._tables))
        return real(certified, permit, exact, **words)

    patch.setattr(charged_release, "release", watched)
    patch.setattr(charged_release, "encode", lambda released: encode(released) + b" " * seen[-1])


def error_bars_are_rounded_at_random(patch: pytest.MonkeyPatch) -> None:
    """It lets nothing out, but a draw that no door knows could."""
    noisy = release._noisy

    def planted(certified: Any, how: Any, values: Any) -> Any:
        return replace(noisy(certified, how, values), rounding=Fraction(random_below(2)))

    patch.setattr(release, "_noisy", planted)


LEAKS: tuple[Plant, ...] = (
    bars_are_as_long_as_the_exact_sum,
    a_note_says_that_a_group_is_empty,
    a_release_is_planned_for_the_rows_there_are,
    bounds_follow_from_the_exact_histogram,
    groups_are_in_the_order_of_their_rows,
    a_sum_of_nothing_is_a_fault,
    what_counts_few_rows_is_kept_as_free,
    a_stream_stays_near_where_nothing_is_counted,
    a_quantile_of_nothing_is_the_lower_end,
    the_stored_answer_has_room_for_the_groups_there_are,
    error_bars_are_rounded_at_random,
)
