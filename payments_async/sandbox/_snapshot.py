"""The service's state as bytes: keys, records, timers, idempotency stores, waiting webhooks.

Not kept: rules, the request log and the journal, which are a session's; counts of the rate limits, which a
restart empties. Profile and limits are those that the sandbox is started with.

A state is a head and parts. `Snapshot` copies the containers of one moment, and then gives part after part,
a millisecond or two of work each, while the service goes on in between: records are copied before they
change (`_images`), and all else that a state holds is never changed but replaced.

The bytes are pickles of our own making; `_thawing` reads them.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any, Final

import attrs

from ._core import Core
from ._idempotency import Stored
from ._images import Images
from ._records import Attempt, Gateway, Payment, Payout, Session
from ._tenants import Tenant
from ._values import Answer
from ._world import World
from .webhooks import Webhook, WebhookTry
from .webhooks._courier import Courier

FORM: Final = "parts"
"""What the bytes are like; another word for another form."""

SIZE: Final = 100
"""Records, answers, timers or webhooks in a part: 1 to 2 ms of work."""

MODULES: Final = (
    "_clock",
    "_idempotency",
    "_payments",
    "_payouts",
    "_records",
    "_scenarios",
    "_tenants",
    "_values",
    "webhooks._courier",
    "webhooks._webhook",
)
"""Where records and timers live, below this package."""

RECORDS: Final[Mapping[str, type]] = {kind.__name__: kind for kind in (Payout, Payment, Attempt, Session)}
"""What is referred to by its id, within other parts too."""
_VALUES: Final = (Answer, Gateway, Stored, Webhook, WebhookTry)
"""What there are many of; written as their class and arguments, three times as fast."""
COURIER: Final = ("_all", "_over", "_queue")
"""Of the courier, what may be long."""

Column = list[Any]
Part = tuple[str, str, Sequence[Column]]
"""What kind of things, whose (a tenant's fingerprint), and the things; of a dict its keys and its values."""


class Snapshot:
    """The state of one moment. Made under the sandbox's lock; `close` it in the end."""

    def __init__(self, core: Core, courier: Courier, api_key: str, now: float) -> None:
        """`now` is the sandbox's time."""
        world = core.world
        self._table = _dispatch_table()
        self._head = self._dump(
            {
                "api_key": api_key,
                "now": now,
                "served": core.served,
                "world": (world.chance, world.has_receivers, world._serial),
                "tenants": [
                    (key, tenant.fingerprint, tenant.status, tenant.allowlist)
                    for key, tenant in world.tenants.items()
                ],
                "courier": (courier._busy, courier._held, courier._accepted, courier._pushed),
            }
        )
        self._copies: list[Part] = [
            *(part for tenant in world.tenants.values() for part in _of_tenant(tenant)),
            ("timers", "", [list(world._timers)]),
            *(("courier", name, [_listed(getattr(courier, name))]) for name in COURIER),
        ]
        self._images = Images()

    def parts(self) -> Iterator[bytes]:
        """The head, and then the rest. Ask for each under the sandbox's lock."""
        yield self._head
        for kind, owner, columns in self._copies:
            for start in range(0, len(columns[0]), SIZE):
                some = [column[start : start + SIZE] for column in columns]
                if kind in RECORDS:
                    some = [[self._images.take(record) for record in some[0]]]
                yield self._dump((kind, owner, some))

    def close(self) -> None:
        """Records need not be copied for this one any more."""
        self._images.close()

    def _dump(self, value: object) -> bytes:
        buffer = io.BytesIO()
        pickler = pickle.Pickler(buffer, protocol=5)
        pickler.dispatch_table = self._table
        pickler.dump(value)
        return buffer.getvalue()


def _listed(container: Iterable[Any]) -> Column:
    return list(container.values() if isinstance(container, dict) else container)


def _of_tenant(tenant: Tenant) -> Iterator[Part]:
    lists: tuple[tuple[str, Iterable[Any]], ...] = (
        ("Payout", tenant.payouts),
        ("Payment", tenant.payments),
        ("Attempt", tenant.attempts.values()),
        ("Session", tenant.sessions.values()),
    )
    dicts: tuple[tuple[str, dict[Any, Any]], ...] = (
        ("replies", tenant.replies._stored),
        ("turns", tenant.turns),
        ("customers", tenant.customers),
    )
    yield from ((kind, tenant.fingerprint, [list(things)]) for kind, things in lists)
    yield from ((kind, tenant.fingerprint, [list(each), list(each.values())]) for kind, each in dicts)


def _dispatch_table() -> dict[type, Callable[[Any], tuple[Any, ...]]]:
    table: dict[type, Callable[[Any], tuple[Any, ...]]] = {
        World: lambda _: (_the_world, ()),
        Tenant: lambda tenant: (_the_tenant, (tenant.fingerprint,)),
    }
    for name, kind in RECORDS.items():
        table[kind] = _referring(name)
    for kind in _VALUES:
        table[kind] = _by_arguments(kind)
    return table


def _referring(name: str) -> Callable[[Any], tuple[Any, ...]]:
    return lambda record: (_the_record, (name, record.id))


def _by_arguments(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    fields = attrgetter(*(field.name for field in attrs.fields(kind)))
    return lambda value: (kind, fields(value))


def shape() -> str:
    """What a state of this version is made of, as a short text: it differs where the records differ."""
    digest = hashlib.sha256(FORM.encode())
    for name in MODULES:
        for item in vars(import_module(f".{name}", __package__)).values():
            if isinstance(item, type) and attrs.has(item):
                digest.update(
                    f"{item.__name__}({','.join(field.name for field in attrs.fields(item))})".encode()
                )
    return digest.hexdigest()[:16]


def _the_world() -> None:
    """Stands for the world that is thawed into: its profile, limits and address are the process's."""


def _the_tenant() -> None:
    """Stands for a tenant, by its fingerprint."""


def _the_record() -> None:
    """Stands for a record, by its kind and id."""
