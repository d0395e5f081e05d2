"""Every limit of Lapwing, in one place.

A limit is a public fact: whether a statement or a catalogue meets it depends on its text and on declarations, never on rows. The two
limits of the engine (time and memory) are the exception by nature; reaching one while rows are read is an incident, so they are set
generously. Each field is documented in ``docs/reference/settings.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from lapwing.errors import LapwingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The limits in force. All are whole numbers, at least 1 and at most ``LIMIT_MAX``; ends are included."""

    statement_bytes_max: int = 65_536
    """Length of one statement, in UTF-8 bytes."""
    statement_nodes_max: int = 10_000
    """Nodes of the parsed statement."""
    expression_depth_max: int = 64
    """Nesting of expressions and subqueries."""
    joins_max: int = 8
    """Joins in one statement."""
    aggregates_max: int = 64
    """Aggregates of one statement, those in HAVING and ORDER BY included."""
    grouping_sets_max: int = 64
    """Levels of groups of one GROUP BY with ROLLUP, CUBE or GROUPING SETS."""
    list_items_max: int = 1_000
    """Items of one IN list."""
    known_cells_max: int = 1_000_000
    """Cells (groups times aggregates) of a statement whose keys are public."""
    key_values_max: int = 100_000
    """Values of one key that are listed as groups from what is declared, NULL aside; a declared list that is longer is refused as a key."""
    groups_max: int = 100_000
    """Groups shown when keys are not public; of more, those with the largest noisy counts are kept."""
    answer_bytes_max: int = 256 * 2**20
    """Size of one stored answer."""
    scans_max: int = 256
    """Times that one statement may read protected tables; a name of WITH counts each time it is used."""
    unit_rows_max: int = 100_000
    """Rows that one unit can have in any step of a statement."""
    unit_work_max: int = 1_000_000_000
    """Parts of expressions that one statement can compute for the rows of one unit."""
    unit_size_max: int = 256 * 2**20
    """Bytes that keys and distinct values of one unit's rows can take up in one statement."""
    query_timeout_seconds: int = 600
    """Time the engine has for one statement."""
    memory_limit_bytes: int = 2 * 2**30
    """Memory the engine may use before it writes to disk."""
    rows_per_unit_cap_default: int = 1_000
    """Rows per unit kept at preparation when a table does not say."""
    rows_max_default: int = 10**9
    """Rows a table may have when it does not say."""
    steps_default_max: int = 10**6
    """Finest grid (steps per 1, a power of ten) chosen for a real column that does not say."""
    catalogue_bytes_max: int = 4 * 2**20
    """Size of a catalogue file."""
    catalogue_tables_max: int = 200
    """Tables of a data set, protected and public together."""
    columns_per_table_max: int = 1_000
    """Columns of one table."""
    values_per_column_max: int = 100_000
    """Listed values of one text column, and values taken over from a public table."""
    text_value_bytes_max: int = 1_024
    """Length of one listed value, in UTF-8 bytes."""
    unit_path_hops_max: int = 8
    """Foreign keys between a table and the table that holds its unit."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if type(value) is not int or not 1 <= value <= LIMIT_MAX:
                raise LapwingError("setting-invalid", f"{item.name} must be a whole number from 1 to 2^50")


LIMIT_MAX = 2**50
"""No limit can be set above this: products of two limits stay exact in 128-bit integers."""
