"""Noise before and after a fork. Run as a script by ``test_noise_attacks``: prints one list of noisy values per process, as JSON.

A script, because the process that runs the tests may have threads, and forking such a process is a risk of its own.
"""

from __future__ import annotations

import json
import os
from fractions import Fraction

from lapwing.kernel.accounting import Account
from lapwing.kernel.certify import certify
from lapwing.kernel.domains import IntegerDomain
from lapwing.kernel.exact import Exact, ExactTable
from lapwing.kernel.expressions import Column
from lapwing.kernel.facts import Facts, TableFacts
from lapwing.kernel.ir import KnownGroups, Plan, Query, Ranked, RowCount, Scan, Vector
from lapwing.kernel.laws import DiscreteGaussian, DiscreteLaplace, Law
from lapwing.kernel.neighbours import Neighbours
from lapwing.kernel.permit import issue
from lapwing.kernel.release import release

CELLS = 32
FACTS = Facts("forked", 1, Neighbours.UNBOUNDED, Account.APPROXIMATE, {"t": TableFacts({"g": IntegerDomain(1, CELLS)}, 1, 1_000)}, {})


def noisy(law: Law) -> list[int]:
    """The release of 32 exact zeros."""
    groups = tuple((number,) for number in range(1, CELLS + 1))
    plan = Plan((Query(Scan("t", 1), (("g", Column("g")),), KnownGroups(groups), Ranked(), (Vector("n", RowCount(), law),)),))
    certified = certify(plan, FACTS)
    exact = Exact([ExactTable(groups=[], vectors=[[]], units=None)], certified=certified)
    released = release(certified, issue(1, certified.digest, certified.cost), exact)
    return list(released.tables[0].columns[0].values)


def in_child(law: Law) -> list[int]:
    """The same in a forked child."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writable, json.dumps(noisy(law)).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        text = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    found: list[int] = json.loads(text)
    return found


def streams(law: Law) -> list[list[int]]:
    """The parent, three children of the same state, and the parent again."""
    return [noisy(law), in_child(law), in_child(law), in_child(law), noisy(law)]


if __name__ == "__main__":
    scale = Fraction(2**40)
    print(json.dumps({"gaussian": streams(DiscreteGaussian(scale)), "laplace": streams(DiscreteLaplace(scale))}))
