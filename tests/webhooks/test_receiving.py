"""What is refused before anything is read, how bodies are taken, and how hand-overs end early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from payments_async.webhooks import WebhookResponse
from tests.support.hooks import Hook, listed
from tests.support.patience import until
from tests.support.receivers import Handler, make_receiver
from tests.support.surfaces import Connect

REFUSED = WebhookResponse(404)
DAY = 86_400.0
LARGEST = 256 * 1024


def odd_paths(url: str) -> dict[str, str]:
    token = url.rpartition("/")[2]
    return {
        "empty": "",
        "nothing": "/hooks/",
        "cut": url[:-1],
        "longer": url + "A",
        "slash": url + "/",
        "query": url + "?token=" + token,
        "twice": f"/hooks?token={token}&token={token}",
        "escaped": url.replace("A", "%41"),
        "other alphabet": f"/hooks/{'+/' * 40}",
        "not ASCII": f"/hooks/{'é' * 90}",
        "padded": url + "=" * (-len(token) % 4 or 4),
        "huge": "/hooks/" + "A" * 1_000_000,
        "huge prefix": "/x" * 1_000_000 + "/" + token,
        "case": f"/hooks/{token.swapcase()}",
    }


async def test_everything_but_a_minted_url_gets_one_answer_and_no_read(connect: Connect) -> None:
    hook = Hook(connect, Handler(), listed())
    for name, path in odd_paths(hook.url).items():
        assert await hook.receiver.receive(path=path, body=b"{}") == REFUSED, name
    assert hook.reads == 0
    assert not hook.coalescers


async def test_an_expired_url_is_refused_from_its_second_on(connect: Connect) -> None:
    hook = Hook(connect, Handler(), listed())
    hook.played.runtime.advance(3_600.0)
    hook.url = hook.receiver.url_for_payout("r-1", expires_in=100)
    hook.played.runtime.advance(2 * DAY - 0.1 - hook.now)
    assert (await hook.arrive()).status == 200
    hook.played.runtime.advance(2 * DAY - hook.now)
    assert await hook.arrive() == REFUSED


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE", ""])
async def test_methods_that_carry_nothing_are_refused(connect: Connect, method: str) -> None:
    hook = Hook(connect, Handler(), listed())
    assert await hook.arrive(method=method) == REFUSED
    assert hook.reads == 0


async def test_a_url_nobody_serves_here_is_refused(connect: Connect) -> None:
    hook = Hook(connect, Handler(), listed())
    payments_only = make_receiver(hook.played.client, on_payment=Handler())
    assert await payments_only.receive(path=hook.url) == REFUSED


async def test_a_body_too_large_is_not_read(connect: Connect) -> None:
    hook = Hook(connect, Handler(), listed())
    assert (await hook.arrive(b" " * (LARGEST + 1))).status == 413
    assert (await hook.arrive(b" " * LARGEST)).status == 200
    assert hook.reads == 1


def chunks(surface: str, *parts: bytes, taken: list[bytes] | None = None) -> Any:
    """The parts as the surface takes them; what was asked for is noted."""
    noted = [] if taken is None else taken

    async def wait_for_each() -> AsyncIterator[bytes]:
        for part in parts:
            noted.append(part)
            yield part

    def each() -> Any:
        for part in parts:
            noted.append(part)
            yield part

    return wait_for_each() if surface == "async" else each()


async def test_a_body_may_come_in_chunks(connect: Connect, surface: str) -> None:
    paid = Handler()
    hook = Hook(connect, paid, listed())
    parts = chunks(surface, b'{"event": "e", ', b'"payout": {"id": "po_1"}}')
    assert (await hook.arrive(parts)).status == 200
    assert paid.given[0].event == "e"


async def test_of_a_body_too_large_no_more_is_taken(connect: Connect, surface: str) -> None:
    hook, taken = Hook(connect, Handler(), listed()), list[bytes]()
    parts = chunks(surface, *[b" " * 100_000] * 1_000, taken=taken)
    assert (await hook.arrive(parts)).status == 413
    assert len(taken) == 3


async def test_of_a_forged_delivery_no_body_is_taken(connect: Connect, surface: str) -> None:
    hook, taken = Hook(connect, Handler(), listed()), list[bytes]()
    hook.url += "A"
    assert await hook.arrive(chunks(surface, b"{}", taken=taken)) == REFUSED
    assert (taken, hook.reads) == ([], 0)


async def test_a_burst_costs_one_look_now_and_one_five_seconds_later(connect: Connect) -> None:
    paid = Handler()
    hook = Hook(connect, paid, listed(), listed("completed"))
    assert (await hook.arrive()).status == 200
    with hook.standing_still():
        burst = [asyncio.create_task(hook.arrive()) for _ in range(5)]
        await until(lambda: hook.waiting == 5)
        assert hook.reads == 1
    assert {each.status for each in await asyncio.gather(*burst)} == {200}
    assert paid.states == [("r-1", "pending"), ("r-1", "completed")]
    assert hook.reads == 2
    assert hook.now >= 5.0


async def test_a_handler_that_fails_sees_the_state_again(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    paid = Handler(ValueError("database away"), None)
    hook = Hook(connect, paid, listed("completed"))
    assert (await hook.arrive()).status == 500
    assert (await hook.arrive()).status == 200
    assert (await hook.arrive()).status == 200
    assert len(paid.given) == 2
    assert "a webhook handler failed, the service will try again" in caplog.text
    assert "database away" in caplog.text


class TestAwaited:
    """Of the awaited receiver alone."""

    @pytest.fixture
    def surface(self) -> str:
        return "async"

    async def never(self) -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.get_running_loop().create_future()

    async def test_a_body_that_does_not_arrive_is_not_waited_for(self, connect: Connect) -> None:
        hook = Hook(connect, Handler(), listed())
        assert (await hook.arrive(self.never())).status == 408
        assert hook.now == pytest.approx(10.0)
        assert hook.reads == 0

    async def test_a_caller_may_hang_up_within_its_body(self, connect: Connect) -> None:
        begun = asyncio.Event()

        async def stuck() -> AsyncIterator[bytes]:
            begun.set()
            async for part in self.never():
                yield part

        hook = Hook(connect, Handler(), listed())
        with hook.standing_still():
            task = asyncio.create_task(hook.arrive(stuck()))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert hook.reads == 0

    async def test_a_handler_is_run_to_its_end_though_the_caller_hangs_up(self, connect: Connect) -> None:
        begun, go_on, ended = asyncio.Event(), asyncio.Event(), []

        async def handler(delivery: Any) -> None:
            begun.set()
            await go_on.wait()
            ended.append(delivery)

        hook = Hook(connect, handler, listed())
        task = asyncio.create_task(hook.arrive())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await until(lambda: bool(ended))
        assert (await hook.arrive()).status == 200
        assert len(ended) == 1, "its end was noted"

    async def test_while_a_handler_runs_the_next_round_waits(self, connect: Connect) -> None:
        running = []

        async def handler(delivery: Any) -> None:
            running.append(delivery)
            assert len(running) == 1
            await hook.played.runtime.sleep(60.0)
            running.pop()

        hook = Hook(connect, handler, listed(), listed("completed"))
        answers = await asyncio.gather(hook.arrive(), later(hook, 10.0), later(hook, 20.0))
        assert {each.status for each in answers} == {200}
        assert hook.reads == 2

    async def test_those_who_hang_up_cost_no_look(self, connect: Connect) -> None:
        paid = Handler()
        hook = Hook(connect, paid, listed(), listed("completed"))
        await hook.arrive()
        with hook.standing_still():
            task = asyncio.create_task(hook.arrive())
            await until(lambda: hook.waiting == 1)
            task.cancel()
            await asyncio.wait([task])
        assert hook.waiting == 0
        assert hook.reads == 1

    async def test_one_who_hangs_up_during_a_look_leaves_it_to_the_next(self, connect: Connect) -> None:
        def read(request: Any) -> Any:
            task.cancel()
            return listed("completed")

        paid = Handler()
        hook = Hook(connect, paid, read, listed("pending"))
        task = asyncio.create_task(hook.arrive())
        late = asyncio.create_task(hook.arrive())
        assert (await late).status == 200
        assert task.cancelled()
        assert paid.states == [("r-1", "pending")]
        assert hook.reads == 2
        assert hook.now >= 5.0

    async def test_a_handler_that_is_cut_off_has_failed(self, connect: Connect) -> None:
        hook = Hook(connect, Handler(asyncio.CancelledError()), listed())  # type: ignore[arg-type] # the point
        with pytest.raises(asyncio.CancelledError):
            await hook.arrive()
        assert (await hook.arrive()).status == 200


async def later(hook: Hook, seconds: float) -> WebhookResponse:
    await hook.played.runtime.sleep(seconds)
    return await hook.arrive()


def test_a_reference_has_one_url_a_day(connect: Connect) -> None:
    hook = Hook(connect, Handler(), listed())
    hook.played.runtime.advance(DAY - 1.0)
    urls = {hook.receiver.url_for_payout("r-1", expires_in=each) for each in (1, 100, DAY)}
    assert urls == {hook.receiver.url_for_payout("r-1", expires_in=DAY)}
    others = {hook.receiver.url_for_payout("r-2"), hook.receiver.url_for_payout("r-1", expires_in=DAY + 1)}
    assert len(urls | others | {hook.url}) == 4
    hook.played.runtime.advance(1.0)
    assert hook.receiver.url_for_payout("r-1", expires_in=DAY) not in urls
