"""Look-ups find every record that is near enough, and none holds up the others or the waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from payments_async.webhooks import WebhookResponse
from tests.support.hooks import EMPTY, Hook, listed
from tests.support.motion import play, refusal
from tests.support.one_surface import surface as surface
from tests.support.patience import until
from tests.support.receivers import Handler, make_receiver
from tests.support.scripted import answer, lost
from tests.support.surfaces import Connect

BURST, PER_PAGE = 50, 0.6


class Payments:
    """A service with a list of payments, newest first, three on a page; notes when each page was read."""

    def __init__(self, connect: Connect, count: int) -> None:
        self.played = play(connect, self.answer)
        self.paid = Handler()
        self.receiver = make_receiver(self.played.client, on_payment=self.paid, on_payout=self.paid)
        self.urls = [self.receiver.url_for_payment(f"order-{number}") for number in range(count)]
        self.reads: list[tuple[float, str]] = []

    def answer(self, request: Any) -> Any:
        """One page; its cursor is the number of its first payment."""
        cursor = request.url.partition("&cursor=")[2]
        self.reads.append((self.played.runtime.monotonic(), cursor))
        numbers = range(len(self.urls))[int(cursor or 0) :][:3]
        items = [{"id": f"pi_{n}", "webhook_url": self.urls[n]} for n in numbers]
        following = numbers[-1] + 1 if numbers and numbers[-1] + 1 < len(self.urls) else None
        return answer(200, {"data": items, "pagination": {"next_cursor": following and str(following)}})

    async def arrive(self, url: str) -> int:
        return int((await self.receiver.receive(path=url)).status)

    @property
    def pages(self) -> int:
        return len(self.reads)


@pytest.mark.parametrize("number", [0, 2, 3, 3 * BURST + 29])
async def test_a_payment_is_found_wherever_it_is(connect: Connect, number: int) -> None:
    service = Payments(connect, 3 * BURST + 60)
    assert await service.arrive(service.urls[number]) == 200
    assert service.pages == number // 3 + 1
    assert [each.record.id for each in service.paid.given] == [f"pi_{number}"]


async def test_pages_come_in_a_burst_and_then_one_at_a_time_until_the_time_is_over(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    service = Payments(connect, 3_000)
    assert await service.arrive(service.receiver.url_for_payment("nobody")) == 503
    moments = [moment for moment, _ in service.reads]
    assert moments[: BURST + 1] == pytest.approx([0.0] * (BURST + 1))
    assert moments[BURST + 1 :] == pytest.approx([PER_PAGE * n for n in range(1, len(moments) - BURST)])
    assert 17.0 < moments[-1] <= 18.0
    assert "its time was over" in caplog.text


async def test_a_new_payment_does_not_wait_for_one_that_is_looked_for_further_back(connect: Connect) -> None:
    service = Payments(connect, 3_000)
    absent = asyncio.create_task(service.arrive(service.receiver.url_for_payment("nobody")))
    await service.played.runtime.sleep(5.0)
    for number in range(3):
        assert await service.arrive(service.urls[number]) == 200
    assert service.played.runtime.monotonic() <= 5.0 + 4 * PER_PAGE
    assert not absent.done()
    assert await absent == 503
    assert service.pages <= BURST + 1 + 18.0 / PER_PAGE


async def test_a_wait_and_a_delivery_share_their_pages(connect: Connect) -> None:
    pages: list[str] = []

    def read(request: Any) -> Any:
        pages.append(request.url)
        data = [{"id": f"po_{n}", "reference": f"r-{n}", "status": "completed"} for n in range(2)]
        return answer(200, {"data": data})

    played, paid = play(connect, read), Handler()
    receiver = make_receiver(played.client, on_payout=paid)
    delivery = receiver.receive(path=receiver.url_for_payout("r-1"))
    response, waited = await asyncio.gather(delivery, played.client.payouts.wait("po_0"))
    assert (response.status, waited.id) == (200, "po_0")
    assert len(pages) == 1


async def test_a_caller_who_gave_up_is_not_read_for(connect: Connect) -> None:
    service = Payments(connect, 3_000)
    hasty = asyncio.create_task(service.arrive(service.receiver.url_for_payment("nobody")))
    await service.played.runtime.sleep(5.0)
    hasty.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hasty
    read = service.pages
    await service.played.runtime.sleep(30.0)
    assert service.pages == read


# Looks at one record are five seconds apart, share their answer, and lose neither a state nor a delivery


async def test_what_comes_during_a_look_is_served_by_the_next_one(connect: Connect) -> None:
    late: list[asyncio.Task[WebhookResponse]] = []
    loop = asyncio.get_running_loop()

    def read(request: Any) -> Any:
        if not late:
            loop.call_soon_threadsafe(lambda: late.append(loop.create_task(hook.arrive())))
        return listed("pending" if hook.reads == 1 else "completed")

    paid = Handler()
    hook = Hook(connect, paid, read)
    await hook.arrive()
    await until(lambda: bool(late))
    assert (await late[0]).status == 200
    assert [status for _, status in paid.states] == ["pending", "completed"]


async def test_a_delivery_during_a_lookup_of_many_requests_is_refused_when_that_ends(
    connect: Connect,
) -> None:
    hook = Hook(connect, Handler(), lost())
    with hook.standing_still():
        first = asyncio.create_task(hook.arrive())
        await until(lambda: hook.reads == 1)
        late = asyncio.create_task(hook.arrive())
        await until(lambda: hook.waiting == 1)
    assert ((await first).status, (await late).status) == (503, 503)
    assert hook.reads > 1
    assert 5 * hook.reads < int((await late).headers["Retry-After"]) <= 5 * hook.reads + 2
    assert hook.now < 5.0, "it did not wait"


async def test_more_than_can_wait_are_told_to_come_again(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async.webhooks._lookup.MOST_WAITING", 2)
    hook = Hook(connect, Handler(), listed())
    await hook.arrive()
    with hook.standing_still():
        patient = [asyncio.create_task(hook.arrive()) for _ in range(2)]
        await until(lambda: hook.waiting == 2)
        for _ in range(20):
            turned_away = await hook.arrive()
            assert (turned_away.status, turned_away.headers) == (503, {"Retry-After": "5"})
    assert {each.status for each in await asyncio.gather(*patient)} == {200}
    assert hook.reads == 2


async def test_urls_without_deliveries_are_forgotten(connect: Connect) -> None:
    hook = Hook(connect, Handler(), EMPTY)
    for number in range(20):
        hook.url = hook.receiver.url_for_payout(f"r-{number}")
        assert (await hook.arrive(b"")).status == 503
        hook.played.runtime.advance(16.0)
    assert len(hook.coalescers[0]._urls) == 1


async def test_urls_beyond_the_many_looked_into_are_told_to_come_again(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning a minute counts them, and names no URL."""
    monkeypatch.setattr("payments_async.webhooks._lookup.MOST_URLS", 0)
    hook = Hook(connect, Handler(), listed())
    for seconds in (0.0, 10.0, 49.0, 1.0):
        hook.played.runtime.advance(seconds)
        assert (await hook.arrive()).status == 503
    assert hook.reads == 0
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            f"no room for {count} webhook deliveries, which will come again: too many wait for a look-up",
        )
        for count in (1, 3)
    ]
    assert hook.url.rpartition("/")[2] not in caplog.text


async def test_a_round_answers_each_delivery_by_what_it_named(connect: Connect) -> None:
    hook = Hook(connect, Handler(), listed())
    await hook.arrive()
    with hook.standing_still():
        own = asyncio.create_task(hook.arrive())
        other = asyncio.create_task(hook.receiver.receive(path=hook.url, body=b'{"payout": {"id": "po_2"}}'))
        await until(lambda: hook.waiting == 2)
    assert [(await own).status, (await other).status] == [200, 404]


async def test_a_look_that_cost_many_requests_is_paid_for_with_time(connect: Connect) -> None:
    hook = Hook(connect, Handler(), EMPTY, refusal(404), listed())
    await hook.arrive()
    soon = await hook.arrive()
    assert (soon.status, soon.headers, hook.reads) == (503, {"Retry-After": "11"}, 2)


CROWDED = answer(200, {"data": [{"id": "po_1", "status": "completed", "reference": "r-1"}] * 1_001})


@pytest.mark.parametrize("trouble", [refusal(401), refusal(503), lost(), CROWDED])
async def test_a_service_that_cannot_be_read_has_to_try_again(
    connect: Connect, trouble: Any, caplog: pytest.LogCaptureFixture
) -> None:
    paid = Handler()
    hook = Hook(connect, paid, trouble)
    assert (await hook.arrive()).status == 503
    assert not paid.given
    assert "could not be checked" in caplog.text


async def test_a_fault_of_our_own_ends_nobodys_wait(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(record: Any) -> str:
        raise ZeroDivisionError

    hook = Hook(connect, Handler(), listed())
    monkeypatch.setattr("payments_async._waits.sweep.keys_of", broken)
    assert (await hook.arrive()).status == 500
    assert "ZeroDivisionError" in caplog.text


class Store:
    """A store of coroutine functions, which fails on its first so many calls."""

    def __init__(self, **failing: int) -> None:
        self.states: list[str] = []
        self._failing = failing

    def __len__(self) -> int:
        return len(self.states)  # a store that is false while it is empty is used all the same

    async def seen(self, state: str) -> bool:
        self._fail("seen")
        return state in self.states

    async def add(self, state: str) -> None:
        self._fail("add")
        self.states.append(state)

    def _fail(self, name: str) -> None:
        if self._failing.get(name, 0):
            self._failing[name] -= 1
            raise ConnectionError("store away")


async def test_a_shared_store_spares_a_second_process_the_repeat(connect: Connect) -> None:
    store, paid = Store(), Handler()
    for _ in range(2):
        hook = Hook(connect, paid, listed("completed", completed_at="2026-01-01T00:00:05Z"), seen=store)
        assert (await hook.arrive()).status == 200
    assert len(paid.given) == 1
    assert store.states == ["po_1 completed completed_at"]


@pytest.mark.parametrize(("method", "handled"), [("seen", 1), ("add", 2)])
async def test_a_failing_store_has_the_service_try_again(
    connect: Connect, method: str, handled: int, caplog: pytest.LogCaptureFixture
) -> None:
    store, paid = Store(**{method: 1}), Handler()
    hook = Hook(connect, paid, listed(), seen=store)
    assert (await hook.arrive()).status == 500
    assert (await hook.arrive()).status == 200
    assert len(paid.given) == handled
    assert "store away" in caplog.text


async def test_a_payout_without_its_reference_is_known_by_its_url(connect: Connect) -> None:
    paid = Handler()
    pages: list[Any] = []
    hook = Hook(connect, paid, lambda request: pages[0])
    pages.append(listed(reference=None, webhook_url=hook.url))
    assert (await hook.arrive()).status == 200
    assert len(paid.given) == 1


async def test_a_payment_without_its_url_is_known_by_its_metadata(connect: Connect) -> None:
    moved = Handler()
    payments = [{"id": "pi_0", "status": "pending"}, {"id": "pi_1", "metadata": {"reference": "order-7"}}]
    played = play(connect, answer(200, {"data": payments}))
    receiver = make_receiver(played.client, on_payment=moved)
    assert (await receiver.receive(path=receiver.url_for_payment("order-7"))).status == 200
    assert [each.record.id for each in moved.given] == ["pi_1"]


async def test_urls_of_one_day_share_a_walk_and_others_have_their_own(connect: Connect) -> None:
    paid = Handler()
    page = answer(200, {"data": [{"id": f"po_{each}", "reference": f"r-{each}"} for each in range(5)]})
    played = play(connect, page)
    receiver = make_receiver(played.client, on_payout=paid)
    old = receiver.url_for_payout("r-0")
    played.runtime.advance(10 * 86_400.0)
    assert (await receiver.receive(path=old)).status == 200
    urls = [receiver.url_for_payout(f"r-{each}") for each in range(1, 5)]
    answers = [asyncio.create_task(receiver.receive(path=url)) for url in urls]
    assert {each.status for each in await asyncio.gather(*answers)} == {200}
    assert len(paid.given) == 5
    first, second = [request.url for request in played.transport.requests]
    assert "gte%5D=2025-12-31" in first
    assert "lte%5D=2026-01-03" in first
    assert "gte%5D=2026-01-10" in second
    assert "lte%5D=2026-01-13" in second


async def test_a_record_listed_twice_is_one(connect: Connect) -> None:
    paid = Handler()
    pair = [{"id": "po_1", "status": status, "reference": "r-1"} for status in ("completed", "pending")]
    hook = Hook(connect, paid, answer(200, {"data": pair}))
    assert (await hook.arrive()).status == 200
    assert paid.states == [("r-1", "completed")], "the newer page item counts"


async def test_an_error_further_back_spares_what_was_found(connect: Connect) -> None:
    paid = Handler()
    first = {"data": [{"id": "po_1", "reference": "r-1"}], "pagination": {"next_cursor": "c1"}}
    hook = Hook(connect, paid, listed(), answer(200, first), refusal(401))
    assert (await hook.arrive()).status == 200
    urls = [hook.receiver.url_for_payout(f"r-{number}", expires_in=60) for number in (1, 2)]
    looks = [asyncio.create_task(hook.receiver.receive(path=url)) for url in urls]
    assert [(await look).status for look in looks] == [200, 503]
    assert cursors_of(hook) == ["", "", "c1"]
    assert len(paid.given) == 2


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ({}, "cannot be read to its end"),
        ({"pagination": {"has_more_pages": True}}, "cannot be read to its end"),
        ({"pagination": {"next_cursor": "c1"}}, "to its end (the service gave the same cursor twice)"),
        ({"pagination": {"next_cursor": None}}, "is not listed"),
    ],
)
async def test_a_record_is_called_unlisted_only_where_the_list_was_read_to_its_end(
    connect: Connect, caplog: pytest.LogCaptureFixture, says: dict[str, Any], told: str
) -> None:
    hook = Hook(connect, Handler(), answer(200, {"data": [{"id": "po_2", "reference": "r-2"}], **says}))
    assert (await hook.arrive(b"")).status == 503
    (line,) = caplog.messages
    assert told in line


def cursors_of(hook: Hook) -> list[str]:
    return [request.url.partition("&cursor=")[2] for request in hook.played.transport.requests]


def invalid(**errors: list[str]) -> Any:
    return answer(422, {"message": "invalid", "errors": errors})


PAGES = {
    **{each: answer(200, {"data": [], "pagination": {"next_cursor": each}}) for each in ("c1", "c2")},
    "end": EMPTY,
    "pending": listed(),
    "completed": listed("completed"),
    "large": invalid(per_page=["at most 50"]),
    "early": invalid(**{"created_at[gte]": ["too long ago"]}),
    "refused": invalid(),
}
"""What the service answers: no record and where the list goes on, a record, a refusal and its reason."""
LOOKS = [
    # what the service answers; what we answer; from where pages are asked for; how many of 100
    ("c1 c2 end pending", "503 200", " c1 c2 ", 4),  # listed late: the next look begins anew
    ("c1 pending completed", "200 200", " c1 ", 3),
    ("large pending completed", "200 200", "  ", 1),  # the service's own size (gap D) is kept
    ("c1 large pending", "200", " c1 c1", 2),
    ("refused pending", "503 200", " ", 2),  # a refusal for another reason leaves the size as it was
    ("early pending", "503 200", " ", 2),
]


@pytest.mark.parametrize(("script", "statuses", "cursors", "sized"), LOOKS)
async def test_the_pages_of_one_look_after_another(
    connect: Connect, script: str, statuses: str, cursors: str, sized: int
) -> None:
    hook = Hook(connect, Handler(), *(PAGES[each] for each in script.split()))
    for status in statuses.split():
        assert (await hook.arrive(b"")).status == int(status)
        hook.played.runtime.advance(16.0)
    assert cursors_of(hook) == cursors.split(" ")
    requests = hook.played.transport.requests
    assert ["per_page=100" in request.url for request in requests] == [
        n < sized for n in range(len(requests))
    ]
