"""Other people's async clients, telemetry and retries off. `peer_calls stripe|openai|httpx URL`.

stripe creates a payout with its own call, and sends forms where we send JSON. openai creates a chat
completion: request and answer are as long as a payout's. httpx posts a dict and
reads a dict, with its default pool.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.contenders.rounds import Call, on_loop, spent
from benchmarks.wire import BODY, HEAD, KEY, call_body
from benchmarks.worker import serve


@asynccontextmanager
async def stripe(base_url: str) -> AsyncIterator[Call]:
    """stripe's client, on aiohttp."""
    import stripe

    stripe.enable_telemetry = False
    http, address = stripe.AIOHTTPClient(), base_url.removesuffix("/v1")
    addresses: Any = {"api": address, "connect": address, "files": address, "meter_events": address}
    client = stripe.StripeClient(KEY, http_client=http, base_addresses=addresses, max_network_retries=0)
    params: Any = {**BODY, "amount": 25050}
    yield lambda: client.v1.payouts.create_async(params)
    await http.close_async()


@asynccontextmanager
async def openai(base_url: str) -> AsyncIterator[Call]:
    """openai's client, on aiohttp."""
    import openai

    http, messages = openai.DefaultAioHttpClient(), [{"role": "user", "content": json.dumps(BODY)}]
    async with openai.AsyncOpenAI(api_key=KEY, base_url=base_url, http_client=http, max_retries=0) as client:
        create: Any = client.chat.completions.create
        yield lambda: create(model="model-1", messages=messages)


@asynccontextmanager
async def httpx(base_url: str) -> AsyncIterator[Call]:
    """httpx by hand."""
    import httpx

    async with httpx.AsyncClient(headers=HEAD, timeout=60.0) as client:

        async def call() -> object:
            return (await client.post(f"{base_url}/payouts", json=call_body())).json()

        yield call


CLIENTS = {"stripe": stripe, "openai": openai, "httpx": httpx}


def main(name: str, base_url: str) -> None:
    """Serve rounds."""
    serve(lambda times, in_flight: on_loop("asyncio", spent(CLIENTS[name](base_url), times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
