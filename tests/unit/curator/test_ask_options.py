"""What a statement is asked with: every interface takes every option, and what a statement says itself is read, not searched for."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from lapwing.asking.options import AskArguments, AskOptions, written_terms
from lapwing.data_set import DataSet
from lapwing.interfaces.http.shapes import AskedBody
from lapwing.interfaces.python.remote import AsyncDataSet, RemoteDataSet

OPTIONS = {option.name for option in fields(AskOptions)}


def test_every_interface_takes_every_option() -> None:
    assert set(AskArguments.__annotations__) == OPTIONS == AskedBody.model_fields.keys() - {"sql"}
    for data_set, by_hand in ((DataSet, {"analyst"}), (RemoteDataSet, set[str]()), (AsyncDataSet, set[str]())):
        waited = {"request_id"} if data_set is DataSet else {"request_id", "waiting"}
        for method, others in (("ask", waited), ("explain", set()), ("replay", set())):
            parameters = inspect.signature(getattr(data_set, method)).parameters
            assert parameters.keys() == {"self", "sql", *OPTIONS, *by_hand, *others}
            assert parameters["dialect"].default == "duckdb" and parameters["epsilon"].kind is inspect.Parameter.KEYWORD_ONLY


def test_an_option_of_the_body_is_an_option_of_the_request() -> None:
    body = AskedBody(sql="SELECT 1", epsilon="0.1", confidence=0.9, dialect="postgres", scaled_groups=True, reuse="only")
    request = body.request("ada", "name")
    assert (request.sql, request.analyst, request.request_id) == ("SELECT 1", "ada", "name")
    options = AskOptions(epsilon="0.1", confidence=0.9, dialect="postgres", scaled_groups=True, reuse="only")
    assert request.options == options


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT 1 WITH PRIVACY (epsilon = 1)", {"asked"}),
        ("SELECT 1 WITH PRIVACY (error = '5%', confidence = 0.9, reuse = never);", {"asked", "confidence", "reuse"}),
        ("SELECT 1 WITH PRIVACY (scaled_groups = true) -- and more", {"scaled_groups"}),
        ("SELECT 1 WITH PRIVACY (nonsense)", {"asked", "confidence", "scaled_groups", "reuse"}),
        ("SELECT 'with privacy (epsilon = 1)'", set()),
        ("SELECT 1 -- WITH PRIVACY (epsilon = 1)", set()),
        ("SELECT 1 /* with privacy (epsilon = 1) */", set()),
        ("WITH privacy (n) AS (SELECT 1) SELECT n FROM privacy", set()),
        ("SHOW PRIVACY BUDGET", set()),
    ],
)
def test_a_statement_says_its_terms_in_its_own_words(sql: str, said: set[str]) -> None:
    assert written_terms(sql, dialect="duckdb") == said
