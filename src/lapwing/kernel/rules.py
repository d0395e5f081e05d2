"""What all domain rules of scalar functions share: their shape, and how they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lapwing.errors import Refused
from lapwing.kernel.domains import Domain, IntegerDomain, kind_of
from lapwing.kernel.expressions import Expression, Function

Rule: TypeAlias = Callable[[tuple[Domain, ...], tuple[Expression, ...]], Domain]
"""Maps the domains of the arguments, and the arguments themselves, to the domain of the result, or refuses."""


def wrong_kinds(function: str, domains: tuple[Domain, ...]) -> Refused:
    """The refusal of arguments of the wrong kind."""
    given = ", ".join(kind_of(domain).value for domain in domains)
    return Refused("type-mismatch", f"{function} cannot take ({given})")


def require_count(function: Function, domains: tuple[Domain, ...], count: int) -> None:
    """Refuse a call with another number of arguments."""
    if len(domains) != count:
        raise Refused("wrong-arguments", f"{function.value} takes {count} argument(s), not {len(domains)}")


def any_null(domains: tuple[Domain, ...]) -> bool:
    """Whether some argument can be NULL."""
    return any(domain.nullable for domain in domains)


def all_integer(domains: tuple[Domain, ...]) -> bool:
    """Whether every argument is an integer, so that the engine computes in integers."""
    return all(isinstance(domain, IntegerDomain) for domain in domains)
