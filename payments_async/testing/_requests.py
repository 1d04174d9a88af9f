"""The requests to create something in a sandbox's journal, as values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

from ..sandbox._common.json import decode_object
from ..sandbox._common.masking import mask
from ..sandbox._common.values import RequestRefused
from ..sandbox._journal import JournalEntry, LoggedExchange

_SHORT = 40
"""The most characters of a name in a report."""

CREATIONS = frozenset({"checkouts.create", "payment_intents.create", "payouts.create"})


@attrs.frozen
class CreateRequest:
    """One request to create a record, and its result."""

    seq: int
    """Number in the journal: a later request has a higher one."""
    request_id: str
    operation: str
    tenant: str
    """Fingerprint of the API key."""
    raw: bytes = attrs.field(repr=False)
    body: Mapping[str, object] = attrs.field(repr=False)
    """The JSON of the request; empty when it was not an object."""
    key: str | None
    """Idempotency key of the request."""
    status: int
    replayed: bool
    disturbed: bool
    """True if a fault kept the answer from the caller."""

    @property
    def name(self) -> tuple[str, str | None]:
        """The identity of the request at the service."""
        return self.tenant, self.key

    @property
    def made(self) -> bool:
        """True if the request created a record, even when the caller did not get the answer."""
        return 200 <= self.status < 300 and not self.replayed

    @property
    def answered(self) -> bool:
        """True if the caller got the answer that the record exists."""
        return 200 <= self.status < 300 and not self.disturbed

    def text(self, name: str) -> str | None:
        """A field of the body that is text, else None."""
        value = self.body.get(name)
        return value if isinstance(value, str) else None


def create_requests(entries: Iterable[JournalEntry], tenants: Collection[str]) -> list[CreateRequest]:
    """The requests to create something that `tenants` made, oldest first. Dropped bodies are left out."""
    return [found for entry in entries if (found := _create_request(entry, tenants)) is not None]


def payout_reads(entries: Iterable[JournalEntry], tenants: Collection[str]) -> list[int]:
    """The numbers in the journal of the reads of the list of payouts that `tenants` made and got."""
    return [
        entry.seq
        for entry in entries
        if isinstance(entry.item, LoggedExchange)
        and entry.item.log.operation == "payouts.list"
        and entry.item.log.key in tenants
        and entry.item.log.status == 200
    ]


def _create_request(entry: JournalEntry, tenants: Collection[str]) -> CreateRequest | None:
    item = entry.item
    if not isinstance(item, LoggedExchange) or item.body is None:
        return None
    log = item.log
    if log.operation not in CREATIONS or log.key is None or log.key not in tenants:
        return None
    return CreateRequest(
        seq=entry.seq,
        request_id=log.request_id,
        operation=log.operation,
        tenant=log.key,
        raw=item.body,
        body=_object(item.body),
        key=log.idempotency_key,
        status=log.status,
        replayed=log.replayed,
        disturbed=log.fault is not None,
    )


def _object(body: bytes) -> Mapping[str, object]:
    try:
        return decode_object(body)
    except RequestRefused:
        return {}


def shown(name: str) -> str:
    """Format a reference or an order's id for a report: short, quoted, account data masked."""
    return repr(str(mask(name))[:_SHORT])
