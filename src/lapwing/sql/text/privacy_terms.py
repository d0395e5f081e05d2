"""The terms of ``WITH PRIVACY (..)``: a price or an error, a confidence, groups scaled by a model, and whether releases may answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias

from lapwing.errors import Span


@dataclass(frozen=True, slots=True)
class EpsilonTerm:
    """``epsilon = 0.2``: for the whole statement."""

    epsilon: Fraction
    span: Span


@dataclass(frozen=True, slots=True)
class RhoTerm:
    """``rho = 0.001``: for the whole statement."""

    rho: Fraction
    span: Span


@dataclass(frozen=True, slots=True)
class ErrorTerm:
    """``error = 100``: no error bar may be longer to one side than this."""

    half_width: Fraction
    span: Span


@dataclass(frozen=True, slots=True)
class ShareTerm:
    """``error = '5%'``: no error bar may be longer to one side than this share of the value's size."""

    share: Fraction
    span: Span


PriceTerm: TypeAlias = EpsilonTerm | RhoTerm | ErrorTerm | ShareTerm


@dataclass(frozen=True, slots=True)
class Confidence:
    """``confidence = 0.95``: of the error bars."""

    value: Fraction
    span: Span


@dataclass(frozen=True, slots=True)
class ScaledGroups:
    """``scaled_groups = true``: counts and sums of groups are measured at a low bound, and scaled up to a total that has its own bound."""

    value: bool
    span: Span


class Reuse(StrEnum):
    """Whether a release that was bought before may answer a statement, free of charge."""

    AUTO = "auto"
    """If it is at least as accurate as the answer that would be bought."""
    NEVER = "never"
    ONLY = "only"
    """Whatever its accuracy; a statement that no release covers is refused."""


@dataclass(frozen=True, slots=True)
class ReuseTerm:
    """``reuse = only``."""

    value: Reuse
    span: Span


@dataclass(frozen=True, slots=True)
class Clause:
    """``WITH PRIVACY (..)``: at most one of epsilon, rho and error; and perhaps a confidence, whether groups are scaled, and reuse."""

    span: Span
    asked: PriceTerm | None = None
    confidence: Confidence | None = None
    scaled_groups: ScaledGroups | None = None
    reuse: ReuseTerm | None = None
