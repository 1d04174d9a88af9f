"""Random creations on clocks that are set: `python -m tests.campaigns.outcomes 2000 [seed]`.

Each case is one creation whose answers are lost, late, refused or made up of the service's troubles, and what
its caller then does to find out: resolves it, now or a day later, here or in another process, while somebody
sets the wall clock or pauses the machine. The service goes by the true time; a request may still be at work
a quarter of an hour.
The judge compares what the client said of money with the service's books. Exits 1 when it said too much.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import attrs

from payments_async import OutcomeUnknown, PaymentsError, PreparedRequest
from payments_async._http.types import HTTPRequest, HTTPResponse, TransportError
from tests.campaigns.hostile import FAST, campaign_of, counted
from tests.support.jumping import EPOCH, JumpingRuntime
from tests.support.motion import INTENT, PAYOUT
from tests.support.scripted import altered, answer

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
_TROUBLES: Final[Mapping[str, int]] = {
    "none": 3,
    "lost answer": 3,
    "lost request": 2,
    "unsent": 1,
    "late": 10,
    "refused": 10,
    "refused for good": 1,
    "500": 2,
    "500 after all": 1,
    "429": 1,
    "unreadable": 1,
}
"""What may happen to a request, and how often."""
_BEGINNINGS: Final = ((), (), ("late", "refused"), ("late", "late", "refused"))
"""What happens to the first requests of a case; the last ones are what chance would seldom come to."""
_PASSES: Final = (
    *(0.0, 0.0, 10.0, 10.0, MINUTE, MINUTE, 5 * MINUTE, 5 * MINUTE, 14 * MINUTE, 16 * MINUTE, 16 * MINUTE),
    *(HOUR, 12 * HOUR, 22 * HOUR, 24.5 * HOUR),
)
_PAUSES: Final = (0.0, 0.0, HOUR, 12 * HOUR, 25 * HOUR)
_STEPS: Final = (0.0, MINUTE, 20 * MINUTE, HOUR, 20 * HOUR, 3 * DAY)


@attrs.define
class Books:
    """What the service has made, and what it remembers, all by the true time in seconds."""

    made: list[dict[str, Any]] = attrs.field(factory=list)
    replies: dict[str, tuple[float, HTTPResponse]] = attrs.field(factory=dict)
    late: list[tuple[float, str, dict[str, Any]]] = attrs.field(factory=list)


class Service:
    """A service of the worst manners that the interface allows, as a transport."""

    def __init__(self, rng: random.Random, runtime: JumpingRuntime) -> None:
        self._rng, self._runtime = rng, runtime
        self.books = Books()
        self.locks = self.dates = True
        """Whether it answers 409 to a request that is still at work, and says its time."""
        self.paused = 0.0
        """Seconds that passed while the client's machine was paused: no clock of it saw them."""
        self._next: list[str] = []

    def now(self) -> float:
        """The true time in seconds."""
        return self._runtime.monotonic() + self.paused

    def renew(self) -> None:
        self.books = Books()
        self._next = list(self._rng.choice(_BEGINNINGS))
        self.locks, self.dates = not self._next and self._rng.random() < 0.5, self._rng.random() < 0.8

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """Answer, or not."""
        await asyncio.sleep(0)
        self.settle()
        if request.method == "GET":
            request.sent = True
            return self._say(200, self._listed(request.url))
        assert request.body is not None
        return self._write(request, request.headers["X-Idempotency-Key"], json.loads(request.body))

    async def aclose(self) -> None:
        """Nothing to close."""

    def settle(self) -> None:
        """Carry out what was still at work and has come to its end."""
        now = self.now()
        for entry in [entry for entry in self.books.late if entry[0] <= now]:
            self.books.late.remove(entry)
            self._carry_out(entry[1], entry[2], at=entry[0])

    def _write(self, request: HTTPRequest, key: str, body: dict[str, Any]) -> HTTPResponse:
        chance = self._rng.choices(list(_TROUBLES), list(_TROUBLES.values()))[0]
        trouble = self._next.pop(0) if self._next else chance
        if trouble == "unsent":
            raise TransportError("connect", "scripted")
        request.sent = True
        if trouble == "lost request":
            raise TransportError("reset", "scripted")
        if trouble == "429":
            return self._say(429, {"message": "Slow down."}, {"Retry-After": "1"})
        at, stored = self.books.replies.get(key, (-2 * DAY, None))
        if stored is not None and self.now() - at < DAY:
            return self._deliver(trouble, attrs.evolve(stored, headers=self._headers(replayed=True)))
        if self.locks and any(entry[1] == key for entry in self.books.late):
            return self._say(409, {"message": "The request is being processed."})
        return self._first(trouble, key, body)

    def _first(self, trouble: str, key: str, body: dict[str, Any]) -> HTTPResponse:
        """A request of which nothing is stored."""
        if trouble == "late":
            due = self.now() + self._rng.uniform(1.0, 14.5 * MINUTE)
            self.books.late.append((due, key, body))
            raise TransportError("timeout", "scripted")
        if trouble == "500":
            return self._say(500, {"message": "Oops."})
        if trouble.startswith("refused"):
            refusal = self._say(422, {"message": "No balance.", "errors": {"amount": ["too much"]}})
            if trouble == "refused for good":
                self.books.replies[key] = (self.now(), refusal)
            return refusal
        return self._deliver(trouble, self._carry_out(key, body, at=self.now()))

    def _deliver(self, trouble: str, found: HTTPResponse) -> HTTPResponse:
        """An answer on its way back."""
        if trouble in ("lost answer", "late"):
            raise TransportError("reset", "scripted")
        if trouble == "500 after all":
            return self._say(500, {"message": "Oops."})
        return altered(found, body=b"<html>") if trouble == "unreadable" else found

    def _carry_out(self, key: str, body: dict[str, Any], at: float) -> HTTPResponse:
        """Once for each key, as long as it is remembered, and for each reference."""
        known, stored = self.books.replies.get(key, (-2 * DAY, None))
        if stored is not None and at - known < DAY:
            return stored
        reference = body.get("reference")
        if reference is not None and any(each["reference"] == reference for each in self.books.made):
            return self._say(409, {"message": "The reference exists."})
        record: dict[str, Any] = {
            "id": f"made_{len(self.books.made)}",
            "amount": {"value": body["amount"], "currency": body["currency"]},
            "created_at": (EPOCH + timedelta(seconds=at)).isoformat(),
            "reference": reference,
        }
        self.books.made.append(record)
        found = self._say(201, {"data": record})
        self.books.replies[key] = (at, found)
        return found

    def _listed(self, url: str) -> dict[str, Any]:
        """The payouts from a day on, newest first."""
        since = date.fromisoformat(parse_qs(urlsplit(url).query).get("created_at[gte]", ["1970-01-01"])[0])
        shown = [
            each for each in self.books.made if datetime.fromisoformat(each["created_at"]).date() >= since
        ]
        return {"data": shown, "pagination": {"has_more_pages": False}}

    def _say(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> HTTPResponse:
        return answer(status, body, {**self._headers(), **(headers or {})})

    def _headers(self, *, replayed: bool = False) -> Mapping[str, str]:
        now = EPOCH + timedelta(seconds=self.now())
        said = {"Date": format_datetime(now.astimezone(UTC), usegmt=True)} if self.dates else {}
        said |= {"X-Idempotent-Replayed": "true"} if replayed else {}
        return answer(200, {}, said).headers


@attrs.define
class Report:
    calls: int = 0
    steps: int = 0
    outcomes: Counter[str] = attrs.field(factory=Counter)
    lies: list[str] = attrs.field(factory=list)


class Campaign:
    """A client of any surface before the service."""

    def __init__(self, make_client: Callable[..., Any], seed: int) -> None:
        self._rng = random.Random(seed)
        self._runtime = JumpingRuntime(seed)
        self._service = Service(self._rng, self._runtime)
        self._client = make_client(
            transport=self._runtime.wrap(self._service), runtime=self._runtime, limits=FAST, max_retries=0
        )
        self.report = Report()

    async def run(self, calls: int) -> Report:
        while self.report.calls < calls:
            await self._case()
        return self.report

    async def _case(self) -> None:
        """One creation, until its outcome is known or its caller has had enough."""
        rng, service = self._rng, self._service
        service.renew()
        pays_out, pauses = rng.random() < 0.6, rng.random() < 0.25
        if pauses:  # by a clock that ran ahead, a pause cannot be seen
            self._runtime.step(service.now() - (self._runtime.now() - EPOCH).total_seconds())
        else:
            self._step()
        create, fields = (
            (self._client.payouts.create, PAYOUT)
            if pays_out
            else (self._client.payment_intents.create, INTENT)
        )
        told = await self._told("create", create(**fields))
        words = [type(told).__name__]
        for _ in range(rng.randrange(5)):
            if not isinstance(told, OutcomeUnknown):
                break
            self._runtime.advance(rng.choice(_PASSES))
            if pauses:
                service.paused += rng.choice(_PAUSES)
            else:
                self._step()
            # without a reference, only a clock of the process itself tells how old a key is
            given = _elsewhere(told, rng) if pays_out and rng.random() < 0.3 else told
            told = await self._told("resolve", self._client.resolve(given))
            words.append(type(told).__name__)
        self._judge(told, " → ".join(words))

    def _step(self) -> None:
        if self._rng.random() < 0.5:
            self._runtime.step(self._rng.choice(_STEPS) * self._rng.choice((-1.0, 1.0, 1.0)))
            self.report.steps += 1

    async def _told(self, call: str, coming: Any) -> Any:
        self.report.calls += 1
        try:
            told = await coming
        except PaymentsError as error:
            told = error
        effect = f" ({told.effect})" if isinstance(told, PaymentsError) else ""
        self.report.outcomes[f"{call}: {type(told).__name__}{effect}"] += 1
        return told

    def _judge(self, told: Any, words: str) -> None:
        """What was said last must be true once nothing is at work any more."""
        self._runtime.advance(15 * MINUTE)
        self._service.settle()
        made = [each["id"] for each in self._service.books.made]
        effect = told.effect if isinstance(told, PaymentsError) else "happened"
        if len(made) > 1:
            self.report.lies.append(f"made {len(made)} times: {words}")
        elif (effect == "none" and made) or (effect == "happened" and not made):
            self.report.lies.append(f"{effect}, and {len(made)} made: {words}")
        elif not isinstance(told, PaymentsError) and told.id not in made:
            self.report.lies.append(f"another record: {words}")


def _elsewhere(error: OutcomeUnknown, rng: random.Random) -> OutcomeUnknown | PreparedRequest:
    """The doubt as another process knows it."""
    assert error.prepared is not None
    stored = PreparedRequest.from_json(error.prepared.to_json())
    if rng.random() < 0.5:
        return stored
    twin: OutcomeUnknown = pickle.loads(pickle.dumps(error))
    twin.prepared = stored
    if twin._ended is not None:
        twin._ended = attrs.evolve(twin._ended, session="another process")
    return twin


async def main(calls: int = 2_000, seed: int = 0) -> int:
    started = time.perf_counter()
    async with campaign_of(Campaign, seed) as campaign:
        report = await campaign.run(calls)
    told = f"{report.calls:,} calls, {report.steps:,} clock steps, seed {seed}"
    took = time.perf_counter() - started
    return counted(report.outcomes, f"{told}, {took:.0f} s, {len(report.lies)} lies", report.lies)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*map(int, sys.argv[1:]))))
