"""Waits of several clients of one key are as one: a transaction is read once in five seconds (Polling)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from payments_async import AsyncPayments, AuthenticationError
from payments_async import client as _opening
from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import HTTPRequest, HTTPResponse, TransportError
from payments_async._polling.readings import ListReadings, RecordReadings
from payments_async._rate_limit.registry import LimiterRegistry
from payments_async._runtime import SYSTEM
from payments_async.sandbox import Sandbox
from tests.support.jumping import JumpingRuntime
from tests.support.motion import INTENT, PAYOUT
from tests.support.patience import until
from tests.support.surfaces import Connect
from tests.support.waits import Watched, gaps

ATTEMPT = {
    "method_code": "mtn_bj",
    "country_code": "BJ",
    "phone": {"number": "+22990112233", "country": "BJ"},
}


class Hanging:
    """A transport whose requests end as timeouts."""

    def __init__(self, runtime: JumpingRuntime) -> None:
        self._runtime = runtime

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        await self._runtime.sleep(30.0)
        raise TransportError("timeout", "30 s")

    async def aclose(self) -> None:
        """Nothing is open."""


class OneProcess(Watched):
    """A `Watched` whose clients are on one clock, as all clients of a process are on the system's."""

    def __init__(self, sandbox: Sandbox, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(sandbox, connect)
        self.runtime = JumpingRuntime(on_jump=self._pass)
        monkeypatch.setattr(_opening, "SYSTEM", self.runtime)
        monkeypatch.setattr(_opening, "PROCESS", LimiterRegistry(self.runtime.monotonic))
        self._begun: set[Any] = set()
        for cls, name in ((ListReadings, "join"), (RecordReadings, "find")):
            monkeypatch.setattr(cls, name, self._noting(getattr(cls, name)))

    def _noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **options: Any) -> Any:
            found = call(*args, **options)
            self._begun.add(asyncio.current_task())
            return found

        return noting

    def client(self, **options: Any) -> Any:
        transport = self.runtime.wrap(AiohttpTransport(runtime=SYSTEM))
        return self.connect(self.sandbox, runtime=self.runtime, transport=transport, **options)

    def hanging_client(self) -> Any:
        """A client whose own way to the service (a proxy, say) swallows every request."""
        return self.connect(self.sandbox, runtime=self.runtime, transport=Hanging(self.runtime))

    async def together(self, *waits: Any, **options: Any) -> list[Any]:
        """What `asyncio.gather` gives of waits that begin at one time: a later one would read once more."""
        with self.runtime.standing():
            ends = asyncio.gather(*waits, **options)
            await self.until_begun(len(waits))
        return await ends

    async def until_begun(self, number: int) -> None:
        """Give way until so many waits have looked at what others have read."""
        await until(lambda: len(self._begun) >= number)

    def read_at(self, name: str) -> list[float]:
        """When an operation was called."""
        return [at for at, operation in self.reads() if operation == name]


@pytest.fixture
def world(sandbox: Sandbox, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> OneProcess:
    return OneProcess(sandbox, connect, monkeypatch)


@pytest.mark.fact("polling.five-seconds")
async def test_two_clients_that_wait_for_one_payout_share_its_readings(world: OneProcess) -> None:
    world.sandbox.on("payouts.create").outcome("complete after=120s")
    one, other = world.client(), world.client()
    payout = await one.payouts.create(**PAYOUT)
    ends = await world.together(*(client.payouts.wait(payout) for client in (one, other, one, other)))
    assert all(end.is_successful for end in ends)
    reads = world.read_at("payouts.list")
    assert min(gaps(reads)) >= 5.0
    assert len(reads) <= 12, "no more than one wait would take"


async def test_clients_that_wait_for_different_payouts_share_the_readings(world: OneProcess) -> None:
    world.sandbox.on("payouts.create").outcome("complete after=120s")
    clients = [world.client() for _ in range(5)]
    made = [await c.payouts.create(**{**PAYOUT, "reference": f"r-{n}"}) for n, c in enumerate(clients)]
    ends = await world.together(*(c.payouts.wait(p.id) for c, p in zip(clients, made, strict=True)))
    assert {end.id for end in ends} == {payout.id for payout in made}
    reads = world.read_at("payouts.list")
    assert min(gaps(reads)) >= 5.0
    assert len(reads) <= 12
    assert world.seconds <= 150.0


async def test_a_wait_that_begins_right_after_anothers_reading_keeps_the_distance(world: OneProcess) -> None:
    world.sandbox.on("payouts.create").outcome("complete after=20s")
    payout = await world.client().payouts.create(**PAYOUT)
    await world.client().payouts.wait(payout)
    assert (await world.client().payouts.wait(payout.id)).is_successful
    assert min(gaps(world.read_at("payouts.list"))) >= 5.0


@pytest.mark.parametrize("by", ["record", "id"])
async def test_two_clients_that_wait_for_one_checkout_share_its_readings(world: OneProcess, by: str) -> None:
    one, other = world.client(), world.client()
    checkout = await one.checkouts.create(**INTENT)
    world.after(60.0, lambda: world.sandbox.pay(checkout.id))
    wanted = checkout if by == "record" else checkout.id
    ends = await world.together(*(client.checkouts.wait(wanted) for client in (one, other)))
    assert all(end.payment.is_successful for end in ends)
    assert min(gaps(world.read_at("payment_intents.list"))) >= 5.0
    assert len(world.read_at("checkouts.retrieve")) == (1 if by == "record" else 2), "at the ends"


async def test_two_clients_that_wait_for_one_attempt_share_its_readings(world: OneProcess) -> None:
    world.sandbox.on("payment_intents.create").outcome("complete after=60s")
    one, other = world.client(), world.client()
    intent = await one.payment_intents.create(**INTENT, attempt=ATTEMPT)
    attempt = intent.active_attempt.id
    ends = await world.together(*(c.payment_intents.wait_attempt(intent.id, attempt) for c in (one, other)))
    assert all(end.is_successful for end in ends)
    assert len(world.read_at("payment_intents.retrieve_attempt")) == 2
    assert min(gaps([at for at, _ in world.reads()])[:-1]) >= 5.0


def test_a_wait_whose_loop_was_closed_is_forgotten_without_a_word() -> None:
    """What a finaliser raises is printed, and pytest makes it a failure of our users' tests."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # "Task was destroyed but it is pending"
    transport = Hanging(JumpingRuntime())
    client = AsyncPayments("sk_sandbox_left", base_url="http://127.0.0.1:9/v1", transport=transport)
    wait: Any = loop.create_task(client.payouts.wait("po_1"))
    for _ in range(5):  # until its reading is under way
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    wait.get_coro().close()  # as the garbage collector does


async def test_clients_of_another_key_read_for_themselves(world: OneProcess) -> None:
    world.sandbox.on("payouts.create").outcome("complete after=30s")
    clients = [world.client(), world.client(api_key=world.sandbox.new_key())]
    made = [await client.payouts.create(**PAYOUT) for client in clients]
    await world.together(*(c.payouts.wait(p) for c, p in zip(clients, made, strict=True)))
    assert min(gaps(world.read_at("payouts.list"))) < 5.0, "the floor is that of each key"


async def test_one_clients_failure_ends_its_own_waits_and_the_others_go_on(world: OneProcess) -> None:
    world.sandbox.on("payouts.create").outcome("complete after=30s")
    one, other = world.client(), world.client()
    payout = await one.payouts.create(**PAYOUT)
    world.sandbox.on("payouts.list").respond("http:401", times=1)
    ends = await world.together(one.payouts.wait(payout), other.payouts.wait(payout), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == [AuthenticationError.__name__, "Payout"]


async def test_a_client_whose_requests_hang_does_not_keep_the_others_waiting(world: OneProcess) -> None:
    world.sandbox.on("payouts.create").outcome("complete after=20s")
    other, hanging = world.client(), world.hanging_client()
    payout = await other.payouts.create(**PAYOUT)
    ends = await world.together(*(c.payouts.wait(payout.id, deadline=60.0) for c in (hanging, other)))
    assert all(end.is_successful for end in ends), "by what the other one read"


async def test_a_client_whose_own_wait_is_over_leaves_the_reading_to_the_next(world: OneProcess) -> None:
    world.sandbox.on("payouts.create").outcome("complete after=60s")
    one, other = world.client(), world.client()
    payout = await one.payouts.create(**PAYOUT)
    short = one.payouts.wait(payout, deadline=20.0)
    ends = await world.together(short, other.payouts.wait(payout), return_exceptions=True)
    assert [type(end).__name__ for end in ends] == ["WaitTimeout", "Payout"]
    assert min(gaps(world.read_at("payouts.list"))) >= 5.0


async def test_waits_on_event_loops_of_their_own_share_the_readings(world: OneProcess) -> None:
    """Threads that each run a loop: `asyncio.run` in a worker, say."""
    world.sandbox.on("payouts.create").outcome("complete after=120s")
    maker = world.client()
    payout = await maker.payouts.create(**PAYOUT)
    ready, ends = threading.Barrier(3), list[Any]()

    async def wait() -> None:
        transport = world.runtime.wrap(AiohttpTransport(runtime=SYSTEM))
        key, url = world.sandbox.api_key, world.sandbox.base_url
        async with AsyncPayments(key, base_url=url, runtime=world.runtime, transport=transport) as client:
            ready.wait()
            ends.append(await client.payouts.wait(payout.id))

    threads = [threading.Thread(target=lambda: asyncio.run(wait())) for _ in range(2)]
    with world.runtime.standing():
        for thread in threads:
            thread.start()
        await asyncio.to_thread(ready.wait)
        mine = asyncio.ensure_future(maker.payouts.wait(payout))
        await world.until_begun(3)
    ends.append(await mine)
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert [end.is_successful for end in ends] == [True] * 3
    reads = world.read_at("payouts.list")
    assert min(gaps(reads)) >= 5.0
    assert len(reads) <= 12
