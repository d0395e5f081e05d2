"""What a guarantee means to a person: belief, attacks and harm, in numbers.

All functions are exact. A guarantee bounds what *any* attacker can do, whatever they know, because it holds for every set of outputs; the
functions that take two laws compute what the *best* attacker does, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeVar

from lapwing.errors import LapwingError
from lapwing.kernel.numbers import require_exact
from lapwing.theory.divergences import require_law
from lapwing.theory.guarantees import Guarantee

Output = TypeVar("Output", bound=Hashable)
Record = TypeVar("Record", bound=Hashable)
Report = TypeVar("Report", bound=Hashable)


def posterior_max(*, prior: Fraction, odds: Fraction) -> Fraction:
    """The most that someone who believed a fact about a unit with probability ``prior`` can believe after the output, under pure privacy.

    Bayes: the odds of the two worlds are multiplied by the likelihood ratio, which is at most ``odds``. The worlds must be neighbours:
    learning that smoking harms changes beliefs about a smoker by any amount, whether or not the smoker took part.
    """
    require_exact(prior, odds)
    _require_probability(prior)
    if odds <= 0:
        raise LapwingError("theory-argument", "odds must be positive")
    return prior * odds / (prior * odds + 1 - prior)


def posterior_min(*, prior: Fraction, odds: Fraction) -> Fraction:
    """The lowest possible belief after the output: the likelihood ratio is at least ``1 / odds``."""
    require_exact(odds)
    if odds <= 0:
        raise LapwingError("theory-argument", "odds must be positive")
    return posterior_max(prior=prior, odds=1 / Fraction(odds))


def posterior(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction], *, prior: Fraction, output: Output) -> Fraction:
    """The belief in the first world after this output, given the belief before. Exact Bayes on finite laws."""
    require_law(first)
    require_law(second)
    require_exact(prior)
    _require_probability(prior)
    here, there = prior * first.get(output, Fraction(0)), (1 - prior) * second.get(output, Fraction(0))
    if here + there == 0:
        raise LapwingError("theory-argument", "there is no belief after an output of probability 0")
    return here / (here + there)


def advantage_max(guarantee: Guarantee) -> Fraction:
    """The most by which the power of a test can exceed its false-alarm rate: ``(odds - 1 + 2 delta) / (odds + 1)``.

    From both directions of the definition: ``TPR <= odds FPR + delta`` and ``1 - FPR <= odds (1 - TPR) + delta``; add and solve. Also a
    bound on the total variation, and attained by randomised response (Kairouz, Oh and Viswanath 2015).
    """
    return min(Fraction(1), (guarantee.odds - 1 + 2 * guarantee.delta) / (guarantee.odds + 1))


def power_max(guarantee: Guarantee, *, false_alarm: Fraction) -> Fraction:
    """The most that a test for a unit's presence can detect at this false-alarm rate: one minus :func:`trade_off`."""
    return 1 - trade_off(guarantee, false_alarm=false_alarm)


def trade_off(guarantee: Guarantee, *, false_alarm: Fraction) -> Fraction:
    """The smallest share of misses at this false-alarm rate: ``max(0, 1 - delta - odds a, (1 - delta - a) / odds)``.

    Equivalent to the guarantee (Wasserman and Zhou 2010; Dong, Roth and Su 2022, proposition 2.4).
    """
    require_exact(false_alarm)
    _require_probability(false_alarm)
    kept = 1 - guarantee.delta
    return max(Fraction(0), kept - guarantee.odds * false_alarm, (kept - false_alarm) / guarantee.odds)


def roc(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction]) -> list[tuple[Fraction, Fraction]]:
    """Corners (false-alarm rate, power) of the best tests of "the second law" against "the first": from (0, 0) to (1, 1), concave. Exact.

    By the lemma of Neyman and Pearson the best tests accuse on the outputs of largest ``Q(o) / P(o)``; between corners, randomise.
    """
    require_law(first)
    require_law(second)
    outputs = [o for o in {**first, **second} if first.get(o, 0) or second.get(o, 0)]

    def ratio(output: Output) -> tuple[bool, Fraction]:
        p, q = first.get(output, Fraction(0)), second.get(output, Fraction(0))
        return (p == 0, Fraction(0) if p == 0 else q / p)

    corners = [(Fraction(0), Fraction(0))]
    for output in sorted(outputs, key=ratio, reverse=True):
        alarms, power = corners[-1]
        corners.append((alarms + first.get(output, Fraction(0)), power + second.get(output, Fraction(0))))
    return corners


def power_of(first: Mapping[Output, Fraction], second: Mapping[Output, Fraction], *, false_alarm: Fraction) -> Fraction:
    """The power of the best test of the second law against the first at this false-alarm rate. Exact."""
    require_exact(false_alarm)
    _require_probability(false_alarm)
    corners = roc(first, second)
    best = max(power for alarms, power in corners if alarms <= false_alarm)
    for (left, low), (right, high) in pairwise(corners):
        if left <= false_alarm < right:
            best = max(best, low + (high - low) * (false_alarm - left) / (right - left))
    return best


def in_words(guarantee: Guarantee, *, units: int | None = None) -> str:
    """The guarantee as sentences with numbers, for a person who is asked to take part. Figures are rounded against the guarantee.

    ``units``: the public number of units, if there is one; if delta is so large that whole records could leak, the text warns of it.
    """
    coin = posterior_max(prior=Fraction(1, 2), odds=guarantee.odds)
    rare = posterior_max(prior=Fraction(1, 100), odds=guarantee.odds)
    power = power_max(guarantee, false_alarm=Fraction(1, 20))
    sentences = [
        f"Nothing becomes more than {_up(guarantee.odds, 2)} times as likely because you take part.",
        f"Someone who thought it as likely as not that you are in the data can become at most {_up(100 * coin, 1)} % sure;"
        f" someone who gave it 1 %, at most {_up(100 * rare, 1)} %.",
        f"An attacker who wrongly accuses 5 % of the absent finds at most {_up(100 * power, 1)} % of the present.",
    ]
    if guarantee.delta:
        sentences.append(
            "The first two of these limits may fail, in ways the guarantee does not describe, with a probability of at most"
            f" {_scientific_up(guarantee.delta)}; the third includes that."
        )
    if units is not None and 10 * units * guarantee.delta >= 1:
        sentences.append(
            f"Warning: with {units} people this delta is no small number. A mechanism that publishes the whole record of one person,"
            " chosen at random, would pass."
        )
    return " ".join(sentences)


def _up(x: Fraction, digits: int) -> str:
    scaled = -(-x.numerator * 10**digits // x.denominator)
    whole, rest = divmod(scaled, 10**digits)
    return f"{whole:,}.{rest:0{digits}d}"


def _scientific_up(x: Fraction) -> str:
    """One digit and a power of ten, rounded up."""
    power = 0
    while x * 10**power < 1:
        power += 1
    digit = -(-x.numerator * 10**power // x.denominator)
    return f"{digit}e-{power}" if digit < 10 else f"1e-{power - 1}"


def one_record_law(database: Sequence[Record]) -> dict[Record, Fraction]:
    """The mechanism that publishes the whole record of one unit, chosen at random: (0, 1/n)-private, and no protection at all.

    Replacing a record moves a mass of 1/n, so the total variation between neighbours is 1/n and epsilon may be 0. This is why delta must be
    far below 1/n, and why Lapwing warns from ``1 / (10 n)`` on.
    """
    if not database:
        raise LapwingError("theory-argument", "the database must have at least one record")
    law: dict[Record, Fraction] = {}
    for record in database:
        law[record] = law.get(record, Fraction(0)) + Fraction(1, len(database))
    return law


def expectation(law: Mapping[Output, Fraction], utility: Callable[[Output], Fraction]) -> Fraction:
    """The expected utility of the output. Exact."""
    require_law(law)
    return sum((probability * utility(output) for output, probability in law.items()), Fraction(0))


def expectation_range(expected: Fraction, guarantee: Guarantee, *, utility_max: Fraction) -> tuple[Fraction, Fraction]:
    """Where the expected utility of a neighbour lies: ``(E - delta M) / odds <= E' <= odds E + delta M``, for utilities from 0 to M.

    With delta = 0 this is the expected-utility form of privacy, ``exp(-epsilon) E <= E' <= exp(epsilon) E``: the expected harm (or gain)
    of a person from the consequences of the output changes at most by this factor (Dwork and Roth 2014, section 2.3). The utility may be
    anyone's, and need not be known.
    """
    require_exact(expected, utility_max)
    if not 0 <= expected <= utility_max:
        raise LapwingError("theory-argument", "the expected utility must be between 0 and utility_max")
    slack = guarantee.delta * utility_max
    return max(Fraction(0), (expected - slack) / guarantee.odds), min(Fraction(utility_max), guarantee.odds * expected + slack)


def gain_from_lying(
    law_of: Mapping[Report, Mapping[Output, Fraction]], *, truth: Report, utility: Callable[[Output], Fraction]
) -> Fraction:
    """The most that an agent gains in expected utility by a false report, with everyone else's reports fixed. Exact.

    A mechanism that is (ln odds)-private for replacing a report is ``(odds - 1)``-approximately truthful for utilities in [0, 1]; that is
    ``exp(epsilon) - 1 <= 2 epsilon`` for epsilon at most 1 (McSherry and Talwar 2007).
    """
    honest = expectation(law_of[truth], utility)
    return max(expectation(law, utility) for law in law_of.values()) - honest


def lying_bound(guarantee: Guarantee) -> Fraction:
    """The most that lying can gain under this guarantee, for utilities in [0, 1]: :func:`advantage_max`, and so at most ``odds - 1 +
    delta``."""
    return advantage_max(guarantee)


def _require_probability(probability: Fraction) -> None:
    if not 0 <= probability <= 1:
        raise LapwingError("theory-argument", "a probability must be between 0 and 1")
