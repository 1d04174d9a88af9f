"""aiolimiter: entering an empty limiter, and its context manager left."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from aiolimiter import AsyncLimiter

from benchmarks.worker import serve


async def entering(times: int) -> dict[str, Any]:
    """One round: CPU seconds for one."""
    limiter = AsyncLimiter(10**8, 60)
    started = time.process_time()
    for _ in range(times):
        async with limiter:
            pass
    return {"gate": (time.process_time() - started) / times}


if __name__ == "__main__":
    serve(lambda times: asyncio.run(entering(times)))
