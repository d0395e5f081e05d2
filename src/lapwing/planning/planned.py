"""A planned statement: its price, its public limits, its parts, and the certified plan that measures them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from lapwing.contribution.bounding import BoundingPlan
from lapwing.contribution.histograms import ClippingBound
from lapwing.kernel.certify import Certified, CertifiedQuery
from lapwing.kernel.domains import Domain
from lapwing.kernel.expressions import Value
from lapwing.kernel.facts import Facts
from lapwing.kernel.ir import UnitNorms
from lapwing.kernel.release import NoisyTable
from lapwing.kernel.stability import Shape, shape_of
from lapwing.planning.group_enumeration.listing import LISTED_MAX, TooManyGroups
from lapwing.planning.measures import AverageMeasure, Recipe
from lapwing.planning.quantile_bars import MeasuredBars
from lapwing.planning.ratio_estimator import Scaling
from lapwing.statements import PrivateQuery


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a statement: loss (epsilon or rho) and delta for discovering keys."""

    loss: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class GroupLimits:
    """Public limits on groups."""

    known_cells_max: int
    groups_max: int
    key_values_max: int = LISTED_MAX


@dataclass(frozen=True, slots=True)
class Part:
    """One private query as it is measured, with the facts that the answer and the explanation need."""

    query: PrivateQuery
    number: int | None
    """Number of its query in the certified plan; None if nothing is measured: its groups are declared, or no row can be in any."""
    groups: tuple[tuple[Value, ...], ...] | None
    """The groups, where they are known beforehand."""
    recipes: tuple[Recipe, ...]
    choice: BoundingPlan
    kept: float
    lost: float = 0.0
    """Share of the rows that the bound is predicted to leave out."""
    rows: float | None = None
    """Rows predicted in all groups together before bounding; None without bought or declared statistics."""
    ends: Mapping[int, Fraction] = field(default_factory=dict)
    """By number of the recipe: the upper end that each unit's value is clamped to, where planning chose one below the declared."""

    rows_upper: float | None = None
    """An upper bound of the rows in all groups together, from bought statistics; None without any."""
    cuts: Mapping[str, ClippingBound] = field(default_factory=dict)
    """By vector: the cap chosen from bought norms, and its clipping bias."""
    together: Mapping[str, str] = field(default_factory=dict)
    """By vector: the other vector with which it is scaled down."""
    centred: Mapping[str, str] = field(default_factory=dict)
    """By sum of an average centred near the average of the whole table: its count."""
    scaled: Mapping[str, Scaling] = field(default_factory=dict)
    """By vector: the total to which a model scales its groups, if that was requested."""

    too_many: TooManyGroups | None = None
    """The reason why its groups are discovered although all of them are declared; None otherwise."""
    nothing_to_sum: Mapping[int, frozenset[tuple[Value, ...]]] = field(default_factory=dict)
    """By number of a SUM: the groups in which no row can have a value, by what is declared."""
    apart: Mapping[tuple[int, ...], Part] = field(default_factory=dict)
    """Levels of ROLLUP and the like that are measured separately, by the numbers of their keys: each is a part of its own."""

    quantiles: Part | None = None
    """Its quantiles, if a query of their own measures them: they need a lower limit on the rows of a unit than counts and sums."""
    bars: MeasuredBars | None = None
    """What was measured for the error bars of quantiles; None where there are no quantiles, or under rules by which they have no bars."""
    shares: tuple[Share, ...] = ()
    """Of an answer over blocks of time: blocks that were bounded alike. The part adds them up; its own bounds are those of the newest."""
    pieces: tuple[Part, ...] = ()
    """Of an answer over blocks: its groups by how many blocks they have, each with a release of its own; empty if all have equally many."""

    @property
    def impossible(self) -> bool:
        """Whether no row can meet its conditions, by what is declared."""
        return self.number is None and self.groups == ()

    def centre(self, total: str) -> int:
        """The centre of the sum of an average, in integers of its grid."""
        return next(item.offset for item in self.recipes if isinstance(item, AverageMeasure) and item.total == total)

    @property
    def of_quantiles(self) -> Part:
        """The part that measures its quantiles."""
        return self if self.quantiles is None else self.quantiles

    @property
    def known(self) -> bool:
        """Whether its groups are known beforehand."""
        return self.groups is not None

    @property
    def left_out(self) -> float:
        """Share of the rows that a limit before a join is predicted to leave out, if caps from norms cut off less."""
        return self.lost if self.cuts and self.lost > max(cut.choice.lost for cut in self.cuts.values()) else 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """Blocks of time that were bounded alike, of an answer over blocks: what was chosen for them, and the sum of their releases."""

    part: Part
    table: NoisyTable


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """All parts of a statement, and the certified plan that measures them; None if nothing is measured, which is free."""

    measured: Certified | None
    parts: tuple[Part, ...]
    facts: Facts
    wanted: tuple[UnitNorms, ...] = ()
    """The wanted norms: its bounds would be chosen from them if they were bought."""
    scaling_asked: bool = False
    """Groups are to be scaled to totals if they are clipped."""
    over_blocks: tuple[CertifiedQuery, ...] = ()
    """Of an answer that is put together from blocks of time: what is measured of each, with the noise of the sum over all of them."""

    @property
    def certified(self) -> Certified:
        """The certified plan of a statement that measures something."""
        assert self.measured is not None
        return self.measured

    @property
    def queries(self) -> tuple[CertifiedQuery, ...]:
        """What is measured, by number of the query."""
        return self.over_blocks or self.certified.queries

    @property
    def discovers_keys(self) -> bool:
        """Whether it releases undeclared keys, which requires a delta."""
        return self.measured is not None and any(query.keys is not None for query in self.measured.queries)

    @property
    def only(self) -> Part:
        """The part of a statement that has one."""
        (part,) = self.parts
        return part

    @property
    def parts_and_totals(self) -> tuple[Part, ...]:
        """All parts, and the separately measured totals and quantiles as parts of their own."""
        separate = [(part, *part.apart.values(), *([] if part.quantiles is None else [part.quantiles])) for part in self.parts]
        return tuple(each for parts in separate for each in parts)

    def shape(self, part: Part) -> Shape:
        """Public properties of a part's rows before bounding."""
        return shape_of(part.query.source, self.facts)

    def columns(self, part: Part) -> Mapping[str, Domain]:
        """The columns over which a part's keys are written."""
        return self.shape(part).columns
