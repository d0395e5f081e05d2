"""Every test of a promise, with what it promises, of how many answers, and what follows (``tests.support.power``)."""

from __future__ import annotations

from tests.support.power import Counted, Coverage, Limit, Promise, Watched
from tests.support.promised_laws import LAWS

BARS: dict[str, Promise] = {
    "targets against the truth": Watched(
        "statistical/test_targets_and_truth.py::test_the_error_asked_for_is_kept",
        "errors asked for are kept, at 95 %, against the source",
        kept=0.95,
        most=300,
        of_round=2,
        before=Limit(8, 2 / 8),
    ),
    "bars of messy files": Watched(
        "statistical/test_messy_sources.py::test_error_bars_cover_the_truth_of_the_files",
        "bars of 95 % hold the truth of messy files",
        kept=0.95,
        most=24,
        of_round=25,
        counted=Counted.SHARES,
        before=Limit(100, 0.7815),
    ),
    "bars of messy rows": Watched(
        "statistical/test_messy_sources.py::test_rows_as_units_too",
        "bars of 95 % hold the truth where rows are units",
        kept=0.95,
        most=150,
        of_round=4,
        counted=Counted.SHARES,
        before=Limit(16, 0.4580),
    ),
    "bars of messy tables": Watched(
        "engines/postgres/test_messy_sources.py::test_error_bars_cover_the_truth_of_the_tables",
        "bars of 95 % hold the truth of messy tables on PostgreSQL",
        kept=0.95,
        most=24,
        of_round=25,
        counted=Counted.SHARES,
        before=Limit(50, 0.7001),
    ),
    "bars of sparse sums": Watched(
        "statistical/test_sparse_sums.py::test_bars_of_what_is_mostly_null_or_0_hold_the_truth",
        "bars of 95 % hold sums of what is mostly NULL or 0",
        kept=0.95,
        most=75,
        of_round=8,
        before=Limit(32, 0.5373),
    ),
    "bars of rare counts": Watched(
        "statistical/test_sparse_sums.py::test_bars_of_counts_of_few_rows_hold_the_truth",
        "bars of 95 % hold counts of few rows",
        kept=0.95,
        most=300,
        of_round=2,
        before=Limit(32, 0.5373),
    ),
    "bars of free sums": Watched(
        "statistical/test_free_answers.py::test_error_bars_of_free_sums_and_ratios",
        "bars of 95 % hold free sums, averages and ratios, for each law",
        kept=0.95,
        most=600,
        counted=Counted.SHARES,
        before=Limit(1, 0.82),
    ),
    "bars of free answers": Watched(
        "statistical/test_free_answers.py::test_error_bars_of_free_answers_of_all_laws_together",
        "bars of 95 % hold free answers of every kind, over 14 laws and sets of tables",
        kept=0.95,
        most=40,
        of_round=14,
        counted=Counted.SHARES,
        before=Limit(1, 0.82),
    ),
    "bars of free answers, each law": Coverage(
        "statistical/test_free_answers.py::test_error_bars_of_free_answers",
        "the same for each law, in soak",
        kept=0.95,
        answers=200,
        counted=Counted.SHARES,
        band=Limit(200, 0.94),
        before=Limit(200, 0.94),
    ),
    "bars of a tree": Coverage(
        "statistical/test_tree_answers.py::test_error_bars_of_a_tree_hold_no_more_often_than_they_say_either",
        "bars of 95 % hold sums over ranges, and no more of them",
        kept=0.95,
        answers=400,
        counted=Counted.SHARES,
        band=Limit(400, 0.935, 0.965),
        before=Limit(400, 0.935, 0.965),
    ),
    "bars of trees with other noise": Watched(
        "statistical/test_tree_answers.py::test_error_bars_of_a_tree_with_little_or_other_noise",
        "bars of 95 % hold sums over ranges, with noise of few whole numbers and Laplace's",
        kept=0.95,
        most=600,
        counted=Counted.SHARES,
        before=Limit(20, 0.92),
    ),
    "intervals of quantiles of trees": Watched(
        "statistical/test_tree_answers.py::test_intervals_of_quantiles",
        "intervals of 95 % hold quantiles from trees",
        kept=0.95,
        most=600,
        counted=Counted.SHARES,
        before=Limit(5, 0.92),
    ),
    "a share of a count": Watched(
        "statistical/test_accuracy_targets.py::test_a_share_of_a_count_is_met",
        "errors asked for as a share are kept, at 95 %, by counts",
        kept=0.95,
        most=600,
        before=Limit(40, 33 / 40),
    ),
    "a share of an average": Watched(
        "statistical/test_accuracy_targets.py::test_a_share_of_an_average_is_met",
        "errors asked for as a share are kept, at 95 %, by averages",
        kept=0.95,
        most=600,
        before=Limit(40, 33 / 40),
    ),
    "an amount for averages": Watched(
        "statistical/test_accuracy_targets.py::test_an_amount_is_met_by_averages_of_groups",
        "errors asked for as an amount are kept, at 95 %, by averages of each group",
        kept=0.95,
        most=600,
        before=Limit(40, 33 / 40),
    ),
    "ranks of quantiles": Watched(
        "statistical/test_quantiles.py::test_ranks_are_as_close_as_promised",
        "errors in ranks of quantiles keep to their bound of 90 %",
        kept=0.9,
        most=800,
        before=Limit(100, 0.72),
    ),
    "bars of quantiles": Watched(
        "statistical/test_quantile_bars.py::test_bars_of_quantiles_of_many_rows_hold_the_truth",
        "bars of 95 % hold quantiles of many rows per unit",
        kept=0.95,
        most=75,
        of_round=8,
        before=Limit(8, 0.875),
    ),
    "bars beside quantiles": Watched(
        "statistical/test_quantile_bars.py::test_bars_of_counts_and_sums_beside_quantiles_hold_the_truth",
        "bars of 95 % hold counts, sums, averages and medians of one statement",
        kept=0.95,
        most=75,
        of_round=16,
        before=Limit(16, 0.875),
    ),
    "bars of clipped expressions": Watched(
        "statistical/test_clipped_expressions.py::test_bars_of_expressions_hold_the_truth_that_bounds_cut",
        "bars of 95 % hold expressions over clipped counts and sums",
        kept=0.95,
        most=75,
        of_round=16,
        before=Limit(16, 0.875),
    ),
    "intervals of real answers": Coverage(
        "statistical/test_mechanisms.py::test_intervals_of_real_answers_cover",
        "intervals of 90 % of randomised responses hold, for each answer",
        kept=0.9,
        answers=400,
        before=Limit(400, 0.8175),
    ),
    "upper bounds of power laws": Coverage(
        "unit/planning/test_norm_fit.py::test_the_tail_of_a_power_law_is_continued_where_bins_show_nothing",
        "upper bounds of 95 % on what a cap cuts off hold, of power laws",
        kept=0.95,
        answers=300,
        before=Limit(40, 0.7),
    ),
    "upper bounds from samples": Coverage(
        "unit/planning/test_norm_fit.py::test_upper_bounds_from_a_sample_reach_to_the_units_it_left_out",
        "the same from a sample of units, of few units far above",
        kept=0.95,
        answers=300,
        before=Limit(60, 0.9),
    ),
    "upper bounds from samples of power laws": Coverage(
        "unit/planning/test_norm_fit.py::test_a_sample_of_a_power_law_gives_its_tail",
        "the same from a sample, of a power law",
        kept=0.95,
        answers=300,
        before=Limit(30, 0.8),
    ),
    "upper bounds where units begin at a few rows": Coverage(
        "unit/planning/test_norm_fit.py::test_units_that_begin_at_a_few_rows_do_not_bend_the_tail",
        "the same where units begin at a few rows",
        kept=0.95,
        answers=300,
        before=Limit(20, 0.8),
    ),
    "upper bounds of a broad hump": Coverage(
        "unit/planning/test_norm_fit.py::test_a_hump_too_broad_for_any_bin_is_seen_as_a_whole",
        "the same of a hump too broad for any bin",
        kept=0.95,
        answers=300,
        before=Limit(20, 0.8),
    ),
    "upper bounds of two kinds of units": Coverage(
        "unit/planning/test_norm_fit.py::test_few_long_units_are_expected_where_the_table_shows_them",
        "the same of few long units, where the table shows them",
        kept=0.95,
        answers=300,
        before=Limit(20, 0.8),
    ),
    "sums that nothing shows": Watched(
        "unit/planning/test_norm_zeros.py::test_sums_of_few_units_that_nothing_shows_are_covered",
        "bars of 95 % hold sums of few units",
        kept=0.95,
        most=600,
        before=Limit(24, 0.85),
    ),
    "sums of units that are seen": Watched(
        "unit/planning/test_norm_zeros.py::test_where_they_are_seen_bars_are_short",
        "bars of 95 % hold sums of units that are seen",
        kept=0.95,
        most=600,
        before=Limit(24, 0.85),
    ),
    "bars before the cap": Watched(
        "unit/planning/test_norm_caps.py::test_intervals_cover_what_was_there_before_the_cap",
        "bars of 95 % hold what was there before the cap, for each law of norms",
        kept=0.95,
        most=50,
        of_round=12,
        counted=Counted.SHARES,
        before=Limit(72, 0.88),
    ),
    "cells that noise hides": Watched(
        "unit/planning/test_norm_caps.py::test_cells_whose_sizes_the_noise_hides_are_covered_too",
        "bars of 95 % hold cells whose sizes noise hides, and the large ones of them",
        kept=0.95,
        most=600,
        counted=Counted.SHARES,
        before=Limit(20, 0.9),
    ),
    "cells that noise hides, surely": Watched(
        "unit/planning/test_norm_caps.py::test_cells_whose_sizes_the_noise_hides_are_covered_too",
        "the same of 99.9 %",
        kept=0.999,
        most=600,
        counted=Counted.SHARES,
        before=Limit(20, 0.998),
    ),
    "rare counts by their model": Watched(
        "unit/planning/test_rare_counts.py::test_bars_of_rare_counts_reach_to_units_that_nothing_shows",
        "bars of 95 % hold counts of few rows",
        kept=0.95,
        most=600,
        before=Limit(60, 0.87),
    ),
    "scaled groups": Watched(
        "unit/curator/test_scaled_groups.py::test_bars_of_scaled_groups_hold_the_raw_truth",
        "bars of 95 % of groups scaled to a total hold, on rows for which the model holds",
        kept=0.95,
        most=600,
        counted=Counted.SHARES,
        before=Limit(4, 0.8),
    ),
    "marks of empty groups": Coverage(
        "unit/answers/test_marks.py::test_nearly_all_groups_without_rows_are_noise_only",
        "groups without rows are marked with a chance of 97.5 %",
        kept=0.975,
        answers=182,
        before=Limit(104, 87 / 104),
    ),
    "known groups": Coverage(
        "statistical/test_coverage.py::test_counts_and_sums_of_known_groups",
        "bars of 95 % hold counts and sums, and no more of them",
        kept=0.95,
        answers=10_000,
        band=Limit(10_000, 0.94, 0.96),
        before=Limit(10_000, 0.94, 0.96),
    ),
    "averages of known groups": Coverage(
        "statistical/test_coverage.py::test_averages_of_known_groups",
        "bars of 95 % hold averages, and no more of them far from noise",
        kept=0.95,
        answers=10_000,
        band=Limit(10_000, 0.94, 0.96),
        before=Limit(10_000, 0.94, 0.96),
    ),
    "discovered groups": Coverage(
        "statistical/test_coverage.py::test_counts_of_discovered_groups",
        "bars of 95 % hold counts of discovered groups, and no more of them",
        kept=0.95,
        answers=10_000,
        band=Limit(10_000, 0.94, 0.96),
        before=Limit(10_000, 0.94, 0.96),
    ),
    "sub-totals": Coverage(
        "statistical/test_level_coverage.py::test_sub_totals_and_their_averages",
        "bars of 95 % hold sub-totals, and no more of them",
        kept=0.95,
        answers=10_000,
        band=Limit(10_000, 0.94, 0.96),
        before=Limit(10_000, 0.94, 0.96),
    ),
    "averages of sub-totals": Coverage(
        "statistical/test_level_coverage.py::test_sub_totals_and_their_averages",
        "bars of 95 % hold averages of sub-totals",
        kept=0.95,
        answers=500,
        band=Limit(500, 0.905),
        before=Limit(500, 0.905),
    ),
    "computed outputs": Coverage(
        "statistical/test_computed_coverage.py::test_error_bars_of_computed_outputs",
        "bars of 95 % hold computed outputs, and no more of them",
        kept=0.95,
        answers=2_400,
        band=Limit(2_400, 0.93, 0.97),
        before=Limit(2_400, 0.93, 0.97),
    ),
    "moments": Coverage(
        "statistical/test_moment_coverage.py::test_error_bars_of_moments",
        "bars of 95 % hold moments, and no more of those that are of use",
        kept=0.95,
        answers=1_250,
        band=Limit(1_250, 0.93, 0.97),
        before=Limit(1_250, 0.93, 0.97),
    ),
    "ranges of days": Coverage(
        "unit/releases/test_range_tree.py::test_intervals_hold_as_often_as_they_say",
        "bars of 95 % hold counts of ranges, and no more of them",
        kept=0.95,
        answers=300,
        counted=Counted.SHARES,
        band=Limit(300, 0.935, 0.965),
        before=Limit(300, 0.935, 0.965),
    ),
    "quantiles of days": Coverage(
        "unit/releases/test_range_tree.py::test_intervals_hold_as_often_as_they_say",
        "intervals of 95 % hold quantiles of days",
        kept=0.95,
        answers=300,
        counted=Counted.SHARES,
        band=Limit(300, 0.935),
        before=Limit(300, 0.935),
    ),
    "alarms of audits, half": Watched(
        "statistical/test_audit.py::test_false_alarms_are_no_more_frequent_than_stated",
        "audits at a confidence of 50% raise no more false alarms than that",
        kept=0.5,
        most=800,
        before=Limit(200, 1 - 134 / 200),
    ),
    "alarms of audits": Watched(
        "statistical/test_audit.py::test_false_alarms_are_no_more_frequent_than_stated",
        "audits at a confidence of 90% raise no more false alarms than that",
        kept=0.9,
        most=800,
        before=Limit(200, 1 - 40 / 200),
    ),
}

PROMISES: dict[str, Promise] = {**BARS, **LAWS}
"""Bars, targets and marks, then laws, keys and attacks."""


def watched(name: str) -> Watched:
    """One whose answers are asked for until it is clear."""
    found = PROMISES[name]
    assert isinstance(found, Watched)
    return found


def coverage(name: str) -> Coverage:
    """One whose number of answers is fixed."""
    found = PROMISES[name]
    assert isinstance(found, Coverage)
    return found


WRONG = "asks that a planted mistake is seen: a miss fails this very test"
EXCEPTIONS = {
    "engines/test_fresh_bench.py::test_releases_are_judged": "a benchmark runs at a tiny size; what it prints is not a promise",
    "attacks/test_noise_attacks.py::test_the_same_test_sees_a_threshold_that_is_one_too_low": WRONG,
    "attacks/test_textbook_averaging.py::test_the_same_attack_on_a_budget_that_pays_for_more_is_seen": WRONG,
    "attacks/test_textbook_differencing.py::test_the_same_test_sees_answers_that_are_less_private_than_claimed": WRONG,
    "attacks/test_textbook_differencing.py::test_the_attack_gains_what_its_noise_predicts": "asks that the attack is as good as it can be",
    "attacks/test_textbook_linkage.py::test_the_same_test_sees_too_little_noise": WRONG,
    "attacks/test_textbook_membership.py::test_one_count_attains_the_curve": "asks that the attack is as good as it can be",
    "attacks/test_textbook_reconstruction.py::test_a_budget_that_protects_nobody_protects_nobody": WRONG,
    "statistical/test_audit_kernel.py::test_no_plan_reveals_more_than_its_certificate": (
        "compares exact losses; its audits see what the planted mistakes beside it plant"
    ),
    "statistical/test_audit_kernel.py::test_a_certificate_that_charges_too_little_is_caught": WRONG,
    "statistical/test_price_ladder.py::test_at_a_very_large_price_answers_are_those_of_the_engine": (
        "asks that bars at the limit belong to the engine's answers; how often bars hold is asked elsewhere"
    ),
    "statistical/test_drawn_laws.py::test_another_law_would_be_seen": WRONG,
    "statistical/test_noise.py::test_a_wrong_law_would_be_seen": WRONG,
    "statistical/test_selection.py::test_a_wrong_scale_would_be_seen": WRONG,
    "statistical/test_selection.py::test_the_three_selections_would_not_pass_for_each_other": WRONG,
    "unit/answers/test_marks.py::test_a_subquery_a_join_and_a_union_keep_marks": "compares marks with bars, whatever was drawn",
    "unit/answers/test_noise_sums.py::test_the_width_is_the_least_that_holds": "computes a law; nothing is drawn",
    "unit/audit/test_audit_project.py::test_the_worst_invented_unit_reaches_the_certificate": "compares exact losses; nothing is drawn",
    "unit/audit/test_audit_project.py::test_where_rows_are_units_one_row_of_one_table_is_the_difference": (
        "compares exact losses; nothing is drawn"
    ),
    "unit/releases/test_precisions.py::test_many_tables_under_a_pure_price_have_no_exchange_that_helps": (
        "compares computed variances; nothing is drawn"
    ),
}
"""Tests that compare a share or a law and are no promise that chance could hide, each with the reason."""
