"""Compares the payout found under a row's reference with what the row asks for. Pure (Payout; gap AC)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final

import attrs

from ..._codec import decode
from ...models import Payout
from .identifiers import PROOF_KEY, Proof
from .records import NewRow

Detail = Decimal | str
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
    """`amount`, `currency`, `method`, `instrument.phone_number` and so on, as far as they are requested."""
    proof: Proof | None
    """The row's proof; None when the operator has turned proofs off."""


@attrs.frozen
class Found:
    """The payout that the service shows."""

    details: Mapping[str, Detail]
    """Values by the same names, as far as they are shown."""
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
    same = proof.body == expected.proof.body and not _differ(MONEY, expected.details, found.details)
    return Match.EQUAL if same else Match.OTHER_BODY


def compared(expected: Expected, found: Found) -> dict[str, bool]:
    """List the fields that are compared: {field: True if the service shows it, account details in full}."""
    asked, said = expected.details, found.details
    if expected.proof is None:
        return {name: name in said for name in asked}
    fields = {name: name in said for name in MONEY}
    for name in ACCOUNT:
        if name in asked:
            fields[name] = _is_in_full(asked[name], said.get(name))
    fields[_PROOF_FIELD] = (found.metadata or {}).get(PROOF_KEY) is not None
    return fields


def other_account(expected: Expected, found: Found) -> str | None:
    """Say which account detail the service shows in full, and otherwise than asked for: the first."""
    for name in ACCOUNT:
        asked, said = expected.details.get(name), found.details.get(name)
        if asked != said and _is_in_full(asked, said) and str(asked).casefold() != str(said).casefold():
            return f"with another {name}"
    return None


def _is_in_full(asked: Detail | None, said: Detail | None) -> bool:
    """True if an account detail is shown whole: as long as what was asked for, and no character is masked."""
    if not isinstance(asked, str) or not isinstance(said, str) or len(said) != len(asked):
        return False
    if said == asked:
        return True
    return not any(mark in _MASKS and mark != there for mark, there in zip(said, asked, strict=True))


_MASKS: Final = frozenset("*•●#…xX_-.")
"""What stands for a hidden character of an account."""


def differing(expected: Expected, found: Found) -> list[str]:
    """Say how a found payout differs, except by its amount: `with another currency`. No account data."""
    asked, said = expected.details, found.details
    is_told = MONEY if "amount" in said else ("amount",)  # with the amount the currency is told, too
    names = [name for name in (MONEY if expected.proof else asked) if name not in is_told]
    differences = [f"with another {name}" for name in names if _differ((name,), asked, said)]
    if expected.proof is not None:
        other = other_account(expected, found), _other_proof(expected.proof, found)
        differences += [difference for difference in other if difference is not None]
    return differences


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


def _by_details(expected: Mapping[str, Detail], found: Mapping[str, Detail]) -> Match:
    """Compare by details: equal if money and one detail of the destination are shown, and none differs."""
    if _differ(expected, expected, found):
        return Match.OTHER_BODY
    both = expected.keys() & found.keys()
    enough = both.issuperset(MONEY) and any(name.startswith("instrument.") for name in both)
    return Match.EQUAL if enough else Match.UNCLEAR


def _differ(names: Iterable[str], expected: Mapping[str, Detail], found: Mapping[str, Detail]) -> bool:
    """True if both sides state one of these details, and differently."""
    return any(not _same(expected[name], found[name]) for name in names if name in expected and name in found)


def _same(asked: Detail, shown: Detail) -> bool:
    """Compare two details; amounts also count as equal when equal as IEEE doubles, as services round."""
    if isinstance(asked, Decimal) and isinstance(shown, Decimal):
        return asked == shown or float(asked) == float(shown)
    return asked == shown


_PROOF_FIELD: Final = f"metadata.{PROOF_KEY}"
_COUNTRY: Final = "instrument.country"
_TEXTS: Final = tuple(
    (name, f"instrument.{name}")
    for name in ("type", "phone_number", "account_number", "bank_code", "address", "network", "memo_tag")
)
_ASKED: Final = (*_TEXTS, ("country", _COUNTRY))


def expected(row: NewRow, sent: bytes) -> Expected:
    """Read the payout that a row asks for with these bytes."""
    body: dict[str, Any] = decode.parse(sent)
    instrument: dict[str, Any] = body.get("instrument") or {}
    details: dict[str, Detail] = {"amount": row.amount, "currency": row.currency, "method": row.method}
    for name, detail in _ASKED:
        if (value := instrument.get(name)) is not None:
            details[detail] = value
    return Expected(details, Proof.read((body.get("metadata") or {}).get(PROOF_KEY)))


def shown(payout: Payout) -> Found:
    """Read the details that the service shows of a payout."""
    details = dict[str, Detail | None]()
    if payout.method is not None:
        details["method"] = payout.method.value
    if (amount := payout.amount) is not None:
        details["amount"], details["currency"] = amount.value, amount.currency
    if (instrument := payout.instrument) is not None:
        for name, detail in _TEXTS:
            details[detail] = getattr(instrument, name)
        if instrument.country is not None:
            details[_COUNTRY] = instrument.country.code
    return Found({name: value for name, value in details.items() if value is not None}, payout.metadata)
