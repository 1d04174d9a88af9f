"""A second service for the tests of batches, written from the interface alone: none of our code is in it.

    python -m tests.support.reference_service --share 0.02 --lag 2 --seed 1

It prints its address and a key, and serves until its input ends. References are unique, keys are replayed,
the list lags behind, and of all requests a share fails in each of these ways: no answer, no request, a reset,
500, 503, 429, half an answer, 409 without a payout.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys
import time
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

PREFIX = "/v1"
FAULTS = ("no answer", "no request", "reset", "500", "503", "429", "half", "409")


def timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


class Service:
    """The books, the keys, and how requests fail."""

    def __init__(self, share: float, lag: float, seed: int, *, refusals: float) -> None:
        self.share, self.lag, self.chance = share, lag, random.Random(seed)
        self.refusals = refusals
        self.payouts: list[dict[str, Any]] = []
        self.by_reference: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, tuple[str, int, bytes]] = {}
        """{idempotency key: what was asked, and the first answer}."""
        self._numbers = itertools.count(1)

    # Creations

    async def create(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        fault = self.chance.choice(FAULTS) if self.chance.random() < self.share * len(FAULTS) else ""
        if fault in ("no request", "500", "503", "429", "409"):
            return await self._failed(request, fault)
        key = request.headers.get("X-Idempotency-Key", "")
        if key in self.answers:
            asked, status, body = self.answers[key]
            if asked != text:
                return web.json_response({"message": "the key was used otherwise"}, status=409)
            answer = web.Response(
                body=body,
                status=status,
                headers={"X-Idempotent-Replayed": "true"},
                content_type="application/json",
            )
        else:
            status, found = self._made(json.loads(text))
            body = json.dumps(found).encode()
            if key:
                self.answers[key] = text, status, body
            answer = web.Response(body=body, status=status, content_type="application/json")
        return await self._failed(request, fault, answer) if fault else answer

    def _made(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        reference = asked.get("reference")
        if reference in self.by_reference:
            return 409, {"message": "a payout with this reference exists"}
        if self.chance.random() < self.refusals:
            return 422, {"message": "The given data was invalid.", "errors": {"instrument": ["unknown"]}}
        at = time.time()
        ends = at + self.chance.uniform(0.1, 2.0)
        payout = {
            "id": f"out-{next(self._numbers)}",
            "at": at,
            "ends": ends,
            **{name: asked.get(name) for name in ("reference", "amount", "currency", "method", "metadata")},
            "instrument": asked.get("instrument") or {},
        }
        self.payouts.append(payout)
        if reference is not None:
            self.by_reference[reference] = payout
        return 201, {"message": "created", "data": self.shown(payout)}

    async def _failed(
        self, request: web.Request, fault: str, answer: web.Response | None = None
    ) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        if fault == "no request" or fault == "no answer":
            await asyncio.sleep(0.2)
        if fault in ("no request", "no answer", "reset"):
            transport.abort()
            return web.Response()
        if fault == "half" and answer is not None:
            body = answer.body if isinstance(answer.body, bytes) else b""
            return web.Response(
                body=body[: len(body) // 2], status=answer.status, content_type="application/json"
            )
        headers = {"Retry-After": "1"} if fault == "429" else {}
        return web.json_response({"message": "not now"}, status=int(fault), headers=headers)

    # The list

    def shown(self, payout: dict[str, Any]) -> dict[str, Any]:
        """A payout as the service shows it now."""
        is_over = time.time() >= payout["ends"]
        return {
            "id": payout["id"],
            "status": "completed" if is_over else "pending",
            "amount": {"value": payout["amount"], "currency": payout["currency"]},
            "method": {"value": payout["method"]},
            **{name: payout[name] for name in ("reference", "metadata", "instrument")},
            "created_at": timestamp(payout["at"]),
            "completed_at": timestamp(payout["ends"]) if is_over else None,
        }

    async def list(self, request: web.Request) -> web.StreamResponse:
        """GET /payouts: newest first, and late."""
        if self.chance.random() < self.share:
            return await self._failed(request, self.chance.choice(("503", "429", "reset")))
        query = request.query
        per_page, until = int(query.get("per_page", 10)), time.time() - self.lag
        since = 0.0
        if day := query.get("created_at[gte]"):
            since = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
        # the cursor is a place from the oldest on, so that what is added meanwhile moves no page
        place = int(query["cursor"]) if "cursor" in query else len(self.payouts)
        page = list[dict[str, Any]]()
        while place > 0 and len(page) < per_page:
            place -= 1
            payout = self.payouts[place]
            if payout["at"] < since:
                place = 0
            elif payout["at"] <= until:
                page.append(self.shown(payout))
        pagination = {
            "count": len(page),
            "per_page": per_page,
            "next_cursor": str(place) if place else None,
            "has_more_pages": place > 0,
        }
        return web.json_response({"data": page, "pagination": pagination})

    async def answer(self) -> None:
        """Answer `count` and `books` on the standard input: what was really paid, for the judge of a test.

        `calm` ends the faults.
        """
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line.strip() == "calm":
                self.share = 0.0
            found = [(each["currency"], str(each["amount"])) for each in self.payouts]
            print(json.dumps(len(found) if line.strip() == "count" else found), flush=True)


async def serve(service: Service) -> None:
    """Serve until the input ends; the first line of the output has the address and a key."""
    app = web.Application()
    app.add_routes(
        [
            web.post(f"{PREFIX}/payouts", service.create),
            web.get(f"{PREFIX}/payouts", service.list),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}{PREFIX} sk_sandbox_reference1", flush=True)
    await service.answer()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.reference_service")
    parser.add_argument("--share", type=float, default=0.0, help="of all creations, for each kind of fault")
    parser.add_argument("--lag", type=float, default=0.0, help="seconds by which the list is late")
    parser.add_argument("--refusals", type=float, default=0.0, help="of all creations, that are refused")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    asyncio.run(serve(Service(asked.share, asked.lag, asked.seed, refusals=asked.refusals)))


if __name__ == "__main__":
    main()
