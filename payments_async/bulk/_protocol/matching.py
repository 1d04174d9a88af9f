"""Compares a payout of the list with the row that asks for it, and writes down what decides about it.

Pure (Payout; gap AC).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from operator import attrgetter
from typing import Any, Final

import attrs

from ..._codec import decode
from ..._request.comparison import ACCOUNT, MONEY, RECEIVER, Detail, asked_details, compare, shown_details
from ...models import Amount, Method, Payout, PayoutInstrument, PayoutStatus
from ...models.statuses import PayoutEnd
from .identifiers import PROOF_KEY, Proof, body_at, parted
from .payout_status import end_of, money_of
from .records import Binding, LedgerRow


class Match(StrEnum):
    EQUAL = "equal"  # the row's payout, as requested
    FOREIGN = "foreign"  # not the row's payout
    OTHER_BODY = "other body"  # the row's reference with another content
    UNCLEAR = "cannot tell"


_PROOF_FIELD: Final = f"metadata.{PROOF_KEY}"
_NO_PROOF: Final = Proof("", "", "", 0)
"""Of a body that this package has not written: it is that of no payout."""


@attrs.frozen
class RowPayout:
    """A payout that the list shows under one of a row's references, compared with what the row asks for."""

    payout: Payout
    generation: int
    match: Match
    end: PayoutEnd
    is_of_batch: bool
    """True if it has the proof of the row's batch: it is no stranger's."""
    fields: Mapping[str, bool]
    """{compared field: True if the service shows it, account details in full}."""
    other_money: str | None
    """What it is of, if the service shows another sum than was asked for: `XOF 10.3`."""
    difference: str | None
    """How it is shown otherwise than was asked for, without account data; None if it is not."""

    @classmethod
    def of(cls, row: LedgerRow, payout: Payout, binding: Binding) -> RowPayout:
        """Compare a payout with the row that asks for it, as the row is now."""
        generation = parted(payout.reference or "")[1]
        try:
            body, is_possible = body_at(row, binding, generation), True
        except ValueError:  # its reference would be too long: the row has no such one
            body, is_possible = row.body, False
        asked, proof = _asked(row, body)
        shown, text = shown_details(payout), (payout.metadata or {}).get(PROOF_KEY)
        told, theirs = compare(asked, shown), Proof.read(text)
        match, other_proof = _match_of(proof, text, theirs)
        if match is Match.EQUAL and any(told[name] is False for name in MONEY):
            match = Match.OTHER_BODY
        is_other = "amount" in shown and any(shown.get(name) not in (None, asked[name]) for name in MONEY)
        other_money = money_of(payout) if is_other else None
        fields = {name: told[name] is not None for name in (*MONEY, *RECEIVER) if name in told}
        # an amount is told with both sums, and the currency with it
        silent = MONEY if "amount" in shown else ("amount",)
        others = [f"with another {name}" for name in told if told[name] is False and name not in silent]
        parts = []
        if other_money is not None:
            sum_asked = f"{row.currency} {row.amount:f}"
            parts.append(f"{payout.id} is of {other_money}, and {sum_asked} was asked for")
        if differences := [*others, *([] if other_proof is None else [other_proof])]:
            parts.append(f"the list shows {payout.id} {' and '.join(differences)}")
        is_own = payout.id == row.payout_id
        had_arrived = row.had_arrived if is_own else generation < row.generation and row.earlier_arrived
        return cls(
            payout,
            generation,
            match if is_possible else Match.FOREIGN,
            end_of(payout, had_arrived=had_arrived),
            is_of_batch=theirs is not None and theirs.batch == proof.batch,
            fields={**fields, _PROOF_FIELD: text is not None},
            other_money=other_money,
            difference="; ".join(parts) or None,
        )

    @property
    def is_asked(self) -> bool:
        """True if it has all that the row asks for."""
        return self.match is Match.EQUAL and bool(self.payout.id)

    @property
    def is_alive(self) -> bool:
        """True if it has arrived or may still arrive."""
        return self.end is not PayoutEnd.FAILED

    @property
    def contradicts(self) -> bool:
        """True if its status and timestamps contradict each other."""
        return self.end is PayoutEnd.UNCLEAR

    @property
    def weight(self) -> int:
        """The greater, the sooner it stands for its row."""
        payout = self.payout
        had_arrived = payout.status == PayoutStatus.REVERSED or payout.completed_at is not None
        return weight_of(self.end, had_arrived=had_arrived)


def weight_of(end: PayoutEnd, *, had_arrived: bool) -> int:
    """The weight of a payout that has ended so: the greater, the sooner it stands for its row."""
    if end is PayoutEnd.ARRIVED:
        return 3
    if end is not PayoutEnd.FAILED:
        return 2
    return 1 if had_arrived else 0


def _asked(row: LedgerRow, body: bytes) -> tuple[dict[str, Detail], Proof]:
    """What a row asks for with these bytes. The list is read by its references."""
    sent: dict[str, Any] = decode.parse(body)
    asked = asked_details(decode.requested_fields(body))
    asked.pop("reference", None)
    money: dict[str, Detail] = {"amount": row.amount, "currency": row.currency, "method": row.method}
    return {**asked, **money}, Proof.of(sent.get("metadata")) or _NO_PROOF


def _match_of(asked: Proof, text: object, shown: Proof | None) -> tuple[Match, str | None]:
    """Whose payout it is, by its proof, and how that differs.

    The proof decides, as metadata comes back unchanged: a payout without it was made by another program.
    Account details decide nothing, as a service may show them shortened.
    """
    if text is None:
        return Match.FOREIGN, f"without {_PROOF_FIELD}"
    if shown is None:
        return Match.UNCLEAR, f"with a {_PROOF_FIELD} that cannot be read"
    if not shown.is_of_same_payout(asked):
        return Match.FOREIGN, f"with the {_PROOF_FIELD} of another payout"
    if shown.body != asked.body:
        return Match.OTHER_BODY, f"with the {_PROOF_FIELD} of other content"
    return Match.EQUAL, None


# A payout as the ledger keeps it

_PLAIN: Final = ("id", "reference", "status", "amount", "method", "completed_at", "failed_at", "created_at")
_plain: Final = attrgetter(*_PLAIN)
_TYPED: Final = ("type", "country", *ACCOUNT)


def shown_text(payout: Payout) -> str:
    """Write a payout that the list shows: all that decides about it."""
    proof, shown = (payout.metadata or {}).get(PROOF_KEY), payout.instrument
    account = None if shown is None else {name: getattr(shown, name) for name in _TYPED}
    return Payout(
        **dict(zip(_PLAIN, _plain(payout), strict=True)),
        instrument=None if account is None else PayoutInstrument(**account),
        metadata={} if proof is None else {PROOF_KEY: proof},
    ).to_json()


def read_shown(text: str) -> Payout:
    """Read the payout that `shown_text` wrote."""
    return decode.structure(decode.parse_answer(text.encode()), Payout)


def own_payout(row: LedgerRow) -> Payout:
    """Make a row's own payout as the ledger knows it: as it was asked for, with the last word about it."""
    asked: Any = json.loads(row.body)
    account: Any = asked.get("instrument") or {}
    at = datetime.fromtimestamp(row.service_at, UTC) if row.service_at is not None else None
    return Payout(
        row.payout_id or "",
        reference=row.reference,
        status=row.service_status,
        amount=Amount(value=row.amount, currency=row.currency),
        method=Method(value=row.method),
        instrument=PayoutInstrument(**{name: account[name] for name in ACCOUNT if name in account}),
        metadata={PROOF_KEY: (asked.get("metadata") or {}).get(PROOF_KEY)},
        completed_at=at if row.payout_end is PayoutEnd.ARRIVED else None,
        failed_at=at if row.payout_end is PayoutEnd.FAILED else None,
    )
