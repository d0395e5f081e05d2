"""All that an analyst can be told about a data set, put down in order: what an answer is made of, what it cost, what was refused and how.

A new kind of answer, or a new place where one can be looked at, joins here.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from typing import Any

import lapwing as lw
from lapwing.answers.display.chart_shape import drawn_column
from lapwing.errors import LapwingError
from lapwing.owner.ledger_entries import entry_fields
from lapwing.owner.release_file import release_bytes
from lapwing.owner.spending_report import spending_report
from lapwing.releases.report import release_html
from lapwing.releases.request import QuantileRequest
from tests.blind import statements as asked

SYNTHETIC_ROWS = 50


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that an analyst was told, and after which act."""

    act: str
    what: str
    text: str


@dataclass
class Transcript:
    """What was told so far."""

    told: list[Told] = field(default_factory=list)

    def put(self, act: str, what: str, value: object) -> None:
        """Write down a value, to the last digit."""
        shown = value if isinstance(value, str) else value.hex() if isinstance(value, bytes) else json.dumps(value, default=repr)
        self.told.append(Told(act, what, shown))

    def run(self, act: str, doing: Callable[[], Any], look: Callable[[str, Any], None]) -> Any:
        """What comes of an act: all that ``look`` finds in it, or its refusal."""
        try:
            found = doing()
        except LapwingError as error:
            self.put(act, "refusal", [type(error).__name__, error.code, str(error), error.hint, repr(error.span)])
            return None
        look(act, found)
        return found

    def answer(self, act: str, answer: lw.Answer) -> None:
        """An answer, from every side."""
        self.put(act, "values", answer.to_dict())
        self.put(act, "printed", str(answer))
        self.put(act, "page", answer._repr_html_())
        self.put(act, "csv", answer.to_csv())
        self.put(act, "arrow", repr(answer.to_arrow().schema))
        self.put(act, "footnotes", answer.footnotes())
        self.put(act, "stored", answer.stored or b"")
        self.run(f"{act}: drawn", lambda: drawn_column(answer.table, answer.intervals, answer.marks, value=None), self.text)

    def explanation(self, act: str, explained: Any) -> None:
        """What asking would cost."""
        self.put(act, "lines", explained.lines)
        self.put(act, "values", explained.values)

    def release(self, act: str, release: lw.Release) -> None:
        """A release, as the file that is saved of it."""
        self.put(act, "printed", repr(release))
        with zipfile.ZipFile(BytesIO(release_bytes(release))) as archive:
            for name in archive.namelist():
                self.put(act, name, archive.read(name))

    def made_from(self, act: str, release: lw.Release) -> None:
        """What is made from a release: its page, and rows that belong to nobody."""
        self.put(act, "page", release_html(release))
        self.run(f"{act}: rows", lambda: release.table(rows=SYNTHETIC_ROWS).to_pylist(), self.text)

    def text(self, act: str, value: object) -> None:
        """Anything that prints itself."""
        self.put(act, "is", repr(value))


def asks(transcript: Transcript, data: lw.DataSet, listed: Sequence[str], *, epsilon: object = 1, dialect: str = "duckdb") -> None:
    """Each statement priced, asked, priced again and asked again."""
    terms: dict[str, Any] = {"dialect": dialect, **({} if epsilon is None else {"epsilon": epsilon})}
    for sql in listed:
        transcript.run(f"explain {sql}", partial(data.explain, sql, **terms), transcript.explanation)
        transcript.run(f"ask {sql}", partial(data.ask, sql, **terms), transcript.answer)
        transcript.run(f"explain again {sql}", partial(data.explain, sql, **terms), transcript.explanation)


def replays(transcript: Transcript, data: lw.DataSet, listed: Sequence[str]) -> None:
    """What was answered before is told again, and nothing else is."""
    for sql in listed:
        transcript.run(f"replay {sql}", partial(data.replay, sql, epsilon=1), transcript.answer)


RELEASES: tuple[tuple[str, str, tuple[QuantileRequest, ...]], ...] = (
    ("marginals", "visits", (lw.Marginals("kind", "place", ways=2),)),
    ("tree", "people", (lw.RangeTree("age"),)),
    ("rows", "people", (lw.SyntheticTable("age", "sex", "smoker", bins={"age": 6}), lw.Marginals("sex"))),
)


def releases(transcript: Transcript, data: lw.DataSet, *, reused: Sequence[str]) -> None:
    """Releases of every kind, priced, bought and bought again; then what they answer, and what is bought beside them."""
    for name, table, wanted in RELEASES:
        plan = data.release(*wanted, name=name, table=table, epsilon=2)
        for act in (f"release {name}", f"release {name} again"):
            transcript.put(act, "price", plan.explain())
            transcript.run(act, plan.run, transcript.release)
    bought = data.releases()
    transcript.put("releases", "list", [repr(release) for release in bought])
    for release in bought:
        transcript.made_from(f"made from {release.name}", release)
    for sql in reused:
        for release in bought:
            transcript.run(f"query {release.name} {sql}", partial(release.query, sql), transcript.answer)
        asks(transcript, data, [sql + terms for terms in asked.REUSE_TERMS], epsilon=None)


def weights(transcript: Transcript, data: lw.DataSet) -> None:
    """Sessions of weights, the second of which is told what the first was."""
    for number in (1, 2):
        session = data.weights("kind", "place", table="visits", alpha="0.1", starts=4, rows=800, rows_per_unit=2)
        transcript.put(f"weights {number}", "price", session.explain())
        transcript.run(f"weights {number}: open", session.open, transcript.text)
        for condition in asked.WEIGHED:
            sql = f"SELECT COUNT(*) FROM visits WHERE {condition}"
            transcript.run(f"weights {number}: {condition}", partial(session.ask, sql), transcript.text)
        session.close()
        transcript.put(f"weights {number}", "report", session.report())


def books(transcript: Transcript, data: lw.DataSet) -> None:
    """What is left, and who was charged for what."""
    transcript.put("budget", "values", data.budget.to_dict())
    transcript.put("history", "entries", [entry_fields(entry, data.budget.loss_unit) for entry in data.history(limit=10_000)])
    transcript.put("report", "values", spending_report(data.curator))
    transcript.put("page", "html", data._repr_html_())
    for charge in sorted({entry.charge_id for entry in data.history(limit=10_000) if entry.charge_id is not None}):
        transcript.run(f"receipt {charge}", partial(data.receipt, charge), transcript.text)


def short_conversation(data: lw.DataSet) -> Transcript:
    """One of each."""
    transcript = Transcript()
    asks(transcript, data, [*asked.FEW, *asked.REFUSED[:4]])
    asks(transcript, data, asked.TARGETS[:2], epsilon=None)
    asks(transcript, data, asked.POSTGRES[:1], dialect="postgres")
    replays(transcript, data, [asked.FEW[0], asked.MORE[0]])
    releases(transcript, data, reused=asked.REUSED[:1])
    weights(transcript, data)
    books(transcript, data)
    return transcript


def long_conversation(data: lw.DataSet) -> Transcript:
    """Everything there is."""
    transcript = Transcript()
    asks(transcript, data, [*asked.FEW, *asked.MORE, *asked.REFUSED])
    asks(transcript, data, asked.TARGETS, epsilon=None)
    asks(transcript, data, asked.POSTGRES, dialect="postgres")
    asks(transcript, data, asked.OWN_WORDS, epsilon=None)
    replays(transcript, data, [*asked.FEW, *asked.REFUSED, "SELECT COUNT(*) AS n FROM drugs"])
    releases(transcript, data, reused=asked.REUSED)
    weights(transcript, data)
    books(transcript, data)
    return transcript


def differences(first: Transcript, second: Transcript) -> list[str]:
    """Where two worlds were told apart, and by what."""
    found = [
        f"{one.act}: {one.what}: {_where(one.text, other.text)}" if (one.act, one.what) == (other.act, other.what) else f"{one} | {other}"
        for one, other in zip(first.told, second.told, strict=False)
        if one != other
    ]
    return found + ([] if len(first.told) == len(second.told) else [f"{len(first.told)} things were told, and {len(second.told)}"])


def _where(one: str, other: str) -> str:
    place = next((i for i, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other)))
    return " | ".join(repr(text[max(0, place - 60) : place + 60]) for text in (one, other))
