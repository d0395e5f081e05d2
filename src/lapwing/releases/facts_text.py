"""Public facts of one table as JSON, and back: what a release needs to bind SQL without the data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from lapwing.kernel.accounting import Account
from lapwing.kernel.domains import (
    BooleanDomain,
    DateDomain,
    Domain,
    IntegerDomain,
    KeyDomain,
    Kind,
    RealDomain,
    TextDomain,
    TimestampDomain,
    kind_of,
)
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.neighbours import Neighbours


def facts_fields(facts: Facts) -> dict[str, Any]:
    """All public facts of protected tables."""
    return {
        "source": facts.source_id,
        "version": facts.version,
        "neighbours": facts.neighbours.value,
        "account": facts.account.value,
        "order": facts.order,
        "tables": {
            name: {
                "columns": {column: _fields(domain) for column, domain in table.columns.items()},
                "rows_per_unit_max": table.rows_per_unit_max,
                "rows_max": table.rows_max,
            }
            for name, table in facts.tables.items()
        },
    }


def facts_value(fields: Mapping[str, Any]) -> Facts:
    """Inverse of :func:`facts_fields`; ``KeyError``, ``ValueError`` or ``TypeError`` where these are not its fields."""
    tables = {
        name: TableFacts(
            {column: _domain(domain) for column, domain in table["columns"].items()},
            int(table["rows_per_unit_max"]),
            int(table["rows_max"]),
        )
        for name, table in fields["tables"].items()
    }
    account, neighbours = Account(fields["account"]), Neighbours(fields["neighbours"])
    return Facts(fields["source"], int(fields["version"]), neighbours, account, tables, {}, order=fields["order"])


def _fields(domain: Domain) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": kind_of(domain).value, "nullable": domain.nullable}
    match domain:
        case IntegerDomain(lo, hi) | DateDomain(lo, hi) | TimestampDomain(lo, hi):
            return fields | {"lo": lo, "hi": hi}
        case RealDomain(lo, hi, _, steps):
            return fields | {"lo": str(lo), "hi": str(hi), "steps": steps}
        case TextDomain(values):
            return fields | {"values": None if values is None else list(values)}
        case KeyDomain(_, text):
            return fields | {"text": text}
        case _:
            return fields


_RANGES: dict[Kind, Callable[[int, int, bool], Domain]] = {
    Kind.INTEGER: IntegerDomain,
    Kind.DATE: DateDomain,
    Kind.TIMESTAMP: TimestampDomain,
}


def _domain(fields: Mapping[str, Any]) -> Domain:
    kind, nullable = Kind(fields["kind"]), bool(fields["nullable"])
    if kind in _RANGES:
        return _RANGES[kind](int(fields["lo"]), int(fields["hi"]), nullable)
    match kind:
        case Kind.REAL:
            return RealDomain(Fraction(fields["lo"]), Fraction(fields["hi"]), nullable, fields["steps"])
        case Kind.TEXT:
            return TextDomain(None if fields["values"] is None else tuple(fields["values"]), nullable)
        case Kind.KEY:
            return KeyDomain(nullable, bool(fields["text"]))
        case _:
            return BooleanDomain(nullable)
