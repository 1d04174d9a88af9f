"""Many waits share one reading of the list; the ways in which a single one ends do not concern the others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from payments_async import (
    AsyncPayments,
    AuthenticationError,
    DecodeError,
    InvalidRequest,
    PermissionDeniedError,
    SearchIncomplete,
    WaitTimeout,
)
from payments_async.sandbox import Sandbox
from tests.campaigns.waits import run
from tests.support.motion import PAYOUT, play, refusal
from tests.support.scripted import SilentTransport, answer
from tests.support.surfaces import Connect
from tests.support.waits import Watched, gaps

MOMENT = "2026-01-02T00:00:00Z"


def payout(**changes: Any) -> dict[str, Any]:
    return {"id": "po_1", "status": "pending", "created_at": "2026-01-01T12:00:00Z", **changes}


def page(*payouts: dict[str, Any], cursor: str | None = None) -> Any:
    return answer(200, {"data": list(payouts), "pagination": {"next_cursor": cursor}})


@pytest.mark.fact("states.non-final")
@pytest.mark.parametrize("changes", [{"status": None, "completed_at": MOMENT}, {"status": "reversed"}])
async def test_a_wait_ends_with_what_the_model_calls_final(connect: Connect, changes: Any) -> None:
    played = play(connect, page(payout(status="brand_new")), page(payout()), page(payout(**changes)))
    final = await played.client.payouts.wait("po_1")
    assert (final.id, final.is_final) == ("po_1", True)
    assert len(played.transport.requests) == 3


async def test_the_list_is_read_back_to_the_day_of_the_oldest_record(connect: Connect) -> None:
    """The token of a wait has that day, too."""
    played = play(connect, page(payout()), page(payout()), page(payout(completed_at=MOMENT)))
    (listed,) = await played.client.payouts.list()
    with pytest.raises(WaitTimeout) as caught:
        await played.client.payouts.wait(listed, deadline=1.0)
    await played.client.payouts.wait(caught.value.token)
    for request in played.transport.requests[1:]:
        assert "created_at%5Bgte%5D=2026-01-01" in request.url
        assert "per_page=100" in request.url


async def test_pages_are_read_until_the_record_was_seen(connect: Connect) -> None:
    final = payout(completed_at=MOMENT)
    played = play(connect, page(payout(id="po_2"), cursor="c1"), page(payout(id="po_3"), final, cursor="c2"))
    assert (await played.client.payouts.wait("po_1")).is_final
    assert len(played.transport.requests) == 2
    assert "cursor=c1" in played.transport.requests[1].url


async def test_a_list_without_end_is_read_at_a_hundredth_of_the_limit_and_no_further_than_this(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("payments_async._waits.schedule.MAX_PAGES", 250)
    read_at: list[float] = []

    def read(request: Any) -> Any:
        read_at.append(played.runtime.monotonic())
        return page(cursor=f"c{len(read_at)}")

    played = play(connect, read)
    with pytest.raises(WaitTimeout, match="newest 250 pages") as caught:
        await played.client.payouts.wait("po_1", deadline=200.0)
    assert isinstance(caught.value.__cause__, SearchIncomplete)
    assert len(read_at) == 250
    assert read_at[99] - read_at[0] < 1.0, "the newest pages come at once"
    assert all(later - earlier >= 59.9 for earlier, later in zip(read_at, read_at[100:], strict=False))


@pytest.mark.parametrize(
    ("pages", "chance", "first", "longest"),
    [
        (1, 0.0, [5.0, 7.5, 11.25], 60.0),
        (1, 0.5, [5.5, 8.25, 12.375], 66.0),
        (1, 1 - 2**-53, [6.0, 9.0, 13.5], 72.0),
        (20, 0.0, [12.0, 12.0, 12.0], 60.0),
    ],
)
async def test_readings_grow_apart_while_nothing_changes_and_with_the_pages(
    connect: Connect, pages: int, chance: float, first: list[float], longest: float
) -> None:
    read_at: list[float] = []

    def read(request: Any) -> Any:
        number = int(request.url.partition("&cursor=")[2] or 1)
        if number == 1:
            read_at.append(played.runtime.monotonic())
        return page(payout()) if number == pages else page(cursor=str(number + 1))

    played = play(connect, read)
    played.runtime.random = lambda: chance
    with pytest.raises(WaitTimeout):
        await played.client.payouts.wait("po_1", deadline=900.0)
    waited = gaps(read_at)
    assert waited[:3] == pytest.approx(first)
    assert max(waited) == pytest.approx(longest)
    assert played.runtime.monotonic() == pytest.approx(900.0), "the time given is used"


async def test_a_repeated_cursor_ends_the_waits_whose_payouts_were_not_shown_alone(connect: Connect) -> None:
    """A reader that followed the cursor again would read each page many times a second (gap C)."""
    repeats: list[str] = []

    def read(request: Any) -> Any:
        if "cursor" in request.url:
            repeats.append(request.url)
            return page(cursor="c1")
        ended = {"completed_at": MOMENT} if repeats else {}
        return page(payout(**ended), cursor="c1")

    played = play(connect, read)
    waits = (played.client.payouts.wait(wanted) for wanted in ("po_1", "po_2"))
    shown, missing = await asyncio.gather(*waits, return_exceptions=True)
    assert shown.is_final
    assert isinstance(missing, SearchIncomplete)
    assert "the same cursor twice" in str(missing)
    assert "check its id" not in str(missing)
    assert (missing.pages, missing.cursor, missing.effect) == (2, None, "none")


async def test_a_record_from_before_all_days_is_waited_for_without_a_date(connect: Connect) -> None:
    """One such record, in a token or from the service, must not fail the readings of all waits."""
    old = payout(created_at="0001-01-01T00:00:00+14:00")
    played = play(connect, page(old), page({**old, "completed_at": "2026-01-02T00:00:00Z"}))
    (listed,) = await played.client.payouts.list()
    assert (await played.client.payouts.wait(listed)).is_final
    assert "created_at" not in played.transport.requests[1].url


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (refusal(401), AuthenticationError),
        (refusal(403), PermissionDeniedError),
        (answer(200, b"<html>"), DecodeError),
    ],
)
async def test_a_failure_that_stays_ends_every_wait_at_once_and_none_that_comes_later(
    connect: Connect, fault: Any, error: type[Exception]
) -> None:
    mended = asyncio.Event()  # not before all have ended: a blocking wait may begin after the others' reading
    first = iter([page()])
    played = play(
        connect, lambda _: page(payout(completed_at=MOMENT)) if mended.is_set() else next(first, fault)
    )
    waits = (played.client.payouts.wait(f"po_{number}") for number in range(5))
    assert [type(end) for end in await asyncio.gather(*waits, return_exceptions=True)] == [error] * 5
    mended.set()
    assert (await played.client.payouts.wait("po_1")).is_final


REFERRED = payout(id="po_7", reference="invoice-7")


@pytest.mark.parametrize("pages", [[page(REFERRED)], [page(REFERRED, cursor="c1"), page(payout())]])
async def test_a_reference_in_place_of_an_id_is_refused_once_the_whole_list_shows_it(
    connect: Connect, pages: list[Any]
) -> None:
    played = play(connect, *pages, page(payout(id="po_2", completed_at=MOMENT)))
    waits = (played.client.payouts.wait("invoice-7"), played.client.payouts.wait("po_2"))
    refused, final = await asyncio.gather(*waits, return_exceptions=True)
    assert isinstance(refused, InvalidRequest)
    assert refused.effect == "none"
    assert "payouts.find(reference)" in refused.errors["payout_id"][0]
    assert final.is_final, "others go on"
    assert len(played.transport.requests) == len(pages) + 1


async def test_a_reference_that_is_an_id_too_is_waited_for_as_an_id(connect: Connect) -> None:
    other = payout(id="po_2", reference="po_1")
    played = play(connect, page(other, payout()), page(other, payout(completed_at=MOMENT)))
    assert (await played.client.payouts.wait("po_1")).id == "po_1"


@pytest.mark.parametrize("pagination", [{}, {"has_more_pages": True}])
async def test_a_list_that_was_not_read_whole_refuses_no_id(connect: Connect, pagination: Any) -> None:
    played = play(connect, answer(200, {"data": [REFERRED], "pagination": pagination}))
    with pytest.raises(WaitTimeout):
        await played.client.payouts.wait("invoice-7", deadline=60.0)


async def test_a_payout_that_was_seen_is_waited_for_though_the_list_loses_it(connect: Connect) -> None:
    hidden = [page(payout(id="po_7", reference="po_1"))] * 3
    played = play(connect, page(payout()), *hidden, page(payout(completed_at=MOMENT)))
    assert (await played.client.payouts.wait("po_1")).is_final


@pytest.mark.parametrize(("late", "final"), [(None, "failed"), ("refunded", "refunded")])
async def test_a_checkout_without_a_status_takes_that_of_the_list(
    connect: Connect, late: str | None, final: str
) -> None:
    reads = [
        answer(200, {"data": {"checkout": {"id": "cs_1"}, "payment": {"id": "pi_1", "status": status}}})
        for status in (None, late)
    ]
    played = play(connect, reads[0], page({"id": "pi_1", "status": "failed"}), reads[1])
    payment = (await played.client.checkouts.wait("cs_1")).payment
    assert (payment.status, payment.is_final, payment.is_successful) == (final, True, False)


@pytest.mark.parametrize("surface", ["async"], indirect=True)  # threads may begin one after the other
async def test_two_waits_for_a_checkout_share_each_reading_of_it(connect: Connect) -> None:
    read = answer(200, {"data": {"checkout": {"id": "cs_1"}, "payment": {"id": "pi_1"}}})
    played = play(connect, read, page({"id": "pi_1", "status": "completed"}), read)
    ended = await asyncio.gather(*(played.client.checkouts.wait("cs_1") for _ in range(2)))
    assert [checkout.payment.status for checkout in ended] == ["completed"] * 2


async def test_who_was_served_by_a_walk_does_not_hear_of_its_end(connect: Connect) -> None:
    class AtOnce:
        """Answers without ever giving way, so that nobody served has left when the walk fails."""

        async def send(self, request: Any) -> Any:
            request.sent = True
            return refusal(403) if "cursor" in request.url else page(payout(status="completed"), cursor="c1")

        async def aclose(self) -> None:
            """Nothing is open."""

    client = connect(transport=AtOnce())
    served, refused = await asyncio.gather(
        client.payouts.wait("po_1"), client.payouts.wait("po_2"), return_exceptions=True
    )
    assert served.is_final
    assert isinstance(refused, PermissionDeniedError)


async def test_an_attempt_that_another_one_replaced_is_read_ever_more_rarely(connect: Connect) -> None:
    """The list shows the active attempt alone, so that this one has to be read by itself."""
    attempt = answer(200, {"data": {"id": "pa_1"}})
    listed = page({"id": "pi_1", "status": "pending", "active_attempt": {"id": "pa_2"}})
    played = play(connect, *[attempt, listed] * 100)
    with pytest.raises(WaitTimeout) as caught:
        await played.client.payment_intents.wait_attempt("pi_1", "pa_1", deadline=900.0)
    assert caught.value.last.id == "pa_1"
    assert len(played.transport.requests) <= 2 * 20


async def test_nothing_is_read_after_the_last_wait_was_given_up(sandbox: Sandbox) -> None:
    world = Watched(
        sandbox, lambda made, **options: AsyncPayments(made.api_key, base_url=made.base_url, **options)
    )
    client = world.client()
    sandbox.on("payouts.create").outcome("manual")
    made = await client.payouts.create(**PAYOUT)
    task = asyncio.create_task(client.payouts.wait(made))
    while not list(world.reads()):  # noqa: ASYNC110 - the service is on another thread
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    reads = len(list(world.reads()))
    await asyncio.sleep(0.01)
    assert len(list(world.reads())) == reads


def test_a_wait_whose_loop_was_closed_is_forgotten_without_a_word() -> None:
    """What a finaliser raises is printed, and pytest makes it a failure of our users' tests."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # "Task was destroyed but it is pending"
    client = AsyncPayments("sk_sandbox_left", base_url="http://127.0.0.1:9/v1", transport=SilentTransport())
    wait: Any = loop.create_task(client.payouts.wait("po_1"))
    for _ in range(5):  # until its reading is under way
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    wait.get_coro().close()  # as the garbage collector does


async def test_a_given_up_reading_of_many_pages_keeps_its_distance(connect: Connect) -> None:
    played = play(connect, *(page(cursor=f"c{number}") for number in range(200)))
    for _ in range(2):
        with pytest.raises(WaitTimeout):
            await played.client.payouts.wait("po_1", deadline=4.0)
    assert len(played.transport.requests) == 100, (
        "the second wait came in the rest after the first one's pages"
    )


def test_a_thousand_waits_cost_a_hundredth_of_the_read_limit() -> None:
    found = run(1_000)
    print(found)
    assert found.ended == 1_000
    assert found.most_a_minute <= 100
    assert found.shortest_interval >= 5.0


async def test_raising_at_the_limit_does_not_end_a_wait(connect: Connect) -> None:
    played = play(connect, refusal(429, {"Retry-After": "9"}), page(payout(completed_at=MOMENT)))
    assert (await played.client.with_options(on_limit="raise").payouts.wait("po_1")).is_final


ENDED = {"id": None, "completed_at": MOMENT}


def nameless(payment: Any) -> Any:
    return answer(200, {"data": {"checkout": {"id": "cs_1"}, "payment": payment}})


@pytest.mark.parametrize("payment", [None, {"id": None}])
async def test_a_checkout_whose_payment_has_no_id_is_read_again_until_the_time_is_over(
    connect: Connect, payment: Any
) -> None:
    played = play(connect, nameless(payment))
    with pytest.raises(WaitTimeout) as caught:
        await played.client.checkouts.wait("cs_1", deadline=20.0)
    assert caught.value.last.id == "cs_1"
    assert 2 <= len(played.transport.requests) <= 4
    assert 20.0 <= played.runtime.monotonic() < 21.0


@pytest.mark.parametrize("payment", [ENDED, {**ENDED, "id": "pi_1"}])
async def test_a_final_payment_without_an_id_ends_the_wait(connect: Connect, payment: Any) -> None:
    played = play(connect, nameless(None), nameless(payment))
    assert (await played.client.checkouts.wait("cs_1", deadline=20.0)).payment.is_successful
    assert len(played.transport.requests) == 2
