"""Two worlds that differ in one person, the same pages and forms in both, for every role: pages are the same but for noisy values.

One part of one page is exact, by design: what a preparation left out and changed, which owners see. It is compared to be in no other page.
The ledger is in a database, so that there are analysts with shares, proposals and second persons to look at, and receipts are signed.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lapwing.audit.lists.second_list import second_list
from lapwing.engines.duckdb.snapshot import DuckDBSnapshot
from lapwing.interfaces.http.configuration import NewDataSettings
from tests.console.visitor import Visitor
from tests.ledger.cluster import Cluster
from tests.ledger.wired import Wired, new_wired
from tests.server.test_declaring import loans_body, write_loans
from tests.server.under_test import ServerUnderTest
from tests.server.worlds import CANARY, audit_log, counts, no_canary, two_servers, with_one_more
from tests.support.sizes import size

pytestmark = pytest.mark.xdist_group("console: two worlds")

EPSILON = "0.004"
DRAWN_ANEW = re.compile(
    r'name="form_token" value="[0-9a-f]{64}"|name="request" value="[0-9a-f]{32}"|data-nonce="[^"]+"|<time.*?</time>'
    r"|<code>(anchors )?[0-9a-f]{16,64}</code>|&#34;(at|ledger_id|request_id|head|signature)&#34;: &#34;[^&]*&#34;"
    r'|"(at|ledger_id|request_id|head|signature)": "[^"]*"'
    r"|source = &#34;[^&]*/files/"
)
"""What a page has that says when or where, or is drawn for each visit or ledger; digests of entries are of moments too."""
LOSSES = re.compile(r'(<h2 id="(?:version-\d+|stopped)">.*?</h2>).*?(?=<form|</section>)', re.DOTALL)
"""What follows the name of a version: the report of its preparation, or of one that was stopped, for owners."""
PAGES = (
    "",
    "ask",
    "history",
    "history/1",
    "budget",
    "ledger",
    "ledger?limit=3",
    "report",
    "receipts",
    "receipts/1",
    "receipts/2",
    "spending",
    "access",
    "versions",
    "incidents",
    "nowhere",
)
PEOPLE = ("ada", "olga", "otto", "aude", "ops", "nemo")
Reply = tuple[int, str, str]


@dataclass
class Pair:
    """The same people before both worlds."""

    worlds: tuple[ServerUnderTest, ServerUnderTest]
    visitors: dict[str, list[Visitor]] = field(default_factory=dict)
    seen: int = 0
    kinds: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name in PEOPLE:
            self.visitors[name] = [Visitor(world) for world in self.worlds]
            for visitor in self.visitors[name]:
                visitor.sign_in(name)

    def same(self, name: str, path: str, form: dict[str, str] | None = None, *, exact: bool = False) -> Reply:
        """What both worlds show to somebody, which is one and the same; ``exact`` leaves out the report of a preparation."""
        first, second = (_reply(visitor, path, form) for visitor in self.visitors[name])
        if exact:
            first, second = ((status, to, LOSSES.sub(r"\1", text)) for status, to, text in (first, second))
        assert first == second, (name, path, _different(first[2], second[2]))
        self.seen += 1
        self.kinds.add(first[0])
        return first

    def acts(self, name: str, page: str, **form: str) -> Reply:
        """A form of a page of the data set, sent by somebody who may."""
        reply = self.same(name, f"/console/d/{{d}}/{page}", form)
        assert reply[0] == 303, re.findall(r"<strong>.*?</p>", reply[2])
        return reply

    def waiting(self) -> int:
        """The number of what waits for a decision."""
        found = re.search(r"/access/proposals/(\d+)", self.same("otto", "/console/d/{d}/access")[2])
        assert found is not None
        return int(found[1])

    def everything(self) -> None:
        """Every page, for everybody."""
        for name in PEOPLE:
            for path in ("/console/", "/console/words", "/console/new", *(f"/console/d/{{d}}/{page}".rstrip("/") for page in PAGES)):
                self.same(name, path, exact=name in ("olga", "otto") and path.endswith("/versions"))


def _reply(visitor: Visitor, path: str, form: dict[str, str] | None) -> Reply:
    reply = visitor.get(path) if form is None else visitor.post(path, {"form_token": visitor.token()} | form)
    return int(reply.status_code), str(reply.headers.get("location", "")), DRAWN_ANEW.sub("", no_canary(reply.text))


def _different(first: str, second: str) -> list[str]:
    """Lines that the other does not have, for whoever has to find out why."""
    return [line for line in difflib.ndiff(first.splitlines(), second.splitlines()) if line[:1] in "+-"]


@pytest.fixture(scope="module")
def pair(shared_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A server on each world, and everybody signed in."""
    plain = tmp_path_factory.mktemp("plain")
    new_wired(plain, "here", patients=300)
    homes = tmp_path_factory.mktemp("w0"), tmp_path_factory.mktemp("w1")
    databases = [shared_cluster.dsn(shared_cluster.new_database()) for _ in homes]

    def written(place: int, directory: Path) -> None:
        wired = Wired(homes[place], databases[place])
        for name in ("clinic", "keys"):
            shutil.copytree(plain / name, homes[place] / name)
        wired.edit('"here"', f'"{databases[place]}"')
        (homes[place] / "files").mkdir()
        write_loans(homes[place] / "files" / "loans.csv", readers=200)
        write_loans(homes[place] / "files" / "other.csv", readers=150 + place)
        if place:
            with_one_more(directory)
            with (homes[place] / "files" / "loans.csv").open("a", newline="", encoding="utf-8") as file:
                file.writelines(f"{CANARY},{CANARY},2031-01-01,9\r\n" for _ in range(9))

    writes = (lambda directory: written(0, directory)), (lambda directory: written(1, directory))
    with two_servers(writes, homes, spans_min=1, new_data=NewDataSettings(sources="files")) as worlds:
        yield Pair(worlds)


def test_access_is_given_and_asked_for(pair: Pair) -> None:
    refused = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": EPSILON}
    pair.same("ada", "/console/d/{d}/ask", refused)
    pair.acts("olga", "access/analysts", decision="admit", analyst="ada", share="60", reason="her project")
    pair.acts("ada", "requests", percent="70", reason="more")
    pair.acts("otto", f"access/proposals/{pair.waiting()}", decision="approve", reason="yes")
    pair.acts("olga", "access/propose", what="budget", epsilon="2.5", reason="careful")
    number = pair.waiting()
    pair.same("otto", f"/console/d/{{d}}/access/proposals/{number}", {"decision": "approve", "reason": "one login"})
    pair.acts("otto", f"access/proposals/{number}", decision="deny", reason="not now")
    pair.acts("olga", "access/analysts", decision="suspend", analyst="ada", reason="for a while")
    pair.same("ada", "/console/d/{d}/ask", refused)
    pair.acts("olga", "access/analysts", decision="admit", analyst="ada")
    pair.everything()


def test_questions_and_answers(pair: Pair) -> None:
    listed = [item.sql for item in second_list()]
    few = listed[:: max(1, len(listed) // size("two worlds of pages, statements"))]
    answered = 0
    pair.acts("olga", "access/analysts", decision="admit", analyst="ada", share="60")
    for place, sql in enumerate([*few, f"SELECT COUNT(*) AS n FROM patients WHERE region = '{CANARY[:4]}'"]):
        asked = {"sql": sql, "epsilon": EPSILON}
        price = pair.same("ada", "/console/d/{d}/price", asked)
        seen = re.search(r'name="seen" value="([^"]*)"', price[2])
        reply = pair.same("ada", "/console/d/{d}/ask", asked | ({"seen": seen[1], "request": f"r{place}"} if seen else {}))
        if reply[0] == 303:
            answered += 1
            pair.same("ada", reply[1])
            for form in ("csv", "svg", "ipynb", "json"):
                pair.same("ada", reply[1].replace("/answer?", f"/answer/{form}?"))
    assert answered >= len(few) // 2
    pair.everything()


def test_receipts_are_checked(pair: Pair) -> None:
    for world, visitor in zip(pair.worlds, pair.visitors["aude"], strict=True):
        charge = world.call("GET", "/v1/data-sets/{d}/history", by="aude").json()["entries"][0]["charge"]
        receipt = world.call("GET", f"/v1/data-sets/{{d}}/receipts/{charge}", by="aude").json()["receipt"]
        _, _, genuine = _reply(visitor, "/console/d/{d}/receipts", {"receipt": json.dumps(receipt)})
        assert "Genuine." in genuine
    pair.same("aude", "/console/d/{d}/receipts", {"receipt": "{}"})


def test_a_data_set_is_declared_and_prepared(pair: Pair) -> None:
    # Both files have the same columns, and of the one there are rows of one more reader.
    said = {"take:file:loans.csv": "yes", "whose": "loans.reader", "unit": "reader", "most": "5", "name": "loans", "epsilon": "2"}
    said |= {"kind-loans-branch": "list", "words-loans-branch": "central\nhill", "kind-loans-days_kept": "whole"}
    said |= {"least-loans-days_kept": "0", "most-of-loans-days_kept": "120", "kind-loans-day": "date"}
    said |= {"least-loans-day": "2025-01-01", "most-of-loans-day": "2025-12-31"}
    for step, following in {"file": "who", "who": "values", "values": "much", "much": "check"}.items():
        status, _, text = pair.same("olga", "/console/new", said | {"step": step, "go": "next"})
        assert status == 200 and f'name="step" value="{following}"' in text, (step, status)
    assert pair.same("olga", "/console/new", said | {"step": "who", "go": "next", "whose": "loans.nothing"})[0] == 409
    assert pair.same("olga", "/console/new", said | {"step": "check", "go": "next"})[0] == 303
    pair.same("olga", "/console/d/loans/versions")
    pair.same("ada", "/console/d/loans")
    pair.same("ada", "/console/d/loans/versions", {"accept_losses": "yes"})
    assert pair.same("olga", "/console/d/loans/versions", {"accept_losses": "yes"})[0] == 303
    for name in PEOPLE:
        for page in ("", "/versions", "/budget", "/ledger", "/spending", "/report", "/incidents"):
            pair.same(name, f"/console/d/loans{page}", exact=name in ("olga", "otto") and page == "/versions")
    reports = [_reply(visitor, "/console/d/loans/versions", None)[2] for visitor in pair.visitors["olga"]]
    assert reports[0] != reports[1]  # the number of rows, which owners know
    assert "9 not a declared value" in reports[1]
    assert "not a declared value" not in reports[0]


def test_why_a_preparation_was_refused_is_for_owners(pair: Pair) -> None:
    table = loans_body()["tables"][0]
    central = table["columns"]["branch"] | {"values": ["central"]}
    body = loans_body(data_set="lossy", tables=[table | {"file": "other.csv", "columns": table["columns"] | {"branch": central}}])
    for world in pair.worlds:
        assert world.call("POST", "/v1/data-sets", by="olga", json=body).status_code == 201
    status, _, text = pair.same("olga", "/console/d/lossy/versions", {})
    assert (status, re.findall(r'<p class="code">(.*?)</p>', text)) == (409, ["rows-lost"])
    for name in PEOPLE[2:]:
        is_owner = name in ("olga", "otto")
        _, _, text = pair.same(name, "/console/d/lossy/versions", exact=is_owner)
        assert ("is not prepared" in text) == is_owner
    for world in pair.worlds:
        assert "rows-lost" not in world.call("GET", "/metrics", by="ops").text
        line = next(line for line in reversed(audit_log(world)) if line["act"] == "prepare")
        assert (line["data_set"], line["who"], line["outcome"]) == ("lossy", "olga", "data-set-unavailable")


def test_a_new_version_is_prepared_and_an_old_one_goes(pair: Pair) -> None:
    pair.acts("olga", "versions", accept_losses="yes")
    pair.everything()
    pair.acts("otto", "versions/1/retire")
    for name in PEOPLE:
        pair.same(name, "/console/d/{d}/versions", exact=name in ("olga", "otto"))
        pair.same(name, "/console/d/{d}/ledger")


def test_an_incident_is_seen_and_ended(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ValueError(f"could not convert {CANARY}")

    pair.acts("olga", "access/analysts", decision="admit", analyst="ada")
    asked = {"sql": "SELECT COUNT(*) AS n FROM visits WHERE minutes > 77", "epsilon": EPSILON}
    seen = re.search(r'name="seen" value="([^"]*)"', pair.same("ada", "/console/d/{d}/price", asked)[2])
    assert seen is not None
    with monkeypatch.context() as patch:
        patch.setattr(DuckDBSnapshot, "run", failing)
        assert pair.same("ada", "/console/d/{d}/ask", asked | {"seen": seen[1], "request": "fault"})[0] == 500
    pair.everything()
    pair.acts("olga", "incidents/reopen", reason="a full disk")
    for name in PEOPLE:
        pair.same(name, "/console/d/{d}/incidents")
        pair.same(name, "/console/d/{d}/ledger")


def test_logs_and_counts_are_the_same_after_all_of_them(pair: Pair) -> None:
    print(f"{pair.seen} pages and forms were the same in both worlds")
    assert pair.seen >= size("two worlds of pages, requests")
    assert pair.kinds >= {200, 303, 403, 404, 409, 500}
    logs = [audit_log(world) for world in pair.worlds]
    assert logs[0] == logs[1]
    assert len(logs[0]) >= pair.seen
    counted = [counts(world) for world in pair.worlds]
    assert counted[0] == counted[1]
