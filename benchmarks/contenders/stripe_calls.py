"""stripe's client, its async methods: a payout is created with its own call, telemetry off, no retries.

`stripe_calls URL [aiohttp|httpx]`. stripe sends forms where we send JSON; the answer's bytes are the same.
"""

from __future__ import annotations

import sys
from typing import Any

import stripe

from benchmarks.contenders.rounds import on_loop, spent
from benchmarks.wire import BODY, KEY
from benchmarks.worker import serve

stripe.enable_telemetry = False
PARAMS: Any = {**BODY, "amount": 25050}


async def calls(base_url: str, over: str, times: int, in_flight: int) -> dict[str, Any]:
    """One round."""
    http = stripe.AIOHTTPClient() if over == "aiohttp" else stripe.HTTPXClient()
    address = base_url.removesuffix("/v1")
    addresses: Any = {"api": address, "connect": address, "files": address, "meter_events": address}
    client = stripe.StripeClient(KEY, http_client=http, base_addresses=addresses, max_network_retries=0)
    try:
        return await spent(lambda: client.v1.payouts.create_async(PARAMS), times, in_flight)
    finally:
        await http.close_async()


def main(base_url: str, over: str = "aiohttp") -> None:
    """Serve rounds."""
    serve(lambda times, in_flight: on_loop("asyncio", calls(base_url, over, times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
