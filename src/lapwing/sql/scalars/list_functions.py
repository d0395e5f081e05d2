"""Functions that take a list of constants, or that format a whole number."""

from __future__ import annotations

import re

from sqlglot import exp

from lapwing.kernel.domains import IntegerDomain
from lapwing.sql.scalars.functions import written_number
from lapwing.sql.scalars.named_function import Composer, FunctionReference, NamedFunction
from lapwing.sql.scalars.operators import among, list_items
from lapwing.sql.scalars.typed import Typed

_PATTERN = re.compile(r"((?:[^%]|%%)*)%(-?)(0?)([1-9]?)d((?:[^%]|%%)*)")


def _contains(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    return among(composer.scalars, composer.node, composer.bind(nodes[1]), list_items(composer.scalars, nodes[0]))


def _printf(composer: Composer, nodes: tuple[exp.Expr, ...]) -> Typed:
    """A whole number formatted by a pattern such as %02d: a public look-up over its range."""
    pattern, value = composer.constant_text(nodes[0]), composer.bind(nodes[1])
    match = _PATTERN.fullmatch(pattern)
    if match is None or not isinstance(value.domain, IntegerDomain):
        message, hint = "PRINTF formats one whole number", "write PRINTF('%02d', n), perhaps with text before and after %02d"
        raise composer.scalars.session.refuse("wrong-arguments", message, node=composer.node, hint=hint)
    before, left, zeros, width, after = match.groups()
    aligned = "<" if left else "0>" if zeros else ">"

    def write(number: int) -> str:
        digits = format(number, f"0{width}d") if aligned == "0>" and width else format(number, f"{aligned[-1]}{width}d")
        return f"{before.replace('%%', '%')}{digits}{after.replace('%%', '%')}"

    return written_number(composer.scalars, composer.node, value, value.domain, write)


NAMED: tuple[NamedFunction, ...] = (
    NamedFunction(
        FunctionReference(
            ("LIST_CONTAINS", "ARRAY_CONTAINS", "LIST_HAS", "ARRAY_HAS"),
            "[1, 2, 3], x",
            "conditions",
            "boolean",
            "whether a list of constants holds x",
            checked=(
                "LIST_CONTAINS([1, 2, 3], clinic_id)",
                "ARRAY_CONTAINS(['J10', 'C50'], code)",
                "LIST_HAS([5], minutes)",
                "ARRAY_HAS([1.5, 20], cost)",
            ),
            samples=(),
        ),
        2,
        2,
        _contains,
    ),
    NamedFunction(
        FunctionReference(
            ("PRINTF",),
            "'%02d', n",
            "text",
            "text",
            "a whole number with zeros or spaces before it, and text around it",
            total="a public look-up over the declared range, at most 1000 texts",
            checked=(
                "PRINTF('%02d', clinic_id)",
                "PRINTF('%4d|', minutes - 240)",
                "PRINTF('%-3d%%', clinic_id)",
                "PRINTF('n%05d', minutes)",
            ),
            samples=(),
        ),
        2,
        2,
        _printf,
    ),
)
