"""openai's async client: a chat completion is created with its own call, no retries.

`openai_calls URL [aiohttp|httpx]`. Request and answer are as long as our payout's.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import openai

from benchmarks.contenders.rounds import on_loop, spent
from benchmarks.wire import BODY, KEY
from benchmarks.worker import serve

MESSAGES: Any = [{"role": "user", "content": json.dumps(BODY)}]


async def calls(base_url: str, over: str, times: int, in_flight: int) -> dict[str, Any]:
    """One round."""
    http: Any = openai.DefaultAioHttpClient() if over == "aiohttp" else openai.DefaultAsyncHttpx2Client()
    async with openai.AsyncOpenAI(api_key=KEY, base_url=base_url, http_client=http, max_retries=0) as client:
        create = client.chat.completions.create
        return await spent(lambda: create(model="model-1", messages=MESSAGES), times, in_flight)


def main(base_url: str, over: str = "aiohttp") -> None:
    """Serve rounds."""
    serve(lambda times, in_flight: on_loop("asyncio", calls(base_url, over, times, in_flight)))


if __name__ == "__main__":
    main(*sys.argv[1:])
