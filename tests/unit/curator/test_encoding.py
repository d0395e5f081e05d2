"""Stored answers: what is read back is what was written, and what cannot be read is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from lapwing.curator.stored_tables import FORMAT, FORMAT_PACKED, decode, encode
from lapwing.errors import LedgerError
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace
from lapwing.kernel.release import ChosenQuantiles, NoisyColumn, NoisyTable, Released

COLUMNS = (
    NoisyColumn("n", (3, -7, 2**61), DiscreteLaplace(Fraction(5, 2)), Fraction(1), Fraction(0)),
    NoisyColumn("s", (0, 1, 2), DiscreteGaussian(Fraction(1, 2**20)), Fraction(1, 100), Fraction(1, 200)),
)
RELEASED = Released(
    "plan",
    (
        NoisyTable(("k", "x"), (("ä", Fraction(1, 3)), (None, None), (True, 5)), COLUMNS, 12, 10**6),
        NoisyTable((), ((),), (), None, 10, (ChosenQuantiles("q", ((4,), (9,)), Fraction(1, 2)),)),
    ),
)


def test_an_answer_is_read_back_as_it_was() -> None:
    assert decode(encode(RELEASED)) == RELEASED
    assert encode(decode(encode(RELEASED))) == encode(RELEASED)


def test_an_answer_of_another_format_is_refused() -> None:
    for other in (FORMAT_PACKED + 1, None, str(FORMAT)):
        body = json.loads(encode(RELEASED)) | {"format": other}
        with pytest.raises(LedgerError) as error:
            decode(json.dumps(body).encode())
        assert error.value.code == "answer-format"


@pytest.mark.parametrize("value", [1.5, [1]])
def test_a_key_that_nobody_wrote_is_refused(value: object) -> None:
    body = json.loads(encode(RELEASED))
    body["tables"][0]["groups"][0][0] = value
    with pytest.raises(LedgerError) as error:
        decode(json.dumps(body).encode())
    assert error.value.code == "answer-format"


PRODUCT = NoisyTable(
    ("k", "x"), (), (replace(COLUMNS[0], values=(3, -7, 2**61, -(2**62), 0, 1)),), None, 9, (), (("ä", None), (1, 2, None))
)


def test_a_product_of_axes_is_packed_and_read_back() -> None:
    released = Released("plan", (PRODUCT, *RELEASED.tables))
    assert decode(encode(released)) == released
    assert json.loads(encode(released))["format"] == FORMAT_PACKED and json.loads(encode(RELEASED))["format"] == FORMAT


def test_a_million_cells_are_packed_into_few_bytes() -> None:
    values = tuple(range(-500_000, 500_000))
    table = replace(PRODUCT, columns=(replace(COLUMNS[0], values=values),), axes=(tuple(range(1000)), tuple(range(1000))))
    payload = encode(Released("plan", (table,)))
    assert len(payload) < 4_000_000 and decode(payload).tables[0].column("n").values == values
