"""Noisy counts and sums that are less private than claimed."""

from __future__ import annotations

from fractions import Fraction

from lapwing.kernel.neighbours import Neighbours
from lapwing.mechanisms.mechanism import require_decay
from lapwing.theory.broken.exact_sums import clamped, point_mass
from lapwing.theory.broken.specimen import Specimen
from lapwing.theory.databases import Histogram, Universe, neighbouring_pairs, size
from lapwing.theory.finite import FiniteMechanism, composed, post_processed
from lapwing.theory.sensitivity import Norm, local_sensitivity
from lapwing.theory.verify import Claim

ROWS_MAX = 3
"""All databases of at most this many rows are compared."""

_LOW, _HIGH = -4, 7
"""Published values are clamped to this range, which is wider than the range of every count and sum here."""


def _noisy(database: Histogram, decay: Fraction) -> dict[int, Fraction]:
    """The number of rows of the first record, with noise."""
    return clamped(database[0], decay, low=_LOW, high=_HIGH)


def _count_pairs() -> tuple[tuple[Histogram, Histogram], ...]:
    return tuple(neighbouring_pairs(Universe(("yes", "no")), Neighbours.UNBOUNDED, size_max=ROWS_MAX))


def half_scale(decay: Fraction) -> Specimen:
    """A count with noise of half the scale."""
    require_decay(decay)
    return Specimen(
        name="half-scale",
        claim=Claim(1 / decay),
        wrong=FiniteMechanism("count with noise of scale 1 / (2 epsilon)", lambda x: _noisy(x, decay**2)),
        right=FiniteMechanism("count with noise of scale 1 / epsilon", lambda x: _noisy(x, decay)),
        pairs=_count_pairs(),
        mistake="The scale was divided by 2 instead of left alone, as when a standard deviation or a width is taken for a scale.",
        remedy="Noise of scale sensitivity / epsilon.",
        reference="Dwork, McSherry, Nissim and Smith 2006",
    )


def renormalised_truncation(decay: Fraction) -> Specimen:
    """Outputs outside the range are drawn again instead of clamped."""
    require_decay(decay)

    def redrawn(database: Histogram) -> dict[int, Fraction]:
        masses = {value: point_mass(value - database[0], decay) for value in range(ROWS_MAX + 1)}
        return {value: mass / sum(masses.values()) for value, mass in masses.items()}

    return Specimen(
        name="renormalised-truncation",
        claim=Claim(1 / decay),
        wrong=FiniteMechanism("count, drawn again until it lies in range", redrawn),
        right=FiniteMechanism("count, clamped to the range", lambda x: clamped(x[0], decay, low=0, high=ROWS_MAX)),
        pairs=_count_pairs(),
        mistake="Drawing again until the value is in range divides by the chance of being in range, which depends on the exact count.",
        remedy="Clamp the value after adding the noise: post-processing. (Or enlarge the scale to pay for the changed constant.)",
        reference="Holohan, Antonatos, Braghin and Mac Aonghusa 2020",
    )


def even_grid(decay: Fraction) -> Specimen:
    """Noise from a grid coarser than the values it is added to."""
    require_decay(decay)

    def on_even_grid(database: Histogram) -> dict[int, Fraction]:
        # values outside the range are moved to the nearest one inside that has the same parity: post-processing, which hides nothing here
        low, high = -((database[0] - _LOW) // 2), (_HIGH - database[0]) // 2
        return {database[0] + 2 * z: mass for z, mass in clamped(0, decay**2, low=low, high=high).items()}

    return Specimen(
        name="even-grid",
        claim=Claim(1 / decay),
        wrong=FiniteMechanism("count plus noise that is always even", on_even_grid),
        right=post_processed(FiniteMechanism("noisy count, rounded to even", lambda x: _noisy(x, decay)), lambda value: value // 2 * 2),
        pairs=_count_pairs(),
        mistake="The noise can only take even values, so the parity of the output is that of the exact count. "
        "Floating-point noise does the same in miniature: some outputs can come from one count and not from the other.",
        remedy="Draw on the grid of the values, then round: rounding what is already noisy is post-processing.",
        reference="Mironov 2012",
    )


def suppressed_small_counts(decay: Fraction) -> Specimen:
    """Small counts are refused, by a threshold on the exact count."""
    require_decay(decay)
    threshold = 2

    def refused_exactly(database: Histogram) -> dict[int | None, Fraction]:
        if database[0] < threshold:
            return {None: Fraction(1)}
        return dict(_noisy(database, decay).items())

    def refused_noisily(value: int) -> int | None:
        return value if value >= threshold else None

    return Specimen(
        name="suppressed-small-counts",
        claim=Claim(1 / decay),
        wrong=FiniteMechanism("noisy count, refused when the exact count is small", refused_exactly),
        right=post_processed(FiniteMechanism("noisy count, refused when it is small", lambda x: _noisy(x, decay)), refused_noisily),
        pairs=_count_pairs(),
        mistake="A refusal that is decided on the exact count tells on which side of the threshold it lies. Refusing is an answer.",
        remedy="Decide on the noisy count.",
        reference="Dwork and Roth 2014, section 1 (refusing a query can itself be disclosive)",
    )


def data_dependent_bounds(decay: Fraction) -> Specimen:
    """A sum whose clipping bound, and therefore its scale, is the largest value in the data."""
    require_decay(decay)
    universe = Universe((0, 1, 2))

    def total(database: Histogram) -> int:
        return sum(universe.rows(database))

    def by_the_data(database: Histogram) -> dict[int, Fraction]:
        largest = max(universe.rows(database), default=0)
        return clamped(total(database), decay if largest == 2 else decay**2, low=-6, high=12)

    return Specimen(
        name="data-dependent-bounds",
        claim=Claim(decay**-2),
        wrong=FiniteMechanism("sum with noise scaled to the largest value present", by_the_data),
        right=FiniteMechanism("sum with noise scaled to the largest value possible", lambda x: clamped(total(x), decay, low=-6, high=12)),
        pairs=tuple(neighbouring_pairs(universe, Neighbours.UNBOUNDED, size_max=ROWS_MAX)),
        mistake="The bound was read off the data, so the amount of noise shows whether the one largest row is there.",
        remedy="Clamp to a bound that was declared beforehand, and scale the noise to it.",
        reference="Dwork and Roth 2014, section 3.3 (sensitivity is a property of the query alone)",
    )


def local_sensitivity_noise(decay: Fraction) -> Specimen:
    """A median with noise scaled to its local sensitivity."""
    require_decay(decay)
    universe = Universe((0, 2))

    def median(database: Histogram) -> int:
        rows = universe.rows(database)
        return rows[(len(rows) - 1) // 2]

    def steps(database: Histogram) -> int:
        sensitivity = local_sensitivity(median, database, Neighbours.BOUNDED, size_max=size(database), norm=Norm.L1)
        return int(sensitivity.value)

    def by_local_sensitivity(database: Histogram) -> dict[int, Fraction]:
        # if no neighbour has another median, the local sensitivity is 0 and so is the noise
        return clamped(median(database), decay, low=-3, high=5) if steps(database) else {median(database): Fraction(1)}

    rows_odd = 3
    return Specimen(
        name="local-sensitivity-noise",
        claim=Claim(decay**-2),
        wrong=FiniteMechanism("median with noise scaled to its local sensitivity", by_local_sensitivity),
        right=FiniteMechanism("median with noise scaled to its global sensitivity", lambda x: clamped(median(x), decay, low=-3, high=5)),
        pairs=tuple((x, y) for x, y in neighbouring_pairs(universe, Neighbours.BOUNDED, size_max=rows_odd) if size(x) == rows_odd),
        mistake="How far this database's neighbours are is itself a fact about the data, and the amount of noise shows it.",
        remedy="The largest sensitivity over all databases, or a smooth upper bound of the local one with noise made for it.",
        reference="Nissim, Raskhodnikova and Smith 2007",
    )


def one_noise_for_two_answers(decay: Fraction) -> Specimen:
    """Two counts published with one draw of noise."""
    require_decay(decay)

    def shared(database: Histogram) -> dict[tuple[int, int], Fraction]:
        # the first noisy count, clamped, and the difference of the two noisy counts, which is that of the exact ones
        return {(value, database[0] - database[1]): mass for value, mass in _noisy(database, decay).items()}

    def count(index: int) -> FiniteMechanism[Histogram, int]:
        return FiniteMechanism("count", lambda x: clamped(x[index], decay, low=-2, high=5))

    return Specimen(
        name="one-noise-for-two-answers",
        claim=Claim(decay**-2),
        wrong=FiniteMechanism("two counts with the same noise", shared),
        right=composed(count(0), count(1)).named("two counts, each with its own noise"),
        pairs=_count_pairs(),
        mistake="Each answer alone is private, but their difference contains no noise.",
        remedy="A fresh draw for every number published.",
        reference="Dwork and Roth 2014, section 3.5 (composition assumes independent coins)",
    )


def asked_twice(decay: Fraction) -> Specimen:
    """The same count asked twice, charged once."""
    require_decay(decay)
    once: FiniteMechanism[Histogram, int] = FiniteMechanism("count", lambda x: clamped(x[0], decay, low=-2, high=5))
    return Specimen(
        name="asked-twice",
        claim=Claim(1 / decay),
        wrong=composed(once, once).named("a count asked twice, noise drawn twice"),
        right=post_processed(once, lambda value: (value, value)).named("a count asked twice, noise drawn once"),
        pairs=_count_pairs(),
        mistake="The question was the same, so it was charged once; but the noise was drawn again, and averaging removes it.",
        remedy="Charge every draw, or return the stored answer.",
        reference="Dwork, Kenthapadi, McSherry, Mironov and Naor 2006 (epsilons add)",
    )


def data_dependent_coin(decay: Fraction) -> Specimen:
    """Randomised response in which those with nothing to hide lie less often."""
    require_decay(decay)
    truth = 1 / (1 + decay)
    lie = 1 - truth

    def yes_answers(database: Histogram, lie_if_no: Fraction) -> dict[int, Fraction]:
        """The law of the number of people who answer yes."""
        law = {0: Fraction(1)}
        for yes in (*[truth] * database[0], *[lie_if_no] * database[1]):
            law = {n: (1 - yes) * law.get(n, Fraction(0)) + yes * law.get(n - 1, Fraction(0)) for n in range(len(law) + 1)}
        return law

    return Specimen(
        name="data-dependent-coin",
        claim=Claim(1 / decay),
        wrong=FiniteMechanism("randomised response, lying less often about a no", lambda x: yes_answers(x, lie**2)),
        right=FiniteMechanism("randomised response", lambda x: yes_answers(x, lie)),
        pairs=tuple(neighbouring_pairs(Universe(("yes", "no")), Neighbours.BOUNDED, size_max=ROWS_MAX)),
        mistake="A no seemed harmless, so it was hidden less often; then a yes in the answers is rarely a lie.",
        remedy="The chance to lie must not depend on the answer.",
        reference="Warner 1965",
    )


SPECIMENS = (
    half_scale,
    renormalised_truncation,
    even_grid,
    suppressed_small_counts,
    data_dependent_bounds,
    local_sensitivity_noise,
    one_noise_for_two_answers,
    asked_twice,
    data_dependent_coin,
)
