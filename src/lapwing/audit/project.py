"""Audit of a declared data set: its catalogue, its plans and its public interface, on invented neighbours.

Two data sets that differ in one invented unit are prepared in a temporary directory, each with its own ledger. A statement is planned as
for the owner's analysts. Then its certificate is audited three times: against the exact difference of the two results, on many releases of
them, and on actual answers, through :class:`lapwing.data_set.DataSet` and its ledger.
"""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from lapwing.answers.answer import Answer
from lapwing.asking.ask import plan_of
from lapwing.asking.options import exact_number
from lapwing.audit.auditor import CONFIDENCE, Audit, audit_draws
from lapwing.audit.claims import Claim
from lapwing.audit.invented import BACKGROUND_UNITS, InventedCatalogue, Rows, Style, invent, write_rows
from lapwing.audit.oracle import ExactResult
from lapwing.audit.plans import Pair, audit_pair, claim_of_plan, pair_of
from lapwing.curator.curator import CATALOGUE_FILE, Curator
from lapwing.data_set import DataSet
from lapwing.engines.state import StateDirectory
from lapwing.errors import LapwingError
from lapwing.kernel.neighbours import Neighbours

EPSILON_THROWAWAY = 1_000_000
"""The budget of a throwaway data set: enough for every question of an audit."""

ASKS_DEFAULT = 100
ASKS_MAX = 1_000
"""Most answers requested on each side: a statement that discovers keys can be asked 1,024 times before delta is spent."""

_PRICE_STEP = Fraction(1, 10**9)
"""A repeated question is free and returns the same answer, so each question costs this much less than the one before."""
_CELLS_MAX = 64


@dataclass(frozen=True, slots=True)
class StatementAudit:
    """The findings about one statement."""

    statement: str
    share: float
    """The exact loss of the worst invented neighbours, as a share of the certificate's charge."""
    released: Audit
    """The audit of many releases of both exact results."""
    asked: Audit | None
    """The audit of answers requested one by one; None if none were requested."""

    @property
    def caught(self) -> bool:
        """Whether the certificate is refuted, with certainty (by exact figures) or at the stated confidence."""
        return self.share > 1 or self.released.caught or (self.asked is not None and self.asked.caught)


@contextmanager
def invented_project(catalogue: Path) -> Iterator[InventedProject]:
    """Prepare invented neighbours for a catalogue; everything is deleted at the end."""
    path = catalogue / CATALOGUE_FILE if catalogue.is_dir() else catalogue
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as opened:
        base = Path(scratch)
        source, text = invent(path, base / "scout", epsilon=EPSILON_THROWAWAY)
        # released values are public: with them the planner decides as for the owner's analysts
        statistics = StateDirectory(path.resolve().parent).statistics()
        sets = []
        for number, units in enumerate(_variants(source)):
            directory = base / str(number)
            directory.mkdir()
            (directory / CATALOGUE_FILE).write_text(text, encoding="utf-8")
            write_rows(source.declaration, units, directory)
            _share_ranking_key(directory)
            data_set = DataSet(opened.enter_context(Curator(directory, home=base / f"home-{number}")))
            data_set.prepare()
            version = {"version": data_set.curator.facts.version}
            kept = {table: {**figures, **version} if "profiles" in figures else figures for table, figures in statistics.items()}
            data_set.curator.state.save_statistics(kept)
            sets.append(data_set)
        yield InventedProject(sets)


def _share_ranking_key(directory: Path) -> None:
    """Give neighbours the same ranking key, because its choice does not depend on the rows. It need not be secret here."""
    store = StateDirectory(directory)
    store.directory.mkdir(mode=0o700)
    (store.directory / "ranking.key").write_bytes(bytes(range(32)))


def _variants(source: InventedCatalogue) -> Iterator[list[Rows]]:
    """The background alone, then with one more unit of each style and in each place."""
    background = [source.unit_rows(unit, Style.PLAIN, seed=1) for unit in range(1, BACKGROUND_UNITS + 1)]
    yield background
    for place in source.places():
        for style in (Style.HIGH, Style.LOW, Style.SPREAD):
            yield [*background, source.unit_rows(BACKGROUND_UNITS + 1, style, seed=2, only=place)]


class InventedProject:
    """Invented data sets for one catalogue: the first without the audited unit, each of the others with it, in a different style."""

    def __init__(self, sets: Sequence[DataSet]) -> None:
        self.sets = sets

    def tables(self) -> list[str]:
        """Names of the protected tables."""
        return [table.name for table in self.sets[0].curator.declaration.tables]

    def neighbours(self) -> list[tuple[DataSet, DataSet]]:
        """Pairs with one unit removed; for bounded neighbours also with one unit replaced."""
        without, *others = self.sets
        pairs = [(other, without) for other in others]
        if self.sets[0].curator.declaration.dataset.neighbours is Neighbours.BOUNDED:
            pairs += [(others[i], others[j]) for i in range(len(others)) for j in range(i)]
        return pairs

    def audit(
        self,
        statement: str,
        *,
        epsilon: str | Fraction | None = None,
        samples: int,
        asks: int = ASKS_DEFAULT,
        tests: int = 4,
        confidence: Fraction = CONFIDENCE,
    ) -> StatementAudit:
        """Audit one statement. ``tests`` is the number of tests that share the confidence: four for each statement."""
        if not 0 <= asks <= ASKS_MAX:
            raise LapwingError("audit-invalid", f"an audit can request 0 to {ASKS_MAX} answers on each side")
        default = self.sets[0].curator.declaration.defaults.epsilon
        price = default if epsilon is None else exact_number(epsilon, "epsilon")
        measured = [self._measure(data_set, statement, price) for data_set in self.sets]
        if len({(side.certified.digest, side.certified.cost) for side in measured}) != 1:
            raise LapwingError("audit-plans-differ", "two neighbours have different plans or prices for the same statement")
        results = dict(zip(map(id, self.sets), measured, strict=True))
        pairs = [(pair_of(results[id(left)], results[id(right)]), (left, right)) for left, right in self.neighbours()]
        worst, sides = max(pairs, key=lambda found: found[0].worth)
        released = audit_pair(worst, samples=samples, tests=tests, confidence=confidence)
        asked = self._asked(worst, sides, statement, price, asks=asks, tests=tests, confidence=confidence) if asks else None
        return StatementAudit(statement, worst.share, released, asked)

    def _measure(self, data_set: DataSet, statement: str, price: Fraction) -> ExactResult:
        _, planned = plan_of(data_set.curator, statement, price)
        return ExactResult(planned.certified, data_set.curator.snapshot.run(planned.certified))

    def _asked(
        self, pair: Pair, sides: tuple[DataSet, DataSet], statement: str, price: Fraction, *, asks: int, tests: int, confidence: Fraction
    ) -> Audit:
        answers = [
            [data_set.ask(statement, epsilon=price * (1 - (number + 1) * _PRICE_STEP)) for number in range(asks)] for data_set in sides
        ]
        outputs = comparable(answers)
        claim: Claim = claim_of_plan(pair.left.certified)
        return audit_draws(lambda side, runs: outputs[side][:runs], [(0, 1)], claim, samples=asks, tests=tests, confidence=confidence)


def comparable(answers: Sequence[Sequence[Answer]]) -> list[list[Hashable]]:
    """Answers as lists of numbers of equal length: all numbers if all have equally many, else the number of rows and column sums."""
    numbers = [[_numbers(answer) for answer in side] for side in answers]
    sizes = {sum(map(len, columns)) for side in numbers for columns in side}
    if len(sizes) == 1 and max(sizes) <= _CELLS_MAX:
        return [[tuple(value for column in columns for value in column) for columns in side] for side in numbers]
    return [
        [(float(answer.table.num_rows), *(sum(column) for column in columns)) for answer, columns in zip(side, own_numbers, strict=True)]
        for side, own_numbers in zip(answers, numbers, strict=True)
    ]


def _numbers(answer: Answer) -> list[list[float]]:
    """The aggregate columns, with NULL as 0."""
    return [[float(value or 0) for value in answer.table.column(name).to_pylist()] for name in answer.intervals]
