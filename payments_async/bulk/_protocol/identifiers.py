"""The identifiers of a batch, a row, a request and a payout. Pure.

A row that is sent again needs the same reference and, for the same bytes, the same idempotency key, even if
the ledger is lost. So every identifier is a digest of facts that the input has; none is random. Each fact is
digested with its length, so that ("ab", "c") and ("a", "bc") differ.

    reference          environment, batch, row, generation           who may be paid once
    idempotency key    the same, body, epoch, revision               which request this is
    proof              batch, row, body, generation                  whose payout this is

A reference can be used once, even if its payout failed (Endpoints, POST /payouts). So each later generation
of a row has a reference of its own: that of the first, and `~g` with the generation's number. A row that was
refused has used up only its idempotency key: it keeps its reference and its body.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import attrs

from ..._codec import decode, encode
from ..._validation.rules import is_identifier, name_problem
from .records import HIDDEN, Binding, LedgerRow

REFERENCE_LIMIT = 191
"""The longest reference, in characters (Endpoints, POST /payouts)."""
PROOF_KEY = "payments_sdk"
"""The one metadata pair of ten that the engine takes; callers keep nine."""
_PROOF_VERSION = "1"
_PROOF_PART = 20
"""Characters of each hash in a proof: 100 bits, and the whole stays under 80 characters."""
_PROOF_BYTES = -(-_PROOF_PART * 5 // 8)
_PROOF = re.compile(r"1\.([a-z2-7]{20})\.([a-z2-7]{20})\.([a-z2-7]{20})\.(0|[1-9][0-9]{0,8})", re.ASCII)
_GENERATION_END = re.compile(r"~g[0-9]+\Z", re.ASCII)
_GENERATION: Final = re.compile(r"(.*)~g([1-9][0-9]{0,8})", re.ASCII | re.DOTALL)
_PLAIN_REFERENCE: Final = re.compile(r"(?!.{0,190}[0-9]{9})[A-Za-z0-9_./#:~-]{1,191}", re.ASCII)
"""Without spaces, and without nine digits in a row, which a date has not and an account may have."""


def _written(part: str | bytes | int | None) -> bytes:
    if part is None:
        return b"-;"
    raw = part if isinstance(part, bytes) else str(part).encode()
    return b"%d:%b;" % (len(raw), raw)


def digest(*parts: str | bytes | int | None) -> bytes:
    """Compute the SHA-256 of the parts; an integer counts as its decimal text. Raises UnicodeEncodeError."""
    return hashlib.sha256(b"".join(map(_written, parts))).digest()


def body_hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _readable(raw: bytes) -> str:
    """Encode as lower-case base32: safe in any field, even where letters compare without case."""
    return base64.b32encode(raw).decode().rstrip("=").lower()


def reference_problem(reference: str) -> str | None:
    """Validate a reference that the operator gave. Returns its fault, or None."""
    if not reference.strip():
        return "is empty"
    if len(reference) > REFERENCE_LIMIT:
        return f"has {len(reference)} characters, {REFERENCE_LIMIT} are allowed"
    if _GENERATION_END.search(reference):
        return "ends like the reference of a retried payout (~g and a number): change its end"
    return name_problem(reference)


@attrs.frozen
class Identity:
    """The identity of one payout of one row, and every identifier made from it."""

    environment: str  # `live` or `sandbox`
    batch_id: str
    row_key: str
    """The operator's key for the row, or its number as text; unique in the batch."""
    generation: int = 0
    """How many payouts of this row have finally failed, each replaced by the next."""
    epoch: int = 0  # how many idempotency keys of this body are no longer used
    revision: int = 0
    """How often the row was given a body again, another one or the same, after it was refused or before it
    was sent: the answer to its last key may be kept, and must not be the answer to its next one."""
    given: str | None = None  # the operator's reference, if the input has one

    def reference(self) -> str:
        """The payout's reference, for all bodies and epochs. Raises ValueError over 191 characters."""
        stem = self.given
        if stem is None:
            stem = _readable(digest("ref", self.environment, self.batch_id, self.row_key))
        if self.generation:
            stem = f"{stem}~g{self.generation}"
        if len(stem) > REFERENCE_LIMIT:
            raise ValueError(f"the reference has {len(stem)} characters, {REFERENCE_LIMIT} are allowed")
        return stem

    def idempotency_key(self, body: str) -> str:
        """Make the idempotency key of a request, 56 characters; `body` is the hash of its bytes (Limits)."""
        revision = (self.revision,) if self.revision else ()
        place = (self.environment, self.batch_id, self.row_key, self.generation)
        return "pb1-" + _readable(digest("key", *place, body, self.epoch, *revision))

    def proof(self, content: str) -> Proof:
        """Make the proof for the payout's metadata; `content` is the hash of the body without it."""
        return Proof(
            batch=_batch_part(self.environment, self.batch_id),
            row=_shortened("row", self.row_key),
            body=_shortened("body", content),
            generation=self.generation,
        )


def _shortened(kind: str, *parts: str) -> str:
    return _readable(digest(kind, *parts)[:_PROOF_BYTES])[:_PROOF_PART]


@lru_cache(maxsize=8)
def _batch_part(environment: str, batch_id: str) -> str:
    """The same for each row of a batch."""
    return _shortened("batch", environment, batch_id)


@attrs.frozen
class Proof:
    """The proof in a payout's metadata, under `PROOF_KEY`, of the row it belongs to."""

    batch: str
    row: str
    body: str
    generation: int

    @property
    def text(self) -> str:
        """The metadata value."""
        return f"{_PROOF_VERSION}.{self.batch}.{self.row}.{self.body}.{self.generation}"

    @classmethod
    def of(cls, metadata: Mapping[str, object] | None) -> Proof | None:
        """The proof in a payout's metadata; None without one that can be read."""
        return cls.read((metadata or {}).get(PROOF_KEY))

    @classmethod
    def read(cls, text: object) -> Proof | None:
        """Parse what `text` wrote; None for anything else, which proves nothing either way."""
        found = _PROOF.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            return None
        batch, row, body, generation = found.groups()
        return cls(batch, row, body, int(generation))

    def is_of_same_payout(self, other: Proof) -> bool:
        """True if both name the same payout of the same row, whatever its body."""
        mine, theirs = (self.batch, self.row, self.generation), (other.batch, other.row, other.generation)
        return mine == theirs


def shown_key(row_key: str, number: int) -> str:
    """Format a row key for a message: an identifier stays, a possible name or account is masked."""
    return row_key if is_identifier(row_key) or row_key == str(number) else HIDDEN


def shown_reference(reference: str) -> str:
    """Format a reference for a page: a possible name or account is masked."""
    return reference if _PLAIN_REFERENCE.fullmatch(reference) else HIDDEN


# The generations of a row


def parted(reference: str) -> tuple[str, int]:
    """Split a reference into its stem and its generation."""
    found = _GENERATION.fullmatch(reference)
    return (found[1], int(found[2])) if found else (reference, 0)


def identity_of(row: LedgerRow, binding: Binding, generation: int | None = None) -> Identity:
    """The identity of a row's payout of a generation, the present one unless given."""
    number = row.generation if generation is None else generation
    place = (row.environment or binding.environment, binding.batch_id, row.row_key)
    if number != row.generation:  # of another payout no key is used any more, or none yet
        return Identity(*place, number, given=row.stem)
    return Identity(*place, number, row.epoch, row.revision, row.stem)


def body_at(row: LedgerRow, binding: Binding, generation: int | None = None) -> bytes:
    """The bytes of a row's request at a generation, the present one unless given: its reference, its proof.

    Raises ValueError where the reference would be longer than the service takes.
    """
    identity = identity_of(row, binding, generation)
    reference = identity.reference()
    return _renamed(row.body, reference, identity) if identity.generation else row.body


def _renamed(body: bytes, reference: str, identity: Identity) -> bytes:
    """Put another reference and a new proof into a stored body."""
    asked: dict[str, Any] = decode.parse(body)
    asked["reference"] = reference
    pairs: Mapping[str, Any] = asked.get("metadata") or {}
    own = {name: value for name, value in pairs.items() if name != PROOF_KEY}
    bare = {name: own if name == "metadata" else value for name, value in asked.items()}
    if not own:
        bare.pop("metadata", None)
    proof = identity.proof(body_hash(encode.encode_json(bare)))
    return encode.encode_json({**asked, "metadata": {**own, PROOF_KEY: proof.text}})
