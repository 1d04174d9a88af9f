"""The example shop, served next to a sandbox."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from aiohttp import web

from payments_async import AsyncPayments
from payments_async._http.types import Transport
from payments_async._loopback import listen
from payments_async._runtime import Runtime
from payments_async.sandbox import Sandbox

FILE = Path(__file__).parents[2] / "examples" / "shop" / "shop.py"
SECRET = "for the tests alone, and more than 32 bytes"


def load_shop() -> Any:
    """The example as a module, with the modules beside it, as `python shop.py` finds them."""
    with patch.object(sys, "path", [str(FILE.parent), *sys.path]):
        return import_module("shop")


@asynccontextmanager
async def shop_beside(
    sandbox: Sandbox, runtime: Runtime | None = None, transport: Transport | None = None
) -> AsyncIterator[tuple[Any, str]]:
    """The serving shop and its address; its payments and its time are those of `sandbox`."""
    socket = listen(None)
    address = f"http://127.0.0.1:{socket.getsockname()[1]}"
    client = AsyncPayments(sandbox.api_key, base_url=sandbox.base_url, runtime=runtime, transport=transport)
    shop = load_shop().Shop(client, address=address, secret=SECRET, clock=sandbox.clock.now)
    runner = web.AppRunner(shop.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.SockSite(runner, socket).start()
        yield shop, address
    finally:
        await runner.cleanup()
