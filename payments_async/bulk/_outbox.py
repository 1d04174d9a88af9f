"""What an outbox inserts and looks up, in statements of SQLAlchemy. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Literal, Unpack

import attrs
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from ..arguments import PayoutFields
from ..errors import InvalidRequest
from ..params import PayoutRequest
from ._ledger.ledger import ROW_COLUMNS
from ._ledger.tables import batches, rows
from ._ledger.values import imported, row_of
from ._loading.new_rows import RowIdentifiers, row_faults
from ._options import composed, require_batch_id
from ._protocol.identifiers import PROOF_KEY, parted
from ._protocol.outcomes import Outcome
from .errors import BulkError, OutboxConflict
from .sources import Row
from .sources._cells import checked

_ENVIRONMENTS: Final = ("live", "sandbox")
_FLAWLESS: Final[Mapping[str, Any]] = {"amount": Decimal(1), "reference": None, "metadata": None}
"""What is looked at instead of a field that has a fault already."""


@attrs.frozen
class OutboxRow:
    """A payout of an outbox, as the ledger knows it."""

    reference: str
    state: Outcome
    payout_id: str | None = None
    status: str | None = None
    """The payout's status, as the service showed it last."""
    reason: str | None = None
    """Why it was refused or has failed, or what is in doubt; no account data."""


class OutboxStatements:
    """An outbox: what is inserted and looked up, and no I/O."""

    def __init__(self, name: str, *, environment: Literal["live", "sandbox"]) -> None:
        """Make an outbox.

        Args:
            name: the batch's name, by which `PayoutBatch.open` and `payments payouts run --batch-id` pay it.
            environment: of the keys that may pay it: `live` or `sandbox`.

        Raises BulkError for an invalid name or environment.
        """
        require_batch_id(name)
        if environment not in _ENVIRONMENTS:
            raise BulkError("environment must be 'live' or 'sandbox'")
        self.name: str = composed(name) or ""
        self.environment: str = environment

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, environment={self.environment!r})"

    def statement(self, **payout: Unpack[PayoutFields]) -> sa.Insert:
        """Make the statement that adds a payout, for a connection that is not SQLAlchemy's.

        It inserts no row where the reference stands already, or the outbox's name is that of a batch of a
        file; `add` tells which. Arguments as for `add`. Raises InvalidRequest with every fault.
        """
        asked = PayoutRequest(**payout)
        request = attrs.evolve(asked, reference=composed(asked.reference))
        columns = self._columns(request)
        values = (sa.bindparam(name, value, rows.c[name].type) for name, value in columns.items())
        of_a_file = sa.exists().where(batches.c.batch_id == self.name, batches.c.is_outbox.is_(False))
        new = postgresql.insert(rows).from_select([*columns], sa.select(*values).where(~of_a_file))
        return new.on_conflict_do_nothing().inline()

    def _columns(self, request: PayoutRequest) -> dict[str, Any]:
        request, faults = checked(request)
        if not request.reference:
            faults["reference"] = "must be given: it is what the payout is found again by"
        identifiers = RowIdentifiers(self.environment, self.name)
        known = {name.partition(".")[0] for name in faults} & _FLAWLESS.keys()
        rest = attrs.evolve(request, **{name: _FLAWLESS[name] for name in known})
        row = Row(0, None, str(rest.reference), rest.reference, rest)
        faults |= row_faults(row, identifiers)
        if faults:
            raise InvalidRequest({name: [text] for name, text in faults.items()}, operation="outbox.add")
        return imported(identifiers.new_row(row), self.name, self.environment)

    def lookup(self, reference: str) -> sa.Select[Any]:
        """Make the statement that finds a payout by its reference."""
        return sa.select(*ROW_COLUMNS).where(
            rows.c.batch_id == self.name, rows.c.stem == parted(composed(reference) or "")[0]
        )


def require_same(statement: sa.Insert, found: Mapping[Any, Any] | None) -> OutboxRow:
    """The row that stands under a reference, if it is the one that was to be added.

    Raises OutboxConflict, and BulkError where nothing could be added.
    """
    asked = statement.compile().params
    if found is None or found["number"] is not None:
        raise BulkError(f"{asked['batch_id']} is a batch of a file: give the outbox another name")
    if fields := [*_differing(asked, found)]:
        raise OutboxConflict(asked["stem"], fields)
    return outbox_row(found)


def _differing(asked: Mapping[Any, Any], found: Mapping[Any, Any]) -> Iterator[str]:
    if asked["environment"] != found["environment"]:
        yield "environment"
    ours, theirs = _content(asked), _content(found)
    yield from (name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name))


def _content(row: Mapping[Any, Any]) -> dict[str, Any]:
    """What is asked for, without the proof, which is made of all of it."""
    body: dict[str, Any] = json.loads(row["body"], parse_float=Decimal)
    body["metadata"] = {key: value for key, value in body["metadata"].items() if key != PROOF_KEY}
    return body


def outbox_row(found: Mapping[Any, Any]) -> OutboxRow:
    """A row of the table as a program sees it."""
    row = row_of(found)
    return OutboxRow(
        row.reference, row.outcome, row.payout_id, row.service_status, row.failure_message or row.failure_code
    )
