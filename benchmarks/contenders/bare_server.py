"""aiohttp's server by hand: reads a creation's JSON and always answers the same. `bare_server ANSWER`.

ANSWER is JSON: the status, headers and body to answer with.
"""

from __future__ import annotations

import asyncio
import json
import sys

from aiohttp import web

from benchmarks.wire import KEY


async def opened(status: int, headers: dict[str, str], body: str) -> dict[str, str]:
    """Serve on the running loop; gives the address and a key."""

    async def create(request: web.Request) -> web.Response:
        await request.json()
        return web.Response(status=status, headers=headers, body=body.encode())

    application = web.Application()
    application.router.add_post("/v1/payouts", create)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return {"base_url": f"{site.name}/v1", "api_key": KEY}


async def main(answer: str) -> None:
    """Tell the address, and serve until the process is killed."""
    print(json.dumps(await opened(**json.loads(answer))), flush=True)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
