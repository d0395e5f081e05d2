"""What owners declare: data sets, tables, columns, bounds, units and budgets, read from one TOML file."""

from lapwing.catalog.declaration import (
    BudgetDecl,
    ColumnDecl,
    ColumnRef,
    DataSetDecl,
    Declaration,
    DefaultsDecl,
    EngineKind,
    Hop,
    LedgerDecl,
    LimitsDecl,
    Preparation,
    PublicDecl,
    RowUnit,
    TableDecl,
    UnitPath,
)
from lapwing.catalog.load import load, parse
from lapwing.catalog.problems import Problem
from lapwing.catalog.settings import Settings

__all__ = [
    "BudgetDecl",
    "ColumnDecl",
    "ColumnRef",
    "DataSetDecl",
    "Declaration",
    "DefaultsDecl",
    "EngineKind",
    "Hop",
    "LedgerDecl",
    "LimitsDecl",
    "Preparation",
    "Problem",
    "PublicDecl",
    "RowUnit",
    "Settings",
    "TableDecl",
    "UnitPath",
    "load",
    "parse",
]
