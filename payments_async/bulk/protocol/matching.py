"""Compares the payout found under a row's reference with what the row asks for. Pure (Payout; gap AC)."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import attrs

from ..._codec import decode
from ...models import Payout
from .identifiers import PROOF_KEY, Proof
from .records import NewRow

Detail = Decimal | str | None
MONEY: Final = ("amount", "currency")
"""The fields that are compared for every payout."""
ACCOUNT: Final = ("instrument.phone_number", "instrument.account_number", "instrument.address")
"""The fields that are compared where the service shows them in full: it may hide a part of them."""


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
    """`amount`, `currency`, `method`, `instrument.phone_number` and so on; None means not requested."""
    proof: Proof | None
    """The row's proof; None when the operator has turned proofs off."""


@attrs.frozen
class Found:
    """The payout that the service shows."""

    details: Mapping[str, Detail]
    """Values by the same names; None or missing means not shown."""
    metadata: Mapping[str, Any] | None


def match_of(expected: Expected, found: Found) -> Match:
    """Decide whether a found payout is the expected one; both have the same reference.

    The proof decides where there is one, as metadata comes back unchanged: a payout without it was made by
    another program. Account details are compared only without proofs, as a service may show them shortened.
    """
    if expected.proof is None:
        return _by_details(expected.details, found.details)
    shown = (found.metadata or {}).get(PROOF_KEY)
    if shown is None:
        return Match.FOREIGN
    proof = Proof.read(shown)
    if proof is None:
        return Match.UNCLEAR
    if not proof.is_of_same_payout(expected.proof):
        return Match.FOREIGN
    money = {name: expected.details.get(name) for name in MONEY}
    same = proof.body == expected.proof.body and not _differences(money, found.details)
    return Match.EQUAL if same else Match.OTHER_BODY


def compared(expected: Expected, found: Found) -> dict[str, bool]:
    """List the fields that are compared: {field: True if the service shows it, account details in full}."""
    asked = {name: value for name, value in expected.details.items() if value is not None}
    if expected.proof is None:
        return {name: found.details.get(name) is not None for name in asked}
    proof = (found.metadata or {}).get(PROOF_KEY)
    fields = {name: found.details.get(name) is not None for name in MONEY}
    fields |= {name: _is_in_full(asked[name], found.details.get(name)) for name in asked if name in ACCOUNT}
    return {**fields, f"metadata.{PROOF_KEY}": proof is not None}


def other_account(expected: Expected, found: Found) -> str | None:
    """Name the first account detail that the service shows in full, and otherwise than asked for."""
    for name in ACCOUNT:
        asked, said = expected.details.get(name), found.details.get(name)
        if _is_in_full(asked, said) and str(asked).casefold() != str(said).casefold():
            return name
    return None


def _is_in_full(asked: Detail, said: Detail) -> bool:
    """True if an account detail is shown whole: as long as what was asked for, and no character is masked."""
    if not isinstance(asked, str) or not isinstance(said, str) or len(said) != len(asked):
        return False
    return not any(mark in _MASKS and mark != there for mark, there in zip(said, asked, strict=True))


_MASKS: Final = frozenset("*•●#…xX_-.")
"""What stands for a hidden character of an account."""


def _by_details(expected: Mapping[str, Detail], found: Mapping[str, Detail]) -> Match:
    """Compare by details: equal if money and one detail of the destination are shown, and none differs."""
    if _differences(expected, found):
        return Match.OTHER_BODY
    shown = {name for name, value in found.items() if value is not None and expected.get(name) is not None}
    enough = shown.issuperset(MONEY) and any(name.startswith("instrument.") for name in shown)
    return Match.EQUAL if enough else Match.UNCLEAR


def _differences(expected: Mapping[str, Detail], found: Mapping[str, Detail]) -> set[str]:
    """Find the details that both sides state differently."""
    both = {name for name, value in expected.items() if value is not None and found.get(name) is not None}
    return {name for name in both if not _same(expected[name], found[name])}


def _same(asked: Detail, shown: Detail) -> bool:
    """Compare two details; amounts also count as equal when equal as IEEE doubles, as services round."""
    if isinstance(asked, Decimal) and isinstance(shown, Decimal):
        return asked == shown or float(asked) == float(shown)
    return asked == shown


_TEXTS: Final = ("type", "phone_number", "account_number", "bank_code", "address", "network", "memo_tag")


def compare(row: NewRow, payout: Payout) -> Match:
    """Compare a payout that has the row's reference with the row."""
    return match_of(expected(row), shown(payout))


def expected(row: NewRow) -> Expected:
    """Read the payout that a row's recorded bytes ask for."""
    body: dict[str, Any] = decode.parse(row.body)
    instrument: dict[str, Any] = body.get("instrument") or {}
    details: dict[str, Detail] = {"amount": row.amount, "currency": row.currency, "method": row.method}
    details |= {f"instrument.{name}": instrument.get(name) for name in (*_TEXTS, "country")}
    return Expected(details, Proof.read((body.get("metadata") or {}).get(PROOF_KEY)))


def shown(payout: Payout) -> Found:
    """Read the details that the service shows of a payout."""
    details: dict[str, Detail] = {"method": payout.method.value if payout.method else None}
    if payout.amount is not None:
        details |= {"amount": payout.amount.value, "currency": payout.amount.currency}
    instrument = payout.instrument
    if instrument is not None:
        details |= {f"instrument.{name}": getattr(instrument, name) for name in _TEXTS}
        details["instrument.country"] = instrument.country.code if instrument.country else None
    return Found(details, payout.metadata)
