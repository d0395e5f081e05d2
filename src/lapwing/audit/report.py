"""The audit report of a version: every mechanism and every shape of plan, with one confidence for the whole report.

Lines are written to a file as they are measured, so that a long run can be stopped and resumed. All lines share the confidence: each test
is corrected for ``TESTS`` tests, more than a report has.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from lapwing.audit.auditor import CONFIDENCE, Audit
from lapwing.audit.claims import Claim, Gaussian, Pure, measure_of, parameter_of
from lapwing.audit.mechanisms import AuditedMechanism, audit_case, cases, mistakes
from lapwing.audit.plan_shapes import shapes
from lapwing.audit.plans import Pair, audit_pair, same_law, tiled_ratios, whole_releases, worst_pairs
from lapwing.errors import LapwingError
from lapwing.kernel.accounting import Account
from lapwing.mechanisms.draw import Drawable

TESTS = 2_000
"""The number of tests for which a report is corrected. It has fewer: two for each line and number of runs."""

WORLDS = 3
"""Random data sets, each with all its neighbours, among which the worst pair for a plan is searched."""

WHOLE_RELEASES = 2_000
"""Whole releases to compare with tiled releases in a long run."""

SAME_LAW_ERROR = 1e-6
"""Chance of a false alarm in that comparison, for each line."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a report: the audited item, its claim, and the result."""

    area: str
    name: str
    setting: str
    measure: str
    claimed: float
    delta: float
    lower_bound: float
    samples: int
    caught: bool

    def key(self) -> str:
        """Identifies the line, independently of its measurements."""
        return f"{self.area}/{self.setting}/{self.name}"


@dataclass(frozen=True, slots=True)
class AuditItem:
    """Something to audit."""

    area: str
    name: str
    setting: str
    audited: Callable[[int], Audit]
    """Audits with this many runs on each side."""

    def key(self) -> str:
        """The key of its line."""
        return f"{self.area}/{self.setting}/{self.name}"

    def line(self, samples: int) -> Line:
        """Audit the item and return its line."""
        result = self.audited(samples)
        return line_of(result, area=self.area, name=self.name, setting=self.setting)


def line_of(result: Audit, *, area: str, name: str, setting: str) -> Line:
    """An audit as a line."""
    claim = result.claimed
    return Line(
        area=area,
        name=name,
        setting=setting,
        measure=measure_of(claim),
        claimed=float(parameter_of(claim)),
        delta=float(_delta(claim)),
        lower_bound=result.lower_bound,
        samples=result.samples,
        caught=result.caught,
    )


def exact_line(claim: Claim, *, share: float, name: str) -> Line:
    """The line of an exact loss of two neighbours, computed and not estimated: it needs no runs, and a refutation is certain."""
    claimed = float(parameter_of(claim))
    return Line("statement", name, "exact difference", measure_of(claim), claimed, float(_delta(claim)), share * claimed, 0, share > 1)


def _delta(claim: Claim) -> Fraction:
    return Fraction(0) if isinstance(claim, Pure | Gaussian) else claim.delta


def mechanism_items(*, confidence: Fraction = CONFIDENCE, tests: int = TESTS) -> list[AuditItem]:
    """Every mechanism of the kernel."""

    def item(case: AuditedMechanism) -> AuditItem:
        return AuditItem(
            "mechanism", case.name, case.family, lambda samples: audit_case(case, samples=samples, tests=tests, confidence=confidence)
        )

    return [item(case) for case in cases()]


def mistake_items(factor: Fraction, *, confidence: Fraction = CONFIDENCE, tests: int = TESTS) -> list[AuditItem]:
    """Planted mistakes, which an audit must find: each family with too little noise, and permute-and-flip at the wrong price."""

    def item(case: AuditedMechanism, run: Drawable) -> AuditItem:
        def audited(samples: int) -> Audit:
            return audit_case(case, samples=samples, tests=tests, confidence=confidence, run=run)

        setting = "rho for another mechanism" if run == case.mechanism else f"{float(factor):g} times the claim"
        return AuditItem("mistake", case.name, setting, audited)

    return [item(case, run) for case, run in mistakes(factor)]


def plan_items(
    *, confidence: Fraction = CONFIDENCE, tests: int = TESTS, worlds: int = WORLDS, whole_releases_each: int = 0, seed: int = 1
) -> list[AuditItem]:
    """Every shape of plan, for both kinds of account and both neighbour relations. The first audit searches for neighbours."""

    @lru_cache(maxsize=1)
    def pairs(account: Account, relation: str) -> dict[str, Pair]:
        return worst_pairs(shapes(account), relation=relation, account=account, worlds=worlds, seed=seed)

    def item(name: str, account: Account, relation: str) -> AuditItem:
        def audited(samples: int) -> Audit:
            pair = pairs(account, relation)[name]
            _compare_paths(pair, runs=whole_releases_each)
            return audit_pair(pair, samples=samples, tests=tests, confidence=confidence)

        return AuditItem("plan", name, f"{account.value}, {relation}", audited)

    settings = [(account, relation) for account in Account for relation in ("unbounded", "bounded")]
    return [item(name, account, relation) for account, relation in settings for name in shapes(account)]


def _compare_paths(pair: Pair, *, runs: int) -> None:
    """Refuse (``audit-paths-differ``) if whole releases follow a different law than tiled releases."""
    for right in (False, True):
        if runs and not same_law(
            whole_releases(pair, right=right, runs=runs), tiled_ratios(pair, right=right, runs=10 * runs), error=SAME_LAW_ERROR
        ):
            raise LapwingError("audit-paths-differ", "single releases follow a different law than releases drawn at once")


def measured(
    items: Sequence[AuditItem], *, samples: int, state: Path | None = None, wanted: Callable[[AuditItem], bool] | None = None
) -> Iterator[Line]:
    """Audit each item with ``samples`` runs on each side; items that ``state`` already has with at least as many are not measured again."""
    known = read_state(state) if state is not None else {}
    for item in items:
        if wanted is not None and not wanted(item):
            continue
        before = known.get(item.key())
        if before is not None and before.samples >= samples:
            yield before
            continue
        line = item.line(samples)
        if state is not None:
            known = read_state(state) | {line.key(): line}
            _write_state(state, known)
        yield line


def read_state(state: Path) -> dict[str, Line]:
    """The lines measured before with this version; empty if there is no such file."""
    if not state.exists():
        return {}
    stored = json.loads(state.read_text(encoding="utf-8"))
    if stored["version"] != version("lapwing"):
        return {}
    lines = [Line(**values) for values in stored["lines"]]
    return {line.key(): line for line in lines}


def _write_state(state: Path, lines: dict[str, Line]) -> None:
    state.parent.mkdir(parents=True, exist_ok=True)
    partial = state.with_suffix(".partial")
    stored = {"version": version("lapwing"), "lines": [asdict(line) for line in lines.values()]}
    partial.write_text(json.dumps(stored, indent=1), encoding="utf-8")
    os.replace(partial, state)


def is_wrong(line: Line) -> bool:
    """Whether this line needs attention: a refuted claim, or a planted mistake that was not found."""
    return line.caught != (line.area == "mistake")


def headline(lines: Sequence[Line]) -> str:
    """A summary of all lines in one sentence or two."""
    claims, planted = ([line for line in lines if (line.area == "mistake") is mistake] for mistake in (False, True))
    refuted = [line.name for line in claims if line.caught]
    text = f"{len(refuted)} of {len(claims)} claims are refuted: {', '.join(refuted)}." if refuted else ""
    text = text or ("The claim is not refuted." if len(claims) == 1 else f"None of {len(claims)} claims is refuted.")
    caught = sum(line.caught for line in planted)
    return f"{text} {caught} of {len(planted)} planted mistakes are found." if planted else text


def verdict(line: Line) -> str:
    """A word for the last column."""
    return "refuted" if line.caught else "stands"


def runs_text(line: Line) -> str:
    """The number of runs; a computed line has none."""
    return f"{line.samples:,}" if line.samples else "exact"


def claim_text(line: Line) -> str:
    """The claim, such as ``rho 1, delta 0.05``."""
    text = f"{line.measure} {line.claimed:.4g}"
    return f"{text}, delta {line.delta:.3g}" if line.delta else text
