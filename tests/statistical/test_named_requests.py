"""A request with a name that is sent again shows what it showed before, at no price: numbers, error bars and all.

Whole interactions with noise as it is. Before each release was shown with the norms that it was bought with, one in six of these counts
was bought anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import lapwing as lw
from lapwing.demo import write_demo

ROUNDS = 2
STATEMENTS = {
    "count": "SELECT COUNT(*) AS n FROM visits WITH PRIVACY (error = 2000)",
    "harder": "SELECT COUNT(*) AS n FROM visits WITH PRIVACY (error = 900)",
    "sum": "SELECT SUM(cost) AS n FROM visits WITH PRIVACY (error = 100000)",
    "average": "SELECT AVG(cost) AS n FROM visits WITH PRIVACY (error = '30%')",
    "groups": "SELECT sex, SUM(minutes) AS n FROM visits JOIN patients USING (patient_id) GROUP BY sex WITH PRIVACY (error = '50%')",
    "price": "SELECT SUM(minutes) AS n FROM visits WITH PRIVACY (epsilon = 0.05)",
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_sent_again_it_is_the_same(kind: str, tmp_path: Path) -> None:
    for number in range(ROUNDS):
        directory = tmp_path / str(number)
        write_demo(directory, patients=200 if number % 2 else 800)
        with lw.open(directory, home=directory / "home") as data:
            data.prepare()
            first = data.ask(STATEMENTS[kind], request_id="named")
            spent = data.curator.balance().spent
            again = data.ask(STATEMENTS[kind], request_id="named")
            assert again.table == first.table and again.intervals == first.intervals
            assert data.curator.balance().spent == spent and again.cost.free
