"""One memory of compiled statements for all engines, which else is half of the time of a schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from payments_async.bulk.ledger.sqlite import driver


def sharing(engine_for: Callable[[str], Any]) -> Callable[[str], Any]:
    """`engine_for`, whose engines have one dialect and what it has compiled in common."""
    dialect, compiled = _warm()

    def engine_for_all(path: str) -> Any:
        engine = engine_for(path)
        sync = engine.sync_engine
        sync.dialect = sync.pool._dialect = dialect
        sync._compiled_cache = compiled
        return engine

    return engine_for_all


@lru_cache
def _warm() -> tuple[Any, Any]:
    """A dialect that has met its database once, on a loop and a thread of its own."""
    engine = driver.engine_for(":memory:")

    async def meet() -> None:
        async with engine.connect():
            pass
        await engine.dispose()

    asyncio.run(meet())
    return engine.sync_engine.dialect, engine.sync_engine._compiled_cache
