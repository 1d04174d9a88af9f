"""Compares the payout found under a row's reference with what the row asks for. Pure (Payout; gap AC)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import attrs

from ..._codec import decode
from ..._request.comparison import MONEY, RECEIVER, Detail, asked_details, compare, shown_details
from ...models import Payout
from .identifiers import PROOF_KEY, Proof
from .records import NewRow


class Match(StrEnum):
    """The result of comparing a payout with a row."""

    EQUAL = "equal"
    """The row's payout, as requested."""
    FOREIGN = "foreign"
    """Not the row's payout."""
    OTHER_BODY = "other body"
    """The row's reference with another content."""
    UNCLEAR = "cannot tell"


@attrs.frozen
class Expected:
    """The payout that the row asks for."""

    details: Mapping[str, Detail]
    """`amount`, `currency`, `method`, `instrument.phone_number` and so on, as far as they are requested."""
    proof: Proof


@attrs.frozen
class Found:
    """The payout that the service shows."""

    details: Mapping[str, Detail]
    """Values by the same names, as far as they are shown."""
    metadata: Mapping[str, Any] | None


def match_of(expected: Expected, found: Found) -> Match:
    """Decide whether a found payout is the expected one; both have the same reference.

    The proof decides, as metadata comes back unchanged: a payout without it was made by another program.
    Account details decide nothing, as a service may show them shortened.
    """
    shown = (found.metadata or {}).get(PROOF_KEY)
    if shown is None:
        return Match.FOREIGN
    proof = Proof.read(shown)
    if proof is None:
        return Match.UNCLEAR
    if not proof.is_of_same_payout(expected.proof):
        return Match.FOREIGN
    told = compare(expected.details, found.details)
    same = proof.body == expected.proof.body and not any(told[name] is False for name in MONEY)
    return Match.EQUAL if same else Match.OTHER_BODY


def compared(expected: Expected, found: Found) -> dict[str, bool]:
    """List the fields that are compared: {field: True if the service shows it, account details in full}."""
    told = compare(expected.details, found.details)
    fields = {name: told[name] is not None for name in (*MONEY, *RECEIVER) if name in told}
    fields[_PROOF_FIELD] = (found.metadata or {}).get(PROOF_KEY) is not None
    return fields


def differing(expected: Expected, found: Found) -> list[str]:
    """Say how a found payout differs, except by its amount: `with another currency`. No account data."""
    is_told = MONEY if "amount" in found.details else ("amount",)  # with the amount the currency is told, too
    told = compare(expected.details, found.details)
    differences = [
        f"with another {name}" for name, is_same in told.items() if is_same is False and name not in is_told
    ]
    other = _other_proof(expected.proof, found)
    return differences if other is None else [*differences, other]


def _other_proof(asked: Proof, found: Found) -> str | None:
    text = (found.metadata or {}).get(PROOF_KEY)
    if text is None:
        return f"without {_PROOF_FIELD}"
    proof = Proof.read(text)
    if proof is None:
        return f"with a {_PROOF_FIELD} that cannot be read"
    if not proof.is_of_same_payout(asked):
        return f"with the {_PROOF_FIELD} of another payout"
    return None if proof.body == asked.body else f"with the {_PROOF_FIELD} of other content"


_PROOF_FIELD: Final = f"metadata.{PROOF_KEY}"
_NO_PROOF: Final = Proof("", "", "", 0)
"""Of a body that this package has not written: it is that of no payout."""


def expected(row: NewRow, sent: bytes) -> Expected:
    """Read the payout that a row asks for with these bytes. The list is read by its references."""
    body: dict[str, Any] = decode.parse(sent)
    asked = asked_details(decode.requested_fields(sent))
    details = {name: value for name, value in asked.items() if name != "reference"}
    money: dict[str, Detail] = {"amount": row.amount, "currency": row.currency, "method": row.method}
    return Expected({**details, **money}, Proof.of(body.get("metadata")) or _NO_PROOF)


def shown(payout: Payout) -> Found:
    """Read the details that the service shows of a payout."""
    return Found(shown_details(payout), payout.metadata)
