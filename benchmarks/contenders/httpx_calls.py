"""httpx by hand, with its default pool: post a dict, read a dict."""

from __future__ import annotations

import sys
from typing import Any

import httpx

from benchmarks.contenders.rounds import on_loop, spent
from benchmarks.wire import BODY, KEY
from benchmarks.worker import serve


async def calls(base_url: str, times: int, in_flight: int) -> dict[str, Any]:
    """One round."""
    url, headers = f"{base_url}/payouts", {"Authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(headers=headers, timeout=60.0) as client:

        async def call() -> object:
            return (await client.post(url, json=BODY)).json()

        return await spent(call, times, in_flight)


def main(base_url: str) -> None:
    """Serve rounds."""
    serve(lambda times, in_flight: on_loop("asyncio", calls(base_url, times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
