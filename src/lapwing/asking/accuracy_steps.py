"""The next step towards an accuracy target: serve an existing release, buy a pilot, or buy the answer at the least price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from lapwing.asking.accuracy_targets import PlanAt, Target, fits, is_direct, is_informative, met_by
from lapwing.asking.price_solver import Base, least_loss
from lapwing.kernel.accounting import LOSS_UNITS
from lapwing.kernel.release import Released
from lapwing.planning.planned import PlannedStatement
from lapwing.statements import PostProcess


@dataclass(frozen=True, slots=True)
class PriorRelease:
    """A release of the same statement on the same version, and the loss charged for it, in ledger units."""

    released: Released
    loss: int
    pilot: bool = False
    for_target: bool = False
    """It was bought for this target or a harder one."""
    planned: PlannedStatement | None = None
    """Its own plan, if it is needed to bound the clipping bias."""
    own: bool = False
    """It was bought by an earlier sending of the present request."""


@dataclass(frozen=True, slots=True)
class Serve:
    """An existing release is accurate enough: free."""

    before: PriorRelease


@dataclass(frozen=True, slots=True)
class Pilot:
    """The size of the values is still unknown: buy this pilot first. Its price is public and does not depend on the values."""

    planned: PlannedStatement
    number: int


@dataclass(frozen=True, slots=True)
class Buy:
    """Buy the plan of least price that reaches the target."""

    planned: PlannedStatement


@dataclass(frozen=True, slots=True)
class Unreachable:
    """No known price reaches the target. ``best`` is the best available release."""

    best: PriorRelease | None


Step = Serve | Pilot | Buy | Unreachable


def next_step(plan_at: PlanAt, post: PostProcess, target: Target, before: Sequence[PriorRelease], pilots: Sequence[Fraction]) -> Step:
    """The next step for a target, from public facts and earlier releases; ``pilots`` are the losses of the pilots, in their order.

    The outcome depends on rows only through ``before``: two data sets with the same declarations and the same releases get the same.
    """
    reference = plan_at(pilots[0])
    known = sorted((item for item in before if fits(reference, item.released)), key=lambda item: -item.loss)
    direct = is_direct(reference, post, target)
    best = known[0] if known else None
    for item in known:
        if item is not best and not item.for_target:
            continue
        # A purchase for the target has its own share of the failure probability; other releases have that of pilots.
        confidence = target.confidence if direct or item.for_target else target.sure
        good, all_bars = met_by(item.planned or reference, item.released, post, target, confidence=confidence)
        if good == all_bars > 0:
            return Serve(item)
    if not direct and (best is None or not is_informative(best.planned or reference, post, target, best.released)):
        bought = sum(item.pilot for item in known)
        for number, loss in enumerate(pilots, start=1):
            if number > bought and (best is None or loss * LOSS_UNITS > best.loss):
                return Pilot(plan_at(loss), number)
    solved = least_loss(plan_at, post, target, None if best is None else Base(best.released, best.planned))
    return Unreachable(best) if solved is None else Buy(solved)
