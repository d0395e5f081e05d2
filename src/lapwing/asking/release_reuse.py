"""Bought releases answer statements free of charge if they cover them and are accurate enough.

Public facts decide which release serves: the available releases, their columns and bins, the noise of theirs and of a fresh answer.
A statement with an accuracy target is served if the error bars of the release are short enough, given its released values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.display.number_format import figure, percent
from lapwing.answers.noise_sums import half_width_of_sum
from lapwing.asking.accuracy_targets import Target, aimed
from lapwing.asking.explaining.explanation import Explanation, protected_line
from lapwing.asking.release_cache import bought_releases, kept_release
from lapwing.curator.curator import Curator
from lapwing.errors import Refused
from lapwing.kernel.accounting import Cost
from lapwing.kernel.workload import scans_of
from lapwing.ledger.protocol import Bought
from lapwing.planning.planned import Part, PlannedStatement
from lapwing.planning.quantile_errors import rank_errors
from lapwing.planning.quantiles import QuantileMeasure
from lapwing.releases.released import Release, served_by
from lapwing.releases.request import ReleaseRequest
from lapwing.releases.serving.answers import ServedAnswer, ServedMarginals, serve
from lapwing.releases.serving.coverage import CoveredQuery, NotCovered, covered_queries
from lapwing.releases.serving.error_sides import is_quantile_side, quantile_side, sides_by_level, sides_by_vector
from lapwing.spread import half_width
from lapwing.sql.text.privacy_terms import Reuse
from lapwing.statements import Statement

SAME_SHARE = 0.001
"""Shares of left-out rows that differ by less than this are treated as equal."""


@dataclass(frozen=True, slots=True)
class ServingRelease:
    """A release that serves a statement, and the longest sides of its error bars beside those of a fresh answer, where there is a plan."""

    release: Release
    section: ServedMarginals
    names: tuple[str, ...]
    """The names of those that belong to quantiles and are in ranks."""
    widths: tuple[float, ...]
    fresh: tuple[float, ...] | None

    def sides(self, widths: tuple[float, ...]) -> str:
        """Widths as text."""
        pairs = zip(self.names, widths, strict=True)
        return ", ".join(f"within {figure(width)} ranks" if is_quantile_side(name) else f"±{figure(width)}" for name, width in pairs)


@dataclass(frozen=True, slots=True)
class ReusableStatement:
    """A statement that a release may answer, with its terms and its analyst."""

    curator: Curator
    statement: Statement
    confidence: Fraction
    analyst: str
    reuse: Reuse

    def server(self, planned: PlannedStatement | None) -> ServingRelease | None:
        """The release that serves it, as decided by public facts: the one with the shortest error bars.

        With a plan to be bought as the alternative, none that is less accurate than it. With ``only``, refuse with the reason if none
        serves.
        """
        found: list[ServingRelease] = []
        reasons: list[str] = []
        for release in self._candidates():
            for section in served_by(release):
                covered = covered_queries(self.statement, self.curator.facts, section.public)
                if isinstance(covered, NotCovered):
                    reasons.append(f"{release.name!r}: {covered.reason}")
                    continue
                server = _beside(covered, release, section, planned, self)
                if server is not None:
                    found.append(server)
        if not found and self.reuse is Reuse.ONLY:
            because = f"; {reasons[0]}" if reasons else ""
            hint = "ask without reuse = only, which costs something"
            raise Refused("release-not-covered", f"no release of this version answers it{because}", hint=hint)
        return min(found, key=lambda server: server.widths, default=None)

    def answer(self, server: ServingRelease) -> Answer:
        """The free answer from the release."""
        return self._answer(server, self._served(server))

    def answer_within(self, server: ServingRelease, target: Target) -> Answer | None:
        """The free answer, if all its error bars are as short as requested."""
        served = self._served(server)
        assembled, names = served.assembled, [self.statement.post.outputs[i].name for i in aimed(self.statement.post)]
        for name in names:
            pairs = zip(assembled.table.column(name).to_pylist(), assembled.intervals[name], strict=True)
            for value, bar in pairs:
                if value is None or bar is None or max(value - bar.lo, bar.hi - value) > target.allowed(abs(float(value))):
                    return None
        return self._answer(server, served) if names else None

    def explanation(self, server: ServingRelease) -> Explanation:
        """The explanation: nothing is charged."""
        curator, nothing = self.curator, CostView.of(Cost.zero(), self.curator.balance().budget, free=True)
        lines = [protected_line(curator, curator.facts), ("price", f"free: the release {server.release.name!r} serves it")]
        lines.append(("noise", f"{server.sides(server.widths)} at {percent(float(self.confidence))}, at most in any group"))
        if server.fresh is not None:
            lines.append(("fresh", f"{server.sides(server.fresh)} is what a fresh answer would have, for a price"))
        lines += [("note", note) for note in (*server.release.terms.notes, *self.statement.notes)]
        values = {
            "cost": {**nothing.to_dict(), "loss": 0.0},
            "share_of_budget": 0.0,
            "affordable": True,
            "too_much": "",
            "served_by": server.release.name,
            "widths": list(server.widths),
            "parts": [],
        }
        return Explanation(tuple(lines), nothing, values)

    def _served(self, server: ServingRelease) -> ServedAnswer:
        served = serve(self.statement, self.curator.facts, server.section, confidence=self.confidence)
        assert not isinstance(served, NotCovered), "it was covered before"
        return served

    def _answer(self, server: ServingRelease, served: ServedAnswer) -> Answer:
        curator, assembled = self.curator, served.assembled
        notes = (f"served by the release {server.release.name!r}: free, and the same every time", *served.notes)
        return Answer(
            assembled.table,
            assembled.intervals,
            float(self.confidence),
            CostView.of(Cost.zero(), curator.declaration.budget(), free=True),
            curator.budget(),
            notes,
            marks=assembled.marks,
            receipt=server.release.receipt,
            stored=server.release.terms.stored,
        )

    @property
    def is_possible(self) -> bool:
        """Whether there is a release of the table that the statement reads."""
        return bool(self._bought())

    def _bought(self) -> list[Bought]:
        """Releases of the table that the statement reads, newest first, that this analyst may see."""
        tables = {scan.table for query in self.statement.privates for scan in scans_of(query.source)}
        if len(tables) != 1:
            return []
        every = bought_releases(self.curator, analyst=self.analyst)
        return [bought for bought in every if {ReleaseRequest.of_text(bought.summary).table} == tables]

    def _candidates(self) -> Iterator[Release]:
        for bought in self._bought():
            release = kept_release(self.curator, bought, analyst=self.analyst)
            if release is not None:
                yield release


def _beside(
    covered: tuple[CoveredQuery, ...],
    release: Release,
    section: ServedMarginals,
    planned: PlannedStatement | None,
    asked: ReusableStatement,
) -> ServingRelease | None:
    """A release that covers the statement, unless a plan to be bought is more accurate in some output."""
    own = tuple(sides_by_vector(query, section.public, asked.confidence) for query in covered)
    names = tuple(name for part in own for name in part)
    widths = tuple(width for part in own for width in part.values())
    if asked.reuse is Reuse.ONLY or planned is None:
        return ServingRelease(release, section, names, widths, None)
    fresh = []
    for part, query, mine in zip(planned.parts, covered, own, strict=True):
        if not _sub_totals_as_short(part, query, section, planned, asked.confidence):
            return None
        theirs = _fresh_widths(part, planned, asked.confidence)
        if any(name not in theirs or width > theirs[name] for name, width in mine.items()):
            return None
        if _left_out(release, asked.curator) > _left_out_fresh(part) + SAME_SHARE:
            return None
        fresh += [theirs[name] for name in mine]
    return ServingRelease(release, section, names, widths, tuple(fresh))


def _sub_totals_as_short(
    part: Part, query: CoveredQuery, section: ServedMarginals, planned: PlannedStatement, confidence: Fraction
) -> bool:
    """Whether on every level the longest bar is at most the shortest of a fresh answer, which adds up groups or measures a level
    separately."""
    if query.query.levels is None or part.number is None:
        return True
    for level in sides_by_level(query, section.public, confidence):
        apart = part.apart.get(level.kept)
        measured = planned.certified.queries[part.number if apart is None or apart.number is None else apart.number]
        terms = level.fewest if apart is None and part.groups is not None else 1
        for item in measured.vectors:
            mine = level.sides.get(item.vector.name)
            width = half_width_of_sum(item.vector.law, terms=terms, confidence=confidence) * item.step
            if mine is not None and mine > float(width):
                return False
    return True


def _fresh_widths(part: Part, planned: PlannedStatement, confidence: Fraction) -> dict[str, float]:
    if part.number is None:
        return {}
    query, of_quantiles = (planned.certified.queries[each.number or 0] for each in (part, part.of_quantiles))
    found = {item.vector.name: float(half_width(item.vector.law, confidence=confidence) * item.step) for item in query.vectors}
    errors = {
        item.quantiles.name: rank_errors(item.mechanism, confidence=confidence, rows_max=of_quantiles.shape.rows_max)
        for item in of_quantiles.quantiles
    }
    for number, recipe in enumerate(part.recipes):
        if isinstance(recipe, QuantileMeasure):
            found[quantile_side(number)] = float(errors[recipe.quantiles][recipe.target])
    return found


def _left_out(release: Release, curator: Curator) -> float:
    """The share of rows that the bound of a release leaves out, if that is public; otherwise 1."""
    request = release.terms.request
    if request.rows_per_unit >= curator.facts.table(request.table).rows_per_unit_max:
        return 0.0
    known = curator.contributions().get(request.table)
    return 1.0 if known is None else known.excess(request.rows_per_unit) / max(known.rows(), 1.0)


def _left_out_fresh(part: Part) -> float:
    return max([part.lost, *(cut.choice.lost for cut in part.cuts.values())])
