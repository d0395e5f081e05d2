"""Keys that are shown because they occur in the data, and users who are protected as if they were rows."""

from __future__ import annotations

from fractions import Fraction

from lapwing.kernel.neighbours import Neighbours
from lapwing.mechanisms.mechanism import require_decay
from lapwing.theory.broken.exact_sums import clamped, tail
from lapwing.theory.broken.specimen import Specimen
from lapwing.theory.databases import Histogram, KeyedDatabase, Population, Universe, neighbouring_pairs, without_users
from lapwing.theory.finite import FiniteMechanism, composed
from lapwing.theory.verify import Claim

_LOW, _HIGH = -2, 6


def _noisy(count: int, decay: Fraction) -> dict[int, Fraction]:
    return clamped(count, decay, low=_LOW, high=_HIGH)


def keys_shown_if_present(decay: Fraction) -> Specimen:
    """Counts by key, for the keys that occur."""
    require_decay(decay)

    def count_if_present(count: int) -> dict[int | None, Fraction]:
        if not count:
            return {None: Fraction(1)}
        return dict(_noisy(count, decay).items())

    def shown(key: int) -> FiniteMechanism[Histogram, int | None]:
        return FiniteMechanism("count of a key that is there", lambda x: count_if_present(x[key]))

    def always(key: int) -> FiniteMechanism[Histogram, int]:
        return FiniteMechanism("count of a key", lambda x: _noisy(x[key], decay))

    return Specimen(
        name="keys-shown-if-present",
        claim=Claim(1 / decay),
        wrong=composed(shown(0), shown(1)).named("counts of the keys that occur"),
        right=composed(always(0), always(1)).named("counts of all keys"),
        pairs=tuple(neighbouring_pairs(Universe(("flu", "measles")), Neighbours.UNBOUNDED, size_max=3)),
        mistake="GROUP BY lists the groups that have rows. A group with one row is listed or not, exactly as that row is there or not.",
        remedy="List all keys of a domain known beforehand, with noisy zeros; or show a key only above a noisy threshold, and pay a delta.",
        reference="Korolova, Kenthapadi, Mishra and Ntoulas 2009",
    )


def key_threshold_on_rows(decay: Fraction) -> Specimen:
    """A threshold meant for units, applied to rows."""
    require_decay(decay)
    threshold = 4
    # a user may own two rows with the key, so noise of scale 2 / epsilon serves rows; it is more than enough for units
    population = Population(Universe(("key",)), users=2, rows_per_user_max=2)

    def shown_above(count: int) -> dict[int | None, Fraction]:
        law: dict[int | None, Fraction] = {None: Fraction(1)}
        if count:  # a key without units is never shown
            law = {value: share for value, share in _noisy(count, decay).items() if value >= threshold}
            law[None] = 1 - sum(law.values(), Fraction(0))
        return law

    return Specimen(
        name="key-threshold-on-rows",
        claim=Claim(decay**-2, delta=tail(threshold - 1, decay)),
        wrong=FiniteMechanism("key shown above a threshold of rows", lambda x: shown_above(without_users(x)[0])),
        right=FiniteMechanism("key shown above a threshold of users", lambda x: shown_above(sum(1 for user in x if any(user)))),
        pairs=tuple(population.user_pairs(Neighbours.UNBOUNDED)),
        mistake="The threshold makes it unlikely that a key with count 1 is shown. A user alone with two rows gives it count 2.",
        remedy="Count users, each once, against the threshold.",
        reference="Korolova, Kenthapadi, Mishra and Ntoulas 2009; Wilson et al. 2020",
    )


def row_sensitivity_for_users(decay: Fraction) -> Specimen:
    """A count of rows whose noise protects a row but is claimed to protect a user."""
    require_decay(decay)
    population = Population(Universe(("visit",)), users=2, rows_per_user_max=2)

    def visits(database: KeyedDatabase) -> int:
        return without_users(database)[0]

    return Specimen(
        name="row-sensitivity-for-users",
        claim=Claim(decay**-2),
        wrong=FiniteMechanism("count of rows with noise for one row", lambda x: _noisy(visits(x), decay**2)),
        right=FiniteMechanism("count of rows with noise for two rows", lambda x: _noisy(visits(x), decay)),
        pairs=tuple(population.user_pairs(Neighbours.UNBOUNDED)),
        mistake="One user owns up to two rows, so the count moves by two; the sensitivity was taken to be one.",
        remedy="Bound the rows of a user, and scale the noise to that bound.",
        reference="Dwork and Roth 2014, section 2.3 (what counts as one entry)",
    )


def parallel_composition_for_users(decay: Fraction) -> Specimen:
    """Counts of disjoint days, charged as one because no row is in two of them."""
    require_decay(decay)
    population = Population(Universe(("Monday", "Tuesday")), users=2, rows_per_user_max=2)

    def visitors(day: int, steepness: int) -> FiniteMechanism[KeyedDatabase, int]:
        return FiniteMechanism("visitors of a day", lambda x: _noisy(sum(1 for user in x if user[day]), decay**steepness))

    return Specimen(
        name="parallel-composition-for-users",
        claim=Claim(decay**-2),
        wrong=composed(visitors(0, 2), visitors(1, 2)).named("visitors of each day, charged once"),
        right=composed(visitors(0, 1), visitors(1, 1)).named("visitors of each day, charged per day"),
        pairs=tuple(population.user_pairs(Neighbours.UNBOUNDED)),
        mistake="Parallel composition charges disjoint parts once: true for rows. A user can have a row on Monday and one on Tuesday.",
        remedy="Add the prices of the parts, unless a user is in one part only.",
        reference="McSherry 2009 (for disjoint subsets of the domain of rows)",
    )


SPECIMENS = (
    keys_shown_if_present,
    key_threshold_on_rows,
    row_sensitivity_for_users,
    parallel_composition_for_users,
)
