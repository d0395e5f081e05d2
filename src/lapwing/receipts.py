"""A receipt states that this answer was charged this amount by this entry of this ledger. It is signed and can be checked without the
ledger.

The signature is Ed25519 (Bernstein and others, 2012; RFC 8032) over the canonical text of all fields. Everyone with the
public keys and the answer can check it; without the private key no one can make one. A receipt holds no value from the data: of the
answer it has only the digest.

An analyst who is given an answer that another analyst paid for gets an anonymous receipt: the answer, data set, plan
and price. The payer, time, request and entry are visible to the payer and to those who may see all entries.

Keys live in a directory: ``<key id>.private.pem`` (readable by its owner alone) for the one key that signs, and ``<key id>.public.pem`` for
every key that ever did. Rotation makes a new pair and removes the old *private* key; its public one stays, so old receipts
still verify. To check receipts elsewhere, copy the public files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lapwing.errors import LedgerError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FORMAT = "lapwing receipt 1"
_PRIVATE, _PUBLIC = ".private.pem", ".public.pem"
_KEY_ID_CHARACTERS = 32
_KEY_HINT = "make one with `lapwing receipt key --keys DIR`"


@dataclass(frozen=True, slots=True)
class ReceiptStatement:
    """The statement of a receipt."""

    source_id: str
    ledger_id: str
    charge_id: int
    analyst: str
    request_id: str
    request_digest: str
    """Digest of the certified plan."""
    answer_digest: str
    """SHA-256 of the stored answer."""
    loss: int
    delta: int
    entry_id: int
    """The entry that committed the answer."""
    head: str
    """The hash of the chain up to that entry."""
    at: str

    @property
    def names_payer(self) -> bool:
        """Whether it names the payer; no analyst has an empty name."""
        return bool(self.analyst)

    def seen_by(self, analyst: str) -> ReceiptStatement:
        """The parts that this analyst may read: all, or, if another analyst paid, without payer, time and request.

        Numbers of charges and entries are removed too: compared with one's own, they reveal the time.
        """
        return self if analyst == self.analyst else replace(self, charge_id=0, analyst="", request_id="", entry_id=0, head="", at="")


def statement_of_row(
    row: Sequence[Any] | None, *, source_id: str, ledger_id: str, charge_id: int, amount: Callable[[str], int]
) -> ReceiptStatement:
    """The statement about a committed charge; no row means that there is none (``receipt-missing``).

    ``row``: analyst, request id, digests of plan and answer, loss and delta (as ``amount`` reads them), entry, head, time.
    """
    if row is None:
        raise LedgerError("receipt-missing", "there is a receipt only for an answer that was committed")
    analyst, request_id, digest, answer, loss, delta, entry_id, head, at = row
    return ReceiptStatement(
        source_id=source_id,
        ledger_id=ledger_id,
        charge_id=charge_id,
        analyst=analyst,
        request_id=request_id,
        request_digest=digest,
        answer_digest=answer,
        loss=amount(loss),
        delta=amount(delta),
        entry_id=entry_id,
        head=head,
        at=at,
    )


@dataclass(frozen=True, slots=True)
class Receipt:
    """A statement with its signature."""

    statement: ReceiptStatement
    key_id: str
    signature: str
    """Ed25519 over :func:`canonical_bytes`, in hexadecimal digits."""


def canonical_bytes(statement: ReceiptStatement, key_id: str) -> bytes:
    """What is signed: one JSON text with sorted keys, so that equal statements have equal bytes; no two statements share them."""
    return json.dumps({**asdict(statement), "format": FORMAT, "key_id": key_id}, sort_keys=True, separators=(",", ":")).encode("ascii")


def receipt_fields(receipt: Receipt) -> dict[str, str | int]:
    """All fields of a receipt, for JSON."""
    return {**asdict(receipt.statement), "format": FORMAT, "key_id": receipt.key_id, "signature": receipt.signature}


def receipt_text(receipt: Receipt) -> str:
    """A receipt as JSON, for storage."""
    return json.dumps(receipt_fields(receipt), sort_keys=True, indent=2)


def receipt_value(text: str) -> Receipt:
    """Inverse of :func:`receipt_text`; refuses anything else, and anything more (``receipt-invalid``)."""
    try:
        content = json.loads(text)
        key_id, signature, form = content.pop("key_id"), content.pop("signature"), content.pop("format")
        wanted = {field.name: int if field.type in (int, "int") else str for field in fields(ReceiptStatement)}
        if form != FORMAT or content.keys() != wanted.keys() or not isinstance(key_id, str) or not isinstance(signature, str):
            raise ValueError
        if any(type(content[name]) is not kind for name, kind in wanted.items()):
            raise ValueError
        return Receipt(statement=ReceiptStatement(**content), key_id=key_id, signature=signature)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LedgerError("receipt-invalid", "this is no receipt, or not all of it") from error


def require_signing_key(directory: Path) -> None:
    """Raise now (``signing-key``, ``extra-missing``) the errors that signing would raise after an answer was charged."""
    _signing_key(directory)


def no_signing_key() -> LedgerError:
    """The error if receipts are to be signed and there is no key."""
    hint = f"{_KEY_HINT}, and name the directory in the catalogue: `keys` under [ledger]"
    return LedgerError("signing-key", "receipts are to be signed, and it is not said with which key", hint=hint)


def new_key(directory: Path) -> str:
    """Make a pair of keys and let it sign from now on; gives its id. An earlier private key is removed, its public one is kept."""
    _require_library()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    private = Ed25519PrivateKey.generate()
    key_id = _key_id(private.public_key())
    public_pem = private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    private_pem = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    earlier = list(directory.glob(f"*{_PRIVATE}"))
    # The public key first: a receipt must never exist that cannot be checked.
    _write(directory / f"{key_id}{_PUBLIC}", public_pem, 0o644)
    _write(directory / f"{key_id}{_PRIVATE}", private_pem, 0o600)
    for path in earlier:
        path.unlink()
    return key_id


def sign(statement: ReceiptStatement, directory: Path) -> Receipt:
    """Sign with the key of this directory."""
    private = _signing_key(directory)
    key_id = _key_id(private.public_key())
    return Receipt(statement=statement, key_id=key_id, signature=private.sign(canonical_bytes(statement, key_id)).hex())


def check(receipt: Receipt, directory: Path, *, answer: bytes | None = None) -> None:
    """Refuse (``receipt-invalid``) a receipt that none of the public keys in ``directory`` signed, or that is not for this ``answer``.

    A private key that was stolen can sign anything: remove its public file, and its receipts no longer verify.
    """
    _require_library()
    from cryptography.exceptions import InvalidSignature

    path = directory / f"{receipt.key_id}{_PUBLIC}"
    if len(receipt.key_id) != _KEY_ID_CHARACTERS or not receipt.key_id.isalnum() or not path.is_file():
        raise LedgerError(
            "receipt-invalid", "the receipt was signed with a key that is not known here", hint="add the public key, if it is ours"
        )
    public = _public_key(path)
    try:
        if _key_id(public) != receipt.key_id:
            raise InvalidSignature
        public.verify(bytes.fromhex(receipt.signature), canonical_bytes(receipt.statement, receipt.key_id))
    except (InvalidSignature, ValueError) as error:
        raise LedgerError("receipt-invalid", "the signature is not that of this receipt") from error
    if answer is not None and hashlib.sha256(answer).hexdigest() != receipt.statement.answer_digest:
        raise LedgerError("receipt-invalid", "the receipt is for another answer")


def _key_id(public: Ed25519PublicKey) -> str:
    return hashlib.sha256(public.public_bytes_raw()).hexdigest()[:_KEY_ID_CHARACTERS]


def _require_library() -> None:
    if importlib.util.find_spec("cryptography") is None:
        raise LedgerError("extra-missing", "receipts need another library", hint="pip install 'lapwing[postgres]'")


def _signing_key(directory: Path) -> Ed25519PrivateKey:
    _require_library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    paths = sorted(directory.glob(f"*{_PRIVATE}"))
    if len(paths) != 1:
        raise LedgerError("signing-key", "there must be exactly one signing key in its directory", hint=_KEY_HINT)
    try:
        if paths[0].stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise LedgerError("signing-key", "others than its owner may use the signing key", hint="set its mode to 0600")
        key = load_pem_private_key(paths[0].read_bytes(), password=None)
    except (OSError, ValueError) as error:
        raise LedgerError("signing-key", "the signing key cannot be read") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise LedgerError("signing-key", "the signing key is of another kind")
    return key


def _public_key(path: Path) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(path.read_bytes())
    except (OSError, ValueError) as error:
        raise LedgerError("receipt-invalid", "the public key cannot be read") from error
    if not isinstance(key, Ed25519PublicKey):
        raise LedgerError("receipt-invalid", "the public key is of another kind")
    return key


def _write(path: Path, content: bytes, mode: int) -> None:
    """A new file with exactly this mode, on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
