"""The tests that the ordinary run leaves to the night, each with what guards the same in the ordinary run.

A pattern is a test's name as pytest shows it, with ``*`` for any characters. What guards a charge, a right or a leak stays in the ordinary
run on every engine: the oracles with their mutants, two worlds, the ledgers' models, crashes and interleavings, rights, tokens and attacks,
at the sizes of ``tests/support/sizes.py``.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

NIGHTLY: dict[str, str] = {
    # Spark is the slowest engine by far: one Java serves the run, one test after the other.
    "tests/docs/test_examples.py::*spark-engine.md*": "the same commands on DuckDB in docs/tutorials/owner.md",
    "tests/engines/spark/test_spark_connect.py::*": "test_equal_answers.py::test_generated_statements[spark-*], in its own session",
    "tests/engines/spark/test_spark_files.py::test_names_of_folders_change_*": "test_source_neighbours.py::test_folders_on_spark",
    "tests/engines/spark/test_spark_fuzz.py::test_compiled_expressions_*": "test_spark_fuzz.py::test_random_expressions_*[0]",
    "tests/engines/spark/test_spark_fuzz.py::test_random_expressions_*[1]": "the same test, [0]",
    "tests/engines/spark/test_spark_life.py::test_every_shape_without_a_copy_*": "test_spark_life.py::test_reading_without_a_copy_*",
    "tests/engines/spark/test_spark_open_text.py::*": "tests/engines/test_open_text.py, and test_spark_fuzz.py for the spellings",
    "tests/engines/suite/test_equal_answers.py::test_generated_statements_over_hostile_rows[spark-1]": "the same test, [spark-0]",
    "tests/engines/suite/test_equal_answers.py::test_hand_made_plans[spark-*]": "test_spark_oracle.py runs the same shapes",
    "tests/engines/suite/test_equal_answers.py::test_the_conformance_list[spark-*]": "test_generated_relations[spark-*]",
    "tests/engines/suite/test_equal_answers.py::test_windows_within_units[spark*]": "test_generated_relations[spark-*]",
    "tests/engines/suite/test_inside_units.py::*[spark-unbounded-Account.APPROXIMATE]": "the same test, Account.PURE",
    "tests/engines/suite/test_inside_units.py::test_sets_pairs_and_values[spark]": "test_groups_within_units[spark-*]",
    "tests/engines/suite/test_link_keys.py::test_virtual_versions_on_spark_*": "the same test on DuckDB; test_the_second_hop_*[spark]",
    "tests/engines/suite/test_losses.py::*[spark]": "the same tests on PostgreSQL; test_prepared_rows.py::test_hostile_rows[spark-0]",
    "tests/engines/suite/test_numbers.py::*[spark]": "test_spark_fuzz.py::test_prepared_rows_are_the_references",
    "tests/engines/suite/test_prepared_rows.py::test_every_type_*[spark]": "test_spark_fuzz.py::test_prepared_rows_are_the_references",
    "tests/engines/suite/test_prepared_rows.py::test_random_worlds[spark-*]": "test_hostile_rows[spark-0]",
    "tests/engines/suite/test_row_units.py::test_very_wide_rows[spark]": "test_units_rows_and_integers[spark]",
    "tests/engines/suite/test_spellings.py::*[spark]": "test_spark_fuzz.py::test_prepared_rows_are_the_references",
    "tests/engines/suite/test_unit_norms.py::test_norms_of_a_sample_*[spark]": "test_norms_over_hostile_rows[spark]",
    "tests/engines/suite/test_unit_norms.py::test_norms_over_random_*[spark-*]": "test_norms_over_hostile_rows[spark]",
    "tests/engines/suite/test_unit_norms.py::test_about_one_unit_in_*[spark]": "the same test on DuckDB: the sample is of keyed hashes",
    # Orders of steps in the ledger on PostgreSQL: of the operations on many data sets one pair stays.
    "tests/schedules/test_gates.py::*[reserve_across-reserve_across]": "[reserve_across-reserve]; two across in test_interleavings.py",
    "tests/schedules/test_gates.py::*[reserve_across-close]": "[reserve_across-reserve] and [reserve-close]",
    "tests/schedules/test_gates.py::*[reserve-reserve_across]": "[reserve_across-reserve]",
    "tests/schedules/test_gates.py::*[reserve-reserve_many]": "[reserve_many-reserve]",
    "tests/schedules/test_gates.py::*[commit_many-reserve]": "[commit-reserve] and [commit_many-begin_after_a_death]",
    "tests/schedules/test_gates.py::*[begin_after_a_death-commit_many]": "[commit_many-begin_after_a_death]",
    # Pages and clients.
    "tests/console/test_looks.py::test_nobody_is_kept_out[phone dark]": "the same test, desktop light",
    "tests/console/test_new_owner_tables.py::*": "test_new_owner.py::test_from_nothing_to_a_private_chart_of_an_own_file",
    "tests/wire/test_superset.py::test_outcomes_*": "test_superset.py::test_two_worlds_look_the_same_to_superset",
}


def is_nightly(name: str) -> bool:
    """Whether the ordinary run leaves this test out."""
    return any(fnmatchcase(name, escaped(pattern)) for pattern in NIGHTLY)


def escaped(pattern: str) -> str:
    """The pattern with brackets as they are: in names of tests they are no sets of characters."""
    return pattern.replace("[", "[[]")


def third_of(name: str) -> int:
    """The third of the nightly tier that a test belongs to: that of its file, 0 to 2."""
    return sum(name.split("::")[0].encode()) % 3
