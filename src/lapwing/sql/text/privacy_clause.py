"""The clause ``WITH PRIVACY (..)`` at the end of a statement, read from its tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.catalog.confidences import NOT_ASKED, can_be_asked
from lapwing.catalog.settings import Settings
from lapwing.errors import Refused, Span
from lapwing.kernel.accounting import EPSILON_MAX
from lapwing.sql.text.privacy_terms import (
    Clause,
    Confidence,
    EpsilonTerm,
    ErrorTerm,
    PriceTerm,
    Reuse,
    ReuseTerm,
    RhoTerm,
    ScaledGroups,
    ShareTerm,
)
from lapwing.sql.text.refusals import span_of

TERMS = ("epsilon", "rho", "error", "confidence", "scaled_groups", "reuse")
_VALUES = {"scaled_groups": "true or false", "reuse": "auto, never or only"}
"""The possible values of terms that are not numbers."""
_EXAMPLE = "such as WITH PRIVACY (epsilon = 0.2) or WITH PRIVACY (error = '5%', confidence = 0.95)"
_NUMBER = re.compile(r"(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?")
"""Digits are limited: 1e999999999 is a short text, but not a number that can be worked with exactly."""
_ERROR_MAX = Fraction(10) ** 30


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text split into tokens: the clause that ends it, if there is one, the places of its tokens, and the tokens of the rest."""

    clause: Clause | None
    places: tuple[tuple[int, int], ...]
    rest: tuple[Token, ...]


def read_clause(text: str, *, settings: Settings, dialect: str) -> TokenizedText | None:
    """The text split into tokens, with the clause at its end; None if it cannot be split. A clause elsewhere is refused."""
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except SqlglotError:
        return None  # the binder refuses the text
    if len(tokens) > 2 * settings.statement_nodes_max + 64:
        return None  # likewise
    starts = [i for i in range(len(tokens) - 1) if _starts(tokens, i)]
    if not starts:
        return TokenizedText(None, (), tuple(tokens))
    last = len(tokens)
    while tokens[last - 1].token_type is TokenType.SEMICOLON:
        last -= 1
    start = starts[-1]
    written = _Written(text, tuple(tokens[start:last]))
    if start + 2 >= last:
        raise written.refuse("privacy-words", "WITH PRIVACY needs a list in brackets", start=0, end=2, hint=_EXAMPLE)
    closing = _closing(tokens, start + 2)
    if len(starts) > 1 or closing is None or closing + 1 != last:
        wrong = _Written(text, tuple(tokens[starts[0] : starts[0] + 2]))
        hint = "write it once, after everything else"
        raise wrong.refuse("privacy-misplaced", "WITH PRIVACY must be at the end of the whole statement", start=0, end=2, hint=hint)
    places = tuple((token.start, token.end + 1) for token in written.tokens)
    return TokenizedText(written.clause(), places, (*tokens[:start], *tokens[last:]))


def statement_tokens(text: str, tokens: Sequence[Token] | None = None, *, dialect: str = "duckdb") -> tuple[tuple[str, str], ...] | None:
    """The tokens of a text, by which two spellings of one statement are recognised as the same: white space and comments do not count.

    ``tokens`` are the tokens of the text, if it has been split before.
    """
    if tokens is None:
        try:
            tokens = Dialect.get_or_raise(dialect).tokenize(text)
        except SqlglotError:
            return None
    return tuple((token.token_type.name, token.text) for token in tokens if token.token_type is not TokenType.SEMICOLON)


def _starts(tokens: list[Token], i: int) -> bool:
    """Whether WITH PRIVACY starts here, and not a common table expression named privacy."""
    if tokens[i].token_type is not TokenType.WITH or not _is_word(tokens[i + 1], "PRIVACY"):
        return False
    after = tokens[i + 2] if i + 2 < len(tokens) else None
    if after is None or after.token_type is TokenType.SEMICOLON:
        return True
    if after.token_type is not TokenType.L_PAREN:
        return False
    closing = _closing(tokens, i + 2)
    followed = closing is not None and closing + 1 < len(tokens)
    return not (closing is not None and followed and tokens[closing + 1].token_type is TokenType.ALIAS)


def _closing(tokens: list[Token], opening: int) -> int | None:
    """The bracket that closes this one."""
    depth = 0
    for i in range(opening, len(tokens)):
        depth += (tokens[i].token_type is TokenType.L_PAREN) - (tokens[i].token_type is TokenType.R_PAREN)
        if depth == 0:
            return i
    return None


def _is_word(token: Token, word: str) -> bool:
    return token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING) and token.text.upper() == word


@dataclass(frozen=True, slots=True)
class _Written:
    """The tokens of a clause, from WITH to its last bracket."""

    text: str
    tokens: tuple[Token, ...]

    def span(self, start: int, end: int) -> Span:
        """The span of the tokens from ``start`` up to ``end``."""
        return span_of(self.text, self.tokens[start].start, self.tokens[end - 1].end + 1)

    def refuse(self, code: str, message: str, *, start: int, end: int, hint: str = "") -> Refused:
        return Refused(code, message, hint=hint, span=self.span(start, end))

    def clause(self) -> Clause:
        """The clause with all its terms. Pre: the tokens are WITH PRIVACY ( .. )."""
        asked: PriceTerm | None = None
        confidence: Confidence | None = None
        scaled: ScaledGroups | None = None
        reuse: ReuseTerm | None = None
        seen: set[str] = set()
        at, last = 3, len(self.tokens) - 1
        if at == last:
            raise self.refuse("privacy-words", "WITH PRIVACY has no terms", start=0, end=last + 1, hint=_EXAMPLE)
        while at < last:
            end = next((i for i in range(at, last) if self.tokens[i].token_type is TokenType.COMMA), last)
            name = self._name(at, end)
            if name in seen:
                raise self.refuse("privacy-words", f"{name} is given twice", start=at, end=end)
            seen.add(name)
            if name == "confidence":
                confidence = self._confidence(at, end)
            elif name == "scaled_groups":
                scaled = self._scaled_groups(at, end)
            elif name == "reuse":
                reuse = self._reuse(at, end)
            elif asked is not None:
                message = "WITH PRIVACY takes only one of epsilon, rho and error"
                raise self.refuse("privacy-contradiction", message, start=at, end=end, hint="remove one of them")
            else:
                asked = self._asked(name, at, end)
            at = end + 1
            if at == last:
                raise self.refuse("privacy-words", "something is missing after this comma", start=end, end=end + 1)
        return Clause(self.span(0, last + 1), asked, confidence, scaled, reuse)

    def _name(self, at: int, end: int) -> str:
        """The name of the term; a name, an equals sign and a value are required here."""
        if at == end:
            raise self.refuse("privacy-words", "something is missing before this", start=at, end=at + 1, hint=_EXAMPLE)
        name = self.tokens[at].text.lower()
        if name not in TERMS or not _is_word(self.tokens[at], name.upper()):
            message = f"unknown term: the terms are {', '.join(TERMS[:-1])} and {TERMS[-1]}"
            raise self.refuse("privacy-words", message, start=at, end=at + 1, hint=_EXAMPLE)
        if end - at < 3 or self.tokens[at + 1].token_type is not TokenType.EQ:
            raise self.refuse(
                "privacy-words", f"write {name} = followed by {_VALUES.get(name, 'a number')}", start=at, end=end, hint=_EXAMPLE
            )
        return name

    def _number(self, at: int, end: int, what: str) -> Fraction:
        """The number after the equals sign, exactly as written."""
        first, last = self.tokens[at + 2], self.tokens[end - 1]
        written = self.text[first.start : last.end + 1]
        if _NUMBER.fullmatch(written) is None:
            raise self.refuse("number-unreadable", f"{what} must be a plain number", start=at + 2, end=end)
        return Fraction(written)

    def _asked(self, name: str, at: int, end: int) -> PriceTerm:
        span = self.span(at, end)
        if name == "error":
            return self._error(at, end)
        value = self._number(at, end, name)
        fits = 0 < value <= EPSILON_MAX
        if name == "epsilon":
            if not fits:
                raise self.refuse("epsilon-invalid", f"epsilon must be above 0 and at most {EPSILON_MAX}", start=at + 2, end=end)
            return EpsilonTerm(value, span)
        if not fits:
            raise self.refuse("rho-invalid", f"rho must be above 0 and at most {EPSILON_MAX}", start=at + 2, end=end)
        return RhoTerm(value, span)

    def _error(self, at: int, end: int) -> PriceTerm:
        token = self.tokens[at + 2]
        if token.token_type is not TokenType.STRING:
            value = self._number(at, end, "error")
            if not 0 < value <= _ERROR_MAX:
                raise self.refuse("error-invalid", "an error must be above 0", start=at + 2, end=end)
            return ErrorTerm(value, self.span(at, end))
        number, sign, rest = token.text.partition("%")
        if end != at + 3 or not sign or rest.strip() or _NUMBER.fullmatch(number.strip()) is None:
            hint = "write error = 100, or error = '5%' for a share of the value"
            raise self.refuse("error-invalid", "this is neither a number nor a percentage", start=at + 2, end=end, hint=hint)
        share = Fraction(number.strip()) / 100
        if not 0 < share <= 1:
            raise self.refuse("error-invalid", "an error as a percentage must be above 0 and at most 100", start=at + 2, end=end)
        return ShareTerm(share, self.span(at, end))

    def _confidence(self, at: int, end: int) -> Confidence:
        value = self._number(at, end, "confidence")
        if not can_be_asked(value):
            raise self.refuse("confidence-invalid", NOT_ASKED, start=at + 2, end=end)
        return Confidence(value, self.span(at, end))

    def _scaled_groups(self, at: int, end: int) -> ScaledGroups:
        value = self.tokens[at + 2].text.lower()
        if end != at + 3 or value not in ("true", "false") or not _is_word(self.tokens[at + 2], value.upper()):
            raise self.refuse("privacy-words", "scaled_groups must be true or false", start=at + 2, end=end)
        return ScaledGroups(value == "true", self.span(at, end))

    def _reuse(self, at: int, end: int) -> ReuseTerm:
        value = self.tokens[at + 2].text.lower()
        if end != at + 3 or value not in [*Reuse] or not _is_word(self.tokens[at + 2], value.upper()):
            raise self.refuse("privacy-words", "reuse must be auto, never or only", start=at + 2, end=end)
        return ReuseTerm(Reuse(value), self.span(at, end))
