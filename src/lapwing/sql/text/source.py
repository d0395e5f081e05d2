"""A statement's text and tokens: limits before parsing, spans of nodes, and the check that no word of the text was left unread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.catalog.settings import Settings
from lapwing.errors import Refused, Span
from lapwing.sql.text.privacy_words import after_gap
from lapwing.sql.text.refusals import span_of

_STRUCTURE_WORDS = """
SELECT FROM WHERE GROUP_BY HAVING ORDER_BY LIMIT OFFSET FETCH JOIN INNER LEFT RIGHT FULL CROSS OUTER ON USING ALIAS DISTINCT FILTER
WITH UNION EXCEPT INTERSECT ALL EXISTS LATERAL OVER PARTITION_BY ROLLUP CUBE GROUPING_SETS QUALIFY WINDOW ROWS RANGE VALUES
AND OR NOT IN BETWEEN IS NULL TRUE FALSE LIKE ILIKE SIMILAR_TO ESCAPE CASE WHEN THEN ELSE END ASC DESC
COMMA DOT L_PAREN R_PAREN L_BRACKET R_BRACKET PLUS DASH STAR SLASH DIV MOD EQ NEQ LT LTE GT GTE DCOLON DPIPE SEMICOLON INTERVAL
DOUBLE FLOAT DECIMAL BOOLEAN DATE TIMESTAMP TIMESTAMPNTZ INT BIGINT SMALLINT TINYINT TEXT VARCHAR
"""
STRUCTURE = frozenset(TokenType[name] for name in _STRUCTURE_WORDS.split())
"""Structural tokens: the tree determines their places."""

_OTHER_WORDS = """
ARRAY CAST TRY_CAST EXTRACT SUBSTRING SUBSTR TRIM CONCAT IF FLOOR CEIL CEILING NULLS FIRST LAST
YEAR ISOYEAR DECADE QUARTER MONTH WEEK WEEKOFYEAR DAY DOY DAYOFYEAR DOW DAYOFWEEK ISODOW HOUR MINUTE SECOND EPOCH
"""
NOISE = frozenset(_OTHER_WORDS.split())
"""Words that the parser does not keep as names: casts, parts of dates, the order of NULLs."""

FRAME = frozenset({"UNBOUNDED", "PRECEDING", "FOLLOWING", "CURRENT", "ROW"})
"""Words of the frame of a window: the census counts them against the frames of the tree."""

UNPLACED: tuple[tuple[frozenset[str], type[exp.Expr]], ...] = (
    (frozenset({"ANY"}), exp.Any),
    (frozenset({"APPROX_QUANTILE"}), exp.ApproxQuantile),
    (frozenset({"ARG_MAX", "ARGMAX", "MAX_BY"}), exp.ArgMax),
    (frozenset({"ARG_MIN", "ARGMIN", "MIN_BY"}), exp.ArgMin),
    (frozenset({"CURRENT_DATE"}), exp.CurrentDate),
    (frozenset({"CURRENT_TIMESTAMP"}), exp.CurrentTimestamp),
    (frozenset({"LOCALTIMESTAMP"}), exp.Localtimestamp),
    (frozenset({"GROUP_CONCAT", "LISTAGG", "STRING_AGG"}), exp.GroupConcat),
    (frozenset({"MAX"}), exp.Max),
    (frozenset({"MIN"}), exp.Min),
    (frozenset({"QUANTILE"}), exp.Quantile),
    (frozenset({"QUANTILE_CONT"}), exp.PercentileCont),
    (frozenset({"QUANTILE_DISC"}), exp.PercentileDisc),
    (frozenset({"WITHIN"}), exp.WithinGroup),
    (frozenset({"GROUP"}), exp.WithinGroup),
)
"""Names of functions for which the parser may keep no position: the census counts them against the nodes that have none."""
_UNPLACED_WORDS = frozenset(word for words, _ in UNPLACED for word in words)

_ROW_WORDS = {
    TokenType.OFFSET: [["n", rows] for rows in ("ROW", "ROWS")],
    TokenType.FETCH: [
        [order, *number, rows, *end]
        for order in ("FIRST", "NEXT")
        for number in (["n"], [])
        for rows in ("ROW", "ROWS")
        for end in (["ONLY"], ["WITH", "TIES"])
    ],
}
"""What may follow these words in place of a plain number."""

_BRACKETS = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
    TokenType.CASE: TokenType.END,
}
_OPENING, _CLOSING = frozenset(_BRACKETS), frozenset(_BRACKETS.values())

_WORDS = {TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER}

_STARTS_WITH: dict[type[exp.Expr], frozenset[TokenType]] = {
    exp.Case: frozenset({TokenType.CASE}),
    exp.Not: frozenset({TokenType.NOT}),
    exp.Neg: frozenset({TokenType.DASH}),
    exp.Paren: frozenset({TokenType.L_PAREN}),
    exp.Subquery: frozenset({TokenType.L_PAREN}),
    exp.Select: frozenset({TokenType.SELECT}),
    exp.With: frozenset({TokenType.WITH}),
    exp.Union: frozenset({TokenType.SELECT}),
}
"""Nodes whose first word leaves no position in the tree."""


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one statement and its tokens. ``at`` gives the index of the token that starts at a position."""

    text: str
    tokens: tuple[Token, ...]
    at: dict[int, int]

    def refuse(self, code: str, message: str, *, node: exp.Expr | None = None, hint: str = "") -> Refused:
        """A refusal that points at a node, or at the whole text where there is none."""
        return Refused(code, message, hint=hint, span=self.span(node))

    def refuse_token(self, code: str, message: str, token: Token, *, hint: str = "") -> Refused:
        """A refusal that points at a token."""
        return Refused(code, message, hint=hint, span=span_of(self.text, token.start, token.end + 1))

    def span(self, node: exp.Expr | None) -> Span:
        """The text of a node, brackets included. Where it has no position: a word that no node has, or the nearest enclosing node."""
        if isinstance(node, exp.Null) and node.parent is not None and (word := self._null_of(node.parent)) is not None:
            return span_of(self.text, word.start, word.end + 1)
        if node is not None and not any(True for _ in positions(node)):
            lost = next(untraced(self, node.root()), None)
            if lost is not None:
                return span_of(self.text, lost.start, lost.end + 1)
        while node is not None:
            places = [self.at[start] for start in positions(node) if start in self.at]
            if places:
                first, last = self._widened(min(places), max(places), node)
                return span_of(self.text, self.tokens[first].start, self.tokens[last].end + 1)
            node = node.parent
        end = self.tokens[-1].end + 1 if self.tokens else len(self.text)
        return span_of(self.text, self.tokens[0].start if self.tokens else 0, end)

    def _null_of(self, parent: exp.Expr) -> Token | None:
        """The first word NULL of a node: the parser keeps no position of it."""
        places = [self.at[start] for start in positions(parent) if start in self.at]
        near = self.tokens[min(places) : max(places) + 4] if places else ()
        return next((token for token in near if token.token_type is TokenType.NULL), None)

    def _widened(self, first: int, last: int, node: exp.Expr) -> tuple[int, int]:
        """From the first to the last token with a position, widened until words that have none and brackets are inside."""
        opening = _STARTS_WITH.get(type(node), frozenset())
        if opening and self.tokens[first].token_type not in opening:
            earlier = [i for i in range(first) if self.tokens[i].token_type in opening]
            first = earlier[-1] if earlier else first
        elif isinstance(node, exp.Func):
            first = self._name_before(first, node)
        depth = lowest = 0
        for i in range(first, last + 1):
            depth += (self.tokens[i].token_type in _OPENING) - (self.tokens[i].token_type in _CLOSING)
            lowest = min(lowest, depth)
        while lowest < 0 < first:  # a bracket is closed in here that was opened before: (SELECT a) / (SELECT b)
            first -= 1
            step = (self.tokens[first].token_type in _OPENING) - (self.tokens[first].token_type in _CLOSING)
            depth, lowest = depth + step, min(0, lowest + step)
        if isinstance(node, exp.Func | exp.AggFunc) and last + 1 < len(self.tokens) and first == last:
            depth += 1 if self.tokens[last + 1].token_type is TokenType.L_PAREN else 0
            last += depth
        while depth > 0 and last + 1 < len(self.tokens):
            last += 1
            depth += (self.tokens[last].token_type in _OPENING) - (self.tokens[last].token_type in _CLOSING)
        return first, last

    def _name_before(self, first: int, node: exp.Expr) -> int:
        """The token of a function's name where the parser kept no position for it: before a bracket, or a type before a constant."""
        if node.meta.get("start") is not None:
            return first
        for i in range(first - 1, max(first - 5, 0), -1):
            if self.tokens[i].token_type is TokenType.L_PAREN:
                return i - 1 if self.tokens[i - 1].token_type not in (TokenType.SELECT, TokenType.COMMA) else first
            if self.tokens[i].token_type in (TokenType.DATE, TokenType.TIMESTAMP, TokenType.TIMESTAMPNTZ):
                return i
            if not isinstance(node, exp.Extract):
                return first
        return first

    def called_name(self, node: exp.Expr) -> str:
        """The name of a function in the text, or an empty text."""
        span = self.span(node)
        name, bracket, _ = self.text[span.start : span.end].partition("(")
        return name.strip() if bracket and name.strip().isidentifier() else ""

    def word(self, node: exp.Expr) -> str:
        """The one word that a node was written as, such as CURRENT_DATE, or an empty text."""
        span = self.span(node)
        written = self.text[span.start : span.end]
        return written if written.isidentifier() else ""

    def name_token(self, node: exp.Expr) -> Token | None:
        """The token a node was made from: the name of a function, a word, a literal."""
        start = node.meta.get("start")
        return self.tokens[self.at[start]] if start in self.at else None


def positions(node: exp.Expr) -> Iterator[int]:
    """Where in the text the node and everything below it came from, as far as the parser says."""
    for part in node.walk():
        start = part.meta.get("start")
        if isinstance(start, int):
            yield start


def tokenise(text: str, tokens: tuple[Token, ...] | None = None, *, settings: Settings, dialect: Dialect) -> Source:
    """Tokens of a text within the limits, or refuse. Every character is part of a token, white space or an ordinary comment.

    ``tokens`` are the tokens of the text, if it has been split before; they are checked like others.
    """
    if len(text.encode("utf-8", "surrogatepass")) > settings.statement_bytes_max:
        message = f"the statement is longer than {settings.statement_bytes_max} bytes"
        raise Refused("statement-too-long", message, span=span_of(text, 0, len(text)))
    for i, character in enumerate(text):
        if character == "\x00" or 0xD800 <= ord(character) <= 0xDFFF:
            raise Refused("text-invalid", "the statement contains a character that is not text", span=span_of(text, i, i + 1))
    if tokens is None:
        try:
            tokens = tuple(dialect.tokenize(text))
        except SqlglotError as error:
            raise Refused("sql-syntax", "the statement ends inside a quoted text or comment", span=span_of(text, 0, len(text))) from error
    if not tokens:
        raise Refused("statement-empty", "there is no statement", span=span_of(text, 0, len(text)))
    source = Source(text, tokens, {token.start: i for i, token in enumerate(tokens)})
    _check_kind(source)
    _check_gaps(source)
    _check_size(source, settings)
    _check_brackets(source, settings.expression_depth_max)
    _check_lists(source)
    return source


_FIRST_WORDS = ("SELECT", "FROM", "WITH", "SHOW", "DESCRIBE", "EXPLAIN")


def _check_kind(source: Source) -> None:
    """Refuse text that does not start like a query, before the parser sees it: it treats unknown statements as text to pass on."""
    first = source.tokens[0]
    if first.token_type not in (TokenType.SELECT, TokenType.FROM, TokenType.WITH, TokenType.L_PAREN):
        is_no_command = first.token_type is TokenType.VAR
        close = get_close_matches(first.text.upper(), _FIRST_WORDS, n=1) if is_no_command else []
        hint = f"did you mean {close[0]}?" if close else "data is never changed"
        raise source.refuse_token("statement-unsupported", "only SELECT is answered", first, hint=hint)
    ended = False
    for token in source.tokens:
        if ended and token.token_type is not TokenType.SEMICOLON:
            hint = "send the statements one by one"
            raise source.refuse_token("statement-several", "there is more than one statement", token, hint=hint)
        ended = ended or token.token_type is TokenType.SEMICOLON


def _check_gaps(source: Source) -> None:
    """Only white space or comments may separate tokens; words that touch are refused, because dialects split them differently."""
    end = 0
    before: Token | None = None
    for token in source.tokens:
        gap = source.text[end : token.start]
        _check_comment(source, gap, end)
        if before is not None and not gap and before.token_type in _WORDS and token.token_type in _WORDS:
            raise source.refuse_token("sql-syntax", "two words are not separated by a space", token)
        end, before = token.end + 1, token
    _check_comment(source, source.text[end:], end)


def _check_comment(source: Source, gap: str, start: int) -> None:
    """Between tokens there is only white space and comments: -- to the end of the line, or nested /* */."""
    at = after_gap(gap, 0)
    if at == len(gap):
        return
    where = span_of(source.text, start + at, start + len(gap))
    if gap.startswith("/*+", at):
        raise Refused("hint-unsupported", "hints to an engine are not accepted", hint="leave the comment out", span=where)
    raise Refused("sql-syntax", "this cannot be read as SQL", span=where)


_CLAUSE_ORDER = (("WHERE",), ("GROUP_BY",), ("HAVING",), ("QUALIFY",), ("ORDER_BY",), ("LIMIT", "OFFSET", "FETCH"))
_CLAUSES = {TokenType[name]: place for place, names in enumerate(_CLAUSE_ORDER, start=1) for name in names}
"""Clauses in the order they are written; LIMIT, OFFSET and FETCH in any."""
_BEFORE_ITEM = {TokenType.COMMA, TokenType.L_PAREN, TokenType.SELECT, *_CLAUSES}
_AFTER_ITEM = {TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.SEMICOLON, *_CLAUSES}


def _check_lists(source: Source) -> None:
    """Refuse lists with a missing item: the parser ignores the gap, and f(, 1) would become f(1)."""
    for before, token, after in zip(source.tokens, source.tokens[1:], (*source.tokens[2:], None), strict=False):
        if token.token_type not in (TokenType.COMMA, TokenType.ALIAS):
            continue
        nothing_after = after is None or after.token_type in _AFTER_ITEM
        if before.token_type in _BEFORE_ITEM or nothing_after:
            raise source.refuse_token("sql-syntax", "something is missing next to this", token)


def _check_brackets(source: Source, levels_max: int) -> None:
    """Refuse text that the parser would wrongly accept: brackets that do not match, clauses out of order; and nesting too deep for it."""
    opened: list[Token] = []
    clauses = [0]
    for token in source.tokens:
        kind = token.token_type
        if kind is TokenType.SELECT:
            clauses[-1] = 0
        elif kind in _CLAUSES:
            if _CLAUSES[kind] < clauses[-1]:
                raise source.refuse_token("sql-syntax", "this clause comes too late", token)
            clauses[-1] = _CLAUSES[kind]
        if kind in _BRACKETS:
            opened.append(token)
            clauses.append(0)
            if len(opened) > levels_max + 1:
                raise source.refuse_token("expression-too-deep", f"the statement is nested deeper than {levels_max} levels", token)
        elif kind in _BRACKETS.values():
            if not opened or _BRACKETS[opened.pop().token_type] is not kind:
                raise source.refuse_token("sql-syntax", "there is nothing to close here", token)
            clauses.pop()
    if opened:
        raise source.refuse_token("sql-syntax", "this is never closed", opened[-1])


def _check_size(source: Source, settings: Settings) -> None:
    # A parsed node comes from at least half a token, so this bounds the parser's work before it starts.
    if len(source.tokens) > 2 * settings.statement_nodes_max + 64:
        raise source.refuse("statement-too-large", f"the statement has more than {settings.statement_nodes_max} parts")


def untraced(source: Source, tree: exp.Expr) -> Iterator[Token]:
    """Words of the text that left no trace in the tree and are not structure."""
    traced = set(positions(tree)) | {token.start for interval in intervals(source) for token in interval}
    traced |= {token.start for token in row_words(source)} | {token.start for token in star_words(source)}
    traced |= {token.start for token in pivot_words(source)} | {token.start for token in substring_words(source)}
    before: Token | None = None
    for token in source.tokens:
        is_structure = token.token_type in STRUCTURE and token.text.upper() != "DIV"  # // is meant
        word = token.text.upper()
        if not (
            is_structure
            or token.start in traced
            or word in NOISE
            or word in FRAME
            or word in _UNPLACED_WORDS
            or _is_fraction(before, token)
        ):
            yield token
        before = token


def row_words(source: Source) -> Iterator[Token]:
    """The words around the number of FETCH FIRST n ROWS ONLY and OFFSET n ROWS, which keep no position."""
    for i, token in enumerate(source.tokens):
        if token.token_type not in (TokenType.FETCH, TokenType.OFFSET):
            continue
        words = source.tokens[i + 1 : i + 6]
        written = ["n" if word.token_type is TokenType.NUMBER else word.text.upper() for word in words]
        for form in _ROW_WORDS[token.token_type]:
            if written[: len(form)] == form:
                yield from (word for word in words[: len(form)] if word.token_type is not TokenType.NUMBER)


def star_words(source: Source) -> Iterator[Token]:
    """The word of * EXCLUDE (..), which keeps no position; its names are read with the star."""
    for star, token, bracket in zip(source.tokens, source.tokens[1:], source.tokens[2:], strict=False):
        if star.token_type is TokenType.STAR and token.text.upper() == "EXCLUDE" and bracket.token_type is TokenType.L_PAREN:
            yield token


def substring_words(source: Source) -> Iterator[Token]:
    """FROM and FOR of SUBSTRING(s FROM 1 FOR 2) with plain numbers, which keep no position; the numbers do."""
    called: list[str] = []
    before = ""
    for i, token in enumerate(source.tokens):
        if token.token_type is TokenType.L_PAREN:
            called.append(before)
        elif token.token_type is TokenType.R_PAREN and called:
            called.pop()
        elif token.token_type is TokenType.FROM and called[-1:] in (["SUBSTRING"], ["SUBSTR"]):
            following = source.tokens[i + 1 : i + 5]
            kinds = ["n" if word.token_type is TokenType.NUMBER else word.text.upper() for word in following]
            if kinds[:2] == ["n", ")"]:
                yield token
            elif kinds == ["n", "FOR", "n", ")"]:
                yield from (token, following[1])
        before = token.text.upper()


def pivot_words(source: Source) -> Iterator[Token]:
    """The words PIVOT ( and the FOR inside, which keep no position; their contents are read with the node."""
    depth = 0
    for token, bracket in zip(source.tokens, (*source.tokens[1:], None), strict=True):
        if token.token_type is TokenType.PIVOT and bracket is not None and bracket.token_type is TokenType.L_PAREN:
            depth += 1
            yield token
        elif depth and token.token_type is TokenType.FOR:
            depth -= 1
            yield token


def intervals(source: Source) -> list[tuple[Token, ...]]:
    """The words after each INTERVAL: a text that may hold number and unit, or a number or text and then a unit. They keep no position."""
    runs = []
    for i, token in enumerate(source.tokens):
        if token.token_type is TokenType.INTERVAL:
            words = source.tokens[i + 1 : i + 3]
            alone = bool(words) and words[0].token_type is TokenType.STRING and not words[0].text.strip().isdigit()
            runs.append(words[:1] if alone else words)
    return runs


def _is_fraction(before: Token | None, token: Token) -> bool:
    """Whether this is the 5 of .5, which is one constant without a position."""
    touches = before is not None and before.token_type is TokenType.DOT and before.end + 1 == token.start
    return touches and token.token_type is TokenType.NUMBER
