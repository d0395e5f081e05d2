"""Record and replay: a deterministic check of code that draws noise step by step.

A program is written against :class:`Noise`: each call states the exact value, the scale and the claimed sensitivity. The recorder runs the
program on one data set and records every call with its noisy output; then it replays the program on a neighbour, where each call returns
the recorded output. Given the same outputs, the program must make the same calls and return the same result, and its exact values may
differ by no more than it claimed. Then, by adaptive composition, it reveals no more than the sum of the recorded events. Proof:
``docs/proofs/audit.md``.

    recording = record(program, data)
    breaches = replay(program, neighbour, recording)      # empty if no breach was found
    recording.cost()                                      # what it claims to cost
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Generic, Protocol, TypeAlias, TypeVar, assert_never

from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.kernel.event import Event
from lapwing.mechanisms.above_threshold import AboveThreshold
from lapwing.mechanisms.additive import GaussianMechanism, LaplaceMechanism
from lapwing.mechanisms.draw import draw
from lapwing.mechanisms.selection import ExponentialMechanism

Data = TypeVar("Data")
Result = TypeVar("Result")

Mechanism: TypeAlias = LaplaceMechanism | GaussianMechanism | ExponentialMechanism | AboveThreshold
Values: TypeAlias = int | tuple[int, ...]
Noisy: TypeAlias = int | tuple[int, ...] | None


class Noise(Protocol):
    """All operations of a recorded program on private values. Sensitivities are claims about neighbours, which the replay checks."""

    def laplace(self, value: Values, *, scale: Fraction, l1: int) -> Values:
        """The value with discrete Laplace noise; between neighbours it moves by at most ``l1`` in all."""
        ...

    def gaussian(self, value: Values, *, scale: Fraction, l2_squared: int) -> Values:
        """The value with discrete Gaussian noise; between neighbours it moves by at most ``l2_squared`` in squared L2 norm."""
        ...

    def select(self, scores: tuple[int, ...], *, scale: Fraction, score_sensitivity: int) -> int:
        """The index of a good score, by the exponential mechanism; between neighbours no score moves by more than the sensitivity."""
        ...

    def first_above(
        self, values: tuple[int, ...], *, threshold: int, scale_threshold: Fraction, scale_query: Fraction, sensitivity: int
    ) -> int | None:
        """The index of the first value that reaches the threshold, with noise on both; None if there is none."""
        ...


Program: TypeAlias = Callable[[Data, Noise], Result]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a program: a mechanism with its public parameters, the exact value, and the output."""

    mechanism: Mechanism
    value: Values
    output: Noisy


@dataclass(frozen=True, slots=True)
class Recording(Generic[Result]):
    """A run of a program. For test data only: it contains exact values."""

    calls: tuple[RecordedCall, ...]
    result: Result

    def cost(self) -> Event:
        """The sum of the events of all calls: the claimed cost of the whole run, by adaptive composition."""
        events = [call.mechanism.event() for call in self.calls]
        epsilons, rhos = [event.epsilon for event in events], [event.rho for event in events]
        return Event(
            epsilon=None if None in epsilons else sum((amount for amount in epsilons if amount is not None), Fraction(0)),
            rho=None if None in rhos else sum((amount for amount in rhos if amount is not None), Fraction(0)),
            delta=sum((event.delta for event in events), Fraction(0)),
        )


@dataclass(frozen=True, slots=True)
class Breach:
    """A difference on a neighbour that the program's claims do not allow."""

    call: int
    """Index of the call, from 0; the number of calls if the breach concerns the result."""
    what: str


class _Ended(BaseException):
    """Stops a replay that has left the recorded path; a BaseException, so that handlers in the program do not catch it."""


@dataclass(slots=True)
class _Tape:
    """Runs mechanisms: draws and records, or compares and returns the recorded outputs."""

    recorded: tuple[RecordedCall, ...] | None
    calls: list[RecordedCall] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)

    def laplace(self, value: Values, *, scale: Fraction, l1: int) -> Values:
        output = self._play(LaplaceMechanism(scale, l1), value)
        assert output is not None
        return output

    def gaussian(self, value: Values, *, scale: Fraction, l2_squared: int) -> Values:
        output = self._play(GaussianMechanism(scale, l2_squared), value)
        assert output is not None
        return output

    def select(self, scores: tuple[int, ...], *, scale: Fraction, score_sensitivity: int) -> int:
        output = self._play(ExponentialMechanism(scale, score_sensitivity, len(scores)), scores)
        assert isinstance(output, int)
        return output

    def first_above(
        self, values: tuple[int, ...], *, threshold: int, scale_threshold: Fraction, scale_query: Fraction, sensitivity: int
    ) -> int | None:
        output = self._play(AboveThreshold(sensitivity, threshold, scale_threshold, scale_query), values)
        assert not isinstance(output, tuple)
        return output

    def _play(self, mechanism: Mechanism, value: Values) -> Noisy:
        if self.recorded is None:
            output = _drawn(mechanism, value)
            self.calls.append(RecordedCall(mechanism, value, output))
            return output
        number = len(self.calls)
        if number >= len(self.recorded):
            self._breach("a call that the recorded run did not make")
            raise _Ended
        before = self.recorded[number]
        if mechanism != before.mechanism:
            self._breach(f"different mechanism or parameters: {type(mechanism).__name__} after {type(before.mechanism).__name__}")
            raise _Ended
        moved = _moved_too_far(mechanism, before.value, value)
        if moved is not None:
            self._breach(moved)
        self.calls.append(RecordedCall(mechanism, value, before.output))
        return before.output

    def _breach(self, what: str) -> None:
        self.breaches.append(Breach(len(self.calls), what))


def _drawn(mechanism: Mechanism, value: Values) -> Noisy:
    charged = mechanism.event().cost(Account.APPROXIMATE)
    match mechanism:
        case LaplaceMechanism() | GaussianMechanism():
            return draw(mechanism, value, account=Account.APPROXIMATE, charged=charged)
        case ExponentialMechanism():
            return draw(mechanism, _tuple(value), account=Account.APPROXIMATE, charged=charged)
        case AboveThreshold():
            return draw(mechanism, _tuple(value), account=Account.APPROXIMATE, charged=charged)
        case never:
            assert_never(never)


def _tuple(value: Values) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


def _moved_too_far(mechanism: Mechanism, before: Values, after: Values) -> str | None:
    """Why a movement of the exact value breaks the claim; None if it does not."""
    left, right = _tuple(before), _tuple(after)
    if len(left) != len(right) or isinstance(before, tuple) != isinstance(after, tuple):
        return "the number of exact values depends on the data"
    moves = [abs(a - b) for a, b in zip(left, right, strict=True)]
    match mechanism:
        case LaplaceMechanism(l1=claimed):
            measured, norm = sum(moves), "l1"
        case GaussianMechanism(l2_squared=claimed):
            measured, norm = sum(move * move for move in moves), "l2_squared"
        case ExponentialMechanism(score_sensitivity=claimed):
            measured, norm = max(moves, default=0), "score_sensitivity"
        case AboveThreshold(sensitivity=claimed):
            measured, norm = max(moves, default=0), "sensitivity"
        case never:
            assert_never(never)
    return None if measured <= claimed else f"the exact value moved by {measured}, claimed {norm} {claimed}"


def record(program: Program[Data, Result], data: Data) -> Recording[Result]:
    """Run a program with real noise and record every call."""
    tape = _Tape(None)
    result = program(data, tape)
    return Recording(tuple(tape.calls), result)


def replay(program: Program[Data, Result], neighbour: Data, recording: Recording[Result]) -> list[Breach]:
    """Run a program on a neighbour with the recorded outputs; returns every breach of its claims.

    Pre: the program depends only on its data and the noise: no clock, no other randomness. Post: an empty list means that on this pair,
    along this one path, control flow, parameters, number of calls, movements and result were as claimed.
    """
    tape = _Tape(recording.calls)
    try:
        result = program(neighbour, tape)
    except _Ended:
        return tape.breaches
    except LapwingError as error:
        return [*tape.breaches, Breach(len(tape.calls), f"an error that the recorded run did not raise: {error.code}")]
    if len(tape.calls) < len(recording.calls):
        tape._breach("the program stopped before a call that the recorded run made")
    elif result != recording.result:
        tape._breach("different results from the same noisy outputs: the result depends on exact values")
    return tape.breaches


def check(program: Program[Data, Result], data: Data, neighbours: Sequence[Data], *, recordings: int = 1) -> list[Breach]:
    """Record ``recordings`` runs on ``data``, and replay each on every neighbour."""
    breaches: list[Breach] = []
    for _ in range(recordings):
        recording = record(program, data)
        for neighbour in neighbours:
            breaches += replay(program, neighbour, recording)
    return breaches
