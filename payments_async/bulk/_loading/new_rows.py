"""Converts rows of an input to rows of a ledger: references, bodies and keys, each made once. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..._attrs import evolver
from ..._codec import encode
from ...params import PayoutRequest
from .._ledger.values import units_of
from .._protocol.identifiers import PROOF_KEY, Identity, body_hash, reference_problem
from .._protocol.records import LedgerRow, NewRow
from ..errors import RowFault
from ..sources import Row
from ..sources._columns import compared
from ..sources._requests import fault_of

if TYPE_CHECKING:
    from ..._guard.key_guard import KeyGuard

_evolved: Final = evolver(PayoutRequest)
_PAIRS: Final = 9
"""Metadata pairs a row may have beside the batch's own (Endpoints, POST /payouts: ten in all)."""
_GUARDED: Final = {
    **dict.fromkeys(("most", "sums", "decimals"), "amount"),
    "currency": "currency",
    "methods": "method",
    "countries": "instrument.country",
}
"""{rule of a guard: the column at fault}."""


@attrs.frozen
class RowIdentifiers:
    """The parts from which the identifiers of a batch's rows are made."""

    environment: str
    batch_id: str
    doubts: bool = True
    """True if rows are accepted that have a value which is allowed and probably a slip."""
    guard: KeyGuard | None = None
    """Refuses rows by its rules. Its sums are for the run."""

    def new_row(self, row: Row) -> NewRow:
        """Make everything that is sent for a row."""
        identity = Identity(self.environment, self.batch_id, row.row_key, given=row.reference)
        return self._made(row, identity, identity.reference())

    def reference_of(self, fault: RowFault) -> str | None:
        """The reference that a row with faults has in the batch; None where its key cannot be read."""
        key = compared(fault.row_key or "")
        return Identity(self.environment, self.batch_id, key).reference() if key else None

    def correction(self, row: Row, stored: LedgerRow) -> NewRow:
        """Replace the content of a ledger's row by that of `row`. The reference stays the same."""
        identity = Identity(self.environment, self.batch_id, stored.row_key)
        made = self._made(row, identity, stored.stem)
        return attrs.evolve(made, number=stored.number, line=row.line, row_key=stored.row_key)

    def keeps_reference(self, row: Row, stored: LedgerRow) -> bool:
        """True if a row asks for the reference that it has in the ledger."""
        wanted = Identity(self.environment, self.batch_id, stored.row_key, given=row.reference)
        return stored.stem == wanted.reference()

    def _made(self, row: Row, identity: Identity, reference: str) -> NewRow:
        request = _evolved(row.request, reference=reference)
        proof = identity.proof(body_hash(_body(request)))
        pairs = {**(request.metadata or {}), PROOF_KEY: proof.text}
        return NewRow(
            number=row.number,
            line=row.line,
            row_key=row.row_key,
            stem=reference,
            amount=row.amount,
            currency=request.currency,
            method=request.method,
            body=_body(_evolved(request, metadata=pairs)),
            is_doubtful=bool(row.warnings),
        )


def _body(request: PayoutRequest) -> bytes:
    return encode.checked_body(request) or encode.encode(request)  # the same bytes; the first is faster


def faults_of(row: Row, identifiers: RowIdentifiers) -> list[RowFault]:
    """Find what no batch can accept of a row that is otherwise valid, and what the guard refuses."""
    found = row_faults(row, identifiers)
    if identifiers.guard is not None:
        from ..._guard.rules import GuardRefusal  # most programs have no guard

        refusal = identifiers.guard.judged(encode.encode(row.request))
        if isinstance(refusal, GuardRefusal):
            found.setdefault(_GUARDED[refusal.rule], f"the guard: {refusal.text}")
    return [fault_of(row, column, reason) for column, reason in found.items()]


def row_faults(row: Row, identifiers: RowIdentifiers) -> dict[str, str]:
    """Find what no batch can accept of a row that is otherwise valid, by field."""
    found = {}
    for warning in () if identifiers.doubts else row.warnings:
        column, _, reason = warning.partition(" ")
        found[column] = reason
    if row.reference is not None and (problem := reference_problem(row.reference)):
        found["reference"] = problem
    pairs = row.request.metadata or {}
    if PROOF_KEY in pairs:
        found["metadata"] = f"has the pair {PROOF_KEY}, which is the batch's own"
    elif len(pairs) > _PAIRS:
        found["metadata"] = f"has {len(pairs)} pairs; one of ten is the batch's own, so {_PAIRS} are allowed"
    try:
        units_of(row.amount)
    except ValueError as error:
        found["amount"] = str(error)
    return found
