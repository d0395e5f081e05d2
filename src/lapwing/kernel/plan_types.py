"""Numbers of a plan are what their annotations say: True is not a row limit, and the kernel does not reason about floats."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import cache

from lapwing.errors import Refused

_EXACT = {"int": int, "Fraction": Fraction, "str": str, "bool": bool}
_INTEGERS = "tuple[int, ...]"
_LEAVES = frozenset({int, str, bool, Fraction, type(None)})
"""Plain values, which hold nothing further. Key values of known groups are such."""


def require_exact_types(node: object) -> None:
    """Refuse a plan in which a field annotated as a plain type holds another one, subclasses included."""
    if isinstance(node, tuple):
        for item in node:
            if type(item) not in _LEAVES:
                require_exact_types(item)
    elif dataclasses.is_dataclass(node) and not isinstance(node, type):
        for name, annotation in _fields(type(node)):
            value = getattr(node, name)
            if annotation == _INTEGERS:
                exact = type(value) is tuple and all(type(item) is int for item in value)
            elif annotation.removesuffix(" | None") in _EXACT:
                optional = annotation.endswith(" | None")
                exact = (optional and value is None) or type(value) is _EXACT[annotation.removesuffix(" | None")]
            else:
                require_exact_types(value)
                continue
            if not exact:
                raise Refused("plan-type", f"{name} of {type(node).__name__} must be {annotation}")


@cache
def _fields(of: type) -> tuple[tuple[str, str], ...]:
    """Names and annotations of the fields of a dataclass."""
    return tuple((field.name, str(field.type)) for field in dataclasses.fields(of))
