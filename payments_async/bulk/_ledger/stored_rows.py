"""A row as a ledger stores it: its columns, their values, its digest, and the check of what is read.

All follows from the fields of `LedgerRow`; in place of its field `known` there are those of `RowKnowledge`.
What is sent is stored once for each version of it; what changes while the row is paid is stored beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple, NoReturn, get_type_hints

import attrs
import msgspec

from ..._attrs import maker
from .._protocol.identifiers import body_hash, keyed_hash
from .._protocol.records import LedgerRow, NewRow
from .._protocol.row_state import RowKnowledge, RowState, knowledge, rank
from ..ledger_errors import LedgerDamaged

CONTENT: Final = tuple(field.name for field in attrs.fields(NewRow))
"""The columns of what is sent."""
_KNOWN: Final = tuple(field.name for field in attrs.fields(RowKnowledge))
_FACTS: Final = tuple(
    field.name for field in attrs.fields(LedgerRow) if field.name not in (*CONTENT, "known")
)
STATE: Final = (*_KNOWN, *_FACTS)
"""The columns that change while a row is paid."""
COLUMNS: Final = (*CONTENT, *STATE)
_PATHS: Final = {
    **{name: f"known.{name}" for name in _KNOWN},
    "state": "known.state._value_",  # `value` is a descriptor, which costs more than all the rest
    "payout_end": "payout_end._value_",
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


def blob(value: object) -> bytes:
    """Return a value that is bytes. Raises TypeError for any other."""
    if not isinstance(value, bytes):  # damage can make it a number, of which bytes() makes zeros
        raise TypeError("not a blob")
    return value


OF_ACCOUNT: Final = ("body", "body_hash", "idempotency_key")
"""The columns of what is sent from which an account can be told, or guessed."""
_open: Final = values_of(name for name in CONTENT if name not in OF_ACCOUNT)
_sent: Final = values_of(name for name in CONTENT if name != "number")
_state: Final = values_of(STATE)
_FRESH: Final = _state(LedgerRow(0, None, "", "", Decimal(0), "", "", b"", "", "", changed_in=1))
_FRESH_RANK: Final = rank(RowKnowledge())
_as_json: Final = msgspec.json.Encoder().encode


def row_digest(row: LedgerRow, key: bytes) -> bytes:
    """SHA-256 over everything the ledger keeps of a row; its account by a keyed hash."""
    return _digest(_hashed(row, key), _state(row))


def fresh_digest(new: NewRow, key: bytes) -> bytes:
    """`row_digest` of a row that is just imported in entry 1, without making the row."""
    return _digest(_hashed(new, key), _FRESH)


def _hashed(row: NewRow, key: bytes) -> bytes:
    """What a digest covers of what is sent: the beginning of a JSON array."""
    # so a row can be checked where its account is not known, and its digest does not let that be guessed
    account = keyed_hash(key, row.body_hash, row.idempotency_key)
    return _as_json((*_open(row), account))[:-1]


def _digest(hashed: bytes, state: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(b"%b,%b" % (hashed, _as_json(state)[1:])).digest()


class StoredRow(NamedTuple):
    """A row as the tables have it."""

    row: LedgerRow
    version: int
    """Which content it has; each correction and each generation brings another."""
    own_key: str | None
    """Its idempotency key, when it is no longer the one that came with its content."""
    rank: int
    digest: bytes
    hashed: bytes = b""
    """What the digest covers of its content, once that is known."""

    def findings(self, digest: bytes, *, has_body: bool = True) -> list[str]:
        """What the check of a ledger finds wrong with it. `digest`: that of what was read.

        `has_body`: False in an archive without accounts.
        """
        row = self.row
        if digest != self.digest or rank(row.known) != self.rank:
            return [f"row {row.number} is not as it was written"]
        is_sound = not has_body or body_hash(row.body) == row.body_hash
        return [] if is_sound else [f"the body of row {row.number} is another"]


_row: Final = maker(LedgerRow)
_HINTS: Final = {**get_type_hints(RowKnowledge), **get_type_hints(LedgerRow), "body": object}
_OF_STORED: Final = [("version", int), ("own_key", str | None), ("rank", int), ("digest", object)]
_Read: Final = msgspec.defstruct(
    "_Read",
    [*((name, _HINTS[name]) for name in COLUMNS), *_OF_STORED],
    array_like=True,
    forbid_unknown_fields=True,
)
"""The values of a stored row, of the types of the fields: but bytes, for which a text may be taken."""


def stored_row(values: Iterable[Any]) -> StoredRow:
    """Make a row of what a statement of `statements` has read.

    Values that no row has raise one of the errors of `readable`.
    """
    read = iter(msgspec.structs.astuple(msgspec.convert(values, _Read, strict=False)))  # SQLite has no bool
    content, known, facts = (islice(read, len(names)) for names in (CONTENT, _KNOWN, _FACTS))
    stored = StoredRow(_row(*(*content, knowledge(*known), *facts)), *read)
    for value in (stored.row.body, stored.digest):
        blob(value)
    return stored


def stored_rows(found: Iterable[Iterable[Any]]) -> list[StoredRow]:
    """Make rows of what a statement has read. Raises UnreadableRecord."""
    with readable("some row"):
        return [stored_row(values) for values in found]


@contextmanager
def undamaged(path: str) -> Iterator[None]:
    """Raise LedgerDamaged in place of UnreadableRecord."""
    try:
        yield
    except UnreadableRecord as error:
        raise_alone(LedgerDamaged(path, [str(error)]))


# What is written

Change = tuple[StoredRow, LedgerRow]
"""A row before and after a change."""


def changed(change: Change, key: bytes) -> tuple[StoredRow, tuple[Any, ...]]:
    """Make a changed row as it is stored, and the values of its state, its number last.

    `key`: of the batch's keyed hashes. A row that is NEW was corrected; it, or one of another generation, has
    other content.
    """
    (before, version, own_key, _, _, hashed), after = change
    if after.known.state is RowState.NEW or after.known.generation != before.known.generation:
        version, own_key, hashed = version + 1, None, b""
    elif after.idempotency_key != before.idempotency_key:
        own_key, hashed = after.idempotency_key, b""
    state, own_rank = _state(after), rank(after.known)
    hashed = hashed or _hashed(after, key)
    digest = _digest(hashed, state)
    values = (*state, version, own_key, own_rank, digest, after.number)
    return StoredRow(after, version, own_key, own_rank, digest, hashed), values


def fresh_state(number: int, digest: bytes) -> tuple[Any, ...]:
    """The values of the state of a row that is just imported, in the order of the table's columns."""
    return *_FRESH, 0, None, _FRESH_RANK, digest, number


def content(
    new: NewRow, version: int, key: str | bytes | None, reference: str | bytes | None
) -> tuple[Any, ...]:
    """The values of what is sent; `key` and `reference`: what these are unique by, where they are new."""
    return new.number, version, *_sent(new), key, reference


class CheckFindings(list[str]):
    """Collects the first hundred findings of a check; more would be of no use."""

    def add(self, *found: str) -> None:
        """Add some, as far as there is room."""
        self.extend(found[: _MOST_FINDINGS - len(self)])
