"""Releases that were bought before answer statements for nothing, where they cover them and are accurate enough.

Who serves is decided from public facts: which releases there are, which columns and bins they have, how much noise they and a fresh answer
have. A statement that names an error is served where the error bars of the release are short enough, by what was released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from weakref import WeakKeyDictionary

import numpy as np

from lapwing.answers.answer import Answer, CostView
from lapwing.answers.number_format import figure, percent
from lapwing.curator.accuracy_targets import Target, aimed
from lapwing.curator.explanation import Explanation, protected_line
from lapwing.curator.life import Curator
from lapwing.curator.releasing import LISTED_MAX, release_of
from lapwing.errors import Refused
from lapwing.kernel.accounting import Cost
from lapwing.ledger.protocol import Bought
from lapwing.planning.planned import Part, Planned
from lapwing.releases.coverage import ROWS, CoveredQuery, NotCovered, covered_queries
from lapwing.releases.released import Release, marginals_of
from lapwing.releases.request import SUMMARY, ReleaseRequest
from lapwing.releases.serving import ServedAnswer, serve
from lapwing.releases.weighted_sums import WeightedSums
from lapwing.spread import half_width
from lapwing.sql.text.privacy_terms import Reuse
from lapwing.statements import Statement, scans_of

KEPT_MAX = 4
"""Releases of one data set that stay in memory, ready to answer."""
SAME_SHARE = 0.001
"""Shares of rows that bounds leave out differ by less than this: they are the same."""
_kept: WeakKeyDictionary[Curator, dict[tuple[str, str], Release]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ServingRelease:
    """A release that serves a statement, and the longest sides of its error bars beside those of a fresh answer, where there is a plan."""

    release: Release
    widths: tuple[float, ...]
    fresh: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class ReusableStatement:
    """A statement that a release may answer: on which terms, for whom."""

    curator: Curator
    statement: Statement
    confidence: Fraction
    analyst: str
    reuse: Reuse

    def server(self, planned: Planned | None) -> ServingRelease | None:
        """The release that serves it, as far as public facts decide: the one with the shortest error bars.

        Beside a plan that would be bought, none that is less accurate than it. Without any, and with ``only``, the reason why is refused.
        """
        found: list[ServingRelease] = []
        reasons: list[str] = []
        for release in self._candidates():
            covered = covered_queries(self.statement, self.curator.facts, marginals_of(release).public)
            if isinstance(covered, NotCovered):
                reasons.append(f"{release.name!r}: {covered.reason}")
                continue
            server = _beside(covered, release, planned, self)
            if server is not None:
                found.append(server)
        if not found and self.reuse is Reuse.ONLY:
            because = f"; {reasons[0]}" if reasons else ""
            hint = "ask without reuse = only, which costs something"
            raise Refused("release-not-covered", f"no release of this version answers it{because}", hint=hint)
        return min(found, key=lambda server: server.widths, default=None)

    def answer(self, server: ServingRelease) -> Answer:
        """The free answer."""
        return self._answer(server, self._served(server))

    def answer_within(self, server: ServingRelease, target: Target) -> Answer | None:
        """The free answer, where all its error bars are as short as they were asked to be."""
        served = self._served(server)
        assembled, names = served.assembled, [self.statement.post.outputs[i].name for i in aimed(self.statement.post)]
        for name in names:
            pairs = zip(assembled.table.column(name).to_pylist(), assembled.intervals[name], strict=True)
            for value, bar in pairs:
                if value is None or bar is None or max(value - bar.lo, bar.hi - value) > target.allowed(abs(float(value))):
                    return None
        return self._answer(server, served) if names else None

    def explanation(self, server: ServingRelease) -> Explanation:
        """What asking would do: nothing is charged."""
        curator, nothing = self.curator, CostView.of(Cost.zero(), self.curator.balance().budget, free=True)
        lines = [protected_line(curator, curator.facts), ("price", f"free: the release {server.release.name!r} serves it")]
        reach = ", ".join(f"±{figure(width)}" for width in server.widths)
        lines.append(("noise", f"{reach} at {percent(float(self.confidence))}, at most in any group"))
        if server.fresh is not None:
            lines.append(
                ("fresh", f"{', '.join(f'±{figure(width)}' for width in server.fresh)} is what a fresh answer would have, for a price")
            )
        lines += [("note", note) for note in (*server.release.terms.notes, *self.statement.notes)]
        values = {
            "cost": {**nothing.to_dict(), "loss": 0.0},
            "share_of_budget": 0.0,
            "affordable": True,
            "served_by": server.release.name,
            "widths": list(server.widths),
            "parts": [],
        }
        return Explanation(tuple(lines), nothing, values)

    def _served(self, server: ServingRelease) -> ServedAnswer:
        served = serve(self.statement, self.curator.facts, marginals_of(server.release), confidence=self.confidence)
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
        curator, balance = self.curator, self.curator.ledger.balance()
        if len(tables) != 1 or balance.closed:
            return []
        # Asked each time: what an analyst may see can change.
        every = curator.ledger.bought(version=curator.facts.version, limit=LISTED_MAX, analyst=self.analyst, begins=SUMMARY)
        return [bought for bought in every if {ReleaseRequest.of_text(bought.summary).table} == tables]

    def _candidates(self) -> Iterator[Release]:
        kept = _kept.setdefault(self.curator, {})
        for bought in self._bought():
            key = self.analyst, bought.digest
            release = kept.get(key) or release_of(self.curator, bought, analyst=self.analyst)
            if release is not None:
                kept[key] = release
                for other in [*kept][:-KEPT_MAX]:
                    kept.pop(other, None)
                yield release


def _beside(
    covered: tuple[CoveredQuery, ...], release: Release, planned: Planned | None, asked: ReusableStatement
) -> ServingRelease | None:
    """A release that covers the statement as a server, unless a plan that would be bought is more accurate in anything."""
    sums = [WeightedSums(query, marginals_of(release).public) for query in covered]
    own = tuple(_widths(part, asked.confidence) for part in sums)
    widths = tuple(width for part in own for width in part.values())
    if asked.reuse is Reuse.ONLY or planned is None:
        return ServingRelease(release, widths, None)
    fresh = []
    for part, mine in zip(planned.parts, own, strict=True):
        theirs = _fresh_widths(part, planned, asked.confidence)
        if any(name not in theirs or width > theirs[name] for name, width in mine.items()):
            return None
        if _left_out(release, asked.curator) > _left_out_fresh(part) + SAME_SHARE:
            return None
        fresh += [theirs[name] for name in mine]
    return ServingRelease(release, widths, tuple(fresh))


def _widths(sums: WeightedSums, confidence: Fraction) -> dict[str, float]:
    """By vector that is asked for: the longest side of an error bar in any of the groups that are told apart most."""
    sizes = [len(each.level.groups) for each in sums.levels]
    finest = max(range(len(sizes)), key=sizes.__getitem__)
    rows = slice(sum(sizes[:finest]), sum(sizes[: finest + 1]))
    vectors = [name for name in sums.covered.weights if name != ROWS]
    longest = {name: sums.half_width(name, confidence)[rows] / sums.covered.scales[name] for name in vectors}
    return {name: float(np.max(each, initial=0.0)) for name, each in longest.items()}


def _fresh_widths(part: Part, planned: Planned, confidence: Fraction) -> dict[str, float]:
    if part.number is None:
        return {}
    vectors = planned.certified.queries[part.number].vectors
    return {item.vector.name: float(half_width(item.vector.law, confidence=confidence) * item.step) for item in vectors}


def _left_out(release: Release, curator: Curator) -> float:
    """The share of rows that the bound of a release leaves out, as far as that is public; all of them where it is not."""
    request = release.terms.request
    if request.rows_per_unit >= curator.facts.table(request.table).rows_per_unit_max:
        return 0.0
    known = curator.contributions().get(request.table)
    return 1.0 if known is None else known.excess(request.rows_per_unit) / max(known.rows(), 1.0)


def _left_out_fresh(part: Part) -> float:
    return max([part.lost, *(cut.choice.lost for cut in part.cuts.values())])
