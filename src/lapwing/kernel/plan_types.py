"""The numbers of a plan have their annotated types: True is not a row limit, and the kernel does not reason about floats."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import cache
from typing import Any

from lapwing.errors import Refused

_INTEGERS = "tuple[int, ...]"
_EXACT: dict[str, type] = {"int": int, "Fraction": Fraction, "str": str, "bool": bool, _INTEGERS: tuple}
_LEAVES = frozenset({int, str, bool, Fraction, type(None)})
"""Plain values without parts, such as key values of known groups."""


def require_exact_types(node: object) -> None:
    """Refuse a plan in which a field annotated as a plain type holds another one, subclasses included."""
    if isinstance(node, tuple):
        for item in node:
            if type(item) not in _LEAVES:
                require_exact_types(item)
    else:
        kind: Any = type(node)
        for name, annotation, exact, optional in _fields(kind):
            value = getattr(node, name)
            if exact is None:
                require_exact_types(value)
                continue
            right = type(value) is exact or (optional and value is None)
            if not right or (exact is tuple and not all(type(item) is int for item in value)):
                raise Refused("plan-type", f"{name} of {kind.__name__} must be {annotation}")


@cache
def _fields(of: type) -> tuple[tuple[str, str, type | None, bool], ...]:
    """For each field of a dataclass: its name, its annotation, the plain type it must have if any, whether it may be None."""
    if not dataclasses.is_dataclass(of):
        return ()
    annotations = ((field.name, str(field.type)) for field in dataclasses.fields(of))
    return tuple((name, text, _EXACT.get(text.removesuffix(" | None")), text.endswith(" | None")) for name, text in annotations)
