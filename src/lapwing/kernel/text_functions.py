"""Domain rules of the functions of text; see ``functions`` for what every rule guarantees.

Characters are Unicode code points. A text here has at most ``OPEN_TEXT_BYTES`` of them, as every open text has and as is required of any
other: a part of a text has no more characters than the text, and a text in another case as many, letter by letter.
"""

from __future__ import annotations

from lapwing.errors import Refused
from lapwing.kernel.domains import OPEN_TEXT_BYTES, Domain, IntegerDomain, TextDomain, bytes_max
from lapwing.kernel.expressions import Expression, Function, Literal
from lapwing.kernel.rules import Rule, any_null, require_count, wrong_kinds

PLACES_MAX = 2**21
"""Greatest start and length of a part of a text: far beyond any text, and within the smallest integers of engines."""


def _text(function: Function, domains: tuple[Domain, ...]) -> TextDomain:
    """The text that a function is of, or refuse."""
    text = domains[0]
    if not isinstance(text, TextDomain):
        raise wrong_kinds(function.value, domains)
    if text.values is not None and bytes_max(text) > OPEN_TEXT_BYTES:
        raise Refused("range-too-wide", f"{function.value} takes text of at most {OPEN_TEXT_BYTES} bytes")
    return text


def _length(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    require_count(Function.LENGTH, domains, 1)
    return IntegerDomain(0, OPEN_TEXT_BYTES, _text(Function.LENGTH, domains).nullable)


def _position(domains: tuple[Domain, ...], arguments: tuple[Expression, ...]) -> Domain:
    """The position of a constant in a text, from 1; 0 if it does not occur. The empty constant has no position and is refused."""
    require_count(Function.POSITION, domains, 2)
    text, part = _text(Function.POSITION, domains), arguments[1]
    if not isinstance(part, Literal) or not isinstance(part.value, str):
        raise wrong_kinds("position", domains)
    if not part.value:
        raise Refused("wrong-arguments", "the text that is looked for is not empty")
    return IntegerDomain(0, OPEN_TEXT_BYTES, text.nullable)


def _substring(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
    """That many characters from a position on, counted from 1; fewer if the text ends."""
    require_count(Function.SUBSTRING, domains, 3)
    _text(Function.SUBSTRING, domains)
    start, length = domains[1:]
    if not isinstance(start, IntegerDomain) or not isinstance(length, IntegerDomain):
        raise wrong_kinds("substring", domains)
    if start.lo < 1 or length.lo < 0 or max(start.hi, length.hi) > PLACES_MAX:
        raise Refused("wrong-arguments", "a part of a text starts at 1 or later and has no negative length")
    return TextDomain(None, any_null(domains))


def _in_case(function: Function) -> Rule:
    def rule(domains: tuple[Domain, ...], _: tuple[Expression, ...]) -> Domain:
        require_count(function, domains, 1)
        return TextDomain(None, _text(function, domains).nullable)

    return rule


TEXT_RULES: dict[Function, Rule] = {
    Function.LENGTH: _length,
    Function.POSITION: _position,
    Function.SUBSTRING: _substring,
    Function.LOWER: _in_case(Function.LOWER),
    Function.UPPER: _in_case(Function.UPPER),
}
