"""The service's state as bytes, and back: keys, records, timers, idempotency stores, waiting webhooks.

Not kept: rules, the request log and the journal, which are a session's; counts of the rate limits, which a
restart empties. Profile and limits are those that the sandbox is started with.

A state is a head and parts. `Snapshot` copies the containers of one moment, and then gives part after part,
a millisecond or two of work each, while the service goes on in between: records are copied before they
change (`_images`), and all else that a state holds is never changed but replaced.

The bytes are pickles of our own making that are read with a reader of our own: it finds the classes and the
timers of `_MODULES` and the few others of `_OTHERS`, and runs nothing else, whoever wrote the file.
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
from ._limits import Meter
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

_MODULES: Final = (
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

_OTHERS: Final = frozenset(
    {
        ("decimal", "Decimal"),
        ("functools", "partial"),
        ("ipaddress", "IPv4Address"),
        ("ipaddress", "IPv4Network"),
        ("ipaddress", "IPv6Address"),
        ("ipaddress", "IPv6Network"),
        ("random", "Random"),
    }
)
_RECORDS: Final[Mapping[str, type]] = {kind.__name__: kind for kind in (Payout, Payment, Attempt, Session)}
"""What is referred to by its id, within other parts too."""
_VALUES: Final = (Answer, Gateway, Stored, Webhook, WebhookTry)
"""What there are many of; written as their class and arguments, three times as fast."""
_COURIER: Final = ("_all", "_over", "_queue")
"""Of the courier, what may be long."""

Column = list[Any]
Part = tuple[str, str, Sequence[Column]]
"""What kind of things, whose (a tenant's fingerprint), and the things; of a dict its keys and its values."""


class Unreadable(ValueError):
    """Bytes that are no state of this version's making."""


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
            *(("courier", name, [_listed(getattr(courier, name))]) for name in _COURIER),
        ]
        self._images = Images()

    def parts(self) -> Iterator[bytes]:
        """The head, and then the rest. Ask for each under the sandbox's lock."""
        yield self._head
        for kind, owner, columns in self._copies:
            for start in range(0, len(columns[0]), SIZE):
                some = [column[start : start + SIZE] for column in columns]
                if kind in _RECORDS:
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
    for name, kind in _RECORDS.items():
        table[kind] = _referring(name)
    for kind in _VALUES:
        table[kind] = _by_arguments(kind)
    return table


def _referring(name: str) -> Callable[[Any], tuple[Any, ...]]:
    return lambda record: (_the_record, (name, record.id))


def _by_arguments(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    fields = attrgetter(*(field.name for field in attrs.fields(kind)))
    return lambda value: (kind, fields(value))


def thaw(core: Core, parts: Iterable[bytes]) -> tuple[Courier, str, float]:
    """Bring a fresh core to a state; gives the courier, the first API key and the time. `Unreadable`."""
    try:
        return _Thawing(core).read(iter(parts))
    except Exception as damage:
        raise Unreadable("the state in the file cannot be read") from damage


class _Thawing:
    """Puts a state together. A record that is referred to before its part comes is blank until then."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._world = core.world
        self._courier = Courier()
        self._records: dict[tuple[str, str], Any] = {}
        self._blank: set[tuple[str, str]] = set()
        self._tenants: dict[str, Tenant] = {}

    def read(self, parts: Iterator[bytes]) -> tuple[Courier, str, float]:
        head = self._load(next(parts))
        world, courier = self._world, self._courier
        for key, fingerprint, status, allowlist in head["tenants"]:
            tenant = Tenant(fingerprint, status, allowlist, Meter(world.limits))
            self._tenants[fingerprint] = world.tenants[key] = tenant
        world.chance, world.has_receivers, world._serial = head["world"]
        courier._busy, courier._held, courier._accepted, courier._pushed = head["courier"]
        for part in parts:
            self._add(*self._load(part))
        if self._blank:
            raise Unreadable(f"{len(self._blank)} records are missing")
        self._core.served = head["served"]
        return courier, head["api_key"], head["now"]

    def _add(self, kind: str, owner: str, columns: Sequence[Column]) -> None:
        if kind == "timers":
            self._world._timers.extend(*columns)
        elif kind == "courier" and owner == "_all":
            self._courier._all.update((webhook.id, webhook) for webhook in columns[0])
        elif kind == "courier":
            getattr(self._courier, _COURIER[_COURIER.index(owner)]).extend(*columns)
        else:
            self._add_to(self._tenants[owner], kind, columns)

    def _add_to(self, tenant: Tenant, kind: str, columns: Sequence[Column]) -> None:
        pairs: dict[str, dict[Any, Any]] = {
            "replies": tenant.replies._stored,
            "turns": tenant.turns,
            "customers": tenant.customers,
        }
        if kind in pairs:
            pairs[kind].update(zip(*columns, strict=True))
            return
        records = [self._filled(kind, fields) for fields in columns[0]]
        by_id = {record.id: record for record in records}
        if kind == "Payout":
            tenant.payouts.extend(records)
            tenant.payouts_by_id.update(by_id)
            named = {record.reference: record for record in records if record.reference is not None}
            tenant.payouts_by_reference.update(named)
        elif kind == "Payment":
            tenant.payments.extend(records)
            tenant.payments_by_id.update(by_id)
        else:
            (tenant.attempts if kind == "Attempt" else tenant.sessions).update(by_id)

    def _filled(self, kind: str, fields: Sequence[Any]) -> Any:
        record = self._record(kind, fields[0])
        self._blank.remove((kind, fields[0]))
        for field, value in zip(attrs.fields(_RECORDS[kind]), fields, strict=True):
            object.__setattr__(record, field.name, value)
        return record

    def _record(self, kind: str, record_id: str) -> Any:
        name = kind, record_id
        if name not in self._records:
            self._records[name] = object.__new__(_RECORDS[kind])
            self._blank.add(name)
        return self._records[name]

    def _load(self, part: bytes) -> Any:
        special: dict[str, Callable[..., object]] = {
            "_the_world": lambda: self._world,
            "_the_tenant": self._tenants.__getitem__,
            "_the_record": self._record,
        }
        return _Reader(io.BytesIO(part), special).load()


def shape() -> str:
    """What a state of this version is made of, as a short text: it differs where the records differ."""
    digest = hashlib.sha256(FORM.encode())
    for name in _MODULES:
        for item in vars(import_module(f".{name}", __package__)).values():
            if isinstance(item, type) and attrs.has(item):
                digest.update(
                    f"{item.__name__}({','.join(field.name for field in attrs.fields(item))})".encode()
                )
    return digest.hexdigest()[:16]


class _Reader(pickle.Unpickler):
    """Reads nothing but our own records."""

    def __init__(self, file: io.BytesIO, special: Mapping[str, Callable[..., object]]) -> None:
        super().__init__(file)
        self._special = special

    def find_class(self, module: str, name: str) -> Any:
        package, _, inner = module.partition(f"{__package__}.")
        if not package and inner in _MODULES and "." not in name:
            found = super().find_class(module, name)
            if getattr(found, "__module__", None) == module:
                return found
        elif module == __name__ and name in self._special:
            return self._special[name]
        elif (module, name) in _OTHERS:
            return super().find_class(module, name)
        raise Unreadable(f"{module}.{name} is no part of a state")


def _the_world() -> None:
    """Stands for the world that is thawed into: its profile, limits and address are the process's."""


def _the_tenant() -> None:
    """Stands for a tenant, by its fingerprint."""


def _the_record() -> None:
    """Stands for a record, by its kind and id."""
