"""Releases that stay in memory, ready to answer. The ledger checks access each time; only the bytes are cached."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from lapwing.asking.release_purchase import LISTED_MAX, is_release, release_of, unknown_release
from lapwing.curator.curator import Curator
from lapwing.ledger.protocol import Bought
from lapwing.ledger.purchases import PurchaseKind
from lapwing.releases.released import Release
from lapwing.releases.request import SUMMARY

KEPT_MAX = 4
"""Releases of one data set that stay in memory."""
_kept: WeakKeyDictionary[Curator, dict[tuple[str, str], Release]] = WeakKeyDictionary()


def bought_releases(curator: Curator, *, analyst: str, name: str | None = None) -> tuple[Bought, ...]:
    """Releases of the newest version that this analyst may see now, newest first; none while the data set is closed."""
    if curator.ledger.balance().closed:
        return ()
    kind, version = PurchaseKind.RELEASE, curator.facts.version
    found = curator.ledger.bought(version=version, limit=LISTED_MAX, analyst=analyst, kind=kind, begins=SUMMARY)
    return tuple(bought for bought in found if is_release(bought, name))


def kept_release(curator: Curator, bought: Bought, *, analyst: str) -> Release | None:
    """The release that was bought; None if this analyst may no longer see it."""
    kept, key = _kept.setdefault(curator, {}), (analyst, bought.digest)
    release = kept.get(key) or release_of(curator, bought, analyst=analyst)
    if release is not None:
        kept[key] = release
        for other in [*kept][:-KEPT_MAX]:
            kept.pop(other, None)
    return release


def kept_named(curator: Curator, name: str, *, analyst: str) -> Release:
    """The newest release of this name; ``release-unknown`` where there is none."""
    for bought in bought_releases(curator, analyst=analyst, name=name):
        found = kept_release(curator, bought, analyst=analyst)
        if found is not None:
            return found
    raise unknown_release(name)
