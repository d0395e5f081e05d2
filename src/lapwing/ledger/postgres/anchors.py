"""How far a ledger had come, remembered outside it.

A chain of hashes shows that a history was changed; it cannot show that the newest part of it is missing. An *anchor* can: the newest state
that was sent to another user. A ledger is not served while it lacks the entry its anchor names, and a permit is handed out only
after its charge is anchored. Where the anchor is kept must not be put back together with the database: another disk, another machine.

An anchor that some workers write to and others do not cannot tell that a state was put back which only the others had left behind. So
anchors have names, a ledger in a database knows the names of its own, and a worker has to write to every one of them. The machines share
one place for anchors, or each writes to those of all.

Anything with the five methods of :class:`Anchors` will do: a file, an object store that keeps versions, a notary.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Budget, Cost
from lapwing.ledger.amounts import budget_text, budget_value
from lapwing.ledger.protocol import Balance

_SLOT_BYTES = 16384
_NAME_FILE = "name"
_MILESTONES_MAX = 80
"""As many as a slot holds, with room to spare. If ever there are more, the oldest go, and what lies before them is charged again."""


@dataclass(frozen=True, slots=True)
class AnchorPoint:
    """A state of a ledger: what it takes to find it again in a chain, and to charge again what was lost since an older one."""

    source_id: str
    ledger_id: str
    entries: int
    head: str
    budget: Budget
    ceiling: Budget
    spent: Cost
    closed: bool

    @property
    def balance(self) -> Balance:
        """The budget in force and what is spent of it."""
        return Balance(budget=self.budget, ceiling=self.ceiling, spent=self.spent, closed=self.closed)


@dataclass(frozen=True, slots=True)
class Milestone:
    """An earlier state on the way to the anchored one. The newest that a restored database still has bounds what it lost."""

    entries: int
    head: str
    spent: Cost


class Anchors(Protocol):
    """A memory of anchor points, one for each source."""

    def newest(self, source_id: str) -> AnchorPoint | None:
        """What was last kept."""
        ...

    def milestones(self, source_id: str) -> tuple[Milestone, ...]:
        """Some earlier states of the history that ``newest`` stands for, newest first; may be empty."""
        ...

    def require_ready(self, source_id: str) -> None:
        """Refuse (``anchor-unreachable``) if a point of this source could not be kept now: asked before something is charged."""
        ...

    def known(self, source_id: str) -> Mapping[str, AnchorPoint | None]:
        """Each anchor by its name, which it has for ever, and what it last kept of this source; None if it never kept anything."""
        ...

    def advance(self, point: AnchorPoint, *, holds: Callable[[AnchorPoint], bool], override: bool = False) -> AnchorPoint:
        """Keep ``point``, durably, unless what is kept is as far already; return what is kept.

        ``holds`` says whether the database has the entry that a point names. It is asked about ``point`` when the kept one is further, so
        that afterwards what is kept stands for a history that has both. If it denies either: ``ledger-rolled-back``, and nothing is kept. A
        point of another ledger of the source is ``ledger-superseded``. ``override`` replaces whatever was kept, except the milestones that
        the database still has: ``holds`` is asked about those too.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileAnchors:
    """Anchors as small files in a directory of another disk, one for each source; several processes may share it."""

    directory: Path
    reads_only: bool = False
    """For checks that only compare: nothing is made in the directory, and one that has no name goes by its path."""

    def newest(self, source_id: str) -> AnchorPoint | None:
        """What was last kept."""
        kept = self._kept(source_id)
        return None if kept is None else kept.point

    def milestones(self, source_id: str) -> tuple[Milestone, ...]:
        """Few, and closer together the more recent they are: from one to its older neighbour, at most as much was spent as was spent after
        it.
        """
        kept = self._kept(source_id)
        return () if kept is None else kept.milestones

    def _kept(self, source_id: str) -> _Kept | None:
        try:
            descriptor = os.open(self._path(source_id), os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreachable() from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            return _read(descriptor, source_id)[0]
        finally:
            _unlock(descriptor)

    def require_ready(self, source_id: str) -> None:
        """The file is there and may be written. Whether the disk has room is only seen when it is."""
        try:
            os.close(os.open(self._path(source_id), os.O_RDWR))
        except OSError as error:
            raise _unreachable() from error

    def known(self, source_id: str) -> Mapping[str, AnchorPoint | None]:
        """The name is that of the directory: made with it, kept in a file in it, and moved with it."""
        return {self._name(): self.newest(source_id)}

    def _name(self) -> str:
        path = self.directory / _NAME_FILE
        try:
            if not path.exists():
                if self.reads_only:
                    return str(self.directory)
                self._make_name(path)
            name = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise _unreachable() from error
        if not name:
            raise LedgerError("anchor-invalid", "the name of these anchors cannot be read", hint="restore the file `name` beside them")
        return name

    def _make_name(self, path: Path) -> None:
        """Written elsewhere and linked: of several processes one makes it, and none reads half of it."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{_NAME_FILE}.{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.fchmod(descriptor, shared_mode(self.directory))
            _write(descriptor, secrets.token_hex(8).encode() + b"\n", 0)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        _sync_directory(self.directory)

    def strangers(self, sources: Iterable[str]) -> int:
        """How many sources have an anchor here, besides these."""
        return len({path.name for path in self.directory.glob("*.anchor")} - {self._path(source_id).name for source_id in sources})

    def advance(self, point: AnchorPoint, *, holds: Callable[[AnchorPoint], bool], override: bool = False) -> AnchorPoint:
        """As :meth:`Anchors.advance`. One write and one sync; none when another process has come further meanwhile."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_new = not self._path(point.source_id).exists()
            descriptor = os.open(self._path(point.source_id), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _unreachable() from error
        try:
            if is_new:
                os.fchmod(descriptor, shared_mode(self.directory))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            kept, slot = _read(descriptor, point.source_id)
            if kept is not None and not override:
                require_follows(kept.point, point, holds)
                if kept.point.entries >= point.entries:
                    return kept.point
            milestones = _milestones(kept, point, holds, override=override)
            content = _slot_bytes(_Kept(point, milestones))
            # The other slot: a write that is cut short leaves the point that was kept.
            _write(descriptor, content, (1 - slot) * _SLOT_BYTES)
            if kept is None or override:
                _write(descriptor, content, slot * _SLOT_BYTES)
            os.fdatasync(descriptor)
            if is_new:
                _sync_directory(self.directory)
        except OSError as error:
            raise _unreachable() from error
        finally:
            _unlock(descriptor)
        return point

    def _path(self, source_id: str) -> Path:
        # A source id may hold any character; its hash is a file name.
        return self.directory / f"{hashlib.sha256(source_id.encode()).hexdigest()[:32]}.anchor"


@dataclass(frozen=True, slots=True)
class SeveralAnchors:
    """All of these: a point is kept when each has kept it, and the furthest of them counts."""

    sinks: Sequence[Anchors]

    def newest(self, source_id: str) -> AnchorPoint | None:
        """The furthest point that any has kept."""
        points = [point for sink in self.sinks if (point := sink.newest(source_id)) is not None]
        return max(points, key=lambda point: point.entries, default=None)

    def milestones(self, source_id: str) -> tuple[Milestone, ...]:
        """Those of the sink whose point counts."""
        furthest = self.newest(source_id)
        sink = next((sink for sink in self.sinks if furthest is not None and sink.newest(source_id) == furthest), None)
        return () if sink is None else sink.milestones(source_id)

    def require_ready(self, source_id: str) -> None:
        """Each of them."""
        for sink in self.sinks:
            sink.require_ready(source_id)

    def known(self, source_id: str) -> Mapping[str, AnchorPoint | None]:
        """All of them."""
        return {name: point for sink in self.sinks for name, point in sink.known(source_id).items()}

    def advance(self, point: AnchorPoint, *, holds: Callable[[AnchorPoint], bool], override: bool = False) -> AnchorPoint:
        """Each in turn; the first that refuses ends it. What is returned, all have kept."""
        return min((sink.advance(point, holds=holds, override=override) for sink in self.sinks), key=lambda kept: kept.entries)


def require_follows(kept: AnchorPoint, point: AnchorPoint, holds: Callable[[AnchorPoint], bool]) -> None:
    """The history that leads to ``point`` is the one ``kept`` stands for, or goes on from it."""
    if kept.ledger_id != point.ledger_id:
        raise LedgerError("ledger-superseded", "the source has another ledger by now", hint="open that one")
    # ``point`` itself was just read from the database, so asking about ``kept`` is asking the same history. When ``kept`` is further, the
    # database may have been put back since ``point`` was read: ask for both.
    if not holds(kept) or (kept.entries >= point.entries and not holds(point)):
        raise rolled_back()


def rolled_back() -> LedgerError:
    """The error for a database that is behind its anchor."""
    hint = "if this is meant, the data owner can open it with an override and a reason"
    return LedgerError("ledger-rolled-back", "the ledger lacks entries that were made in it", hint=hint)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a file holds."""

    point: AnchorPoint
    milestones: tuple[Milestone, ...]


def _milestones(kept: _Kept | None, point: AnchorPoint, holds: Callable[[AnchorPoint], bool], *, override: bool) -> tuple[Milestone, ...]:
    """Those of a new point: of what was kept, all that lies on the way to it, without those that its neighbours make redundant."""
    if kept is None or kept.point.ledger_id != point.ledger_id:
        return ()
    passed = (Milestone(kept.point.entries, kept.point.head, kept.point.spent), *kept.milestones)
    if override:
        # The owner goes on from another state: what was put back earlier may be put back again, so what both ways share stays.
        passed = tuple(one for one in passed if holds(replace(point, entries=one.entries, head=one.head, spent=one.spent)))
    return _thinned(passed, point.spent)


def _thinned(passed: Sequence[Milestone], spent: Cost) -> tuple[Milestone, ...]:
    """Newest first. One is redundant if from its older neighbour to the new point at most twice as much was spent as from its newer one.

    So there are about as many as what was spent has binary digits, counted in the smallest charge, and what was lost since any state that
    the anchor passed is known up to a factor of two, the safe way. The bound stays as more is spent: both distances grow by the same.
    """
    left: list[Milestone] = []
    for index, one in enumerate(passed):
        older = passed[index + 1] if index + 1 < len(passed) else None
        if not left or older is None or not _within_twice(spent, older.spent, left[-1].spent):
            left.append(one)
    return tuple(left[:_MILESTONES_MAX])


def _within_twice(spent: Cost, older: Cost, newer: Cost) -> bool:
    pairs = [(spent.loss, older.loss, newer.loss), (spent.delta, older.delta, newer.delta)]
    # Once a pure amount is missing, so is all that is lost of it, since whichever state.
    if spent.pure is not None and older.pure is not None and newer.pure is not None:
        pairs.append((spent.pure, older.pure, newer.pure))
    return all(now - before <= 2 * (now - after) for now, before, after in pairs)


def _slot_bytes(kept: _Kept) -> bytes:
    point = kept.point
    fields: dict[str, object] = {
        "budget": budget_text(point.budget),
        "ceiling": budget_text(point.ceiling),
        "closed": point.closed,
        "delta_spent": str(point.spent.delta),
        "entries": point.entries,
        "head": point.head,
        "ledger_id": point.ledger_id,
        "loss_spent": str(point.spent.loss),
        "milestones": [[one.entries, one.head, *_texts(one.spent)] for one in kept.milestones],
        "source": hashlib.sha256(point.source_id.encode()).hexdigest(),
    }
    if point.spent.pure is not None:  # what has none is written as it was before there were any
        fields["pure_spent"] = str(point.spent.pure)
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode("ascii")
    line = hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n"
    if len(line) > _SLOT_BYTES:
        raise LedgerError("anchor-invalid", "a state is too large to be anchored")
    return line.ljust(_SLOT_BYTES, b" ")


def _texts(cost: Cost) -> list[str]:
    return [str(cost.loss), str(cost.delta), *([] if cost.pure is None else [str(cost.pure)])]


def _cost(loss: str, delta: str, pure: str | None = None) -> Cost:
    return Cost(loss=int(loss), delta=int(delta), pure=None if pure is None else int(pure))


def _write(descriptor: int, content: bytes, offset: int) -> None:
    """All of it: where room or a limit ends in the middle, the system writes a part and calls that a success."""
    if os.pwrite(descriptor, content, offset) != len(content):
        raise OSError(errno.ENOSPC, "only a part was written")


def _read(descriptor: int, source_id: str) -> tuple[_Kept | None, int]:
    """The furthest of the two slots, and which it is. A file in which neither can be read is damaged; an empty one is new."""
    content = os.pread(descriptor, 2 * _SLOT_BYTES, 0)
    if not content:
        return None, 0
    slots = [_slot_value(content[start : start + _SLOT_BYTES], source_id) for start in (0, _SLOT_BYTES)]
    readable = [(kept, slot) for slot, kept in enumerate(slots) if kept is not None]
    if not readable:
        hint = "move it away; the owner can then open the ledger with an override"
        raise LedgerError("anchor-invalid", "the anchor of this source cannot be read", hint=hint)
    return max(readable, key=lambda one: one[0].point.entries)


def _slot_value(content: bytes, source_id: str) -> _Kept | None:
    digest, _, text = content.rstrip(b" \n").partition(b" ")
    if hashlib.sha256(text).hexdigest().encode() != digest:
        return None
    fields = json.loads(text)
    if fields["source"] != hashlib.sha256(source_id.encode()).hexdigest():
        return None
    point = AnchorPoint(
        source_id=source_id,
        ledger_id=fields["ledger_id"],
        entries=fields["entries"],
        head=fields["head"],
        budget=budget_value(fields["budget"]),
        ceiling=budget_value(fields["ceiling"]),
        spent=_cost(fields["loss_spent"], fields["delta_spent"], fields.get("pure_spent")),
        closed=fields["closed"],
    )
    milestones = tuple(Milestone(entries, head, _cost(*amounts)) for entries, head, *amounts in fields["milestones"])
    return _Kept(point, milestones)


def _unlock(descriptor: int) -> None:
    """Give the lock back, and the descriptor. Closing alone would not do: a child that was forked meanwhile has the same lock."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def shared_mode(directory: Path) -> int:
    """For the owner alone; where the owner lets a group write into the directory, for that group too."""
    return 0o660 if directory.stat().st_mode & 0o020 else 0o600


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreachable() -> LedgerError:
    return LedgerError("anchor-unreachable", "the anchor cannot be read or written", hint="make its directory writable")
