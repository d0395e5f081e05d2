"""A session of weights as a user has it: explained, paid for whole at opening, right within its error, stored when it is closed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import lapwing
from lapwing import Marginals, RangeTree
from lapwing.asking.weights_session import WeightsSession, weighed_before
from lapwing.curator.cost_estimate import CostEstimate, Hold, on_charge, only_free
from lapwing.demo import write_demo
from lapwing.errors import Incident, LapwingError, LedgerError, Refused
from lapwing.kernel.count_stream import CountStream, StreamPlan
from lapwing.kernel.domains import TextDomain
from lapwing.ledger.local import rows as ledger_rows
from lapwing.ledger.local.ledger import LocalLedger
from lapwing.ledger.protocol import EntryKind
from lapwing.releases.weights import multiplicative_weights
from lapwing.releases.weights.weights_log import CountSource, WeightsLog
from tests.support.rich_clinic import exact_rows, prepare_rich_clinic

SURE = "0.999999"
SCOPE = ("sex", "region", "smoker")
_pairs = combinations(range(20), 2)
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM patients",
    "SELECT COUNT(*) FROM patients WHERE sex = 'f'",
    "SELECT COUNT(*) FROM patients WHERE smoker",
    "SELECT COUNT(smoker) FROM patients WHERE sex <> 'm'",
    "SELECT COUNT(*) FILTER (WHERE smoker IS NULL) FROM patients WHERE region IN ('northam', 'eastbrook')",
    "SELECT COUNT(*) FROM (SELECT sex AS s, smoker AS k FROM patients WHERE region <> 'northam') AS p WHERE s = 'm' AND NOT k",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_rich_clinic(tmp_path_factory.mktemp("weighed"), epsilon=1_000_000)


@pytest.fixture
def clinic(place: Path) -> Iterator[lapwing.DataSet]:
    with lapwing.open(place / "clinic", home=place / "home") as data_set:
        yield data_set
        if data_set.curator.balance().closed:
            data_set.curator.reopen("the test is over")


def planned(clinic: lapwing.DataSet, *, starts: int = 4, **changed: Any) -> WeightsSession:
    asked: dict[str, Any] = {"alpha": "0.1", "starts": starts, "confidence": SURE} | changed
    return clinic.weights(*asked.pop("scope", SCOPE), **asked)


def fresh(clinic: lapwing.DataSet) -> str:
    """A question that nobody asked before: two of the regions."""
    regions = clinic.curator.facts.table("patients").columns["region"]
    assert isinstance(regions, TextDomain) and regions.values is not None
    one, other = (regions.values[number] for number in next(_pairs))
    return f"SELECT COUNT(*) FROM patients WHERE region IN ('{one}', '{other}')"


def truth(place: Path, sql: str) -> int:
    return int(str(exact_rows(place, sql)[0][0]))


def code_of(act: Callable[[], Any]) -> str:
    with pytest.raises(LapwingError) as refusal:
        act()
    return refusal.value.code


def test_explaining_is_free_and_says_what_else_there_is(clinic: lapwing.DataSet) -> None:
    before, session = clinic.budget.spent, planned(clinic)
    text = session.explain()
    assert clinic.budget.spent == before
    assert "180 combinations, 2,000 rows, starting from nothing known" in text
    assert re.search(r"instead, [\d,]+ counts asked directly, each within 200 rows, would cost the same", text)
    assert re.search(r"instead, a release of marginals of 3 columns would answer every such count on so many columns: epsilon 0\.\d+", text)
    assert session.other_ways.direct_counts > 1_000 * session.planned.request.starts, "which is why nobody should take it for cheap"
    assert session.other_ways.release is not None and session.other_ways.release < session.other_ways.session / 10


def test_every_count_is_right_within_its_error_and_says_how_it_was_served(clinic: lapwing.DataSet, place: Path) -> None:
    before = clinic.budget.spent.loss
    with planned(clinic, starts=6) as session:
        paid = clinic.budget.spent.loss - before
        assert paid == session.planned.certified.cost.loss > 0
        for sql in QUESTIONS:
            count = session.ask(sql)
            assert abs(count.value - truth(place, sql)) <= count.error
            assert (
                count.error
                == {CountSource.WEIGHTS: session.planned.near_error, CountSource.FRESH: session.planned.fresh_error}[count.served_by]
            )
            low, high = count.interval
            assert 0 <= low <= high and str(count.error) in str(count)
        served = [count.served_by for count in session.answers.values()]
        assert served.count(CountSource.FRESH) == 6 - session.starts_left >= 1 and CountSource.WEIGHTS in served
        told = session.answers
    assert clinic.budget.spent.loss - before == paid, "nothing but opening is charged"
    assert f"{len(QUESTIONS)} questions: " in session.report() and "times as much" in session.report()
    assert code_of(lambda: session.ask("SELECT COUNT(*) FROM patients WHERE sex = 'x'")) == "session-ended"
    again = [session.ask(sql) for sql in QUESTIONS]
    assert [count.value for count in again] == [count.value for count in told.values()]
    assert {count.served_by for count in again} == {CountSource.LOG}


def test_what_was_told_is_told_again_for_nothing(clinic: lapwing.DataSet, place: Path) -> None:
    with planned(clinic) as first:
        sql = fresh(clinic)
        told = first.ask(sql)
    spent = clinic.budget.spent
    with lapwing.open(place / "clinic", home=place / "home") as later:
        logs = weighed_before(later.curator)
        assert told in logs[0].told.values() and logs[0] == WeightsLog.unpacked(logs[0].packed())
        assert later.budget.spent == spent
        with planned(later) as second:
            again = second.ask(sql)
            assert (again.value, again.error, again.served_by, second.starts_left) == (told.value, told.error, CountSource.LOG, 4)
    assert code_of(lambda: WeightsLog.unpacked(b'{"format":1}')) == "answer-format"


def test_the_whole_is_charged_before_a_row_is_read(clinic: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    snapshot, ledger = clinic.curator.snapshot, clinic.curator.ledger

    def told(act: Callable[..., Any], name: str) -> Callable[..., Any]:
        def acted(_: object, *what: Any) -> Any:
            happened.append(name)
            return act(*what)

        return acted

    monkeypatch.setattr(type(snapshot), "run", told(snapshot.run, "run"))
    monkeypatch.setattr(type(ledger), "reserve", told(ledger.reserve, "reserve"))
    monkeypatch.setattr(type(ledger), "commit", told(ledger.commit, "commit"))
    session = planned(clinic)
    assert happened == []
    before = clinic.budget.spent.loss
    session.open()
    assert happened == ["reserve"] and clinic.budget.spent.loss - before == session.planned.certified.cost.loss
    session.ask(fresh(clinic))
    session.close()
    assert happened == ["reserve", "run", "commit"]
    assert code_of(session.open) == "session-ended"


def test_a_question_that_is_refused_reads_nothing_and_uses_nothing(clinic: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = [
        "SELECT COUNT(*) FROM patients WHERE birth_year > 1980",
        "SELECT sex, COUNT(*) FROM patients GROUP BY sex",
        "SELECT COUNT(*), COUNT(smoker) FROM patients",
        "SELECT COUNT(*) + 1 FROM patients",
        "SELECT COUNT(*) FROM patients LIMIT 0",
        "SELECT SUM(income) FROM patients",
        "SELECT COUNT(*) FROM visits",
        "SELECT COUNT(DISTINCT patient_id) FROM patients",
    ]
    with planned(clinic) as session:
        monkeypatch.setattr(type(clinic.curator.snapshot), "run", None)
        for sql in refused:
            assert code_of(lambda sql=sql: session.ask(sql)) == "weights-question", sql  # type: ignore[misc]
        assert code_of(lambda: session.ask("SELECT COUNT(*) FROM nobody")) == "unknown-table"
        assert (session.starts_left, session.answers) == (4, {})


def test_the_old_name_of_the_answers_still_works_and_warns(clinic: lapwing.DataSet) -> None:
    with planned(clinic) as session:
        session.ask(fresh(clinic))
        with pytest.warns(DeprecationWarning, match=r"use WeightsSession\.answers"):
            assert session.told == session.answers != {}


def test_a_session_ends_with_its_starts(clinic: lapwing.DataSet) -> None:
    with planned(clinic, starts=1, scope=("region",), rows=100_000, alpha="0.001") as session:
        assert session.ask("SELECT COUNT(*) FROM patients WHERE region = 'northam'").served_by is CountSource.FRESH
        assert code_of(lambda: session.ask("SELECT COUNT(*) FROM patients WHERE region = 'eastbrook'")) == "session-ended"
        assert session.ask("SELECT COUNT(*) FROM patients WHERE region = 'northam'").served_by is CountSource.LOG
    assert "of which 0 were not used" in session.report()


def test_a_fault_of_the_engine_is_an_incident(clinic: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    before = clinic.budget.spent.loss
    session = planned(clinic)
    session.open()
    monkeypatch.setattr(type(clinic.curator.snapshot), "run", lambda self, plan: 1 // 0)
    with pytest.raises(Incident):
        session.ask(fresh(clinic))
    monkeypatch.undo()
    assert clinic.curator.balance().closed
    assert clinic.budget.spent.loss - before == session.planned.certified.cost.loss
    clinic.curator.reopen("it was the test")
    assert code_of(lambda: session.ask(fresh(clinic))) == "session-ended"
    session.close()
    assert EntryKind.COMMIT not in [entry.kind for entry in clinic.history(limit=4)], "nothing of it is stored"


def test_a_closed_data_set_answers_no_session(clinic: lapwing.DataSet) -> None:
    with planned(clinic) as session:
        sql = fresh(clinic)
        clinic.curator.ledger.close("by the owner")
        assert code_of(lambda: session.ask(sql)) == "data-set-closed"
        assert weighed_before(clinic.curator) == ()
        clinic.curator.reopen("again")
        session.ask(sql)


def test_closing_the_data_set_closes_its_sessions(place: Path) -> None:
    with lapwing.open(place / "clinic", home=place / "home") as one:
        session = planned(one)
        session.open()
        told = session.ask(fresh(one))
    with lapwing.open(place / "clinic", home=place / "home") as other:
        assert told in weighed_before(other.curator)[0].told.values()
    session.close()
    assert one.curator.before_closing == []


def test_a_new_version_ends_sessions_about_the_one_before(tmp_path: Path) -> None:
    """It was an incident: the rows were gone when the next question came."""
    write_demo(tmp_path / "clinic", patients=100)
    with lapwing.open(tmp_path / "clinic", home=tmp_path / "home") as clinic:
        clinic.prepare(accept_losses=True)
        for act in (lambda: clinic.prepare(accept_losses=True), lambda: clinic.curator.retire(2)):
            session = clinic.weights("sex", "smoker", alpha="0.4", starts=1, rows=20_000)
            session.open()
            told = session.ask("SELECT COUNT(*) FROM patients WHERE smoker")
            act()
            assert code_of(partial(session.ask, "SELECT COUNT(*) FROM patients WHERE sex = 'f'")) == "session-ended"
            assert not clinic.curator.balance().closed
            assert session.ask("SELECT COUNT(*) FROM patients WHERE smoker").value == told.value, "what was told stays told"
            assert EntryKind.COMMIT in [entry.kind for entry in clinic.history(limit=6)], "it is stored"


def test_of_many_threads_that_open_it_one_pays(clinic: lapwing.DataSet) -> None:
    session, before, refused = planned(clinic), clinic.budget.spent.loss, list[str]()

    def open_it() -> None:
        try:
            session.open()
        except Refused as error:
            refused.append(error.code)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session.close()
    assert clinic.budget.spent.loss - before == session.planned.certified.cost.loss
    assert refused == ["session-ended"] * 5


def test_what_is_less_sure_does_not_serve(clinic: lapwing.DataSet) -> None:
    sql = fresh(clinic)
    with planned(clinic, confidence="0.5", alpha="0.02") as rough:
        assert rough.ask(sql).served_by is not CountSource.LOG
    with planned(clinic, alpha="0.3") as sure:
        found = sure.ask(sql)
        assert found.served_by is not CountSource.LOG and found.confidence == sure.planned.request.confidence


def test_a_forked_child_reads_nothing(clinic: lapwing.DataSet) -> None:
    with planned(clinic) as session:
        sql = fresh(clinic)
        child = os.fork()
        if child == 0:
            try:
                session.ask(sql)
            except Refused as refusal:
                os._exit(7 if refusal.code == "session-ended" else 1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert not clinic.curator.balance().closed and session.starts_left == 4


CRASH = """
import os, sys, lapwing
from pathlib import Path
base = Path(sys.argv[1])
clinic = lapwing.open(base / "clinic", home=base / "home")
session = clinic.weights("sex", "smoker", alpha="0.1", starts=4)
session.open()
session.ask("SELECT COUNT(*) FROM patients WHERE smoker")
os._exit(9)
"""


def test_a_crash_gives_nothing_back(clinic: lapwing.DataSet, place: Path) -> None:
    before, logs = clinic.budget.spent.loss, len(weighed_before(clinic.curator))
    cost = clinic.weights("sex", "smoker", alpha="0.1", starts=4).planned.certified.cost.loss
    assert subprocess.run([sys.executable, "-c", CRASH, str(place)], check=False, timeout=120).returncode == 9
    with lapwing.open(place / "clinic", home=place / "home") as later:
        assert later.budget.spent.loss - before == cost
        assert later.history(limit=1)[0].kind is EntryKind.FORFEIT
        assert len(weighed_before(later.curator)) == logs


def test_outcomes_wait_until_they_may_be_seen(clinic: lapwing.DataSet) -> None:
    happened: list[str] = []

    def watch(work: CostEstimate) -> Hold:
        assert work.rows > 0
        happened.append("announced")
        return lambda: happened.append("held")

    with on_charge(watch), planned(clinic) as session:
        assert happened == ["announced"]
        session.ask(fresh(clinic))
        assert happened == ["announced", "announced", "held"]
    with on_charge(only_free):
        assert code_of(planned(clinic).open) == "not-answered-before"


def test_weights_start_from_a_release(clinic: lapwing.DataSet, place: Path) -> None:
    people = Marginals("sex", "region", "birth_year", ways=2, bins={"birth_year": 10})
    release = clinic.release(people, name="start", epsilon=100_000).run()
    sql = "SELECT COUNT(*) FROM patients WHERE sex = 'f' AND birth_year >= 1970"
    with planned(clinic, scope=("birth_year", "sex", "vaccinated"), start=release) as session:
        assert "starting from the release 'start'" in session.explain()
        count = session.ask("SELECT COUNT(*) FROM patients WHERE sex = 'f' AND birth_year >= 1970")
        assert count.served_by is CountSource.WEIGHTS, "the release says it already"
        assert abs(count.value - truth(place, sql)) <= 20
        assert abs(session.weights.rows - truth(place, "SELECT COUNT(*) FROM patients")) <= 2
    tree = clinic.release(RangeTree("birth_year", bins=10), name="tree", epsilon=1_000).run()
    visits = clinic.release(Marginals("code"), name="visits", epsilon=1_000, table="visits").run()
    for start, bins in ((tree, None), (visits, None), (release, {"birth_year": 5})):
        wrong: Callable[[], Any] = lambda start=start, bins=bins: planned(  # type: ignore[misc]  # noqa: E731
            clinic, scope=("birth_year",), table="patients", start=start, bins=bins
        )
        assert code_of(wrong) == "weights-start"


def test_what_cannot_be_planned_is_refused_for_nothing(clinic: lapwing.DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    before = clinic.budget.spent
    assert code_of(lambda: planned(clinic, epsilon="0.0001")) == "weights-price"
    assert code_of(lambda: planned(clinic, alpha="0.0001")) == "weights-alpha"
    assert code_of(lambda: planned(clinic, alpha=2)) == "weights-alpha"
    assert code_of(lambda: planned(clinic, rows=0)) == "weights-rows"
    assert planned(clinic, epsilon=10_000).cost.epsilon < 10_000
    for changed, code in (
        ({"starts": 0}, "stream-invalid"),
        ({"scope": ("nobody",)}, "release-table"),
        ({"scope": ("nobody",), "table": "patients"}, "unknown-column"),
        ({"scope": ()}, "release-columns"),
        ({"confidence": 1}, "confidence-invalid"),
    ):
        assert code_of(lambda changed=changed: planned(clinic, **changed)) == code, changed  # type: ignore[misc]
    monkeypatch.setattr("lapwing.releases.weights.plan.CELLS_MAX", 100)
    assert code_of(lambda: planned(clinic)) == "weights-cells"
    monkeypatch.setattr(multiplicative_weights, "CELLS_MAX", 100)
    assert code_of(lambda: multiplicative_weights.MultiplicativeWeights([11, 10], 5)) == "weights-cells"
    assert clinic.budget.spent == before


def test_a_session_in_which_a_unit_has_many_rows_is_charged_for_them(clinic: lapwing.DataSet) -> None:
    one = planned(clinic, scope=("code",), table="visits", rows=20_000, rows_per_unit=1)
    three = planned(clinic, scope=("code",), table="visits", rows=20_000, rows_per_unit=3)
    assert (one.planned.certified.reach, three.planned.certified.reach) == (1, 3)
    assert "a patient counts for at most 3 rows" in three.explain() and "counts for at most" not in planned(clinic).explain()
    assert three.planned.certified.cost.loss > 8 * one.planned.certified.cost.loss


# -- mistakes that are planted above the kernel, each seen by a test ---------------------------------------------------------------


def _debit_at_the_first_question(monkeypatch: pytest.MonkeyPatch) -> None:
    real = WeightsSession.open

    def open_later(self: WeightsSession) -> None:
        self._before = {}

    def ask(self: WeightsSession, sql: str, **words: Any) -> Any:
        if self._stream is None:
            real(self)
        return asked(self, sql, **words)

    asked = WeightsSession.ask
    monkeypatch.setattr(WeightsSession, "open", open_later)
    monkeypatch.setattr(WeightsSession, "ask", ask)


def _charged_by_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(self: CountStream, plan: StreamPlan, facts: Any, permit: Any) -> None:
        self._plan, self._facts, self._reach, self.starts_left = plan, facts, 1, plan.starts
        self._threshold = plan.threshold

    reserve = "lapwing.ledger.local.ledger.LocalLedger.reserve"
    monkeypatch.setattr(CountStream, "__init__", init)
    real = LocalLedger.reserve
    monkeypatch.setattr(
        reserve, lambda self, request: real(self, replace(request, cost=replace(request.cost, loss=request.cost.loss // 4)))
    )


def _an_incident_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.ledger.settling.PendingCommits.incident", lambda self, ledger, permit: None)


def _a_crash_refunds(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ledger_rows.settle

    def settle(connection: Any, state: Any, charge_id: int, *, payload: bytes | None, detail: str = "") -> Any:
        if payload is None:
            row = connection.execute("SELECT loss FROM charge WHERE charge_id = ?", [charge_id]).fetchone()
            state = replace(state, spent=replace(state.spent, loss=state.spent.loss - int(row[0])))
        return real(connection, state, charge_id, payload=payload, detail=detail)

    monkeypatch.setattr(ledger_rows, "settle", settle)


def _the_log_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.asking.weights_session._earlier_answers", lambda curator, analyst, confidence: {})


def _outcomes_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.curator.charged_stream.announce_charge", lambda certified, rows: lambda: None)


PLANTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[..., None]]] = {
    "debited at the first question": (_debit_at_the_first_question, test_the_whole_is_charged_before_a_row_is_read),
    "charged by the start": (_charged_by_the_start, test_the_whole_is_charged_before_a_row_is_read),
    "an incident is an error": (_an_incident_is_an_error, test_a_fault_of_the_engine_is_an_incident),
    "a crash refunds": (_a_crash_refunds, test_a_crash_gives_nothing_back),
    "what was told is asked again": (_the_log_is_not_looked_at, test_what_was_told_is_told_again_for_nothing),
    "outcomes do not wait": (_outcomes_do_not_wait, test_outcomes_wait_until_they_may_be_seen),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_mistake_is_seen(name: str, clinic: lapwing.DataSet, place: Path) -> None:
    plant, check = PLANTED[name]
    wanted = check.__code__.co_varnames[: check.__code__.co_argcount]

    def checked() -> None:
        with pytest.MonkeyPatch.context() as own:
            check(**{key: value for key, value in {"clinic": clinic, "place": place, "monkeypatch": own}.items() if key in wanted})

    checked()  # which has nothing to say against the real thing
    with pytest.MonkeyPatch.context() as planted:
        plant(planted)
        with pytest.raises((AssertionError, LedgerError, Refused, pytest.fail.Exception)):
            checked()
