"""Hints that suggest no other statement, and why not."""

# ruff: noqa: E501  (a hint stands on one line)

from __future__ import annotations

OF_THE_OWNER = "the owner can do something, the statement nothing"
BEHIND_THE_FRONT = "plans made by hand alone come so far: the front refuses such a statement with another hint"
EARLIER_NOISE = "norms and a pilot decide whether it comes, and both are noisy"
WITHOUT_REWRITE: dict[str, str] = {
    "keep fewer of them with WHERE, group by something with fewer values, or let the owner raise key_values_max": "tests/unit/curator/test_long_keys.py declares so many values",
    "group by something with fewer values, as in FLOOR(x / 10), or let the owner raise key_values_max": "tests/unit/curator/test_long_keys.py declares so many values",
    "every row is a separate unit here, so rows can be joined only to public tables": "it is the reason",
    "the SQL reference lists those that are": "it names a page",
    "join it to the protected table, in the subquery": "of public tables with more than 10,000 rows",
    "data is never changed": "there is no such statement",
    "none of its declared values is a number": "it is the reason",
    "the owner can declare the values of the column; then TRY_CAST works": OF_THE_OWNER,
    "a smaller declared rows_max, or a coarser grid": OF_THE_OWNER,
    "they are allowed in GROUP BY, not inside each other": "the parser reads no such text; it guards against another parser",
    "declare the values of the key": BEHIND_THE_FRONT,
    "aggregate per unit inside a subquery": BEHIND_THE_FRONT,
    "bin it, for example with FLOOR": BEHIND_THE_FRONT,
    "round it to an integer first": BEHIND_THE_FRONT,
    "ask for a larger error, or for fewer groups": EARLIER_NOISE,
    "ask for a larger error, or name an epsilon": EARLIER_NOISE,
    "ask for an error in numbers, for fewer groups, or name an epsilon": "earlier noise decides whether it comes; each of the three is typed above",
    "leave one of the two out": "it is about the arguments of a call; the test beside this table types it",
}
"""Hints that suggest no other statement, and why not."""
