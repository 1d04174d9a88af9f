"""A payout file by hand: aiohttp, 64 posts under way, and no ledger. What a careful user writes at first."""

from __future__ import annotations

import asyncio
import csv
import os
import sys
from typing import Any

import aiohttp


async def main(path: str) -> None:
    """Pay the file: a body for each row; columns with a point are parts of an object."""
    url = f"{os.environ['PAYMENTS_BASE_URL']}/payouts"
    headers = {"Authorization": f"Bearer {os.environ['PAYMENTS_API_KEY']}"}
    with open(path, newline="", encoding="utf-8") as file:  # noqa: ASYNC230 # as users do
        rows = csv.DictReader(file)
        async with aiohttp.ClientSession(headers=headers) as session:

            async def pay() -> None:
                for row in rows:
                    body: dict[str, Any] = {"instrument": {"type": "phone"}}
                    for name, value in row.items():
                        part, _, field = name.partition(".")
                        (body[part] if field else body)[field or part] = value
                    body["amount"] = float(body["amount"])
                    async with session.post(url, json=body) as response:
                        assert response.status == 201, (await response.json())["message"]

            await asyncio.gather(*(pay() for _ in range(64)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
