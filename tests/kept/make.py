"""Writes the kept data sets, with the program of a commit that they are to stand for. README.md says how it is run, and when.

Every data set is bought from as a user would: two versions, the second one appended to, and the budget raised in between. Then it is
packed, unpacked elsewhere, and everything is asked for again with the same program. The index has both: what was seen when it was bought,
and what was seen again.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.compute as compute
import pyarrow.parquet as parquet

import lapwing
from lapwing.data_set import DataSet
from lapwing.demo import write_demo
from lapwing.kernel.permit import Permit
from lapwing.ledger.connect import DATABASE_VARIABLE
from lapwing.ledger.postgres import policy
from lapwing.ledger.postgres.ledger import PostgresLedger
from lapwing.ledger.protocol import Request
from lapwing.ledger.workers import current_worker, host_name
from lapwing.receipts import new_key
from tests.kept import bought
from tests.kept.kept import (
    DATA,
    LOCAL,
    LOST,
    LOST_DIGEST,
    ON_SERVER,
    Fields,
    Kept,
    not_as_bought,
    seen_answer,
    seen_balance,
    seen_history,
    seen_release,
    version_again,
)
from tests.kept.server import put_back
from tests.ledger.cluster import SECOND_ROLE, Cluster

FIRST_SHARE = 0.8
"""Of the patients: those of the first version."""
LOCAL_BUDGETS = {
    "approximate": 'epsilon = 90\ndelta = "2^-40"',
    "pure": "epsilon = 90\ndelta = 0",
    "ordered": 'epsilon = 60\ndelta = "2^-40"\norder = 2',
}
PATIENTS = {"approximate": 300, "pure": 120, "ordered": 120, ON_SERVER: 300}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is bought of a data set."""

    analyst: str
    first: Sequence[bought.Purchase]
    later: Sequence[bought.Purchase]
    releases: Sequence[bought.ReleasePurchase]
    later_releases: Sequence[bought.ReleasePurchase]
    alpha: str
    starts: int


@dataclass(slots=True)
class Recorded:
    """What was asked of one version, and seen when it was bought."""

    questions: list[Fields] = field(default_factory=list)
    bought: list[Fields] = field(default_factory=list)
    queries: dict[str, list[str]] = field(default_factory=dict)
    releases: list[Fields] = field(default_factory=list)


def write_sources(kept: Kept, name: str) -> None:
    """The demonstration in a directory, with only the first patients, and a table that grows."""
    write_demo(kept.directory, patients=PATIENTS[name])
    new_key(kept.keys)
    catalogue = kept.directory / "lapwing.toml"
    text = catalogue.read_text(encoding="utf-8")
    budget = LOCAL_BUDGETS.get(name, LOCAL_BUDGETS["approximate"])
    text, changed = re.subn(r"(?<=\[budget\]\n)(?:.+\n)+", f"{budget}\nceiling = {{ epsilon = 120 }}\n", text)
    assert changed == 1
    text = re.sub(r'(?m)^id = "[^"]*"', f'id = "kept-{name}"', text)
    text = text.replace('source = "patients.parquet"\n', 'source = "patients.parquet"\nappended_by = "patient_id"\n')
    text = text.replace("epsilon = 0.1  ", "epsilon = 2    ")  # pilots are asked at this price, and there are few patients
    database = 'database = "dbname=kept user=lapwing_app"\nanchors = "../anchors"\n' if name == ON_SERVER else ""
    catalogue.write_text(f'{text}\n[ledger]\n{database}keys = "../keys"\n', encoding="utf-8")


def hold_back(kept: Kept, name: str) -> Any:
    """Take the last patients out of the source; gives all of them, for later."""
    path = kept.directory / "patients.parquet"
    everybody = parquet.read_table(path)
    first = compute.less(everybody["patient_id"], 100_000 + int(FIRST_SHARE * PATIENTS[name]))
    parquet.write_table(everybody.filter(first), path, compression="zstd")
    return everybody


def raise_budget(kept: Kept) -> None:
    """In the catalogue; the next preparation applies it, or proposes it."""
    catalogue = kept.directory / "lapwing.toml"
    text, changed = re.subn(r"(?m)^epsilon = (60|90)$", "epsilon = 110", catalogue.read_text(encoding="utf-8"))
    assert changed == 1
    catalogue.write_text(text, encoding="utf-8")


def buy(data: DataSet, plan: Sequence[bought.Purchase], releases: Sequence[bought.ReleasePurchase]) -> Recorded:
    """Everything of one version: first what is charged for by itself, then releases, then what needs no charge."""
    recorded = Recorded()
    for one in plan:
        ask(data, one, recorded)
    for wanted in releases:
        planned = data.release(*wanted.wanted, name=wanted.name, table=wanted.table, epsilon=wanted.epsilon, **wanted.options)
        recorded.queries[wanted.name] = [*wanted.queries]
        recorded.releases.append(seen_release(planned.run(), recorded.queries[wanted.name]))
    return recorded


def ask(data: DataSet, one: bought.Purchase, recorded: Recorded) -> None:
    answer = data.ask(one.sql, **one.options)
    recorded.questions.append({"kind": one.kind, "sql": one.sql, "options": one.options})
    recorded.bought.append({"free": answer.cost.free, **seen_answer(answer)})


def weigh(data: DataSet, *, alpha: str, starts: int) -> None:
    """A session. Nearly nobody has the sex 'x', which weights that know nothing are wrong about: with a small ``alpha`` they learn it."""
    with data.weights("sex", "smoker", table="patients", alpha=alpha, starts=starts) as session:
        for sql in bought.WEIGHED:
            session.ask(sql)


def lose(data: DataSet) -> None:
    """A charge that ended without an answer, as when an engine was stopped."""
    curator = data.curator
    cost = next(entry.cost for entry in curator.history() if entry.cost.loss)
    request = Request(data.analyst, LOST, LOST_DIGEST, cost, curator.facts.version, "SELECT COUNT(*) FROM patients")
    permit = curator.ledger.reserve(request)
    assert isinstance(permit, Permit)
    curator.ledger.forfeit(permit, incident=False)


def live(kept: Kept, name: str, plan: Plan) -> list[Recorded]:
    """The life of the data set up to where it is kept."""
    write_sources(kept, name)
    everybody = hold_back(kept, name)
    with kept.curator() as curator:
        data = DataSet(curator, analyst=plan.analyst)
        curator.prepare()
        if name == ON_SERVER:
            admit(curator.ledger)
        first = buy(data, plan.first, plan.releases)
        for one in bought.FREE:
            ask(data, one, first)
        weigh(data, alpha=plan.alpha, starts=plan.starts)
        lose(data)
        curator.ledger.close("a pause")
        curator.reopen("it is over")
    if name != ON_SERVER:
        shutil.copy2(kept.ledger, kept.older)
    parquet.write_table(everybody, kept.directory / "patients.parquet", compression="zstd")
    raise_budget(kept)
    with kept.curator() as curator:
        assert curator.prepare(append=True) == 2
        if name == ON_SERVER:
            approve(kept)
        second = buy(DataSet(curator, analyst=plan.analyst), plan.later, plan.later_releases)
    return [first, second]


def admit(ledger: object) -> None:
    """Who may ask, one of them in a group with a budget of its own."""
    assert isinstance(ledger, PostgresLedger)
    policy.admit(ledger, "ana", by="olga", reason="asks")
    policy.set_group(ledger, "students", loss_total=ledger.balance().budget.loss_total // 2, by="olga")
    policy.admit(ledger, bought.SECOND_ANALYST, group="students", by="olga")
    policy.set_limits(ledger, policy.Limits(statement_loss_max=ledger.balance().budget.loss_total // 3), by="olga")


def approve(kept: Kept) -> None:
    """What the preparation proposed, by another login."""
    with as_role(SECOND_ROLE), kept.curator() as second:
        assert isinstance(second.ledger, PostgresLedger)
        [waiting] = [one for one in policy.proposals(second.ledger) if one.state == "open"]
        policy.approve(second.ledger, waiting.proposal_id, by="piet")


@contextmanager
def as_role(role: str) -> Iterator[None]:
    before = os.environ[DATABASE_VARIABLE]
    os.environ[DATABASE_VARIABLE] = re.sub(r"user=\S+", f"user={role}", before)
    try:
        yield
    finally:
        os.environ[DATABASE_VARIABLE] = before


# -- packing --------------------------------------------------------------------------------------------------------------------------


def pack(kept: Kept, to: Path) -> None:
    """All files with their modes, and with nobody's name or time on them."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path in sorted(kept.base.rglob("*")):
            member = archive.gettarinfo(path, arcname=str(path.relative_to(kept.base)))
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            if path.is_file():
                with path.open("rb") as stream:
                    archive.addfile(member, stream)
            else:
                archive.addfile(member)
    to.write_bytes(gzip.compress(content.getvalue(), mtime=0))


def dump(cluster: Cluster, database: str) -> str:
    """The whole database as statements. Words for ``psql`` are left out, so that any connection can run it.

    Which machine it was made on is left out too. It says whether a worker is still there; all of them had ended.
    """
    options = ["--inserts", "--rows-per-insert=1", "--no-comments", "-d", cluster.dsn(database, role="postgres")]
    command = cluster.as_user([str(cluster.programs / "pg_dump"), *options])
    written = subprocess.run(command, check=True, capture_output=True, cwd=cluster.home).stdout.decode()
    worker = current_worker()
    for ours, anybody in ((host_name(), "a machine"), (worker.boot, "a boot"), (worker.namespace, "a namespace")):
        written = written.replace(f"'{ours}'", f"'{anybody}'")
    return "\n".join(line for line in written.splitlines() if line and not line.startswith(("\\", "--"))) + "\n"


def made_with() -> str:
    """The commit of the program that is in use, which must be as it was committed."""
    git = ["git", "-C", str(Path(lapwing.__file__).parent)]
    subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "."], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def again(kept: Kept, plan: Plan, recorded: Sequence[Recorded]) -> list[Fields]:
    """What the program that wrote it shows of a copy, the newest version first."""
    kept.accept()
    seen = []
    for version in range(len(recorded), 0, -1):
        of = recorded[version - 1]
        with kept.opened(analyst=plan.analyst, version=version) as data:
            shown = version_again(data, of.questions, of.queries)
            assert not_as_bought(of.bought, shown["answers"]) == []
            seen.append(
                {
                    "questions": of.questions,
                    "queries": of.queries,
                    "bought": of.bought,
                    "releases_bought": of.releases,
                    "again": shown,
                }
            )
    return seen


def write(name: str, at: Path, plan: Plan, cluster: Cluster) -> None:
    kept = Kept(at / name)
    kept.base.mkdir(parents=True)
    copied = Kept(Path(tempfile.mkdtemp(prefix="kept-")) / name)
    database = cluster.new_database() if name == ON_SERVER else ""
    os.environ[DATABASE_VARIABLE] = cluster.dsn(database)  # read only where the catalogue names a database
    recorded = live(kept, name, plan)
    with kept.curator() as curator:
        index: Fields = {
            "commit": made_with(),
            "source_id": curator.declaration.dataset.id,
            "analyst": plan.analyst,
            "balance": seen_balance(curator),
            "history": seen_history(curator),
        }
    if name == ON_SERVER:
        kept.dump.write_text(dump(cluster, database), encoding="utf-8")
        put_back(cluster, "again", kept.dump)
        os.environ[DATABASE_VARIABLE] = cluster.dsn("again")
    pack(kept, DATA / f"{name}.tar.gz")
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        archive.extractall(copied.base, filter="data")
    index["versions"] = again(copied, plan, recorded)
    content = json.dumps(index, ensure_ascii=True, indent=1, sort_keys=True).encode()
    (DATA / f"{name}.json.gz").write_bytes(gzip.compress(content, mtime=0))
    print(name, (DATA / f"{name}.tar.gz").stat().st_size, (DATA / f"{name}.json.gz").stat().st_size, len(content))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at", type=Path, required=True, help="a directory that is not there yet; the registry keeps its name")
    parser.add_argument("names", nargs="*", default=[*LOCAL, ON_SERVER])
    given = parser.parse_args()
    both = (*bought.ANY_ACCOUNT, *bought.APPROXIMATE_ONLY)
    wide = (*bought.RELEASES, bought.VISITS_RELEASE)
    narrow = Plan("local", bought.ANY_ACCOUNT, bought.LATER[:3], bought.RELEASES, bought.RELEASES[:1], "0.5", 2)
    plans = {
        "approximate": Plan("local", both, bought.LATER, wide, wide[:1], "0.2", len(bought.WEIGHED)),
        "pure": narrow,
        "ordered": narrow,
        ON_SERVER: Plan("ana", both, bought.LATER, wide, wide[:1], "0.2", len(bought.WEIGHED)),
    }
    DATA.mkdir(exist_ok=True)
    cluster = Cluster()
    try:
        for name in given.names:
            write(name, given.at, plans[name], cluster)
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
