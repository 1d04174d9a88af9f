"""A row as both databases store it: its columns, their values, its digest, and the check of what is read.

The columns are the fields of `LedgerRow` in their order, with those of `RowKnowledge` in its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from operator import attrgetter
from typing import Any, Final, NoReturn

import attrs

from ...models.statuses import PayoutEnd
from ..protocol.identifiers import body_hash
from ..protocol.records import LedgerRow, NewRow
from ..protocol.row_state import RowKnowledge, RowState, rank
from .hash_chain import as_json

CONTENT: Final = tuple(field.name for field in attrs.fields(NewRow))
"""The columns of what is sent."""
_KNOWN: Final = tuple(field.name for field in attrs.fields(RowKnowledge))
_FACTS: Final = (field.name for field in attrs.fields(LedgerRow) if field.name not in (*CONTENT, "known"))
STATE: Final = (*_KNOWN, *_FACTS)
"""The columns that change while a row is paid."""
COLUMNS: Final = (*CONTENT, *STATE)
_PATHS: Final = {
    **{name: f"known.{name}" for name in _KNOWN},
    "state": "known.state.value",
    "payout_end": "payout_end.value",
    "amount": "amount_text",
}
_MOST_FINDINGS: Final = 100


class UnreadableRecord(Exception):
    """A row, or another record, holds values that this package never writes."""


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Raise UnreadableRecord in place of the errors that values of a wrong type or format cause."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
        raise_alone(UnreadableRecord(f"{what} cannot be read"))


def raise_alone(error: Exception) -> NoReturn:
    """Raise an error without the one that is being handled, which may hold what is stored."""
    try:
        raise error
    except Exception:
        error.__context__ = None
        raise


def values_of(columns: Iterable[str]) -> Callable[[NewRow], tuple[Any, ...]]:
    """Make the function that gives a row's values of these columns, as they are stored."""
    return attrgetter(*(_PATHS.get(name, name) for name in columns))


_content: Final = values_of(name for name in CONTENT if name != "body")
_state: Final = values_of(STATE)
_FRESH: Final = _state(LedgerRow(0, None, "", "", Decimal(0), "", "", b"", "", "", changed_in=1))
_STATES: Final = {state.value: state for state in RowState}
_ENDS: Final = {end.value: end for end in PayoutEnd}
_FLAGS: Final = {0: False, 1: True}


def row_of(values: Iterable[Any]) -> LedgerRow:
    """Make a row of the values of `COLUMNS`. Those that no row has raise one of the errors of `readable`."""
    (
        number,
        line,
        row_key,
        reference,
        amount,
        currency,
        method,
        body,
        sha256,
        idempotency_key,
        metadata,
        state,
        generation,
        revision,
        epoch,
        intents,
        cleared,
        payout_id,
        service_status,
        payout_end,
        had_arrived,
        earlier_arrived,
        payout_money,
        failure_code,
        failure_message,
        first_intent,
        key_intent,
        last_intent,
        changed_in,
    ) = values
    return LedgerRow(
        number=number,
        line=line,
        row_key=row_key,
        reference=reference,
        amount=Decimal(amount),
        currency=currency,
        method=method,
        body=blob(body),
        body_hash=sha256,
        idempotency_key=idempotency_key,
        metadata=metadata,
        known=RowKnowledge(
            state=_STATES[state],
            generation=int(generation),
            revision=int(revision),
            epoch=int(epoch),
            intents=int(intents),
            cleared=int(cleared),
            payout_id=payout_id,
        ),
        service_status=service_status,
        payout_end=_ENDS[payout_end],
        had_arrived=_FLAGS[had_arrived],
        earlier_arrived=_FLAGS[earlier_arrived],
        payout_money=payout_money,
        failure_code=failure_code,
        failure_message=failure_message,
        first_intent=first_intent,
        key_intent=key_intent,
        last_intent=last_intent,
        changed_in=changed_in,
    )


def blob(value: object) -> bytes:
    """Return a value that is bytes. Raises TypeError for any other."""
    if not isinstance(value, bytes):  # damage can make it a number, of which bytes() makes zeros
        raise TypeError("not a blob")
    return value


def row_digest(row: LedgerRow) -> bytes:
    """SHA-256 over everything the ledger keeps of a row; its body by its own hash."""
    return _digest((*_content(row), *_state(row)))


def fresh_digest(new: NewRow) -> bytes:
    """`row_digest` of a row that is just imported in entry 1, without making the row."""
    return _digest((*_content(new), *_FRESH))


def _digest(values: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(as_json(values).encode()).digest()


def is_as_written(row: LedgerRow, stored_rank: int, digest: bytes) -> bool:
    """True if the digest and the rank that are stored with a row are its own."""
    return row_digest(row) == digest and rank(row.known) == stored_rank


def row_findings(row: LedgerRow, stored_rank: int, digest: bytes) -> list[str]:
    """What the check of a ledger finds wrong with a row."""
    if not is_as_written(row, stored_rank, digest):
        return [f"row {row.number} is not as it was written"]
    return [] if body_hash(row.body) == row.body_hash else [f"the body of row {row.number} is another"]


class Findings(list[str]):
    """Collects the first hundred findings of a check; more would be of no use."""

    def add(self, *found: str) -> None:
        """Add some, as far as there is room."""
        self.extend(found[: _MOST_FINDINGS - len(self)])
