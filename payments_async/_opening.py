"""How a client is put together from its settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ._http.types import Transport
from ._rate_limit.registry import PROCESS, Limiters
from ._request.idempotency import KeyMaker, UsedKeys
from ._request.key_state import Keys
from ._request.pipeline import Pipeline
from ._request.settings import Settings
from ._runtime import SESSION, SYSTEM, Runtime

if TYPE_CHECKING:
    from ._polling.waiter import Waiting


_clocks = itertools.count(1)
"""Numbers the clocks of tests."""


def opened(settings: Settings, runtime: Runtime, transport: Transport) -> Pipeline:
    """A pipeline. On the system's clock it shares its key's limits with all others of the process."""
    is_system = runtime is SYSTEM
    limiters = PROCESS if is_system else Limiters(runtime.monotonic)
    session = SESSION if is_system else f"{SESSION}-{next(_clocks)}"
    keys = Keys(limiters, settings.base_url, settings.limits)
    return Pipeline(settings, transport, runtime, keys, KeyMaker(runtime), UsedKeys(), session)


def waits(pipeline: Pipeline) -> Callable[[], Waiting]:
    """Gives a client's waits, which are loaded with the first: a first answer needs none."""

    made: dict[str, Waiting] = {}  # filled in one step: two threads that ask first share one

    def waiting() -> Waiting:
        if not made:
            from ._polling.waiter import Waiting

            made.setdefault("waiting", Waiting(pipeline))
        return made["waiting"]

    return waiting
