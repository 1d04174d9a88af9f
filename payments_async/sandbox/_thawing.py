"""A state's bytes back into a service.

They are pickles of our own making (`_snapshot`) that are read with a reader of our own: it finds the classes
and the timers of `MODULES` and the few others of `_OTHERS`, and runs nothing else, whoever wrote the file.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from ._core import Core
from ._limits import Meter
from ._snapshot import COURIER, MODULES, RECORDS, Column, shape
from ._tenants import Tenant
from .webhooks._courier import Courier

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


class Unreadable(ValueError):
    """Bytes that are no state of this version's making."""


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
            getattr(self._courier, COURIER[COURIER.index(owner)]).extend(*columns)
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
        for field, value in zip(attrs.fields(RECORDS[kind]), fields, strict=True):
            object.__setattr__(record, field.name, value)
        return record

    def _record(self, kind: str, record_id: str) -> Any:
        name = kind, record_id
        if name not in self._records:
            self._records[name] = object.__new__(RECORDS[kind])
            self._blank.add(name)
        return self._records[name]

    def _load(self, part: bytes) -> Any:
        special: dict[str, Callable[..., object]] = {
            "_the_world": lambda: self._world,
            "_the_tenant": self._tenants.__getitem__,
            "_the_record": self._record,
        }
        return _Reader(io.BytesIO(part), special).load()


class _Reader(pickle.Unpickler):
    """Reads nothing but our own records."""

    def __init__(self, file: io.BytesIO, special: Mapping[str, Callable[..., object]]) -> None:
        super().__init__(file)
        self._special = special

    def find_class(self, module: str, name: str) -> Any:
        package, _, inner = module.partition(f"{__package__}.")
        if not package and inner in MODULES and "." not in name:
            found = super().find_class(module, name)
            if getattr(found, "__module__", None) == module:
                return found
        elif module == shape.__module__ and name in self._special:
            return self._special[name]
        elif (module, name) in _OTHERS:
            return super().find_class(module, name)
        raise Unreadable(f"{module}.{name} is no part of a state")
