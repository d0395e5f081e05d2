"""Running a mechanism, within what was charged.

It takes no permit, so code that answers statements may not import it (an import contract enforces that): it is for lessons, for audits, and
for data that no ledger protects.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias, assert_never, overload

from lapwing.errors import LapwingError, Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account, Cost
from lapwing.kernel.event import Event
from lapwing.kernel.laws import DiscreteLaplace, loss
from lapwing.kernel.noise.additive import add_noise
from lapwing.mechanisms.above_threshold import AboveThreshold, SparseVector, require_stream
from lapwing.mechanisms.additive import GaussianMechanism, Integers, LaplaceMechanism, clamped, require_integers
from lapwing.mechanisms.key_set import KeySet, require_counts
from lapwing.mechanisms.noisy_max import NoisyMax
from lapwing.mechanisms.quantiles import QuantileSelection
from lapwing.mechanisms.response import Answers, RandomisedResponse
from lapwing.mechanisms.sampling.response import respond
from lapwing.mechanisms.sampling.selection import OneOfMany, draw_quantile, draw_selection, draw_top_k
from lapwing.mechanisms.selection import ExponentialMechanism, PermuteAndFlip
from lapwing.mechanisms.top_k import TopK

Additive: TypeAlias = LaplaceMechanism | GaussianMechanism
Selection: TypeAlias = OneOfMany | TopK | QuantileSelection
Drawable: TypeAlias = Additive | RandomisedResponse | AboveThreshold | SparseVector | KeySet | Selection
"""Every mechanism that can be run."""


def require_paid(event: Event, account: Account, charged: Cost) -> None:
    """Raise ``noise-undercharged`` if a run costs more than was charged for it."""
    cost = event.cost(account)
    if cost.loss > charged.loss or cost.delta > charged.delta:
        raise LapwingError("noise-undercharged", "the noise would cost more than was charged")


@overload
def draw(mechanism: Additive | RandomisedResponse, value: int, *, account: Account, charged: Cost) -> int: ...
@overload
def draw(mechanism: Additive | RandomisedResponse, value: tuple[int, ...], *, account: Account, charged: Cost) -> tuple[int, ...]: ...
@overload
def draw(mechanism: AboveThreshold, value: tuple[int, ...], *, account: Account, charged: Cost) -> int | None: ...
@overload
def draw(mechanism: SparseVector, value: tuple[int, ...], *, account: Account, charged: Cost) -> tuple[int, ...]: ...
@overload
def draw(mechanism: KeySet, value: tuple[int, ...], *, account: Account, charged: Cost) -> frozenset[int]: ...
@overload
def draw(mechanism: OneOfMany | QuantileSelection, value: Sequence[int], *, account: Account, charged: Cost) -> int: ...
@overload
def draw(mechanism: TopK, value: Sequence[int], *, account: Account, charged: Cost) -> tuple[int, ...]: ...
def draw(mechanism: Drawable, value: Any, *, account: Account, charged: Cost) -> Any:
    """One run of the mechanism on this value: an output drawn from ``mechanism.law`` of that value, at the mechanism's own scale.

    Pre: neighbours move the value by no more than the mechanism's sensitivities say, and ``charged`` is already in the ledger (or there is
    no ledger). A run that costs more than ``charged`` raises ``noise-undercharged`` before anything is drawn.
    """
    require_paid(mechanism.event(), account, charged)
    (output,) = _runs(mechanism, value, times=1, account=account)
    return output


def draw_many(mechanism: Drawable, value: Any, *, times: int, account: Account, charged: Cost) -> list[Any]:
    """This many independent runs on the same value, each paid for: ``charged`` covers them all. For audits, which need a million of them.

    The noise of all runs is drawn in a few calls where the sampler can; the law of the outputs is that of as many calls of :func:`draw`.
    """
    if type(times) is not int or times < 0:
        raise Refused("mechanism-invalid", "the number of runs must be a non-negative integer")
    one = mechanism.event().cost(account)
    if times * one.loss > charged.loss or times * one.delta > charged.delta:
        raise LapwingError("noise-undercharged", "the noise would cost more than was charged")
    return _runs(mechanism, value, times=times, account=account)


def _runs(mechanism: Drawable, value: Any, *, times: int, account: Account) -> list[Any]:
    match mechanism:
        case LaplaceMechanism():
            return [clamped(noisy, mechanism.clamp) for noisy in _with_noise(mechanism, value, times=times, account=account)]
        case GaussianMechanism():
            return _with_noise(mechanism, value, times=times, account=account)
        case RandomisedResponse():
            return _responses(mechanism, value, times=times)
        case AboveThreshold():
            runs = _streams(SparseVector(mechanism, starts=1), value, times=times)
            return [indices[0] if indices else None for indices in runs]
        case SparseVector():
            return _streams(mechanism, value, times=times)
        case KeySet():
            return _key_sets(mechanism, value, times=times, account=account)
        case ExponentialMechanism() | PermuteAndFlip() | NoisyMax():
            return draw_selection(mechanism, value, times=times, account=account, charged=_paid(mechanism, account))
        case TopK():
            return draw_top_k(mechanism, value, times=times, account=account, charged=_paid(mechanism, account))
        case QuantileSelection():
            return draw_quantile(mechanism, value, times=times, account=account, charged=_paid(mechanism, account))
        case never:
            assert_never(never)


def _paid(mechanism: Drawable, account: Account) -> Fraction:
    """A lower bound of the charge for one run, which :func:`~lapwing.kernel.noise.additive.add_noise` checks."""
    return Fraction(mechanism.event().cost(account).loss, LOSS_UNITS)


def _with_noise(mechanism: Additive, value: Integers, *, times: int, account: Account) -> list[Any]:
    # The price of Laplace noise depends on l1 alone, that of Gaussian noise on l2 alone.
    l1, l2_squared = (mechanism.l1, 0) if isinstance(mechanism, LaplaceMechanism) else (0, mechanism.l2_squared)
    vector = require_integers(value)
    charged = _paid(mechanism, account)
    noisy = add_noise(mechanism.noise(), vector * times, account=account, l1=l1, l2_squared=l2_squared, charged=charged)
    return _chunks(noisy, len(vector), times) if isinstance(value, tuple) else noisy


def _chunks(noisy: list[int], length: int, times: int) -> list[tuple[int, ...]]:
    return [tuple(noisy[run * length : (run + 1) * length]) for run in range(times)]


def _responses(mechanism: RandomisedResponse, value: Answers, *, times: int) -> list[Any]:
    # On either account the sampler's map is held against the event's epsilon, from which rho was derived.
    answers = mechanism.require_answers(value)
    responses = respond(answers * times, categories=mechanism.categories, truth=mechanism.truth, epsilon_charged=mechanism.epsilon())
    return _chunks(responses, len(answers), times) if isinstance(value, tuple) else responses


def _key_sets(mechanism: KeySet, value: tuple[int, ...], *, times: int, account: Account) -> list[frozenset[int]]:
    occurring = [(key, units) for key, units in enumerate(require_counts(value)) if units]
    counts, moved = [units for _, units in occurring], mechanism.moved()
    noisy = add_noise(mechanism.noise, counts * times, account=account, l1=moved, l2_squared=moved, charged=_paid(mechanism, account))
    return [
        frozenset(key for (key, _), count in zip(occurring, run, strict=True) if count >= mechanism.threshold)
        for run in _chunks(noisy, len(occurring), times)
    ]


def _streams(mechanism: SparseVector, value: tuple[int, ...], *, times: int) -> list[tuple[int, ...]]:
    """The noise of each value and of each start's threshold is fresh, whether drawn beforehand or when it is needed."""
    above, stream = mechanism.above, require_stream(value)
    noisy = _compared(stream * times, above.scale_query, shift=above.query_shift())
    thresholds = _compared((above.threshold,) * (mechanism.starts * times), above.scale_threshold, shift=above.sensitivity)
    return [
        _first_above(values, starts)
        for values, starts in zip(_chunks(noisy, len(stream), times), _chunks(thresholds, mechanism.starts, times), strict=True)
    ]


def _first_above(values: tuple[int, ...], thresholds: tuple[int, ...]) -> tuple[int, ...]:
    indices: list[int] = []
    for index, noisy in enumerate(values):
        if len(indices) < len(thresholds) and noisy >= thresholds[len(indices)]:
            indices.append(index)
    return tuple(indices)


def _compared(values: tuple[int, ...], scale: Fraction, *, shift: int) -> list[int]:
    """The values with noise, for comparison. The loss of a movement by ``shift`` is a part of the event paid for the whole stream."""
    law = DiscreteLaplace(scale)
    cost = loss(law, Account.PURE, l1=shift, l2_squared=0)
    # on zeros, because values may be larger than noise can be added to
    noise = add_noise(law, [0] * len(values), account=Account.PURE, l1=shift, l2_squared=0, charged=cost)
    return [value + drawn for value, drawn in zip(values, noise, strict=True)]


class SparseSession:
    """A sparse vector that takes one value after another. It is paid for as a whole before the first, so stopping early saves nothing.

    Pre: the values keep to the mechanism's sensitivity; each may depend on the answers so far. ``charged`` is already in the ledger (or
    there is no ledger); if it is less than the whole costs, the session does not open (``noise-undercharged``).
    """

    __slots__ = ("_mechanism", "_starts_left", "_threshold")

    def __init__(self, mechanism: SparseVector, *, account: Account, charged: Cost) -> None:
        require_paid(mechanism.event(), account, charged)
        self._mechanism = mechanism
        self._starts_left = mechanism.starts
        self._start()

    def __repr__(self) -> str:
        # without the noisy threshold, which must stay secret
        return f"SparseSession(starts_left={self._starts_left})"

    @property
    def ended(self) -> bool:
        """Whether all starts are used up, so that the session answers nothing more."""
        return self._starts_left == 0

    def ask(self, value: int) -> bool:
        """Whether the noisy value reaches the noisy threshold. True uses up a start; after the last one it refuses (``session-ended``)."""
        if self.ended:
            raise Refused("session-ended", "the sparse vector has used up its starts", hint="open another session, which is charged again")
        above = self._mechanism.above
        (noisy,) = _compared(require_stream((value,)), above.scale_query, shift=above.query_shift())
        if noisy < self._threshold:
            return False
        self._starts_left -= 1
        if not self.ended:
            self._start()
        return True

    def _start(self) -> None:
        above = self._mechanism.above
        (self._threshold,) = _compared((above.threshold,), above.scale_threshold, shift=above.sensitivity)
