"""How much work a plan is, as far as public facts tell: what decides when its answer leaves, and whether somebody should wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lapwing.errors import CallRefused
from lapwing.kernel.certify import Certified, CertifiedQuery
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import DiscoveredGroups, UnitNorms
from lapwing.kernel.workload import unit_bytes, unit_work
from lapwing.statements import scans_of


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What declarations and bought statistics say of it, not what is there."""

    rows: int
    """Rows that are read, once for each thing that is measured of them."""
    cells: int
    """Cells that get noise."""
    unit_bytes: int = 0
    """Most that an engine has to keep of the rows of one unit, joined and repeated as the statement does: 0 for most units, and so not in
    ``rows``; but whether there is such a unit must not show."""
    unit_parts: int = 0
    """Most parts of expressions that are computed for the rows of one unit."""
    loss: int = 0
    """What is charged for it, in ledger units: known before."""

    def __add__(self, other: CostEstimate) -> CostEstimate:
        return CostEstimate(
            self.rows + other.rows,
            self.cells + other.cells,
            self.unit_bytes + other.unit_bytes,
            self.unit_parts + other.unit_parts,
            self.loss + other.loss,
        )


Hold = Callable[[], None]
"""Comes back when what was done may be seen: called after rows were read and before the ledger, and so anybody, hears what came of it."""
BeforeCharge = Callable[[CostEstimate], Hold]
"""Told what is going to be done, just before it is charged; what it raises is raised, and nothing is charged."""
OfCharge = Callable[[int], None]
"""Told the number of a charge that was made, or that paid for what was found."""
_watching: ContextVar[BeforeCharge | None] = ContextVar("lapwing_before_charge", default=None)

_noting: ContextVar[OfCharge | None] = ContextVar("lapwing_of_charge", default=None)


@contextmanager
def told_before_charges(watch: BeforeCharge) -> Iterator[None]:
    """What is asked inside, in this thread or task, tells ``watch`` before each charge. A question that is answered free tells nothing."""
    token = _watching.set(watch)
    try:
        yield
    finally:
        _watching.reset(token)


@contextmanager
def told_of_charges(note: OfCharge) -> Iterator[None]:
    """What is asked inside tells ``note`` the number of each charge as soon as it is reserved, before a row is read."""
    token = _noting.set(note)
    try:
        yield
    finally:
        _noting.reset(token)


def noted(charge_id: int) -> None:
    """Tell whoever wants to be told the number of a charge."""
    note = _noting.get()
    if note is not None:
        note(charge_id)


@contextmanager
def also_told_before_charges(watch: BeforeCharge) -> Iterator[None]:
    """The same, beside whoever is told already: both may refuse, and what was done is seen when both agree."""
    first = _watching.get()

    def both(work: CostEstimate) -> Hold:
        own = watch(work)
        other = _at_once if first is None else first(work)

        def hold() -> None:
            own()
            other()

        return hold

    with told_before_charges(both):
        yield


def announced(certified: Certified, rows: Callable[[str], float]) -> Hold:
    """Tell whoever wants to be told that this plan is about to be charged, and hear from them when its outcome may be seen.

    ``rows`` says how many rows a table has, as far as that is public.
    """
    watch = _watching.get()
    return _at_once if watch is None else watch(public_work(certified, rows))


def only_free(_: CostEstimate) -> Hold:
    """For asking only for what was answered before."""
    raise CallRefused("not-answered-before", "this was not answered before; asking it would cost something", hint="explain tells what")


def _at_once() -> None:
    pass


def public_work(certified: Certified, rows: Callable[[str], float]) -> CostEstimate:
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
