"""aiohttp's server by hand: reads a creation's JSON and always answers the same. `bare_server ANSWER`.

It serves until a line comes. ANSWER is JSON: the status, headers and body to answer with.
"""

from __future__ import annotations

import asyncio
import json
import sys

from aiohttp import web

from benchmarks.wire import KEY


async def served(status: int, headers: dict[str, str], body: str) -> None:
    """Print the address, then answer until a line comes."""

    async def create(request: web.Request) -> web.Response:
        await request.json()
        return web.Response(status=status, headers=headers, body=body.encode())

    application = web.Application()
    application.router.add_post("/v1/payouts", create)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(json.dumps({"base_url": f"{site.name}/v1", "api_key": KEY}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    asyncio.run(served(**json.loads(sys.argv[1])))
