"""A payout file by hand: aiohttp, 64 posts under way, and no ledger. What a careful user writes at first."""

from __future__ import annotations

import asyncio
import csv
import os
import sys
from collections.abc import Iterator
from typing import Any

import aiohttp


def bodies(path: str) -> Iterator[dict[str, Any]]:
    """A body for each row of a file; columns with a point are parts of an object."""
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            body: dict[str, Any] = {"instrument": {"type": "phone"}, "metadata": {}}
            for name, value in row.items():
                part, _, field = name.partition(".")
                (body[part] if field else body)[field or part] = float(value) if name == "amount" else value
            yield body


async def main(path: str) -> None:
    """Pay the file."""
    url = f"{os.environ['PAYMENTS_BASE_URL']}/payouts"
    headers = {"Authorization": f"Bearer {os.environ['PAYMENTS_API_KEY']}"}
    rows = bodies(path)
    async with aiohttp.ClientSession(headers=headers) as session:

        async def pay() -> None:
            for body in rows:
                async with session.post(url, json=body) as response:
                    assert response.status == 201, (await response.json())["message"]

        await asyncio.gather(*(pay() for _ in range(64)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
