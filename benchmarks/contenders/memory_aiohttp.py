"""aiohttp by hand, many calls under way. `memory_aiohttp URL`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import aiohttp

from benchmarks.contenders.memory_rounds import in_flight
from benchmarks.wire import BODY, KEY
from benchmarks.worker import serve


async def calls(base_url: str, many: int, traced: bool) -> dict[str, Any]:
    """One round."""
    url, headers = f"{base_url}/payouts", {"Authorization": f"Bearer {KEY}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:

        async def call() -> object:
            async with session.post(url, json=BODY) as response:
                return await response.json()

        return await in_flight(call, many, base_url, traced=traced)


def main(base_url: str) -> None:
    """Serve rounds."""
    serve(lambda many, traced: asyncio.run(calls(base_url, many, traced)))


if __name__ == "__main__":
    main(*sys.argv[1:])
