"""A census of words: we would not notice a word that the parser silently drops, so the words of the text are counted against the tree.

Three checks that share nothing with binding. A name, number or text must be the origin of some node. A word of structure (AND, THEN, JOIN)
must appear as often as the nodes of the tree require it. AS must be followed by a name, and no reserved word is a name by accident.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.sql.text.reader import is_set
from lapwing.sql.text.source import FRAME, UNPLACED, Source, intervals, positions, row_words, substring_words, untraced

Counts = dict[TokenType, int]

_PLAIN: dict[type[exp.Expr], tuple[TokenType, ...]] = {
    exp.Select: (TokenType.SELECT,),
    exp.From: (TokenType.FROM,),
    exp.Extract: (TokenType.FROM,),
    exp.Where: (TokenType.WHERE,),
    exp.Having: (TokenType.HAVING,),
    exp.Order: (TokenType.ORDER_BY,),
    exp.Limit: (TokenType.LIMIT,),
    exp.Offset: (TokenType.OFFSET,),
    exp.Fetch: (TokenType.FETCH,),
    exp.Filter: (TokenType.FILTER,),
    exp.And: (TokenType.AND,),
    exp.Or: (TokenType.OR,),
    exp.Not: (TokenType.NOT,),
    exp.In: (TokenType.IN,),
    exp.Between: (TokenType.BETWEEN, TokenType.AND),
    exp.Is: (TokenType.IS,),
    exp.Null: (TokenType.NULL,),
    exp.Escape: (TokenType.ESCAPE,),
    exp.SimilarTo: (TokenType.SIMILAR_TO,),
    exp.Add: (TokenType.PLUS,),
    exp.Sub: (TokenType.DASH,),
    exp.Neg: (TokenType.DASH,),
    exp.Mul: (TokenType.STAR,),
    exp.Div: (TokenType.SLASH,),
    exp.EQ: (TokenType.EQ,),
    exp.NEQ: (TokenType.NEQ,),
    exp.LT: (TokenType.LT,),
    exp.LTE: (TokenType.LTE,),
    exp.GT: (TokenType.GT,),
    exp.GTE: (TokenType.GTE,),
    exp.DPipe: (TokenType.DPIPE,),
    exp.Interval: (TokenType.INTERVAL,),
    exp.NullSafeEQ: (TokenType.IS, TokenType.NOT, TokenType.DISTINCT, TokenType.FROM),
    exp.NullSafeNEQ: (TokenType.IS, TokenType.DISTINCT, TokenType.FROM),
    exp.With: (TokenType.WITH,),
    exp.Exists: (TokenType.EXISTS,),
    exp.Lateral: (TokenType.LATERAL,),
    exp.Rollup: (TokenType.ROLLUP,),
    exp.Cube: (TokenType.CUBE,),
    exp.GroupingSets: (TokenType.GROUPING_SETS,),
    exp.Qualify: (TokenType.QUALIFY,),
    exp.Values: (TokenType.VALUES,),
    exp.Array: (TokenType.L_BRACKET, TokenType.R_BRACKET),
}
"""Words that every node of a class requires."""

_TYPES = frozenset(
    {
        TokenType.DOUBLE,
        TokenType.FLOAT,
        TokenType.DECIMAL,
        TokenType.BOOLEAN,
        TokenType.DATE,
        TokenType.TIMESTAMP,
        TokenType.TIMESTAMPNTZ,
        TokenType.INT,
        TokenType.BIGINT,
        TokenType.SMALLINT,
        TokenType.TINYINT,
        TokenType.TEXT,
        TokenType.VARCHAR,
    }
)
"""Names of types: each cast requires one of them, and all are counted as one."""


def _case(node: exp.Expr) -> Counts:
    return {TokenType.CASE: 1, TokenType.END: 1, TokenType.ELSE: int(is_set(node.args.get("default")))}


def _branch(node: exp.Expr) -> Counts:
    return {TokenType.WHEN: 1, TokenType.THEN: 1} if isinstance(node.parent, exp.Case) and node.arg_key == "ifs" else {}


def _like(kind: TokenType) -> Callable[[exp.Expr], Counts]:
    return lambda node: {kind: 1, TokenType.NOT: int(is_set(node.args.get("negate")))}


def _join(node: exp.Expr) -> Counts:
    side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
    comma = not side and not kind and not any(is_set(node.args.get(name)) for name in ("on", "using", "method"))
    return {
        TokenType.JOIN: int(not comma),
        TokenType.LEFT: int(side == "LEFT"),
        TokenType.RIGHT: int(side == "RIGHT"),
        TokenType.FULL: int(side == "FULL"),
        TokenType.INNER: int(kind == "INNER"),
        TokenType.OUTER: int(kind == "OUTER"),
        TokenType.CROSS: int(kind == "CROSS"),
        TokenType.ON: int(is_set(node.args.get("on"))),
        TokenType.USING: int(is_set(node.args.get("using"))),
    }


def _distinct(node: exp.Expr) -> Counts:
    return {TokenType.DISTINCT: 1, TokenType.ON: int(is_set(node.args.get("on")))}


def _frame(node: exp.Expr) -> Counts:
    both = int(is_set(node.args.get("end")))
    kind = str(node.args.get("kind"))
    return {TokenType.BETWEEN: both, TokenType.AND: both, TokenType.ROWS: int(kind == "ROWS"), TokenType.RANGE: int(kind == "RANGE")}


def _is_named(node: exp.Expr) -> bool:
    """Whether this is a window of WINDOW w AS (...)."""
    return isinstance(node, exp.Window) and node.arg_key == "windows"


def _modulo(node: exp.Expr) -> Counts:
    return {TokenType.MOD: int(node.meta.get("start") is None)}  # mod(a, b) has a name instead


_COUNTED: dict[type[exp.Expr], Callable[[exp.Expr], Counts]] = {
    exp.Case: _case,
    exp.If: _branch,
    exp.Like: _like(TokenType.LIKE),
    exp.ILike: _like(TokenType.ILIKE),
    exp.Join: _join,
    exp.Distinct: _distinct,
    exp.WindowSpec: _frame,
    exp.Group: lambda node: {TokenType.GROUP_BY: 1, TokenType.ALL: int(node.args.get("all") is True)},
    exp.Mod: _modulo,
    exp.LimitOptions: lambda node: {TokenType.MOD: int(node.args.get("percent") is True)},
    exp.IntDiv: lambda node: {TokenType.DIV: int(node.meta.get("start") is None)},  # div(a, b) has a name instead
    exp.Union: lambda node: {TokenType.UNION: 1, TokenType.ALL: int(node.args.get("distinct") is False)},
    exp.Except: lambda node: {TokenType.EXCEPT: 1, TokenType.ALL: int(node.args.get("distinct") is False)},
    exp.Intersect: lambda node: {TokenType.INTERSECT: 1, TokenType.ALL: int(node.args.get("distinct") is False)},
    exp.Select: lambda node: {TokenType.WINDOW: int(is_set(node.args.get("windows")))},
    exp.Window: lambda node: {TokenType.OVER: int(not _is_named(node)), TokenType.PARTITION_BY: int(is_set(node.args.get("partition_by")))},
    exp.Ordered: lambda node: {TokenType.DESC: int(is_set(node.args.get("desc"))), TokenType.ALL: int(type(node.this) is exp.Var)},
    exp.Boolean: lambda node: {TokenType.TRUE if node.args.get("this") else TokenType.FALSE: 1},
    exp.DataType: lambda _: {TokenType.DATE: 1},
}
"""Words that depend on the node's arguments."""

_COUNTABLE = frozenset(
    {word for words in _PLAIN.values() for word in words}
    | {TokenType.CASE, TokenType.END, TokenType.ELSE, TokenType.WHEN, TokenType.THEN, TokenType.LIKE, TokenType.ILIKE, TokenType.JOIN}
    | {TokenType.LEFT, TokenType.INNER, TokenType.OUTER, TokenType.ON, TokenType.USING, TokenType.MOD, TokenType.DIV, TokenType.DESC}
    | {TokenType.TRUE, TokenType.FALSE, TokenType.DATE, TokenType.UNION, TokenType.ALL, TokenType.OVER, TokenType.PARTITION_BY}
    | {TokenType.EXCEPT, TokenType.INTERSECT, TokenType.WINDOW}
    | {TokenType.RIGHT, TokenType.FULL, TokenType.CROSS, TokenType.DISTINCT, TokenType.ROWS, TokenType.RANGE, TokenType.GROUP_BY}
)


def take_census(source: Source, tree: exp.Expr) -> None:
    """Refuse a text that has words the tree does not account for."""
    for token in untraced(source, tree):
        raise source.refuse_token("sql-unsupported", f"{token.text.upper()} is not supported here", token)
    traced = frozenset(positions(tree)) | {token.start for token in (*row_words(source), *substring_words(source))}
    nodes = list(tree.walk())
    owed: Counter[TokenType] = Counter()
    for node in nodes:
        for word in _PLAIN.get(type(node), ()):
            owed[word] += 1
        counted = _COUNTED.get(type(node))
        if counted is not None:
            owed.update(counted(node))
    for kind, token in _structure(source, traced):
        owed[kind] -= 1
        if owed[kind] < 0:
            raise source.refuse_token("sql-syntax", "this word has no meaning here", token)
    for kind, missing in owed.items():
        if missing > 0:
            raise source.refuse("sql-syntax", f"a word is missing: {kind.name.replace('_', ' ')}")
    _check_unplaced(source, nodes, traced)
    _check_intervals(source, nodes)
    _check_frames(source, nodes, traced)
    _check_names(source, traced, named=sum(isinstance(node, exp.CTE) or _is_named(node) for node in nodes))
    for node in nodes:
        if isinstance(node, exp.Identifier) and node.arg_key in ("alias", "this") and isinstance(node.parent, exp.Alias | exp.TableAlias):
            _check_alias(source, node)


def _check_unplaced(source: Source, nodes: Sequence[exp.Expr], traced: frozenset[int]) -> None:
    """There are as many names without a position as nodes without one."""
    for words, kind in UNPLACED:
        owed = sum(type(node) is kind and node.meta.get("start") is None for node in nodes)
        for token in source.tokens:
            if token.text.upper() in words and token.start not in traced:
                owed -= 1
                if owed < 0:
                    raise source.refuse_token("sql-syntax", "this word has no meaning here", token)
        if owed:
            raise source.refuse("sql-syntax", f"a word is missing: {min(words)}")


def _check_intervals(source: Source, tree: Sequence[exp.Expr]) -> None:
    """The intervals of the tree are those of the text: the parser takes their words apart and keeps no position."""
    written = Counter(tuple(" ".join(token.text for token in words).upper().split()) for words in intervals(source))
    nodes = [node for node in tree if isinstance(node, exp.Interval)]
    read = Counter(tuple(f"{node.text('this')} {node.text('unit')}".upper().split()) for node in nodes)
    if written != read:
        raise source.refuse("interval-unsupported", "this interval is not supported", node=nodes[0] if nodes else None)


def _check_frames(source: Source, nodes: Sequence[exp.Expr], traced: frozenset[int]) -> None:
    """The words of frames occur as often as in the tree: the parser keeps them as words, without a position."""
    frames = [node for node in nodes if isinstance(node, exp.WindowSpec)]
    ends = (str(node.args.get(name) or "") for node in frames for name in ("start", "start_side", "end", "end_side"))
    read = Counter(word for end in ends for word in end.split() if word in FRAME)
    written = [token for token in source.tokens if token.text.upper() in FRAME and token.start not in traced]
    for token in written:
        read[token.text.upper()] -= 1
        if read[token.text.upper()] < 0:
            raise source.refuse_token("sql-syntax", "this word has no meaning here", token)
    for word in +read:
        raise source.refuse("sql-syntax", f"a word is missing: {word}")


def _structure(source: Source, traced: frozenset[int]) -> Iterator[tuple[TokenType, Token]]:
    """Words of structure that are not names, types all as one."""
    for token in source.tokens:
        kind = TokenType.DATE if token.token_type in _TYPES else token.token_type
        if kind in _COUNTABLE and token.start not in traced:
            yield kind, token


def _check_names(source: Source, traced: frozenset[int], *, named: int) -> None:
    """AS is between an expression and a name or type or, once per name of WITH or WINDOW, between the name and its definition."""
    for token, after in zip(source.tokens, (*source.tokens[1:], None), strict=True):
        if token.token_type is TokenType.ALIAS and token.start not in traced:
            if after is not None and after.token_type is TokenType.L_PAREN and named:
                named -= 1
                continue
            if after is None or not (after.start in traced or after.token_type in _TYPES):
                raise source.refuse_token("sql-syntax", "a name is missing after this", token)


def _check_alias(source: Source, name: exp.Identifier) -> None:
    """A reserved word is an alias only after AS or in quotes; elsewhere it is a mistake, such as GROUP GROUP BY."""
    start = name.meta.get("start")
    number = source.at.get(start) if isinstance(start, int) else None
    if number is None:
        return
    token, before = source.tokens[number], source.tokens[number - 1]
    if before.token_type is not TokenType.ALIAS and token.token_type is not TokenType.IDENTIFIER and token.text.upper() in RESERVED:
        raise source.refuse_token(
            "sql-syntax", "this word is reserved and cannot be a name here", token, hint="write AS before it, or quote it"
        )


_RESERVED_WORDS = """
ALL ANALYSE ANALYZE AND ANTI ANY ARRAY AS ASC ASOF ASYMMETRIC BOTH BY CASE CAST CHECK COLLATE COLLATION COLUMN CONCURRENTLY
CONSTRAINT CREATE CROSS DEFAULT DEFERRABLE DESC DESCRIBE DISTINCT DO ELSE END EXCEPT FALSE FETCH FOR FOREIGN FREEZE FROM FULL
GENERATED GLOB GROUP HAVING ILIKE IN INITIALLY INNER INTERSECT INTO IS ISNULL JOIN LAMBDA LATERAL LEADING LEFT LIKE LIMIT MAP
NATURAL NOT NOTNULL NULL OFFSET ON ONLY OR ORDER OUTER OVERLAPS PIVOT PIVOT_LONGER PIVOT_WIDER PLACING POSITIONAL PRIMARY QUALIFY
REFERENCES RETURNING RIGHT SELECT SEMI SHOW SIMILAR SOME STRUCT SUMMARIZE SYMMETRIC TABLE TABLESAMPLE THEN TO TRAILING TRUE
TRY_CAST UNION UNIQUE UNPIVOT USING VARIADIC VERBOSE WHEN WHERE WINDOW WITH
"""
RESERVED = frozenset(_RESERVED_WORDS.split())
"""Words that the reference engine does not accept as names."""
