"""Look-ups find every record that is near enough, and none holds up the others or the waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.motion import play
from tests.support.one_surface import surface as surface
from tests.support.receivers import Handler, make_receiver
from tests.support.scripted import answer
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
