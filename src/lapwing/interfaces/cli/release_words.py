"""Parses release requests: columns with bins, and options. A further part is written like the command."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Never

from lapwing.interfaces.cli.exits import usage_error

if TYPE_CHECKING:
    from lapwing.releases.request import QuantileRequest

WAYS = 2
"""Columns that are counted together by default."""


class Method(StrEnum):
    """How a synthetic table is made."""

    AUTO = "auto"
    PAIRS = "pairs"
    INDEPENDENT = "independent"


@dataclass(frozen=True, slots=True)
class PartText:
    """One part of a release as text."""

    columns: Sequence[str]
    ways: int = WAYS
    synthetic: bool = False
    method: Method = Method.AUTO
    tree: bool = False
    by: Sequence[str] = ()
    branch: int | None = None

    def wanted(self) -> QuantileRequest:
        """The request that the text describes."""
        from lapwing.releases.request import Marginals, RangeTree, SyntheticTable

        bins: dict[str, int] = {}
        names: list[str] = []
        for word in (*self.columns, *self.by):
            column, given, cut = word.partition("=")
            if given and not cut.isdecimal():
                raise usage_error(f"{word!r} is neither a column nor column=bins")
            names.append(column)
            if given:
                bins[column] = int(cut)
        if self.tree or self.by or self.branch is not None:
            if self.synthetic or len(self.columns) != 1:
                raise usage_error("--tree takes one column, and others with --by; it cannot be combined with --synthetic")
            branch = {} if self.branch is None else {"branch": self.branch}
            return RangeTree(names[0], names[1:], bins=bins, **branch)
        if self.synthetic:
            return SyntheticTable(*names, method=self.method.value, bins=bins)
        return Marginals(*names, ways=min(self.ways, len(names)), bins=bins)


def further_part(words: str) -> QuantileRequest:
    """A further part of a release, such as ``birth_year --tree --by sex``."""
    parser = _Words(add_help=False, allow_abbrev=False)
    parser.add_argument("columns", nargs="+")
    parser.add_argument("--ways", type=int, default=WAYS)
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--method", type=Method, choices=list(Method), default=Method.AUTO)
    parser.add_argument("--tree", action="store_true")
    parser.add_argument("--by", action="append", default=[])
    parser.add_argument("--branch", type=int)
    try:
        found = parser.parse_args(shlex.split(words))
    except ValueError as error:
        raise usage_error(f"the further part {words!r} cannot be read: {error}") from None
    return PartText(**vars(found)).wanted()


class _Words(argparse.ArgumentParser):
    def error(self, message: str) -> Never:
        raise ValueError(message)
