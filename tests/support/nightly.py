"""The tests that the ordinary run leaves to the night, each with what guards the same in the ordinary run.

A pattern is a test's name as pytest shows it, with ``*`` for any characters. What guards a charge, a right or a leak stays in the ordinary
run: the oracles on every engine, the blind run, two worlds of the library, the server, the pages and Superset, canaries and attacks, rights
and tokens, both ledgers' models, crashes, interleavings and gates, kills of clients and servers, full disks, the kept homes, at the sizes
of ``tests/support/sizes.py``.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

NIGHTLY: dict[str, str] = {
    # Spark is the slowest engine by far: one Java serves the run, one test after the other.
    "tests/docs/test_examples.py::*spark-engine.md*": "the same commands on DuckDB in docs/tutorials/owner.md",
    "tests/engines/spark/test_spark_connect.py::*": "test_equal_answers.py::test_generated_statements[spark-*], in its own session",
    "tests/engines/spark/test_spark_blocks.py::test_[!el]*": "test_exact_results_* and test_late_rows_*; the same on two engines",
    "tests/engines/spark/test_spark_files.py::test_names_of_folders_change_*": "test_source_neighbours.py::test_folders_on_spark",
    "tests/engines/spark/test_spark_fuzz.py::test_compiled_expressions_*": "test_spark_fuzz.py::test_random_expressions_*[0]",
    "tests/engines/spark/test_spark_fuzz.py::test_random_expressions_*[1]": "the same test, [0]",
    "tests/engines/spark/test_spark_life.py::test_every_shape_without_a_copy_*": "test_spark_life.py::test_reading_without_a_copy_*",
    "tests/engines/spark/test_spark_plans.py::test_bounding_moves_rows_*": "no test of the ordinary run: it is about speed",
    "tests/engines/spark/test_spark_open_text.py::*": "tests/engines/test_open_text.py, and test_spark_fuzz.py for the spellings",
    "tests/engines/suite/test_equal_answers.py::test_generated_statements_over_hostile_rows[spark-1]": "the same test, [spark-0]",
    "tests/engines/suite/test_equal_answers.py::test_generated_relations[spark-*]": "test_generated_statements[spark-unbounded-*]",
    "tests/engines/suite/test_equal_answers.py::test_generated_statements[spark-bounded-*]": "the same test, unbounded",
    "tests/engines/suite/test_equal_answers.py::test_hand_made_plans[spark-*]": "test_spark_oracle.py runs the same shapes",
    "tests/engines/suite/test_equal_answers.py::test_the_conformance_list[spark-*]": "test_generated_statements[spark-unbounded-*]",
    "tests/engines/suite/test_equal_answers.py::test_windows_within_units[spark*]": "test_generated_statements[spark-unbounded-*]",
    "tests/engines/suite/test_inside_units.py::*[spark*": "the same tests on PostgreSQL; test_spark_oracle.py",
    "tests/engines/suite/test_link_keys.py::test_what_one_owner_repeats_*[spark]": "test_a_key_that_several_owners_name_*[spark]",
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
    # Sources and engines, beside what is compared on all three of them.
    "tests/attacks/test_unit_work.py::test_the_worst_accepted_*": "tests/engines/suite/test_unit_work.py, the same statements",
    "tests/engines/suite/test_unit_work.py::*[spark]": "the same tests on DuckDB and PostgreSQL",
    "tests/engines/suite/test_virtual.py::test_the_integers_*": "test_virtual.py::test_no_neighbour_breaks_a_claim",
    "tests/engines/test_sql_samples.py::*": "tests/engines/test_sql_hostile.py and test_expressions.py",
    "tests/engines/test_*bench*.py::*": "no test of the ordinary run: benchmarks answer nobody",
    "tests/engines/test_wide_tables.py::*": "tests/engines/suite/test_row_units.py::test_very_wide_rows on DuckDB and PostgreSQL",
    "tests/engines/postgres/test_functions.py::test_of_the_servers_*[duckdb]": "the same test, [postgres]",
    # Orders of steps in the ledger on PostgreSQL: of the operations on many data sets one pair stays.
    "tests/schedules/test_gates.py::*[reserve_across-reserve_across]": "[reserve_across-reserve]; two across in test_interleavings.py",
    "tests/schedules/test_gates.py::*[reserve_across-close]": "[reserve_across-reserve] and [reserve-close]",
    "tests/schedules/test_gates.py::*[reserve-reserve_across]": "[reserve_across-reserve]",
    "tests/schedules/test_gates.py::*[reserve-reserve_many]": "[reserve_many-reserve]",
    "tests/schedules/test_gates.py::*[commit_many-reserve]": "[commit-reserve] and [commit_many-begin_after_a_death]",
    "tests/schedules/test_gates.py::*[begin_after_a_death-commit_many]": "[commit_many-begin_after_a_death]",
    # The blind run: every statement, relation, account and size of numbers.
    "tests/blind/test_blind.py::test_worlds_are_told_the_same[*": "test_worlds_are_told_the_same_in_short, in this file",
    "tests/blind/test_blocks.py::test_worlds_of_other_days_are_told_the_same[*": "test_worlds_of_other_days_are_told_the_same_in_short",
    # Mutants try the oracles, not the product; at night they run at the sizes of the ordinary run.
    "tests/blind/test_leaks.py::*": "tests/blind/test_blind.py, which sees them",
    "tests/ledger/test_mutants.py::test_the_*": "tests/ledger/test_model.py and test_race.py, which see these mistakes",
    "tests/ledger/test_block_mutants.py::test_the_*": "tests/ledger/test_block_model.py, which sees these mistakes",
    "tests/ledger/test_postgres_blocks_mutants.py::*": "tests/ledger/test_postgres_blocks.py and test_postgres_blocks_acts.py",
    "tests/properties/test_block_oracle.py::test_the_oracle_sees_*": "test_no_neighbour_of_one_block_breaks_a_claim, in this file",
    "tests/properties/test_bought_blocks_oracle.py::test_the_oracle_sees_*": "test_no_plan_that_is_bought_*, in this file",
    "tests/properties/test_bought_blocks_oracle.py::*[unbounded-approximate-None]": "the same test, [unbounded-approximate-32]",
    "tests/properties/test_bought_blocks_oracle.py::*[unbounded-pure-None]": "the same test, [bounded-pure-None]",
    "tests/properties/test_bought_blocks_oracle.py::*[bounded-approximate-*": "the same test, [unbounded-approximate-32]",
    "tests/properties/test_sums_over_time.py::*[*-unbounded-[!p]*": "the same test, [*-bounded-order] and [*-unbounded-pure]",
    "tests/properties/test_sums_over_time.py::*[month-*": "the same test, [day-*] and [week-*]",
    "tests/properties/test_sums_over_time.py::*[week-unbounded-*": "the same test, [day-unbounded-pure]",
    "tests/properties/test_sums_over_time.py::*[day-bounded-*": "the same test, [week-bounded-order]",
    "tests/properties/test_sums_over_time.py::*-bounded-[!o]*": "the same test, [week-bounded-order]",
    "tests/properties/test_block_sum_mutants.py::test_the_bug_*": "test_sums_over_time.py and tests/unit/curator/test_block_windows.py",
    "tests/properties/test_growth_mutants.py::test_the_bug_*": "test_block_oracle.py and tests/unit/curator/test_blocks_of_time.py",
    "tests/properties/test_growth_mutants.py::test_without_*": "test_block_oracle.py and tests/unit/curator/test_blocks_of_time.py",
    "tests/properties/test_inside_mutants.py::*": "tests/properties/test_inside_oracle.py, which sees them",
    "tests/properties/test_mutants.py::*": "tests/properties/test_sensitivity_oracle.py, which sees them",
    "tests/properties/test_norm_mutants.py::test_the_oracle_sees_*": "test_no_neighbour_breaks_a_claim_about_a_sample, in this file",
    "tests/properties/test_norm_mutants.py::test_plain_python_*": "test_norm_mutants.py::test_without_a_bug_nothing_is_wrong",
    "tests/properties/test_preparation_oracle.py::test_the_oracle_sees_*": "test_preparation_oracle.py::test_no_neighbour_changes_*",
    "tests/properties/test_relation_mutants.py::*": "tests/properties/test_relations_oracle.py, which sees them",
    "tests/properties/test_sql_oracle.py::test_the_oracle_sees_*": "tests/properties/test_sensitivity_oracle.py",
    "tests/schedules/test_mutants.py::*": "tests/schedules/test_interleavings.py and test_policy_model.py, which see them",
    "tests/statistical/test_audit_kernel.py::test_a_quarter_more_*": "test_no_mechanism_reveals_more_than_it_claims",
    "tests/statistical/test_audit_kernel.py::test_no_plan_reveals_*-bounded]": "the same test, unbounded; the oracles of both relations",
    "tests/attacks/test_synthetic_rows.py::test_the_same_*": "the same attacks on what is protected, in this file",
    "tests/unit/curator/test_weighing.py::test_a_planted_mistake_*": "the other tests of this file, which see them",
    # At a huge budget answers equal the engine's: one generator of statements stays.
    "tests/differential/test_held_out.py::*": "tests/differential/test_differential.py",
    "tests/properties/test_deciding_limit.py::*": "tests/properties/test_sql_limit.py",
    "tests/properties/test_inside_limit.py::*": "tests/properties/test_sql_limit.py",
    "tests/properties/test_moments_limit.py::*": "tests/properties/test_sql_limit.py",
    "tests/properties/test_quantile_limit.py::*": "tests/properties/test_quantile_oracle.py and test_sql_limit.py",
    "tests/properties/test_relations_limit.py::*": "tests/properties/test_sql_limit.py",
    "tests/unit/audit/test_benchmark_lists.py::*": "tests/unit/audit/test_conformance.py",
    # Coverage of each kind of answer: half of the cases stay.
    "tests/statistical/test_computed_coverage.py::*": "tests/statistical/test_coverage.py and test_targets_and_truth.py",
    "tests/statistical/test_free_answers.py::*": "tests/unit/releases/test_serving.py; tests/statistical/test_coverage.py",
    "tests/statistical/test_level_coverage.py::*": "tests/statistical/test_coverage.py",
    "tests/statistical/test_moment_coverage.py::*[30 rows, 20, pure]": "the same test, 4000 rows",
    "tests/statistical/test_sparse_sums.py::*": "tests/statistical/test_targets_and_truth.py",
    "tests/statistical/test_tree_answers.py::*": "tests/statistical/test_quantiles.py; tests/statistical/test_coverage.py",
    "tests/statistical/test_accuracy_targets.py::test_an_amount_*": "test_targets_and_truth.py::test_the_error_asked_for_is_kept",
    "tests/unit/curator/test_norms.py::test_error_bars_reach_*": "tests/statistical/test_targets_and_truth.py",
    "tests/unit/curator/test_scaled_groups.py::test_bars_of_*": "the other tests of this file; tests/statistical/test_coverage.py",
    "tests/unit/planning/test_norm_fit.py::test_far_noise_*": "the other tests of this file",
    "tests/unit/planning/test_norm_fit.py::test_upper_bounds_*": "the other tests of this file",
    "tests/unit/planning/test_norm_zeros.py::test_sums_of_few_*": "the other tests of this file",
    "tests/unit/planning/test_rare_counts.py::test_bars_of_*": "the other tests of this file",
    "tests/statistical/test_moment_coverage.py::*[40000 rows, 1, pure]": "the same test, 30 and 4000 rows",
    "tests/statistical/test_moment_coverage.py::*[400 rows, 1, pure]": "the same test, 30 and 4000 rows",
    "tests/statistical/test_moment_coverage.py::*[30 rows, 0.1, approximate]": "the same test, 400 rows",
    "tests/statistical/test_moment_coverage.py::*[40000 rows, 0.001, approximate]": "the same test, 4000 rows",
    # The textbook and the games: nothing that answers a statement uses them, but for the laws of mechanisms and of unions.
    "tests/games/*": "no test of the ordinary run: games answer no statement",
    "tests/theory/test_[!ku]*": "tests/theory/test_kernel_mechanisms.py, test_union_of_filters.py and tests/unit/kernel/test_accounting.py",
    # Faults under load, and checks of the checks.
    "tests/faults/test_disk.py::*[How.SMALL_DISK-32-1-4]": "the same test, 1 and 4 clients",
    "tests/faults/test_harness.py::test_a_server_that_does_not_wait_*": "the other tests of tests/faults, which it tries",
    "tests/meta/test_repeatable_draws.py::*": "no test of the ordinary run: it tries the tests",
    "tests/meta/test_power.py::test_the_page_*": "test_power.py::test_a_broken_promise_is_seldom_missed",
    "tests/meta/test_second_look.py::*": "no test of the ordinary run: it tries the tests",
    "tests/meta/test_tiers.py::test_a_run_goes_on_where_it_was": "no test of the ordinary run: it tries the tests",
    "tests/meta/test_tiers.py::test_what_is_*": "no test of the ordinary run: it tries the tests",
    "tests/properties/test_relations_oracle.py::*conformance_list*": "the same oracle over generated statements",
    "tests/wire/test_denials.py::*": "tests/server/test_api_security.py and tests/wire/test_session.py: the limits themselves",
    "tests/server/test_load.py::*": "tests/faults/test_server_kills.py and test_kills.py",
    "tests/statistical/test_audit_kernel.py::test_neighbours_get_*-bounded]": "the same test, unbounded; the oracles of both relations",
    "tests/unit/audit/test_audit_project.py::*": "tests/statistical/test_audit_kernel.py",
    # lapwing.mechanisms and `lapwing audit` serve lessons and audits; nothing that answers a statement uses them.
    "tests/statistical/test_mechanisms.py::*": "tests/statistical/test_noise.py and test_drawn_laws.py: the sampler of answers",
    "tests/statistical/test_selection.py::*": "tests/statistical/test_quantiles.py: the selections of answers",
    "tests/unit/cli/test_audit.py::*": "tests/statistical/test_audit_kernel.py",
    "tests/unit/mechanisms/*": "tests/unit/kernel: the laws, prices and selections of answers",
    # Pages and clients.
    "tests/unit/audit/test_conformance.py::test_the_command_*": "the other tests of this file",
    "tests/unit/sql/test_hints.py::test_every_hint_is_typed_*": "test_hints.py::test_what_was_refused_for_no_reason_is_answered",
    "tests/docs/test_examples.py::*lesson-*": "the other pages of the same test",
    "tests/docs/test_examples.py::*attacks.md*": "tests/attacks",
    "tests/docs/test_examples.py::*publish-counts.md*": "tests/unit/releases/test_release_face.py",
    "tests/docs/test_examples.py::*synthetic-table.md*": "tests/unit/releases/test_release_face.py",
    "tests/docs/test_examples.py::*audit.md*": "tests/statistical/test_audit_kernel.py",
    "tests/docs/test_whole_docs.py::*": "test_built_pages.py: the keyboard and the entries of the search on a few pages",
    "tests/docs/test_kernel.py::*": "test_examples.py, the same pages without a kernel",
    "tests/docs/test_operator_pages.py::*": "tests/ledger/test_operator_page.py and test_postgres_roles.py",
    "tests/ledger/test_commands.py::test_from_a_local_ledger_*": "tests/ledger/test_transfer.py",
    "tests/server/test_process.py::test_the_same_words_again_*": "test_process.py::test_another_user_asks_and_cannot_read_the_rows",
    "tests/console/test_analyst_flows.py::test_*keys*": "the other flows of this file: sign in, price, pay, replay, refuse",
    "tests/console/test_analyst_flows.py::test_words_*": "tests/console/test_rewrites.py",
    "tests/console/test_analyst_flows.py::test_the_slider_*": "test_the_price_is_there_while_one_types, in this file",
    "tests/console/test_analyst_flows.py::test_what_can_be_rewritten_is*": "tests/console/test_rewrites.py",
    "tests/console/test_auditor_flows.py::*": "tests/console/test_page_rights.py; test_owner_flows.py::test_an_auditor_sees_*",
    "tests/console/test_looks.py::*": "test_analyst_flows.py::test_on_a_phone_nothing_is_wider_than_the_screen",
    "tests/console/test_new_owner.py::test_what_is_wrong_*": "test_new_owner.py::test_from_nothing_to_a_private_chart_of_an_own_file",
    "tests/console/test_owner_flows.py::test_*word*": "tests/docs/test_words_page.py",
    "tests/console/test_owner_flows.py::test_*phone*": "test_analyst_flows.py::test_on_a_phone_nothing_is_wider_than_the_screen",
    "tests/console/test_owner_flows.py::test_a_version_is_prepared_without_scripts": "test_a_new_version_is_prepared_*, in this file",
    "tests/console/test_new_owner_tables.py::*": "test_new_owner.py::test_from_nothing_to_a_private_chart_of_an_own_file",
    "tests/wire/test_superset.py::test_outcomes_*": "test_superset.py::test_two_worlds_look_the_same_to_superset",
}

CROSSED = (
    "tests/engines/suite/test_postgres_oracle.py",
    "tests/properties/test_inside_oracle.py",
    "tests/properties/test_relations_oracle.py",
    "tests/properties/test_row_units.py",
    "tests/properties/test_sql_oracle.py",
)
"""Oracles that the ordinary run asks about one more or less on a pure account and about one replaced on an approximate one."""
for file in CROSSED:
    for relation_and_account in ("unbounded-Account.APPROXIMATE", "bounded-Account.PURE"):
        NIGHTLY[f"{file}::*[{relation_and_account}*"] = (
            "the same test, each relation with the other account; test_sensitivity_oracle.py has all four"
        )


def is_nightly_file(path: str) -> bool:
    """Whether the ordinary run leaves out all of a file, so that it need not be read."""
    return any(pattern.endswith(("::*", "/*", "]*")) and fnmatchcase(path, pattern.removesuffix("::*")) for pattern in NIGHTLY)


def is_nightly(name: str) -> bool:
    """Whether the ordinary run leaves this test out."""
    return any(fnmatchcase(name, escaped(pattern)) for pattern in NIGHTLY)


def escaped(pattern: str) -> str:
    """The pattern with brackets of parameters as they are; ``[!`` begins a set of characters that are not meant."""
    return re.sub(r"\[(?!!)", "[[]", pattern)


def without_group(name: str) -> str:
    """The name of a test without the group that xdist adds to it."""
    return re.sub(r"@[^@\]]+$", "", name)


def third_of(name: str) -> int:
    """The third of the nightly tier that a test belongs to: that of its file, 0 to 2."""
    return sum(name.split("::")[0].encode()) % 3
