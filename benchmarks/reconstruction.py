"""How many of 211 secret bits come out, by epsilon: the table in docs/tutorials/attacks.md.

    python -m benchmarks.reconstruction [--runs 5]

Method. A street of 211 people, one row each, with a public house number and a secret fair bit; bounded neighbours. Each figure is the share
of bits guessed right, the mean over runs with new bits and a new data set, asked through Lapwing from end to end. *Linear program*: 640
counts of sets of half the houses in 10 statements that share the budget equally. *House by house*: one statement with one cell per person.
Both with delta = 0 and with delta = 2^-40.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
from fractions import Fraction
from pathlib import Path
from statistics import mean

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing
from lapwing.kernel.accounting import budget_for, charge_loss
from lapwing.prices import statement_loss
from lapwing.theory.attacks.bounds import success_max
from lapwing.theory.attacks.reconstruction import agreements, reconstruct, subset_questions
from lapwing.theory.guarantees import Guarantee

PEOPLE = 211
STATEMENTS = 10
COUNTS_EACH = 64
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(10), Fraction(100))
DELTAS = (Fraction(0), Fraction(1, 2**40))
QUESTIONS = subset_questions(modulus=PEOPLE, count=STATEMENTS * COUNTS_EACH)
BY_HOUSE = "SELECT house, SUM(ill) AS n FROM people GROUP BY house ORDER BY house"

CATALOGUE = """
format = 1
[dataset]
id = "street"
unit = "person"
neighbours = "bounded"
units = {people}
[budget]
epsilon = {epsilon}
delta = {delta}
[tables.people]
source = "people.parquet"
unit = "person"
one_row_per_unit = true
rows_max = 1_000
[tables.people.columns]
person = {{ type = "key" }}
house = {{ type = "integer", min = 0, max = {house_max}, null = false }}
ill = {{ type = "integer", min = 0, max = 1, null = false }}
"""


def statements() -> list[str]:
    """All subset counts, as many in a statement as it may have."""
    texts = []
    for start in range(0, len(QUESTIONS), COUNTS_EACH):
        asked = enumerate(QUESTIONS[start : start + COUNTS_EACH])
        counts = (f"COUNT(*) FILTER (WHERE {question.condition('house')} AND ill = 1) AS q{i}" for i, question in asked)
        texts.append(f"SELECT {', '.join(counts)} FROM people")
    return texts


def share_of(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest epsilon, in hundredths of the whole, at which all statements fit the budget."""
    budget = budget_for(epsilon=epsilon, delta=delta)
    parts = (epsilon * Fraction(part, 100) for part in range(1, 101))
    return max(part for part in parts if STATEMENTS * charge_loss(statement_loss(budget, part)) <= budget.loss_total)


def ask(ill: list[bool], texts: list[str], *, whole: Fraction, delta: Fraction, each: Fraction) -> list[list[int]]:
    """The numbers of each statement, from a new data set with a budget of its own."""
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        columns = {"person": list(range(PEOPLE)), "house": list(range(PEOPLE)), "ill": [int(bit) for bit in ill]}
        pq.write_table(pa.table(columns), directory / "people.parquet")
        written = '"2^-40"' if delta else "0"
        filled = CATALOGUE.format(people=PEOPLE, house_max=PEOPLE - 1, epsilon=float(whole), delta=written)
        (directory / "lapwing.toml").write_text(filled)
        with lapwing.open(directory, home=directory / "home") as data:
            data.prepare()
            return [
                [row[name] for row in rows for name in row if name != "house"]
                for rows in (data.ask(text, epsilon=each).table.to_pylist() for text in texts)
            ]


def linear_program(ill: list[bool], epsilon: Fraction, delta: Fraction) -> float:
    """The share of bits that decoding recovers."""
    answers = ask(ill, statements(), whole=epsilon, delta=delta, each=share_of(epsilon, delta))
    return agreements(reconstruct(QUESTIONS, [count for row in answers for count in row], attributes=range(PEOPLE)), ill) / PEOPLE


def house_by_house(ill: list[bool], epsilon: Fraction, delta: Fraction) -> float:
    """The share of bits that rounding each person's own cell recovers."""
    (cells,) = ask(ill, [BY_HOUSE], whole=epsilon, delta=delta, each=epsilon)
    return agreements([cell >= 1 for cell in cells], ill) / PEOPLE


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description="Bits recovered by reconstruction, by epsilon.")
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print("| epsilon | any attack, at most | linear program | house by house | linear program, delta 2^-40 | house by house, delta 2^-40 |")
    print("|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        figures = []
        for delta in DELTAS:
            for attack in (linear_program, house_by_house):
                streets = [[bool(secrets.randbits(1)) for _ in range(PEOPLE)] for _ in range(runs)]
                figures.append(mean(attack(ill, epsilon, delta) for ill in streets))
        most = float(success_max(Guarantee.of_epsilon(epsilon)))
        print(f"| {float(epsilon):g} | {most:.1%} | {' | '.join(f'{figure:.0%}' for figure in figures)} |", flush=True)


if __name__ == "__main__":
    main()
