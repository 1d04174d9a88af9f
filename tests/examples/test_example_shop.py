"""The example shop: an order is paid when the service says so, and by no other word."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import attrs
import pytest
import pytest_asyncio

from payments_async.sandbox import Sandbox
from payments_async.testing import SkippingRuntime
from tests.support.patience import PATIENCE
from tests.support.shop import shop_beside

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it


@attrs.frozen
class Visit:
    """A payer without a browser."""

    sandbox: Sandbox
    shop: Any
    address: str
    http: aiohttp.ClientSession

    async def buys(self) -> tuple[str, str]:
        """The order's number and the checkout's id."""
        async with self.http.post(f"{self.address}/orders", allow_redirects=False) as answer:
            assert answer.status == 303
            checkout = answer.headers["Location"].rpartition("/")[2]
        (number,) = self.shop.orders
        return number, checkout

    async def sees(self, number: str, *, back: bool = False) -> str:
        """The headline of the order's page, as it is opened or as the checkout leads there."""
        async with self.http.get(f"{self.address}/orders/{number}{'/back' * back}") as answer:
            return (await answer.text()).split("<h1>")[1].split("</h1>")[0]

    async def sides(self, number: str, *, back: bool = False) -> list[dict[str, Any]]:
        """Both sides of the split view: their facts, and what happened without its times."""
        async with self.http.get(f"{self.address}/orders/{number}{'/back' * back}") as answer:
            html = await answer.text()
        return [_facts(side) for side in re.findall(r'<section class="side".*?</section>', html, re.DOTALL)]

    def reads(self) -> int:
        """How often the checkout was read."""
        return sum(request.operation == "checkouts.retrieve" for request in self.sandbox.requests)

    async def hears(self) -> None:
        """Until every webhook that is due was delivered."""
        await asyncio.to_thread(self.sandbox.wait_for_webhooks)


def _facts(side: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        name: _text(value) for name, value in re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", side)
    }
    events = re.findall("</time>(.*?)</li>", side)
    return {**facts, "Events": [_text(event) for event in events]}


def _text(html: str) -> str:
    return " ".join(re.sub("<[^>]*>", " ", html).split())


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox, whose time is the shop's."""
    with Sandbox() as sandbox:
        yield sandbox


@pytest_asyncio.fixture
async def visit(sandbox: Sandbox) -> AsyncIterator[Visit]:
    runtime = SkippingRuntime(sandbox)  # the receiver rests for no time
    beside = shop_beside(sandbox, runtime, runtime.transport())
    async with beside as (shop, address), aiohttp.ClientSession() as http:
        yield Visit(sandbox, shop, address, http)


async def test_the_front_page_has_a_button_a_price_and_files_of_its_own(visit: Visit) -> None:
    async with visit.http.get(visit.address) as answer:
        html = await answer.text()
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert "<button>Buy the cup</button>" in html
    assert "GHS 25.50" in html
    assert " style=" not in html
    for path in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', html)):
        async with visit.http.get(f"{visit.address}{path}") as answer:
            assert answer.status == 200


async def test_the_checkout_has_the_shop_s_name_colour_and_logo(visit: Visit) -> None:
    number, _ = await visit.buys()
    async with visit.http.get(visit.shop.orders[number].checkout_url) as answer:
        html = await answer.text()
    for part in ("Kiln", "#a8431d", f'src="{visit.address}/static/logo.svg"'):
        assert part in html


async def test_the_split_view_shows_that_only_what_was_read_counts(visit: Visit) -> None:
    number, checkout = await visit.buys()
    shop, service = await visit.sides(number)
    assert (shop["Paid"], service["Payment"]) == ("No", "Open")
    shop, service = await visit.sides(number, back=True)
    assert shop["Events"][-1] == "The payer came back to return_url Proves nothing"
    visit.sandbox.forge(checkout, "payment.completed")
    await visit.hears()
    shop, service = await visit.sides(number)
    assert shop["Events"][-1] == "A webhook arrived: anybody may have sent it Only a hint"
    assert (shop["Paid"], service["Payment"]) == ("No", "Open")
    visit.sandbox.pay(checkout, outcome="fail:CUSTOMER_DECLINED")
    visit.sandbox.advance(5)
    await visit.hears()
    _, service = await visit.sides(number)
    assert (service["Payment"], service["Method"]) == ("Open, an attempt failed", "Sandbox Mobile")
    visit.sandbox.pay(checkout)
    visit.sandbox.advance(5)
    await visit.hears()
    shop, service = await visit.sides(number)
    assert (shop["Paid"], service["Payment"]) == ("Yes", "Completed")
    assert service["Amount"] == shop["Price"] == "GHS 25.50"
    assert service["Events"][-1] == "Read through the API: completed"
    assert "The order is paid, and the cup is packed" in shop["Events"]


async def test_an_order_that_was_not_read_yet_says_so(visit: Visit) -> None:
    visit.sandbox.on("checkouts.retrieve").respond("http:404", times=None)
    number, _ = await visit.buys()
    _, service = await visit.sides(number)
    assert service == {"Payment": "Not read yet", "Events": []}


async def test_an_order_is_paid_once_the_webhook_was_checked(visit: Visit) -> None:
    number, checkout = await visit.buys()
    assert await visit.sees(number) == "Not paid yet"
    visit.sandbox.pay(checkout)
    await visit.hears()
    assert visit.shop.orders[number].paid, "its page was not opened meanwhile"
    assert await visit.sees(number) == "Paid"
    assert {webhook.state for webhook in visit.sandbox.webhooks} == {"delivered"}


async def test_a_forged_webhook_at_the_order_s_own_address_pays_nothing(visit: Visit) -> None:
    number, checkout = await visit.buys()
    visit.sandbox.forge(checkout, "payment.completed")
    await visit.hears()
    assert any(request.operation == "payment_intents.list" for request in visit.sandbox.requests), "it looked"
    assert await visit.sees(number) == "Not paid yet"


async def test_a_webhook_at_a_guessed_address_is_not_even_read(visit: Visit) -> None:
    number, _ = await visit.buys()
    before = len(visit.sandbox.requests)
    async with visit.http.post(
        f"{visit.address}/hooks/{number}", json={"event": "payment.completed"}
    ) as answer:
        assert answer.status == 404
    assert len(visit.sandbox.requests) == before
    assert await visit.sees(number) == "Not paid yet"


async def test_a_declined_payment_leaves_the_order_open(visit: Visit) -> None:
    number, checkout = await visit.buys()
    visit.sandbox.pay(checkout, outcome="fail:DECLINED")
    await visit.hears()
    assert await visit.sees(number) == "Not paid yet"


async def test_a_payment_of_another_amount_does_not_pay_the_order(visit: Visit) -> None:
    number, checkout = await visit.buys()
    visit.shop.orders[number].amount += 1
    visit.sandbox.pay(checkout)
    await visit.hears()
    assert await visit.sees(number) == "We are checking your payment"
    assert not visit.shop.orders[number].paid


async def test_an_order_whose_webhooks_are_dropped_is_paid_when_its_page_is_opened(visit: Visit) -> None:
    visit.sandbox.on("checkouts.create").webhook("drop")
    number, checkout = await visit.buys()
    assert await visit.sees(number) == "Not paid yet"
    visit.sandbox.pay(checkout)
    assert await visit.sees(number, back=True) == "We are checking your payment", "it looked just now"
    visit.sandbox.advance(5)
    assert await visit.sees(number) == "Paid"
    assert visit.reads() == 2


async def test_a_payer_who_comes_back_sees_at_once_what_came_of_it(visit: Visit) -> None:
    visit.sandbox.on("checkouts.create").webhook("drop")
    number, checkout = await visit.buys()
    visit.sandbox.pay(checkout)
    assert await visit.sees(number, back=True) == "Paid"


async def test_a_payer_who_was_declined_is_asked_to_pay_again(visit: Visit) -> None:
    visit.sandbox.on("checkouts.create").webhook("drop")
    number, checkout = await visit.buys()
    visit.sandbox.pay(checkout, outcome="fail:CUSTOMER_DECLINED")
    assert await visit.sees(number, back=True) == "Not paid yet"
    visit.sandbox.pay(checkout, outcome="hang")
    visit.sandbox.advance(5)
    assert await visit.sees(number) == "We are checking your payment"


async def test_however_often_the_page_is_loaded_the_checkout_is_read_every_five_seconds(visit: Visit) -> None:
    number, _ = await visit.buys()
    await asyncio.gather(*(visit.sees(number) for _ in range(5)))
    assert visit.reads() == 1
    visit.sandbox.advance(5)
    await asyncio.gather(*(visit.sees(number) for _ in range(5)))
    assert visit.reads() == 2


async def test_a_reading_that_fails_leaves_the_page_as_it_was(visit: Visit) -> None:
    number, _ = await visit.buys()
    visit.sandbox.on("checkouts.retrieve").respond("http:404")
    assert await visit.sees(number, back=True) == "We are checking your payment"


async def test_a_service_that_hangs_keeps_the_page_no_longer_than_its_patience(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, _ = await visit.buys()
    visit.sandbox.on("checkouts.retrieve").respond("hang", times=None)
    for seconds in PATIENCE:
        monkeypatch.setattr(sys.modules["shop"], "PATIENCE", seconds)
        visit.sandbox.advance(5)  # it looks again
        assert await visit.sees(number, back=True) == "We are checking your payment"
        if visit.reads():
            break
    assert visit.reads() == 1, "as long for each try would be three times the patience"


async def test_a_service_that_refuses_is_named_as_such(visit: Visit) -> None:
    visit.sandbox.on("checkouts.create").respond("http:422")
    async with visit.http.post(f"{visit.address}/orders") as answer:
        assert answer.status == 503
        assert "Nothing was paid" in await answer.text()


async def test_an_order_that_there_is_not_has_no_page(visit: Visit) -> None:
    async with visit.http.get(f"{visit.address}/orders/none") as answer:
        assert answer.status == 404
