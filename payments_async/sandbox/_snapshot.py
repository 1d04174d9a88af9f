"""The service's state as bytes, and back: keys, records, timers, idempotency stores, waiting webhooks.

Not kept: rules, the request log and the journal, which are a session's; counts of the rate limits, which a
restart empties. Profile and limits are those that the sandbox is started with.

The bytes are a pickle of our own records that is read with a reader of our own: it finds the classes and the
timers of `_MODULES` and the few others of `_OTHERS`, and runs nothing else, whoever wrote the file.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import attrs

from ._core import Core
from ._limits import Meter
from ._world import World
from .webhooks._courier import Courier

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
        ("collections", "deque"),
        ("decimal", "Decimal"),
        ("functools", "partial"),
        ("ipaddress", "IPv4Address"),
        ("ipaddress", "IPv4Network"),
        ("ipaddress", "IPv6Address"),
        ("ipaddress", "IPv6Network"),
        ("random", "Random"),
    }
)
_WORLD: Final = ("tenants", "chance", "has_receivers", "_timers", "_serial")
"""What is kept of `World`; the rest belongs to the process."""


class Unreadable(ValueError):
    """Bytes that are no state of this version's making."""


def freeze(core: Core, courier: Courier, api_key: str, now: float) -> bytes:
    """The state as bytes; `now` is the sandbox's time."""
    kept = {name: getattr(core.world, name) for name in _WORLD}
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, protocol=5)
    pickler.dispatch_table = {World: lambda _: (_the_world, ()), Meter: lambda _: (_a_meter, ())}
    pickler.dump({"world": kept, "courier": courier, "api_key": api_key, "now": now, "served": core.served})
    return buffer.getvalue()


def thaw(core: Core, body: bytes) -> tuple[Courier, str, float]:
    """Bring a fresh core to a state; gives the courier, the first API key and the time. `Unreadable`."""
    world = core.world
    special = {"_the_world": lambda: world, "_a_meter": lambda: Meter(world.limits)}
    try:
        state = _Reader(io.BytesIO(body), special).load()
        for name in _WORLD:
            setattr(world, name, state["world"][name])
        core.served = state["served"]
        return state["courier"], state["api_key"], state["now"]
    except Exception as damage:
        raise Unreadable("the state in the file cannot be read") from damage


def shape() -> str:
    """What a state of this version is made of, as a short text: it differs where the records differ."""
    digest = hashlib.sha256()
    for name in _MODULES:
        for item in vars(import_module(f".{name}", __package__)).values():
            if isinstance(item, type) and attrs.has(item):
                digest.update(
                    f"{item.__name__}({','.join(field.name for field in attrs.fields(item))})".encode()
                )
    return digest.hexdigest()[:16]


class _Reader(pickle.Unpickler):
    """Reads nothing but our own records."""

    def __init__(self, file: io.BytesIO, special: dict[str, Callable[[], object]]) -> None:
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


def _a_meter() -> None:
    """Stands for a meter, which begins afresh."""
