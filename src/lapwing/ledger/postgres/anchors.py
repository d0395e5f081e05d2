"""The newest state of a ledger, recorded outside it.

A chain of hashes shows that a history was changed; it cannot show that the newest part of it is missing. An *anchor* can: it is the newest
state, stored elsewhere. A ledger is not served while it lacks the entry that its anchor names, and a permit is issued only after its charge
is anchored. A restore of the database must not restore the anchor too: keep it on another disk or another machine.

An anchor to which only some workers write does not detect that the database was reset to a state from before charges of the other workers.
So anchors have names, a ledger in a database knows the names of its anchors, and a worker must write to every one of them. The machines
share one place for anchors, or each machine writes to the anchors of all.

Any implementation of the five methods of :class:`Anchors` will do: a file, an object store with versions, a notary.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from lapwing.errors import LedgerError
from lapwing.kernel.accounting import Budget, Cost
from lapwing.ledger.amounts import budget_text, budget_value
from lapwing.ledger.block_balances import BlockTerms
from lapwing.ledger.protocol import Balance

_SLOT_BYTES = 16384
_NAME_FILE = "name"
_MILESTONES_MAX = 80
"""These fit into a slot easily. If there are ever more, the oldest are dropped, and a restore to before them charges everything again."""


@dataclass(frozen=True, slots=True)
class BlockSums:
    """What all charges of a data set with blocks add up to: what a restored database may lack of any one block, or of any one person."""

    blocks: Cost = field(default_factory=Cost.zero)
    """The most that any block of time paid for each charge."""
    persons: Cost = field(default_factory=Cost.zero)
    """What each charge cost one person."""


@dataclass(frozen=True, slots=True)
class AnchoredBlocks:
    """What an anchor knows of blocks of time: not their balances, which are thousands."""

    terms: BlockTerms
    hull: tuple[int, int] | None
    """The first and the last block that was ever charged."""
    sums: BlockSums


@dataclass(frozen=True, slots=True)
class AnchorPoint:
    """A state of a ledger, with what is needed to find it in a chain and to charge again what was spent since an older state."""

    source_id: str
    ledger_id: str
    entries: int
    head: str
    budget: Budget
    ceiling: Budget
    spent: Cost
    closed: bool
    blocks: AnchoredBlocks | None = None

    @property
    def balance(self) -> Balance:
        """The budget in force and what is spent of it."""
        return Balance(budget=self.budget, ceiling=self.ceiling, spent=self.spent, closed=self.closed)


@dataclass(frozen=True, slots=True)
class Milestone:
    """An earlier state on the way to the anchored one. The newest milestone that a restored database still has bounds what it lost."""

    entries: int
    head: str
    spent: Cost
    sums: BlockSums = field(default_factory=BlockSums)


class Anchors(Protocol):
    """A store of anchor points, one for each source."""

    def newest(self, source_id: str) -> AnchorPoint | None:
        """The point that was stored last."""
        ...

    def milestones(self, source_id: str) -> tuple[Milestone, ...]:
        """Some earlier states of the history that leads to ``newest``, newest first; may be empty."""
        ...

    def require_ready(self, source_id: str) -> None:
        """Refuse (``anchor-unreachable``) if a point of this source cannot be stored now; called before anything is charged."""
        ...

    def known(self, source_id: str) -> Mapping[str, AnchorPoint | None]:
        """Each anchor by its permanent name, with the point of this source that it stored last; None if it never stored one."""
        ...

    def advance(self, point: AnchorPoint, *, holds: Callable[[AnchorPoint], bool], override: bool = False) -> AnchorPoint:
        """Store ``point`` durably, unless the stored point is at least as far; return the stored point.

        ``holds`` says whether the database has the entry that a point names. If the stored point is further, ``holds`` must confirm both
        points, so that they belong to one history. If it denies one, this refuses (``ledger-rolled-back``) and stores nothing. If the
        stored point belongs to another ledger of the source, this refuses ``ledger-superseded``. ``override`` replaces whatever was stored,
        but keeps the milestones that ``holds`` confirms.
        """
        ...


@dataclass(frozen=True, slots=True)
class FileAnchors:
    """Anchors as small files in a directory of another disk, one for each source; several processes may share it."""

    directory: Path
    reads_only: bool = False
    """For checks that only compare: creates nothing in the directory, and uses the path as the name of a directory without one."""

    def newest(self, source_id: str) -> AnchorPoint | None:
        """The point that was stored last."""
        kept = self._kept(source_id)
        return None if kept is None else kept.point

    def milestones(self, source_id: str) -> tuple[Milestone, ...]:
        """A few milestones, closer together the more recent they are: between two neighbours, at most as much was spent as after the
        newer one.
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
        """Refuse if the file cannot be opened for writing. Only the write itself shows whether the disk has room."""
        try:
            os.close(os.open(self._path(source_id), os.O_RDWR))
        except OSError as error:
            raise _unreachable() from error

    def known(self, source_id: str) -> Mapping[str, AnchorPoint | None]:
        """The anchor has the name of its directory, created with it, stored in a file in it, and moved with it."""
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
        """Write the name to another file and link it: one of several processes creates the name, and none reads a part of it."""
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
        """The number of other sources that have an anchor here."""
        return len({path.name for path in self.directory.glob("*.anchor")} - {self._path(source_id).name for source_id in sources})

    def advance(self, point: AnchorPoint, *, holds: Callable[[AnchorPoint], bool], override: bool = False) -> AnchorPoint:
        """As :meth:`Anchors.advance`. One write and one sync; none if another process has stored a later point meanwhile."""
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
            # The other slot: an incomplete write leaves the stored point intact.
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
        # A source id may contain any character; its hash is a valid file name.
        return self.directory / f"{hashlib.sha256(source_id.encode()).hexdigest()[:32]}.anchor"


@dataclass(frozen=True, slots=True)
class SeveralAnchors:
    """Several anchors used together: a point counts as stored when each has stored it; on reading, the furthest point counts."""

    sinks: Sequence[Anchors]

    def newest(self, source_id: str) -> AnchorPoint | None:
        """The furthest point that any of them has stored."""
        points = [point for sink in self.sinks if (point := sink.newest(source_id)) is not None]
        return max(points, key=lambda point: point.entries, default=None)

    def milestones(self, source_id: str) -> tuple[Milestone, ...]:
        """The milestones of the anchor whose point counts."""
        furthest = self.newest(source_id)
        sink = next((sink for sink in self.sinks if furthest is not None and sink.newest(source_id) == furthest), None)
        return () if sink is None else sink.milestones(source_id)

    def require_ready(self, source_id: str) -> None:
        """Check each of them."""
        for sink in self.sinks:
            sink.require_ready(source_id)

    def known(self, source_id: str) -> Mapping[str, AnchorPoint | None]:
        """The anchors of all of them, by name."""
        return {name: point for sink in self.sinks for name, point in sink.known(source_id).items()}

    def advance(self, point: AnchorPoint, *, holds: Callable[[AnchorPoint], bool], override: bool = False) -> AnchorPoint:
        """Advance each in turn, until one refuses. All of them have stored the returned point."""
        return min((sink.advance(point, holds=holds, override=override) for sink in self.sinks), key=lambda kept: kept.entries)


def require_follows(kept: AnchorPoint, point: AnchorPoint, holds: Callable[[AnchorPoint], bool]) -> None:
    """Require that ``kept`` and ``point`` belong to one history."""
    if kept.ledger_id != point.ledger_id:
        raise LedgerError("ledger-superseded", "the source now has another ledger", hint="open that ledger")
    # ``point`` was just read from the database, so the question about ``kept`` concerns the same history. If ``kept`` is further, the
    # database may have been reset since ``point`` was read: ask about both.
    if not holds(kept) or (kept.entries >= point.entries and not holds(point)):
        raise rolled_back()


def rolled_back() -> LedgerError:
    """The error for a database that is behind its anchor."""
    hint = "if this is intended, the data owner can open it with an override and a reason"
    return LedgerError("ledger-rolled-back", "the ledger is missing entries that were written to it", hint=hint)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The content of a file."""

    point: AnchorPoint
    milestones: tuple[Milestone, ...]


def _milestones(kept: _Kept | None, point: AnchorPoint, holds: Callable[[AnchorPoint], bool], *, override: bool) -> tuple[Milestone, ...]:
    """The milestones of a new point: the earlier points of its history, without redundant ones."""
    if kept is None or kept.point.ledger_id != point.ledger_id:
        return ()
    sums = BlockSums() if kept.point.blocks is None else kept.point.blocks.sums
    passed = (Milestone(kept.point.entries, kept.point.head, kept.point.spent, sums), *kept.milestones)
    if override:
        # The owner continues from another state, and an earlier restore may be repeated: keep the milestones that both histories share.
        passed = tuple(one for one in passed if holds(replace(point, entries=one.entries, head=one.head, spent=one.spent)))
    return _thinned(passed, _amounts(point.spent, BlockSums() if point.blocks is None else point.blocks.sums))


def _amounts(spent: Cost, sums: BlockSums) -> tuple[Cost, ...]:
    return spent, sums.blocks, sums.persons


def _thinned(passed: Sequence[Milestone], spent: tuple[Cost, ...]) -> tuple[Milestone, ...]:
    """Drop redundant milestones (newest first): the spending since the next older one is at most twice that since the next newer one.

    So there are about log2(spent / smallest charge) milestones, and the loss since any state that the anchor passed is known within a
    factor of two, and never too low. The bound stays true as more is spent, because both amounts grow equally.
    """
    left: list[Milestone] = []
    for index, one in enumerate(passed):
        older = passed[index + 1] if index + 1 < len(passed) else None
        if not left or older is None:
            left.append(one)
            continue
        amounts = zip(spent, _amounts(older.spent, older.sums), _amounts(left[-1].spent, left[-1].sums), strict=True)
        if not all(_within_twice(*each) for each in amounts):
            left.append(one)
    return tuple(left[:_MILESTONES_MAX])


def _within_twice(spent: Cost, older: Cost, newer: Cost) -> bool:
    pairs = [(spent.loss, older.loss, newer.loss), (spent.delta, older.delta, newer.delta)]
    # If one pure amount is missing, no lost pure amount is known, from whichever state.
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
    if point.blocks is not None:  # without blocks, the format is the same as before blocks existed
        fields["blocks"] = {
            "cap": None if point.blocks.terms.person_cap is None else str(point.blocks.terms.person_cap),
            "every": point.blocks.terms.every,
            "hull": point.blocks.hull,
            "milestones": [_sums_texts(one.sums) for one in kept.milestones],
            "sums": _sums_texts(point.blocks.sums),
        }
    if point.spent.pure is not None:  # without a pure amount, the format is the same as before pure amounts existed
        fields["pure_spent"] = str(point.spent.pure)
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode("ascii")
    line = hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n"
    if len(line) > _SLOT_BYTES and kept.milestones and point.blocks is not None:
        return _slot_bytes(replace(kept, milestones=kept.milestones[:-1]))  # a restore to before that charges everything again
    if len(line) > _SLOT_BYTES:
        raise LedgerError("anchor-invalid", "a state of the ledger is too large to be anchored")
    return line.ljust(_SLOT_BYTES, b" ")


def _sums_texts(sums: BlockSums) -> list[list[str]]:
    return [_texts(sums.blocks), _texts(sums.persons)]


def _sums(texts: Sequence[Sequence[str]]) -> BlockSums:
    blocks, persons = texts
    return BlockSums(_cost(*blocks), _cost(*persons))


def _texts(cost: Cost) -> list[str]:
    return [str(cost.loss), str(cost.delta), *([] if cost.pure is None else [str(cost.pure)])]


def _cost(loss: str, delta: str, pure: str | None = None) -> Cost:
    return Cost(loss=int(loss), delta=int(delta), pure=None if pure is None else int(pure))


def _write(descriptor: int, content: bytes, offset: int) -> None:
    """Write everything or raise: when space or a limit runs out, the system writes a part and reports success."""
    if os.pwrite(descriptor, content, offset) != len(content):
        raise OSError(errno.ENOSPC, "only a part was written")


def _read(descriptor: int, source_id: str) -> tuple[_Kept | None, int]:
    """The content and number of the furthest of the two slots. A file with no readable slot is damaged; an empty file is new."""
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
    of_blocks, sums = fields.get("blocks"), [BlockSums()] * len(fields["milestones"])
    blocks = None
    if of_blocks is not None:
        terms = BlockTerms(of_blocks["every"], None if of_blocks["cap"] is None else Fraction(of_blocks["cap"]))
        blocks = AnchoredBlocks(terms, None if of_blocks["hull"] is None else tuple(of_blocks["hull"]), _sums(of_blocks["sums"]))
        sums = [_sums(texts) for texts in of_blocks["milestones"]]
    point = AnchorPoint(
        source_id=source_id,
        ledger_id=fields["ledger_id"],
        entries=fields["entries"],
        head=fields["head"],
        budget=budget_value(fields["budget"]),
        ceiling=budget_value(fields["ceiling"]),
        spent=_cost(fields["loss_spent"], fields["delta_spent"], fields.get("pure_spent")),
        closed=fields["closed"],
        blocks=blocks,
    )
    listed = zip(fields["milestones"], sums, strict=True)
    milestones = tuple(Milestone(entries, head, _cost(*amounts), each) for (entries, head, *amounts), each in listed)
    return _Kept(point, milestones)


def _unlock(descriptor: int) -> None:
    """Release the lock and close the descriptor. Closing alone is not enough: a child forked meanwhile shares the lock."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def shared_mode(directory: Path) -> int:
    """The file mode: access for the owner, and for the group if it may write into the directory."""
    return 0o660 if directory.stat().st_mode & 0o020 else 0o600


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreachable() -> LedgerError:
    return LedgerError("anchor-unreachable", "the anchor cannot be read or written", hint="make its directory writable")
