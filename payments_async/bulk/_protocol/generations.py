"""Prepares a row to be sent again: after its payout has finally failed, or after it was refused. Pure.

A reference can be used once, even if its payout failed (Endpoints, POST /payouts). So each later generation
of a row has a reference of its own: that of the first, and `~g` with the generation's number. A row that was
refused has used up only its idempotency key: it keeps its reference and its body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..._codec import decode, encode
from .identifiers import PROOF_KEY, Identity, Proof, body_hash
from .records import Binding, LedgerRow, NewRow

_GENERATION: Final = re.compile(r"(.*)~g([1-9][0-9]{0,8})", re.ASCII | re.DOTALL)
_NAMES: Final = tuple(field.name for field in attrs.fields(NewRow))


def parted(reference: str) -> tuple[str, int]:
    """Split a reference into its stem and its generation."""
    found = _GENERATION.fullmatch(reference)
    return (found[1], int(found[2])) if found else (reference, 0)


def later_references(reference: str, latest: int) -> list[str]:
    """List the references of later generations of a row, up to generation `latest`."""
    stem, generation = parted(reference)
    return [f"{stem}~g{number}" for number in range(generation + 1, latest + 1)]


def earlier_references(reference: str, latest: int) -> list[str]:
    """List the references of earlier generations of a row, none later than `latest`."""
    stem, generation = parted(reference)
    earlier = range(1, min(generation, latest + 1))
    return [stem, *(f"{stem}~g{number}" for number in earlier)] if generation else []


def next_generation(row: LedgerRow, binding: Binding) -> NewRow:
    """Give a row its next reference, with body and key to match. Raises ValueError if it gets too long."""
    return at_generation(row, binding, row.known.generation + 1)


def at_generation(row: LedgerRow, binding: Binding, generation: int) -> NewRow:
    """Give a row the reference of a generation, with body and key to match. Raises ValueError, too."""
    stem, _ = parted(row.reference) if row.known.generation else (row.reference, 0)
    identity = Identity(binding.environment, binding.batch_id, row.row_key, generation, given=stem)
    reference = identity.reference()
    body = _renamed(row.body, reference, identity)
    made = body_hash(body)
    return _replacement(
        row, reference=reference, body=body, body_hash=made, idempotency_key=identity.idempotency_key(made)
    )


def same_again(row: LedgerRow, binding: Binding) -> NewRow:
    """Give a refused row a new idempotency key, to be sent again unchanged: it may be accepted now."""
    known = row.known
    place = (binding.environment, binding.batch_id, row.row_key, known.generation, known.epoch)
    key = Identity(*place, known.revision + 1).idempotency_key(row.body_hash)
    return _replacement(row, idempotency_key=key)


def _replacement(row: LedgerRow, **changes: Any) -> NewRow:
    return NewRow(**{**{name: getattr(row, name) for name in _NAMES}, **changes})


def _renamed(body: bytes, reference: str, identity: Identity) -> bytes:
    """Put another reference into a stored body, and a new proof if the body has one."""
    asked: dict[str, Any] = decode.parse(body)
    asked["reference"] = reference
    pairs: Mapping[str, Any] = asked.get("metadata") or {}
    if Proof.read(pairs.get(PROOF_KEY)) is None:
        return encode.encode_json(asked)
    own = {name: value for name, value in pairs.items() if name != PROOF_KEY}
    bare = {name: own if name == "metadata" else value for name, value in asked.items()}
    if not own:
        del bare["metadata"]
    proof = identity.proof(body_hash(encode.encode_json(bare)))
    return encode.encode_json({**asked, "metadata": {**own, PROOF_KEY: proof.text}})
