"""From the file's models to a ``Declaration``: checks the values together, and whether the declaration can be enforced."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path as FilePath

from lapwing.catalog.block_rules import build_blocks
from lapwing.catalog.columns import build_columns, check_name
from lapwing.catalog.confidences import NOT_ASKED, can_be_asked
from lapwing.catalog.declaration import (
    BudgetDecl,
    ColumnDecl,
    DataSetDecl,
    Declaration,
    DefaultsDecl,
    EngineKind,
    LedgerDecl,
    LimitsDecl,
    Preparation,
    PublicDecl,
    RowUnit,
    TableDecl,
    UnitPath,
)
from lapwing.catalog.exact import show
from lapwing.catalog.file_forms import check_file_forms
from lapwing.catalog.positions import Path
from lapwing.catalog.problems import ProblemReport
from lapwing.catalog.schema import (
    BudgetModel,
    CatalogueModel,
    DataSetModel,
    DefaultsModel,
    LedgerModel,
    LimitsModel,
    PublicModel,
    TableModel,
)
from lapwing.catalog.settings import Settings
from lapwing.catalog.shape_problems import closest
from lapwing.catalog.units import ROW, resolve_units
from lapwing.errors import CatalogueError
from lapwing.kernel.accounting import EPSILON_MAX, ORDER_MAX, budget_for, rho_at_order
from lapwing.kernel.domains import BooleanDomain, RealDomain, TextDomain, TimestampDomain
from lapwing.kernel.laws import Sampler
from lapwing.kernel.neighbours import Neighbours
from lapwing.prices import best_order

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_UNIT_WORD = re.compile(r"[^\W\d_][\w -]{0,62}")
_SOURCE_SUFFIXES = (".parquet", ".csv", ".csv.gz")
_SOURCE_CHARACTERS_MAX = 1_000
_SERVER_TABLE = re.compile(r'([a-z_][a-z0-9_]*|"[^"]+")\.([a-z_][a-z0-9_]*|"[^"]+")')
_NEEDLESS_QUOTES = re.compile(r'"[a-z_][a-z0-9_]*"')
_SESSION_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")
_PASSWORD = re.compile(r"(?i)password['\"]?\s*=|://[^/?]*:[^/?]*@")
"""In a connection string of libpq: as a keyword, as a parameter of an address, or before the host of an address."""
_LEDGER_HINTS = {
    "anchors": "a directory on another disk than the database: it notices when an older state of the database was put back",
    "keys": "the directory of the key that signs receipts; make one with `lapwing receipt key --keys DIR`",
}
_ROWS_MAX_MAX = 2**40
_EPSILON_DEFAULT = Fraction(1, 10)
ORDER_CLOSE = Fraction(9, 10)
"""An order at which an account holds this share of what it holds at the best one is as good."""
_DELTA_FACTOR = 10
"""Delta should be below 1 / (10 times the number of units): at 1 / (number of units), publishing one whole record would be allowed."""


def has_password(connection: str) -> bool:
    """Whether a connection string of libpq holds a password."""
    return _PASSWORD.search(connection) is not None


def build(report: ProblemReport, model: CatalogueModel, *, directory: FilePath | None, settings: Settings) -> Declaration:
    """The declaration, meaningful only if no problem was reported."""
    dataset = _dataset(report, model.dataset)
    budget = _budget(report, model.budget)
    defaults = _defaults(report, model.defaults, budget)
    _check_table_names(report, model, settings=settings)
    rows_max = {name: _rows_max(report, name, table, settings=settings) for name, table in model.tables.items()}
    columns = {
        name: build_columns(report, ("tables", name, "columns"), table.columns, rows_max=rows_max[name], is_summed=True, settings=settings)
        for name, table in model.tables.items()
    }
    public = tuple(_public(report, name, table, settings=settings) for name, table in model.public.items())
    _check_values_from(report, columns, public)
    paths = resolve_units(
        report,
        written={name: table.unit for name, table in model.tables.items()},
        columns={name: {column.name: column for column in declared} for name, declared in columns.items()},
        public_names=frozenset(model.public) - frozenset(model.tables),
        settings=settings,
    )
    _check_unit_word(report, dataset, paths)
    tables = tuple(
        _table(report, name, table, columns=columns[name], path=paths[name], rows_max=rows_max[name], settings=settings)
        for name, table in model.tables.items()
        if name in paths
    )
    blocks, tables = build_blocks(report, model, tables)
    _check_sources(report, model)
    check_file_forms(report, model)
    _warn_about_delta(report, dataset, budget, rows_max)
    return Declaration(
        dataset=dataset,
        declared_budget=budget,
        defaults=defaults,
        tables=tables,
        public_tables=public,
        ledger=_ledger(report, model.ledger),
        limits=_limits(report, model.limits, budget),
        blocks=blocks,
        directory=directory,
        warnings=tuple(report.warnings),
    )


def _dataset(report: ProblemReport, model: DataSetModel) -> DataSetDecl:
    if not _ID.fullmatch(model.id):
        hint = "small letters, digits, dots, dashes and underscores, at most 63"
        report.problem("catalogue-bad-name", ("dataset", "id"), "`id` cannot be used", hint=hint)
    if not _UNIT_WORD.fullmatch(model.unit):
        hint = 'a word for what is protected, such as "patient"'
        report.problem("catalogue-bad-name", ("dataset", "unit"), "`unit` cannot be used", hint=hint)
    if model.units is not None and model.units < 1:
        report.problem("catalogue-bad-value", ("dataset", "units"), "`units` must be at least 1")
    if model.neighbours == "bounded" and model.units is None:
        hint = "declare the public number of units; it is never measured"
        report.problem("catalogue-missing-key", ("dataset", "neighbours"), "bounded neighbours need the key `units`", hint=hint)
    if model.connection and model.engine != "postgres":
        report.problem("catalogue-contradiction", ("dataset", "connection"), "only a server is connected to: leave `connection` out")
    if has_password(model.connection):
        hint = "keep it in a password file (passfile, ~/.pgpass) or a service file"
        report.problem("catalogue-password", ("dataset",), "a catalogue is no place for a password", hint=hint)
    return DataSetDecl(
        id=model.id,
        engine=EngineKind(model.engine),
        unit=model.unit,
        neighbours=Neighbours(model.neighbours),
        units=model.units,
        description=model.description,
        connection=model.connection,
        preparation=Preparation(model.preparation),
        noise=Sampler(model.noise),
    )


def _budget(report: ProblemReport, model: BudgetModel) -> BudgetDecl:
    before = len(report.problems)
    ceiling = model.epsilon if model.ceiling is None else model.ceiling.epsilon
    if not 0 < model.epsilon <= EPSILON_MAX:
        report.problem("catalogue-bad-budget", ("budget", "epsilon"), f"`epsilon` must be above 0 and at most {show(EPSILON_MAX)}")
    if not 0 <= model.delta < 1:
        report.problem("catalogue-bad-budget", ("budget", "delta"), "`delta` must be at least 0 and below 1", hint='such as "2^-40"')
    if ceiling < model.epsilon:
        message = f"the ceiling ({show(ceiling)}) is below the budget ({show(model.epsilon)})"
        hint = "the ceiling is the largest epsilon the budget may ever be raised to"
        report.problem("catalogue-bad-budget", ("budget", "ceiling"), message, hint=hint)
    if ceiling > EPSILON_MAX:
        report.problem("catalogue-bad-budget", ("budget", "ceiling"), f"the ceiling must be at most {show(EPSILON_MAX)}")
    share = Fraction(1, 2) if model.delta_keys_share is None else model.delta_keys_share
    if not 0 <= share < 1:
        message = "`delta_keys_share` must be at least 0 and below 1"
        report.problem("catalogue-bad-budget", ("budget", "delta_keys_share"), message)
    if model.delta == 0 and model.delta_keys_share is not None:
        message = "a pure data set (delta = 0) has no delta to share"
        report.problem("catalogue-contradiction", ("budget", "delta_keys_share"), message, hint="leave it out, or give a delta above 0")
    if model.order is not None and not 2 <= model.order <= ORDER_MAX:
        report.problem("catalogue-bad-budget", ("budget", "order"), f"`order` must be from 2 to {ORDER_MAX:,}")
    if model.delta == 0 and model.order is not None:
        message = "a pure data set (delta = 0) is charged in epsilon alone and has no order"
        report.problem("catalogue-contradiction", ("budget", "order"), message, hint="leave it out, or give a delta above 0")
    if len(report.problems) == before:
        try:
            budget_for(epsilon=model.epsilon, delta=model.delta, delta_keys_share=share, order=model.order)
        except CatalogueError as error:  # only the kernel can tell: too small to pay for anything
            report.problem("catalogue-bad-budget", ("budget",), error.message, hint=error.hint)
        else:
            _compare_order(report, model.order, epsilon=model.epsilon, delta=model.delta * (1 - share))
    statistics = Fraction(1, 20) if model.statistics_share is None else model.statistics_share
    if not 0 <= statistics <= Fraction(1, 2):
        report.problem("catalogue-bad-budget", ("budget", "statistics_share"), "`statistics_share` must be from 0 to 0.5")
    norms = Fraction(1, 10) if model.norms_share is None else model.norms_share
    if not 0 <= norms <= Fraction(1, 2):
        report.problem("catalogue-bad-budget", ("budget", "norms_share"), "`norms_share` must be from 0 to 0.5")
    return BudgetDecl(
        epsilon=model.epsilon,
        delta=model.delta,
        delta_keys_share=share,
        ceiling_epsilon=ceiling,
        statistics_share=statistics,
        norms_share=norms,
        order=model.order,
    )


def _compare_order(report: ProblemReport, order: int | None, *, epsilon: Fraction, delta: Fraction) -> None:
    """Warn where the Rényi side of the account holds clearly less than at the best order."""
    if order is None:
        return
    best = best_order(epsilon=epsilon, delta=delta)
    share = rho_at_order(order, epsilon=epsilon, delta=delta) / rho_at_order(best, epsilon=epsilon, delta=delta)
    if share < ORDER_CLOSE:
        message = f"at order {order} the Rényi side of the account holds {float(share):.0%} of what it holds at the best order"
        report.warn("order-far", ("budget", "order"), message, hint=f"before the ledger is made, declare `order = {best}`")


def _defaults(report: ProblemReport, model: DefaultsModel, budget: BudgetDecl) -> DefaultsDecl:
    epsilon = min(_EPSILON_DEFAULT, budget.epsilon) if model.epsilon is None else model.epsilon
    if model.epsilon is not None and budget.epsilon > 0 and not 0 < epsilon <= budget.epsilon:
        message = f"`epsilon` of one statement must be above 0 and at most the budget ({show(budget.epsilon)})"
        report.problem("catalogue-bad-value", ("defaults", "epsilon"), message)
    if not can_be_asked(model.confidence):
        report.problem("catalogue-bad-value", ("defaults", "confidence"), NOT_ASKED, hint="such as 0.95")
    return DefaultsDecl(epsilon=epsilon, confidence=model.confidence)


def _ledger(report: ProblemReport, model: LedgerModel) -> LedgerDecl:
    for key, value in (("database", model.database), ("anchors", model.anchors), ("keys", model.keys)):
        if value is not None and (not value.strip() or not value.isprintable() or len(value) > _SOURCE_CHARACTERS_MAX):
            report.problem("catalogue-bad-value", ("ledger", key), f"`{key}` cannot be used", hint="leave it out, or write it on one line")
        elif model.database is not None and value is None:
            report.problem("catalogue-missing-key", ("ledger",), f"a ledger in a database needs the key `{key}`", hint=_LEDGER_HINTS[key])
    if model.database is None and model.anchors is not None:
        hint = "give a `database`, or leave it out: the local ledger is anchored in the registry"
        report.problem("catalogue-contradiction", ("ledger", "anchors"), "anchors are for a ledger in a database", hint=hint)
    if model.database is not None and has_password(model.database):
        hint = "keep it in a password file (passfile, ~/.pgpass) or a service file"
        # At the section, not at the key: the error quotes the line, and may end in a log.
        report.problem("catalogue-password", ("ledger",), "a catalogue is no place for a password", hint=hint)
    return LedgerDecl(database=model.database, anchors=model.anchors, keys=model.keys)


def _limits(report: ProblemReport, model: LimitsModel, budget: BudgetDecl) -> LimitsDecl:
    declared = LimitsDecl(per_statement=model.per_statement, per_day=model.per_day)
    for key, share in (("per_statement", declared.per_statement), ("per_day", declared.per_day)):
        if share is None:
            continue
        if not 0 < share <= 1:
            hint = "a share of the budget, such as 0.2; 1 is no limit"
            report.problem("catalogue-bad-value", ("limits", key), f"`{key}` must be above 0 and at most 1", hint=hint)
        elif share < budget.statistics_share:
            message = f"`{key}` is below `statistics_share`: preparation could not buy its statistics"
            hint = f"raise it to {show(budget.statistics_share)}, or lower `statistics_share` in [budget]"
            report.problem("catalogue-contradiction", ("limits", key), message, hint=hint)
    return declared


def _check_table_names(report: ProblemReport, model: CatalogueModel, *, settings: Settings) -> None:
    if not model.tables:
        report.problem("catalogue-missing-key", ("tables",), "no protected table is declared", hint="add a [tables.<name>]")
    if len(model.tables) + len(model.public) > settings.catalogue_tables_max:
        report.problem("catalogue-limit", ("tables",), f"more than {settings.catalogue_tables_max} tables")
    for name in model.tables:
        check_name(report, ("tables", name), name)
    for name in model.public:
        check_name(report, ("public", name), name)
        if name in model.tables:
            report.problem("catalogue-duplicate", ("public", name), f"`{name}` is a protected table already", of_key=True)


def _rows_max(report: ProblemReport, name: str, model: TableModel, *, settings: Settings) -> int:
    if model.rows_max is None:
        return settings.rows_max_default
    if 1 <= model.rows_max <= _ROWS_MAX_MAX:
        return model.rows_max
    report.problem("catalogue-bad-value", ("tables", name, "rows_max"), "`rows_max` must be from 1 to 2^40")
    return settings.rows_max_default


def _check_unit_word(report: ProblemReport, dataset: DataSetDecl, paths: Mapping[str, UnitPath | RowUnit]) -> None:
    """Analysts and the people in the data read this word: it must not promise a person the protection of a single row."""
    if dataset.unit != ROW and any(isinstance(path, RowUnit) for path in paths.values()):
        message = f'the tables protect single rows (`unit = "{ROW}"`), and `unit` here promises more'
        hint = f'write unit = "{ROW}", or name the column that says whose row it is as the unit of the tables'
        report.problem("catalogue-contradiction", ("dataset", "unit"), message, hint=hint)


def _table(
    report: ProblemReport,
    name: str,
    model: TableModel,
    *,
    columns: tuple[ColumnDecl, ...],
    path: UnitPath | RowUnit,
    rows_max: int,
    settings: Settings,
) -> TableDecl:
    at: Path = ("tables", name, "rows_per_unit_max")
    is_single = model.one_row_per_unit or isinstance(path, RowUnit)
    cap = 1 if is_single else min(settings.rows_per_unit_cap_default, rows_max)
    if model.rows_per_unit_max is not None:
        if is_single and model.rows_per_unit_max != 1:
            said = "one_row_per_unit" if model.one_row_per_unit else "unit"
            hint = "leave one of the two out" if model.one_row_per_unit else "leave `rows_per_unit_max` out"
            report.problem("catalogue-contradiction", at, f"`{said}` says 1, `rows_per_unit_max` says more", hint=hint)
        elif not 1 <= model.rows_per_unit_max <= rows_max:
            report.problem("catalogue-bad-value", at, f"`rows_per_unit_max` must be from 1 to `rows_max` ({show(rows_max)})")
        elif model.rows_per_unit_max > settings.unit_rows_max:
            message = f"`rows_per_unit_max` may be at most {show(settings.unit_rows_max)}"
            report.problem("catalogue-limit", at, message, hint="rows beyond it are dropped; or raise unit_rows_max")
        cap = model.rows_per_unit_max
    return TableDecl(
        name=name,
        source=model.source,
        columns=columns,
        unit=path,
        one_row_per_unit=is_single,
        rows_per_unit_max=cap,
        rows_max=rows_max,
        description=model.description,
        appended_by=model.appended_by,
        partitions=model.partitions,
        delimiter=model.delimiter,
    )


def _public(report: ProblemReport, name: str, model: PublicModel, *, settings: Settings) -> PublicDecl:
    base: Path = ("public", name)
    columns = build_columns(
        report, (*base, "columns"), model.columns, rows_max=settings.rows_max_default, is_summed=False, settings=settings
    )
    key = next((column for column in columns if column.name == model.key), None)
    if key is None:
        meant = closest(model.key, model.columns)
        hint = f"did you mean `{meant}`?" if meant else "declare it among the columns"
        report.problem("catalogue-bad-reference", (*base, "key"), f"there is no column `{name}.{model.key}`", hint=hint)
    elif isinstance(key.domain, RealDomain | BooleanDomain | TimestampDomain):
        hint = "a key is a key, an integer, a text or a date"
        report.problem("catalogue-bad-reference", (*base, "key"), f"`{name}.{model.key}` cannot be joined on", hint=hint)
    for column in columns:
        if column.values_from is not None:
            hint = "its values are public as they stand"
            at = (*base, "columns", column.name, "values_from")
            report.problem("catalogue-contradiction", at, "a public table needs no `values_from`", hint=hint)
    return PublicDecl(
        name=name,
        source=model.source,
        columns=columns,
        key=model.key,
        description=model.description,
        partitions=model.partitions,
        delimiter=model.delimiter,
    )


def _check_values_from(report: ProblemReport, columns: Mapping[str, tuple[ColumnDecl, ...]], public: tuple[PublicDecl, ...]) -> None:
    texts = {f"{table.name}.{column.name}": column for table in public for column in table.columns if isinstance(column.domain, TextDomain)}
    for table, declared in columns.items():
        for column in declared:
            if column.values_from is None or str(column.values_from) in texts:
                continue
            meant = closest(str(column.values_from), texts)
            hint = f'did you mean "{meant}"?' if meant else "it must be a text column of a [public.<name>] table"
            message = f"there is no public text column `{column.values_from}`"
            report.problem("catalogue-bad-reference", ("tables", table, "columns", column.name, "values_from"), message, hint=hint)


def _check_sources(report: ProblemReport, model: CatalogueModel) -> None:
    protected: dict[str, str] = {}
    for name, table in model.tables.items():
        at: Path = ("tables", name, "source")
        if _check_source(report, at, table.source, model.dataset.engine):
            if first := _overlapping(table.source, protected):
                hint = "one source, one table: rows declared twice would count twice"
                report.problem("catalogue-duplicate", at, f"`{first}` reads this source already", hint=hint)
            protected[name] = table.source
    for name, public in model.public.items():
        at = ("public", name, "source")
        if _check_source(report, at, public.source, model.dataset.engine) and (first := _overlapping(public.source, protected)):
            hint = "a protected source cannot be public as well"
            report.problem("catalogue-contradiction", at, f"the protected table `{first}` reads this source", hint=hint)


def _overlapping(source: str, others: Mapping[str, str]) -> str:
    """The first table whose source is this one, or matches this one as a glob, or is matched by it.

    A guard against slips such as a public ``*.parquet`` beside protected files. It compares paths as written and reads no directory, so
    two globs can still meet in one file unseen.
    """
    for name, other in others.items():
        if any(_matches(path, pattern) for path, pattern in ((source, other), (other, source))):
            return name
    return ""


def _matches(path: str, pattern: str) -> bool:
    path, pattern = posixpath.normpath(path), posixpath.normpath(pattern)
    if path == pattern:
        return True
    # fnmatch lets * cross a slash; only ** may.
    return ("**" in pattern or path.count("/") == pattern.count("/")) and fnmatch.fnmatchcase(path, pattern)


def _check_source(report: ProblemReport, path: Path, source: str, engine: str) -> bool:
    if engine == "postgres":
        # Use one spelling for one table: the ledger is bound to the text.
        if _SERVER_TABLE.fullmatch(source) and not _NEEDLESS_QUOTES.search(source) and source.isprintable():
            return True
        hint = 'such as "clinic.visits"; quotes inside only where a name needs them'
        report.problem("catalogue-bad-value", path, "`source` must be a table with its schema", hint=hint)
        return False
    if engine == "spark" and _SESSION_TABLE.fullmatch(source):
        return True
    if "://" in source or not source.isprintable() or len(source) > _SOURCE_CHARACTERS_MAX:
        report.problem("catalogue-bad-value", path, "`source` must be a path of files", hint="relative to the catalogue, * and ** allowed")
        return False
    if not source.endswith(_SOURCE_SUFFIXES):
        hint = "files end in " + ", ".join(_SOURCE_SUFFIXES)
        report.problem("catalogue-bad-value", path, "`source` has no known file type", hint=hint)
        return False
    return True


def _warn_about_delta(report: ProblemReport, dataset: DataSetDecl, budget: BudgetDecl, rows_max: Mapping[str, int]) -> None:
    """Without a declared number of units, a table holds at most as many as it has rows."""
    units = dataset.units if dataset.units is not None else max(rows_max.values(), default=1)
    if units >= 1 and budget.delta >= Fraction(1, _DELTA_FACTOR * units):
        known = f"{show(units)} units"
        if dataset.units is None:
            known = f"up to {known} (`units` is not declared, so the largest `rows_max` counts)"
        message = f"delta = {show(budget.delta)} is large for {known}"
        hint = f"stay below 1/({_DELTA_FACTOR} * units): at 1/units, publishing one unit's rows in full would be allowed"
        report.warn("delta-large", ("budget", "delta"), message, hint=hint)
