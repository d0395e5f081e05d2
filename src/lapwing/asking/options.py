"""What a statement is asked at: its words, the options it was asked with and the catalogue's defaults, made into one.

A new option is a field of ``AskOptions`` and of ``AskArguments``, and its reader here; interfaces that declare their words (the bodies of
HTTP, the flags of the command line) name it once more.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypedDict, TypeVar, assert_never

from lapwing.asking.accuracy_targets import PILOTS_MAX, Target
from lapwing.catalog import Declaration, Settings
from lapwing.catalog.confidences import NOT_ASKED, can_be_asked
from lapwing.errors import Refused
from lapwing.kernel.accounting import LOSS_UNITS, Account, Budget
from lapwing.prices import statement_loss
from lapwing.sql.text.privacy_terms import Clause, EpsilonTerm, ErrorTerm, Reuse, RhoTerm, ShareTerm
from lapwing.sql.text.privacy_words import Question, read_words

Number = str | int | float | Decimal | Fraction
_WRITTEN = re.compile(r"\s*[+-]?[0-9_.]{1,2000}(?:/[0-9_]{1,2000}|[eE][+-]?[0-9]{1,3})?\s*")
"""Exponents are limited: 1e999999999 is a short text, but not a number that can be worked with exactly."""
PILOT_SHARES = (Fraction(1, 10), Fraction(3, 10), Fraction(1), Fraction(3))
"""Pilots are asked at these shares of the default epsilon of a statement, one after another as long as they say too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """How a statement is asked, apart from what it says itself. None leaves an option to the statement, and then to the catalogue."""

    epsilon: Number | None = None
    confidence: Number | None = None
    dialect: str = "duckdb"
    scaled_groups: bool | None = None
    reuse: str | None = None


class AskArguments(TypedDict, total=False):
    """The same options as arguments of a call."""

    epsilon: Number | None
    confidence: Number | None
    dialect: str
    scaled_groups: bool | None
    reuse: str | None


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A statement as an interface passes it on: its text, its options, who asks, and the name of the request."""

    sql: str
    options: AskOptions
    analyst: str
    request_id: str | None = None
    """Repeated with the same name, a request is charged once."""


Method = TypeVar("Method", bound=Callable[..., Any])


def with_options(method: Method) -> Method:
    """A method that takes ``AskArguments`` as keywords shows each of them in its signature."""
    signature = inspect.signature(method)
    kept = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    options = [
        inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type) for one in fields(AskOptions)
    ]
    method.__signature__ = signature.replace(parameters=[*kept, *options])  # type: ignore[attr-defined]  # what inspect looks for
    return method


@dataclass(frozen=True, slots=True)
class Terms:
    """A loss, or a target to find the loss for; the confidence of the error bars; whether groups are scaled, and releases may answer."""

    goal: Fraction | Target
    confidence: Fraction
    scaled_groups: bool = False
    reuse: Reuse = Reuse.NEVER


def written_terms(sql: str, *, dialect: str, settings: Settings | None = None) -> frozenset[str]:
    """Which fields of a ``Clause`` a statement's own ``WITH PRIVACY (..)`` fills; all where it is refused: asking it tells why."""
    names = frozenset(one.name for one in fields(Clause)) - {"span"}
    try:
        words = read_words(sql, settings=settings or Settings(), dialect=dialect)
    except Refused:
        return names
    clause = words.clause if isinstance(words, Question) else None
    return frozenset(name for name in names if getattr(clause, name, None) is not None)


def terms_of(clause: Clause | None, options: AskOptions, *, declaration: Declaration, budget: Budget) -> Terms:
    """The terms of a statement, or ``Refused`` where words and options contradict one another or one of them is not valid."""
    sure, scaled, reuse = _confidence(clause, options.confidence, declaration), scaled_groups_of(clause, options), reuse_of(clause, options)
    asked = None if clause is None else clause.asked
    given = None if options.epsilon is None else exact_number(options.epsilon, "epsilon")
    if asked is not None and given is not None and not (isinstance(asked, EpsilonTerm) and asked.epsilon == given):
        message = "the statement says one thing and the epsilon it was asked with another"
        raise Refused("privacy-contradiction", message, hint="leave one of the two out", span=asked.span)
    match asked:
        case None:
            return Terms(statement_loss(budget, declaration.defaults.epsilon if given is None else given), sure, scaled, reuse)
        case EpsilonTerm(value):
            return Terms(statement_loss(budget, value), sure, scaled, reuse)
        case RhoTerm(value):
            if budget.account is Account.PURE:
                hint = "name an epsilon"
                raise Refused("rho-unsupported", "this data set has no delta and is charged in epsilon", hint=hint, span=asked.span)
            whole_units = math.floor(value * LOSS_UNITS)
            return Terms(Fraction(whole_units, LOSS_UNITS) if whole_units else value, sure, scaled, reuse)
        case ErrorTerm() | ShareTerm():
            return Terms(Target(asked, sure), sure, scaled, reuse)
        case _:
            assert_never(asked)


def scaled_groups_of(clause: Clause | None, options: AskOptions) -> bool:
    """Whether groups are to be scaled, by the words or the argument; or ``Refused`` where these contradict one another.

    Nor is it for an error: that is searched for with bars of what is measured, and what a model adds to them is none of it.
    """
    written, given = None if clause is None else clause.scaled_groups, options.scaled_groups
    if written is not None and given is not None and written.value != given:
        message = "the statement says one thing about scaled groups and the argument it was asked with another"
        raise Refused("privacy-contradiction", message, hint="leave one of the two out", span=written.span)
    scaled = bool(given) if written is None else written.value
    if scaled and clause is not None and isinstance(clause.asked, ErrorTerm | ShareTerm):
        message = "groups that are scaled by a model cannot be asked for an error"
        raise Refused("privacy-contradiction", message, hint="name an epsilon", span=clause.asked.span)
    return scaled


def reuse_of(clause: Clause | None, options: AskOptions) -> Reuse:
    """Whether releases may answer, by the words or the argument; or ``Refused`` where these contradict one another."""
    written, given = None if clause is None else clause.reuse, options.reuse
    if given is not None and given not in [*Reuse]:
        raise Refused("privacy-words", "reuse is auto, never or only")
    if written is not None and given is not None and written.value != given:
        message = "the statement says one thing about reuse and the argument it was asked with another"
        raise Refused("privacy-contradiction", message, hint="leave one of the two out", span=written.span)
    reuse = Reuse(given or Reuse.AUTO) if written is None else written.value
    # Groups that are scaled by a model are asked for by name: no release has them.
    return Reuse.NEVER if reuse is Reuse.AUTO and scaled_groups_of(clause, options) else reuse


def pilot_epsilons(declaration: Declaration) -> tuple[Fraction, ...]:
    """What pilots are asked at. Public: it depends on the catalogue only."""
    assert len(PILOT_SHARES) == PILOTS_MAX
    return tuple(declaration.defaults.epsilon * share for share in PILOT_SHARES)


def _confidence(clause: Clause | None, given: Number | None, declaration: Declaration) -> Fraction:
    value = None if given is None else exact_number(given, "confidence")
    if value is not None and not can_be_asked(value):
        raise Refused("confidence-invalid", NOT_ASKED)
    written = None if clause is None else clause.confidence
    if written is None:
        return declaration.defaults.confidence if value is None else value
    if value is not None and value != written.value:
        message = "the statement says one thing and the confidence it was asked with another"
        raise Refused("privacy-contradiction", message, hint="leave one of the two out", span=written.span)
    return written.value


def exact_number(value: Number, what: str) -> Fraction:
    """A number as written: a float means the decimal it is printed as."""
    try:
        written = str(value) if isinstance(value, Decimal) else value
        if isinstance(written, str) and not _WRITTEN.fullmatch(written):
            raise ValueError
        return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, ZeroDivisionError, TypeError, OverflowError):
        raise Refused("number-unreadable", f"{what} must be a number") from None
