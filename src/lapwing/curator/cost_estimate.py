"""The amount of work of a plan, estimated from public facts. It decides when the answer is sent and whether a client should wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lapwing.errors import CallRefused
from lapwing.kernel.certify import Certified, CertifiedQuery
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import DiscoveredGroups, UnitNorms
from lapwing.kernel.workload import scans_of, unit_bytes, unit_work


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The work estimated from declarations and bought statistics, not from rows."""

    rows: int
    """Rows that are read, counted once for each measure."""
    cells: int
    """Cells that get noise."""
    unit_bytes: int = 0
    """Most rows of one unit that an engine has to keep, joined and repeated as in the statement. Most units have 0, so they are not in
    ``rows``; but the existence of such a unit must not be observable."""
    unit_parts: int = 0
    """Most parts of expressions that are computed for the rows of one unit."""
    loss: int = 0
    """The charge in ledger units, which is known beforehand."""

    def __add__(self, other: CostEstimate) -> CostEstimate:
        return CostEstimate(
            self.rows + other.rows,
            self.cells + other.cells,
            self.unit_bytes + other.unit_bytes,
            self.unit_parts + other.unit_parts,
            self.loss + other.loss,
        )


Hold = Callable[[], None]
"""Returns when the outcome may become visible: it is called after rows were read and before the ledger records the outcome."""
BeforeCharge = Callable[[CostEstimate], Hold]
"""Called with the estimate just before the charge. If it raises, the exception propagates and nothing is charged."""
OfCharge = Callable[[int], None]
"""Called with the number of a charge that was made, or that paid for an answer found in the ledger."""
_watching: ContextVar[BeforeCharge | None] = ContextVar("lapwing_before_charge", default=None)

_noting: ContextVar[OfCharge | None] = ContextVar("lapwing_of_charge", default=None)


@contextmanager
def on_charge(watch: BeforeCharge) -> Iterator[None]:
    """Call ``watch`` before each charge of this thread or task inside the context. A free answer makes no call."""
    token = _watching.set(watch)
    try:
        yield
    finally:
        _watching.reset(token)


@contextmanager
def on_reservation(note: OfCharge) -> Iterator[None]:
    """Call ``note`` with the number of each charge inside the context as soon as it is reserved, before a row is read."""
    token = _noting.set(note)
    try:
        yield
    finally:
        _noting.reset(token)


def note_reservation(charge_id: int) -> None:
    """Pass the number of a charge to the registered ``note``."""
    note = _noting.get()
    if note is not None:
        note(charge_id)


@contextmanager
def also_on_charge(watch: BeforeCharge) -> Iterator[None]:
    """Add a watcher to the present one: both may refuse, and the outcome becomes visible when both holds have returned."""
    first = _watching.get()

    def both(work: CostEstimate) -> Hold:
        own = watch(work)
        other = _at_once if first is None else first(work)

        def hold() -> None:
            own()
            other()

        return hold

    with on_charge(both):
        yield


def announce_charge(certified: Certified, rows: Callable[[str], float]) -> Hold:
    """Announce to the registered watcher that this plan is about to be charged, and return its hold on the outcome.

    ``rows`` gives the public number of rows of a table.
    """
    watch = _watching.get()
    return _at_once if watch is None else watch(estimate_cost(certified, rows))


def only_free(_: CostEstimate) -> Hold:
    """A watcher that admits stored answers only."""
    raise CallRefused("not-answered-before", "this was not answered before; asking it would cost something", hint="explain tells what")


def _at_once() -> None:
    pass


def estimate_cost(certified: Certified, rows: Callable[[str], float]) -> CostEstimate:
    """The work of a plan over tables of so many rows."""
    price = CostEstimate(0, 0, loss=certified.cost.loss)
    return sum((_of_query(query, certified.facts, rows) for query in certified.queries), price)


def _of_query(certified: CertifiedQuery, facts: Facts, rows: Callable[[str], float]) -> CostEstimate:
    query, shape = certified.query, certified.shape
    source = query.source.source if isinstance(query.source, UnitNorms) else query.source
    read = sum(rows(scan.table) for scan in scans_of(source))
    measured = len(query.vectors) + len(query.quantiles) + (certified.keys is not None)
    groups = 0 if isinstance(query.groups, DiscoveredGroups) else query.groups.cells  # how many are found is not public
    return CostEstimate(round(read * (1 + measured)), groups * measured, unit_bytes(query, shape, facts), unit_work(query, shape))
