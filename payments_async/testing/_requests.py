"""What a program asked the service for: the creations in a sandbox's journal, as values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import attrs

from payments_async.sandbox._journal import JournalEntry, LoggedExchange
from payments_async.sandbox.common.json import decode_object
from payments_async.sandbox.common.masking import mask
from payments_async.sandbox.common.values import RequestRefused

_SHORT = 40
"""Characters of a name that are told."""

CREATIONS = frozenset({"checkouts.create", "payment_intents.create", "payouts.create"})


@attrs.frozen
class CreateRequest:
    """One request to create something, and what became of it."""

    seq: int
    """Its place in the journal: a later request has a higher one."""
    request_id: str
    operation: str
    tenant: str
    """Fingerprint of the API key."""
    raw: bytes = attrs.field(repr=False)
    body: Mapping[str, object] = attrs.field(repr=False)
    """The JSON of the request; empty when it was not an object."""
    key: str | None
    """Its idempotency key."""
    status: int
    replayed: bool
    disturbed: bool
    """Whether a fault stood between the answer and the caller."""

    @property
    def name(self) -> tuple[str, str | None]:
        """What the service tells requests apart by."""
        return self.tenant, self.key

    @property
    def made(self) -> bool:
        """Whether this very request created a record, whatever its caller was told."""
        return 200 <= self.status < 300 and not self.replayed

    @property
    def told(self) -> bool:
        """Whether its caller was told that the record is there."""
        return 200 <= self.status < 300 and not self.disturbed

    def text(self, name: str) -> str | None:
        """A member that is text, else None."""
        value = self.body.get(name)
        return value if isinstance(value, str) else None


def asks_in(entries: Iterable[JournalEntry], tenants: Collection[str]) -> list[CreateRequest]:
    """The creations that `tenants` asked for, oldest first. One whose bytes were let go is not among them."""
    return list(_asks(entries, tenants))


def _asks(entries: Iterable[JournalEntry], tenants: Collection[str]) -> Iterator[CreateRequest]:
    for entry in entries:
        item = entry.item
        if not isinstance(item, LoggedExchange) or item.body is None:
            continue
        log = item.log
        if log.operation in CREATIONS and log.key is not None and log.key in tenants:
            yield CreateRequest(
                entry.seq,
                log.request_id,
                log.operation,
                log.key,
                item.body,
                _object(item.body),
                log.idempotency_key,
                log.status,
                log.replayed,
                log.fault is not None,
            )


def _object(body: bytes) -> Mapping[str, object]:
    try:
        return decode_object(body)
    except RequestRefused:
        return {}


def canonical(value: object) -> object:
    """A JSON value as something to compare and hash; null is as good as absent."""
    if isinstance(value, Mapping):
        return frozenset((name, canonical(item)) for name, item in value.items() if item is not None)
    return tuple(canonical(item) for item in value) if isinstance(value, list) else value


def shown(name: str) -> str:
    """A reference, or an order's id, for whoever reads a report: account data behind dots, short, quoted."""
    return repr(str(mask(name))[:_SHORT])
