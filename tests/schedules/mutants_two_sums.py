"""Deliberate mistakes in the two sums of an account with an order, each of which a check must see."""

from __future__ import annotations

from tests.schedules.mutants import CAP_OF_LOSS, NO_CHECK, SPEND, Mutant, sql

WITHIN = "RETURN (p_loss > p_loss_total) IS TRUE AND (p_pure <= p_pure_total) IS NOT TRUE;"
TWO_SUMS = [
    Mutant(
        "one sum within is not enough",
        "model",
        "instead of",
        (sql(WITHIN, "RETURN (p_loss > p_loss_total) IS TRUE OR (p_pure > p_pure_total) IS TRUE;"),),
    ),
    Mutant(
        "a pure amount that is missing is none at all",
        "schedule last pure unit",
        "overspent",
        (
            sql(CAP_OF_LOSS, CAP_OF_LOSS.replace("ds.pure_spent + p_pure", "coalesce(ds.pure_spent, 0) + coalesce(p_pure, 0)")),
            sql(SPEND, SPEND.replace("pure_spent + p_pure", "pure_spent + coalesce(p_pure, 0)")),
        ),
    ),
    Mutant(
        "what the loss admits adds no pure amount",
        "schedule last pure unit",
        "do not add up",
        (
            sql(
                SPEND,
                SPEND.replace("pure_spent + p_pure", "pure_spent + CASE WHEN loss_spent + p_loss <= loss_total THEN 0 ELSE p_pure END"),
            ),
        ),
    ),
    Mutant(
        "what the pure sum admits adds no loss",
        "schedule last pure unit",
        "do not add up",
        (
            sql(
                SPEND,
                SPEND.replace("= loss_spent + p_loss", "= loss_spent + CASE WHEN loss_spent + p_loss <= loss_total THEN p_loss ELSE 0 END"),
            ),
        ),
    ),
    Mutant(
        "pure cap off by one unit",
        "schedule last pure unit",
        "overspent",
        (sql(WITHIN, WITHIN.replace("p_pure <= p_pure_total", "p_pure <= p_pure_total + 1")),),
        NO_CHECK,
    ),
    Mutant(
        "several, of which one has no pure amount",
        "schedule last pure unit",
        "overspent",
        (
            sql(
                "CASE WHEN count(pure) OVER of_all = count(*) OVER of_all THEN sum(pure) OVER of_all END AS pure_of_all",
                "sum(pure) OVER of_all AS pure_of_all",
            ),
        ),
        NO_CHECK,
    ),
    Mutant(
        "a pure amount is not in the chain",
        "schedule last pure unit",
        "the chain is broken",
        (
            sql(
                "p_detail, p_evidence], VARIADIC lapwing.later_of_entry(p_pure::text, p_blocks)));",
                "p_detail, p_evidence], VARIADIC lapwing.later_of_entry(NULL, p_blocks)));",
            ),
        ),
    ),
    Mutant(
        "an analyst's pure amount is not added",
        "model",
        "another share of an analyst",
        (
            sql(
                SPEND.replace("data_set", "analyst"),
                SPEND.replace("data_set", "analyst").replace(" + p_pure", ""),
            ),
        ),
    ),
    Mutant(
        "a budget lowered by one of its sums",
        "model",
        "budget-below-spent",
        (
            sql(
                "ELSIF lapwing.exceeds(ds.loss_spent, ds.pure_spent, to_loss, to_pure) OR to_delta < ds.delta_spent THEN",
                "ELSIF to_loss < ds.loss_spent OR to_delta < ds.delta_spent THEN",
            ),
        ),
    ),
]
