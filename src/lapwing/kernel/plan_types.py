"""Numbers of a plan are what their annotations say: True is not a row limit, and the kernel does not reason about floats."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from lapwing.errors import Refused

_EXACT = {"int": int, "Fraction": Fraction, "str": str, "bool": bool}


def require_exact_types(node: object) -> None:
    """Refuse a plan in which a field annotated as a plain type holds another one, subclasses included."""
    if isinstance(node, tuple):
        for item in node:
            require_exact_types(item)
    elif dataclasses.is_dataclass(node) and not isinstance(node, type):
        for field in dataclasses.fields(node):
            value, exact_type = getattr(node, field.name), _EXACT.get(str(field.type))
            if exact_type is None:
                require_exact_types(value)
            elif type(value) is not exact_type:
                raise Refused("plan-type", f"{field.name} of {type(node).__name__} must be {field.type}")
