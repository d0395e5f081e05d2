"""What an analyst imports: open a data set, ask SQL, see the price first.

import lapwing as lw
ds = lw.open("clinic/lapwing.toml")
answer = ds.ask("SELECT region, COUNT(*) AS n FROM patients GROUP BY region", epsilon=0.5)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from lapwing.answers.answer import Answer
from lapwing.answers.data_set_view import data_set_html
from lapwing.answers.display.budget import BudgetView
from lapwing.asking.ask import ask, describe, explain, replay
from lapwing.asking.explaining.explanation import Explanation
from lapwing.asking.options import AskArguments, AskOptions, AskRequest, Number, with_options
from lapwing.catalog import Settings
from lapwing.curator.curator import Curator, Entry, Progress, silent
from lapwing.errors import LedgerError
from lapwing.owner.quick_catalogue import quick_catalogue
from lapwing.receipts import Receipt

if TYPE_CHECKING:
    from lapwing.asking.release_purchase import ReleasePlan
    from lapwing.asking.weights_session import WeightsSession
    from lapwing.releases.released import Release
    from lapwing.releases.request import QuantileRequest


class DataSet:
    """An opened data set, for asking. ``analyst`` is who asks, unless a question says otherwise.

    Without it, on a ledger that knows analysts it is the user of the operating system, and on a local ledger ``local``.
    """

    def __init__(self, curator: Curator, *, analyst: str | None = None) -> None:
        self.curator = curator
        self.analyst = curator.analyst_default if analyst is None else analyst

    @property
    def name(self) -> str:
        """The id of the data set."""
        return self.curator.declaration.dataset.id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<DataSet {self.name!r}>"

    def _repr_html_(self) -> str:
        return data_set_html(self.name, self.budget, self.describe())

    def close(self) -> None:
        """Give up files and connections."""
        self.curator.close()

    def prepare(
        self,
        *,
        progress: Progress = silent,
        override: str = "",
        accept_losses: bool = False,
        new_version: bool = False,
        profiles: bool = False,
        correct: tuple[date, date] | None = None,
    ) -> int:
        """Write a new version from the sources: the owner's act. Returns its number.

        Where the catalogue changed in nothing but budget, defaults and descriptions, these are applied, and the version that there is stays
        and is returned, unless ``new_version``. ``profiles`` makes one and buys the profiles of its tables anew, for
        ``statistics_share`` of the budget. Refused (``rows-lost``) where more than a tenth of a table would be left out, or
        more than half of the values of a column would become NULL, unless ``accept_losses``.

        A data set with blocks of time grows by the blocks that have closed since, and its version and answers stay; ``correct`` reads the
        rows of the blocks of these days, first and last, again.
        """
        return self.curator.prepare(
            progress=progress,
            override=override,
            accept_losses=accept_losses,
            new_version=new_version,
            profiles=profiles,
            correct=correct,
        )

    @with_options
    def ask(self, sql: str, *, analyst: str | None = None, request_id: str | None = None, **options: Unpack[AskArguments]) -> Answer:
        """Answer a statement. ``epsilon`` is for the whole statement; asking the same again on the same version is free.

        ``dialect`` is how the statement is spelt, ``duckdb`` or ``postgres``, and what ``/`` of integers means in it.

        With ``scaled_groups``, counts and sums by group are measured at a low bound and scaled up to a total measured at its own: a model,
        said in the answer (docs/how-to/scaled-groups.md).

        ``reuse`` says whether a release that was bought before may answer, for nothing: ``auto`` (where it is at least as accurate as what
        would be bought; the default), ``never``, or ``only`` (whatever no release covers is refused, ``release-not-covered``).

        ``EXPLAIN PRIVACY``, ``SHOW PRIVACY BUDGET`` and ``WITH PRIVACY (..)`` are read here too, and must agree with the arguments.
        """
        return ask(self.curator, self._request(sql, analyst, options, request_id))

    @with_options
    def replay(self, sql: str, *, analyst: str | None = None, **options: Unpack[AskArguments]) -> Answer:
        """The answer to what was answered before; refused (``not-answered-before``) where it would cost something."""
        return replay(self.curator, self._request(sql, analyst, options))

    @with_options
    def explain(self, sql: str, *, analyst: str | None = None, **options: Unpack[AskArguments]) -> Explanation:
        """What asking would cost, how it would be bounded and how accurate it would be. Free; touches no data.

        With or without ``EXPLAIN PRIVACY`` before the statement.
        """
        return explain(self.curator, self._request(sql, analyst, options))

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that statements may use: protected ones, then public ones."""
        declaration = self.curator.declaration
        return (*(table.name for table in declaration.tables), *(table.name for table in declaration.public_tables))

    def describe(self, table: str | None = None) -> Answer:
        """What is declared of a table's columns: types, values and bounds, and what each means; without a table, which tables there are.

        Free, and the same as asking ``DESCRIBE table`` or ``SHOW TABLES``.
        """
        return describe(self.curator, table)

    @property
    def budget(self) -> BudgetView:
        """What the data set has and has spent."""
        return self.curator.budget()

    def history(self, *, limit: int = 100) -> tuple[Entry, ...]:
        """Newest entries of the ledger first."""
        return self.curator.history(limit=limit)

    def receipt(self, charge: int) -> Receipt:
        """The signed receipt of a charge; ``receipt-missing`` where there is none."""
        found = self.curator.receipt_of_charge(charge)
        if found is None:
            raise LedgerError("receipt-missing", "charges of this data set are not signed")
        return found

    def release(
        self,
        *wanted: QuantileRequest,
        name: str,
        table: str | None = None,
        epsilon: Number | None = None,
        rows_per_unit: int | None = None,
        shares: Sequence[Number] = (),
        analyst: str | None = None,
    ) -> ReleasePlan:
        """Plan a release of one table: :class:`Marginals`, :class:`RangeTree`, :class:`SyntheticTable`, or several; ``run()`` charges once.

        ``epsilon`` is for the whole release. ``rows_per_unit``: for how many rows one unit counts, where it may have many. ``shares``: how
        the price is divided among several parts, in any measure; equally where nothing is said.
        """
        from lapwing.asking.release_purchase import plan_release

        return plan_release(
            self.curator,
            wanted,
            name=name,
            table=table,
            epsilon=epsilon,
            rows_per_unit=rows_per_unit,
            shares=shares,
            analyst=self._who(analyst),
        )

    def releases(self, *, analyst: str | None = None) -> tuple[Release, ...]:
        """What was released of the newest version, newest first. Free."""
        from lapwing.asking.release_purchase import releases

        return releases(self.curator, analyst=self._who(analyst))

    def release_named(self, name: str, *, analyst: str | None = None) -> Release:
        """The newest release of this name. Free."""
        from lapwing.asking.release_purchase import release_named

        return release_named(self.curator, name, analyst=self._who(analyst))

    def weights(
        self,
        *columns: str,
        alpha: Number,
        starts: int,
        epsilon: Number | None = None,
        table: str | None = None,
        bins: Mapping[str, int | Sequence[int | float | str | Fraction]] | None = None,
        start: Release | None = None,
        rows: int | None = None,
        rows_per_unit: int | None = None,
        confidence: Number | None = None,
        analyst: str | None = None,
    ) -> WeightsSession:
        """Plan a session of private multiplicative weights: counts over these columns, most of them without a price of their own.

        ``with`` opens it and charges for all ``starts``; each fresh count uses one up. Every count is right within ``alpha`` of all rows,
        in ``confidence`` of all cases. ``epsilon`` is the most that it may cost. Weights start from nothing known, or from a release.
        ``rows`` says about how many rows there are, where that is neither declared nor bought. A session is expensive: see ``explain()``
        first.
        """
        from lapwing.asking.weights_session import plan_weights

        return plan_weights(
            self.curator,
            columns,
            alpha=alpha,
            starts=starts,
            epsilon=epsilon,
            table=table,
            bins=bins,
            start=start,
            rows=rows,
            rows_per_unit=rows_per_unit,
            confidence=confidence,
            analyst=self._who(analyst),
        )

    def _request(self, sql: str, analyst: str | None, options: AskArguments, request_id: str | None = None) -> AskRequest:
        return AskRequest(sql, AskOptions(**options), self._who(analyst), request_id)

    def _who(self, analyst: str | None) -> str:
        return self.analyst if analyst is None else analyst

    def request(self, share: float, *, reason: str = "") -> int:
        """Ask the owners for this share of the whole budget, from 0 to 1; the number of the proposal."""
        from lapwing.owner.policies import request_share

        return request_share(self.curator, self.analyst, share, reason=reason)

    def check(self) -> list[str]:
        """What the owner should look at again in the catalogue."""
        return [str(problem) for problem in self.curator.declaration.warnings]


def open(
    path: str | Path,
    *,
    unit: str | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    epsilon: str | int | float = 1,
    delta: str | int | float = "2^-40",
    rows_max: int | None = None,
    analyst: str | None = None,
    settings: Settings | None = None,
    home: str | Path | None = None,
) -> DataSet:
    """Open a data set by its catalogue file, or the directory that holds it.

    With ``unit`` and ``columns``, ``path`` is a Parquet or CSV file: its catalogue is written to ``<file>.lapwing/`` and the data set is
    prepared, the first time; after that the same words open it again, with the same budget. ``analyst`` is who asks (see ``DataSet``).
    """
    if unit is None:
        return DataSet(Curator(path, settings=settings, home=home), analyst=analyst)
    catalogue = quick_catalogue(Path(path), unit=unit, columns=columns or {}, epsilon=epsilon, delta=delta, rows_max=rows_max)
    opened = DataSet(Curator(catalogue, settings=settings, home=home), analyst=analyst)
    if not opened.curator.engine.versions():
        opened.prepare()
    return opened


__all__ = ["DataSet", "Number", "open"]
