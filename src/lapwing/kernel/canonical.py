"""A canonical byte form of plans and facts, and its digest: equal values give equal bytes, different values different bytes.

Every part is written with its type and length, so two different trees never have the same text. A last field that came to a class later
(``ADDED``) is left out where it is None: trees without it keep the bytes that they had before.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any

ADDED = {"added": True}
"""Metadata of a field of a dataclass, the last one, that is None by default and that earlier digests do not know."""


def digest(value: object) -> str:
    """SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def canonical_bytes(value: object) -> bytes:
    """Canonical bytes of a tree of dataclasses, enums, mappings, tuples and plain values. Mappings are ordered by key."""
    # Plans may list a million groups, so the exact type of a part decides its form; isinstance checks would be slow.
    if type(value) is str:
        return _framed(b"s", value.encode("utf-8", "surrogatepass"))
    if type(value) is int:
        return b"i%d;" % value
    if type(value) is tuple:
        return _framed(b"t", b"".join(map(canonical_bytes, value)))
    kind: Any = type(value)
    outline = _outline(kind)
    if outline is not None:
        name, fields, added = outline
        if added is not None and getattr(value, added) is not None:
            fields = (*fields, added)
        return _framed(b"d", name + b"".join([canonical_bytes(getattr(value, field)) for field in fields]))
    match value:
        case None:
            return b"n;"
        case bool():
            return b"b1;" if value else b"b0;"
        case int():
            return b"i%d;" % value
        case Fraction():
            return b"f%d/%d;" % (value.numerator, value.denominator)
        case str():
            return _framed(b"s", value.encode("utf-8", "surrogatepass"))
        case Enum():
            return _framed(b"e", f"{type(value).__name__}.{value.name}".encode())
        case tuple():
            return _framed(b"t", b"".join(canonical_bytes(item) for item in value))
        case Mapping():
            items = sorted((canonical_bytes(key), canonical_bytes(item)) for key, item in value.items())
            return _framed(b"m", b"".join(key + item for key, item in items))
        case _:
            raise TypeError(f"no canonical form for {type(value).__name__}")


@cache
def _outline(of: type) -> tuple[bytes, tuple[str, ...], str | None] | None:
    """The name of a dataclass as bytes, the names of the fields that tell its values apart, and that of the one that was added; None for
    any other type.
    """
    if not dataclasses.is_dataclass(of) or issubclass(of, int | str | Fraction | Enum | tuple | Mapping):
        return None
    listed = [field for field in dataclasses.fields(of) if field.compare]
    added = [field.name for field in listed if field.metadata == ADDED]
    if added and added != [listed[-1].name]:
        raise TypeError(f"of {of.__name__}, one field may have been added, as the last one")
    return canonical_bytes(of.__name__), tuple(field.name for field in listed if field.name not in added), added[0] if added else None


def _framed(tag: bytes, body: bytes) -> bytes:
    return b"%s%d:%s" % (tag, len(body), body)
