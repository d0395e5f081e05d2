"""The doors by which numbers that depend on rows leave the kernel, each replaced by one that forgets the rows.

At every door the real mechanism is run on the real figures, so that whatever it does because of them is done, a failure included; then its
result is thrown away, and numbers leave that follow from the order of calls alone. Nothing of what an analyst sees afterwards may depend on
rows, therefore: not on one unit of them, and not on all of them.

Moments and the names that are drawn at random are replaced as well, so that they need not be left out of a comparison.

``tests/blind/test_doors.py`` holds that these are all doors: nothing else imports what draws, nothing else reads exact figures. While they
are replaced, random bytes that are asked for elsewhere raise an error (:class:`DrawnElsewhere`).
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import random
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import pytest

from lapwing.asking import bound_statement
from lapwing.introspection import introspect
from lapwing.kernel import count_stream, release
from lapwing.kernel.certify import CertifiedQuery
from lapwing.kernel.domains import BooleanDomain, DateDomain, Domain, IntegerDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.exact import ExactTable
from lapwing.kernel.expressions import Value
from lapwing.kernel.ir import DiscoveredGroups
from lapwing.kernel.laws import Law
from lapwing.kernel.noise import entropy
from lapwing.kernel.noise.additive import add_noise
from lapwing.kernel.noise.quantile_tree import draw_quantiles
from lapwing.kernel.quantile_tree import QuantileTree
from lapwing.kernel.rank_line import RankLine
from lapwing.kernel.release import HowDrawn
from lapwing.kernel.stability import domain_of
from lapwing.ledger.local import rows as ledger_rows

DOORS = frozenset(
    {
        ("lapwing.kernel.release", "add_noise"),
        ("lapwing.kernel.release", "draw_quantiles"),
        ("lapwing.kernel.count_stream", "add_noise"),
    }
)
"""Who draws by which function. The groups that are found (``kernel.release._shown``) are the fourth: noise decides which are shown."""
GROUPS_INVENTED = 7
MOMENT = datetime.datetime(2026, 7, 1, 12, 0, 0, tzinfo=datetime.UTC)


class DrawnElsewhere(BaseException):
    """Random bytes were asked for outside of the doors. No ``except Exception`` takes it for an incident."""


class Size(StrEnum):
    """How large the numbers are that leave: what is lost in noise and what is beyond doubt take different ways."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"
    MIXED = "mixed"


_CENTRES = {Size.SMALL: (0,), Size.MEDIUM: (60,), Size.LARGE: (10**6,), Size.MIXED: (0, 25, 90, 3_000, 10**6, -40)}


class BlindDraws:
    """Numbers that follow from how often a door was used before, and from nothing else."""

    def __init__(self, size: Size) -> None:
        self._size = size
        self._inside = 0
        self.used: dict[str, int] = {}
        """How often each door was used."""
        self._random_bytes, self._shown = entropy.random_bytes, release._shown

    def _next(self, door: str) -> random.Random:
        self.used[door] = self.used.get(door, 0) + 1
        return random.Random(f"{self._size} {door} {self.used[door]}")

    @contextmanager
    def _opened(self) -> Iterator[None]:
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def random_bytes(self, size: int) -> bytes:
        """For the real mechanisms, whose results are thrown away."""
        if not self._inside:
            raise DrawnElsewhere("a number was drawn that no door of the kernel lets out")
        return self._random_bytes(size)

    def add_noise(self, law: Law, values: Sequence[int], **terms: Any) -> list[int]:
        """As many numbers as there are values, around a centre that is chosen for all of them."""
        with self._opened():
            add_noise(law, values, **terms)
        numbers = self._next("noise")
        centre, spread = numbers.choice(_CENTRES[self._size]), float(law.scale)
        return [int(numbers.gauss(centre, spread)) for _ in values]

    def add_noise_to_stream(self, law: Law, values: Sequence[int], **terms: Any) -> list[int]:
        """Noise that is larger than everything before it: it alone decides a comparison, whatever the count is."""
        with self._opened():
            add_noise(law, values, **terms)
        numbers = self._next("stream")
        return [numbers.choice((-1, 1)) << 200 + self.used["stream"] for _ in values]

    def draw_quantiles(self, mechanism: QuantileTree, line: RankLine, **terms: Any) -> tuple[int, ...]:
        """Any values of the range."""
        with self._opened():
            draw_quantiles(mechanism, line, **terms)
        numbers = self._next("quantiles")
        return tuple(sorted(numbers.randint(mechanism.lower, mechanism.upper) for _ in mechanism.targets))

    def shown(self, certified: CertifiedQuery, groups: DiscoveredGroups, how: HowDrawn, table: ExactTable) -> Any:
        """The same selection among groups that nobody has, each with nothing in it."""
        self._discard_shown(certified, groups, how, table)
        invented = invented_groups(certified, self._next("groups"))
        zeros = [[0] * len(invented) for _ in table._vectors]
        return self._shown(certified, groups, how, ExactTable(groups=invented, vectors=zeros, units=[0] * len(invented)))

    def _discard_shown(self, *real: Any) -> None:
        """What the real groups lead to, with noise that moves no number of a call."""
        with pytest.MonkeyPatch.context() as patch, self._opened():
            patch.setattr(release, "add_noise", add_noise)
            self._shown(*real)


def invented_groups(certified: CertifiedQuery, numbers: random.Random) -> list[tuple[Value, ...]]:
    """Groups that keys of these domains can have, each once."""
    columns = certified.shape.columns
    domains = [domain_of(key, columns) for _, key in certified.query.keys]
    found = [tuple(_value(domain, numbers) for domain in domains) for _ in range(GROUPS_INVENTED)]
    return list(dict.fromkeys(found))


def _value(domain: Domain, numbers: random.Random) -> Value:
    if domain.nullable and numbers.random() < 0.1:
        return None
    match domain:
        case BooleanDomain():
            return numbers.random() < 0.5
        case TextDomain(None):
            return numbers.choice(("J00", "J07", "Q9", "invented", "", "ß"))
        case TextDomain(values):
            assert values
            return numbers.choice(values)
        case IntegerDomain(lo, hi) | DateDomain(lo, hi) | TimestampDomain(lo, hi):
            return numbers.randint(lo, min(hi, lo + 20))
        case RealDomain():
            steps = domain.steps or 1
            return domain.lo + numbers.randint(0, 20) / type(domain.lo)(steps)
        case _:
            raise AssertionError(domain)


class StoppedClock(datetime.datetime):
    """A clock that does not go on: moments are no secret."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> StoppedClock:
        return cls.fromtimestamp(MOMENT.timestamp(), tz)


@contextmanager
def blind(size: Size) -> Iterator[BlindDraws]:
    """Until the end: blind doors, a clock that stands, and names in the place of random ones that come in the same order each time."""
    draws, names = BlindDraws(size), itertools.count()

    def token_hex(size: int | None = None) -> str:
        return hashlib.shake_256(f"name {next(names)}".encode()).hexdigest(size or 32)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entropy, "random_bytes", draws.random_bytes)
        patch.setattr(release, "add_noise", draws.add_noise)
        patch.setattr(release, "draw_quantiles", draws.draw_quantiles)
        patch.setattr(release, "_shown", draws.shown)
        patch.setattr(count_stream, "add_noise", draws.add_noise_to_stream)
        patch.setattr(release, "_taken", set())  # the names of permits come again
        patch.setattr(secrets, "token_hex", token_hex)
        patch.setattr(bound_statement, "moment_of_asking", lambda: int(MOMENT.timestamp()) * 1_000_000)
        patch.setattr(introspect, "datetime", StoppedClock)
        patch.setattr(ledger_rows, "datetime", StoppedClock)
        yield draws
