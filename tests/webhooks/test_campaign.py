"""A small version of the campaign against strangers, and that it would see a breach."""

from __future__ import annotations

import asyncio
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import pytest

from payments_async._http.types import HTTPRequest, HTTPResponse
from tests.campaigns import webhooks as campaign
from tests.support.scripted import answer
from tests.support.simulated import run_simulated


def test_repeats_of_a_valid_delivery_cost_twelve_reads_a_minute_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(campaign, "BURST", 40)
    monkeypatch.setattr(campaign, "APART", 1.0)
    found = run_simulated(campaign.repeat(6_000, seed=2))
    assert not campaign.breaches(found)
    assert found.fullest == 12
    assert len(found.told) >= 13


def test_the_campaign_would_see_a_receiver_that_reads_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("payments_async.webhooks._lookup.FLOOR", 4.0)
    monkeypatch.setattr(campaign, "BURST", 20)
    monkeypatch.setattr(campaign, "APART", 1.0)
    (breach,) = campaign.breaches(run_simulated(campaign.repeat(2_000, seed=2)))
    assert breach == "a minute held 15 requests"


class Pages:
    """A list of ten pages that stays as it is."""

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        request.sent = True
        page = int(parse_qs(urlsplit(request.url).query).get("cursor", ["0"])[0])
        rows = [{"id": f"po_{n}", "reference": f"r-{n}"} for n in range(100 * page, 100 * page + 100)]
        has_more = page < 9
        pagination = {"has_more_pages": has_more, "next_cursor": str(page + 1) if has_more else None}
        return answer(200, {"data": rows, "pagination": pagination})

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("page", [0, 2, 9])
def test_a_thousand_deliveries_a_minute_are_looked_up_wherever_among_the_newest_thousand_they_lie(
    page: int,
) -> None:
    """Those that came before are not held up by a stream of new ones, which begin at the newest page."""

    async def steadily() -> Counter[int]:
        receiver = campaign.receiver_of(Pages(), 3, lambda delivery: None)
        statuses = Counter[int]()

        async def bring(number: int) -> None:
            url = receiver.url_for_payout(f"r-{100 * page + number % 100}")
            statuses[(await receiver.receive(path=url, body=b'{"event": "payout.completed"}')).status] += 1

        async with asyncio.TaskGroup() as deliveries:
            for number in range(1_000):
                deliveries.create_task(bring(number))
                await asyncio.sleep(0.06)
        return statuses

    assert run_simulated(steadily()) == {200: 1_000}
