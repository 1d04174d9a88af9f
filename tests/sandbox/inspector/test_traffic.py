"""Figures and charts of the inspector: the last fifteen minutes, and how long answers took."""

from __future__ import annotations

import asyncio
import html
import json
import re
from pathlib import Path

import aiohttp
import pytest

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._inspector import charts
from payments_async.sandbox._inspector.filters import lasted
from payments_async.sandbox._journal import Journal, WebhookTried
from tests.sandbox.inspector.test_log import log
from tests.sandbox.inspector.test_pages import page, text_of
from tests.sandbox.raw_requests import PAYOUT, Api
from tests.support.patience import until


def bars(sandbox: Sandbox) -> dict[str, str]:
    """What each bar of the overview's chart says, and where it leads."""
    found = re.findall(r'<a href="/_sandbox/(\?[^"]*)"><rect [^>]*><text [^>]*>([^<]*)', page(sandbox))
    return {label: html.unescape(address) for address, label in found}


def test_the_chart_counts_requests_by_their_outcome_and_leads_to_them(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="early")
    sandbox.advance(45)
    sandbox.on("payouts.create").respond("http:503", times=1)
    sandbox.on("payouts.create", reference="lost").respond("lost_request", times=1)
    sandbox.on("payouts.create", reference="late-1").respond("slow:1s", times=1)
    sandbox.on("payouts.create", reference="unheard").respond("lost_response", times=1)
    for reference in ("failed", "lost", "late-1", "late-2", "unheard"):
        api.payout(reference=reference)
    api.payout(amount=-1)
    found = bars(sandbox)
    assert list(found) == [
        "00:00:00: 1 answered",
        "00:00:30: 2 answered, 1 refused, 1 failed, 2 without an answer",
    ]
    shown = text_of(page(sandbox))
    assert "3 answered 1 refused 1 failed 2 without an answer peak 6 in 30 seconds" in shown
    early, late = (log(sandbox, address) for address in found.values())
    assert [line for line in early if "early" in line and line.startswith("POST")]
    assert not [line for line in late if "early" in line]
    assert len([line for line in late if line.startswith("POST")]) == 6
    assert len(log(sandbox, "?find=is:failed+is:request")) == len(log(sandbox, "?find=is:failed")) == 4
    assert len(log(sandbox, "?find=status:none")) == 2


def test_a_choice_of_time_stays_with_the_search_and_is_taken_back(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="one")
    sandbox.advance(60)
    api.payout(reference="two")
    chosen = "?from=2026-01-01T00:00:30Z&find=is:request+payouts"
    assert ["two" in line for line in log(sandbox, chosen)] == [True]
    shown = page(sandbox, chosen)
    assert "From 2026-01-01 00:00:30 to now UTC." in text_of(shown)
    assert '<input type="hidden" name="from" value="2026-01-01T00:00:30Z">' in shown
    elsewhere = text_of(page(sandbox, "?from=2026-01-01T02:00:30%2B02:00"))
    assert "From 2026-01-01 00:00:30 to now UTC." in elsewhere, "whatever its time zone"
    assert '<a href="/_sandbox/?find=is%3Arequest+payouts">Show all times</a>' in shown
    assert "the beginning to 2026-01-01 00:00:30" in text_of(page(sandbox, "?to=2026-01-01T00:00:30Z"))
    assert len(log(sandbox, "?from=yesterday&find=is:request")) == 2, "what is no time chooses nothing"


def test_what_is_older_than_fifteen_minutes_leaves_the_chart(sandbox: Sandbox, api: Api) -> None:
    api.payout()
    sandbox.advance(14 * 60)
    assert len(bars(sandbox)) == 1
    sandbox.advance(2 * 60)
    assert bars(sandbox) == {}
    api.payout()
    assert len(bars(sandbox)) == 1
    sandbox.reset()
    api = Api(sandbox, sandbox.api_key)
    api.payout()
    assert list(bars(sandbox)) == ["00:16:00: 1 answered"]


def test_the_tiles_show_rate_answer_time_webhooks_and_findings(sandbox: Sandbox, api: Api) -> None:
    assert "findings" not in text_of(page(sandbox, "faults"))
    sandbox.advance(15)
    for _ in range(6):
        api.payout(reference="", description="the same")
    shown = text_of(page(sandbox))
    assert "Requests a second, last minute 0.133 Writes : 6 of 60,000 this minute" in shown
    assert re.search(r"Answer time, last 15 minutes \d+ (?:µs|ms) 95th percentile of 6 ", shown)
    assert "Webhooks accepted, last 15 minutes – of 0 deliveries" in shown
    assert re.search(r"Advisor, since the start [1-9]\d* findings? money at risk", shown)
    assert re.search(r"Advisor [1-9]\d* findings?", text_of(page(sandbox, "faults"))), "a badge on every page"


async def test_a_request_shows_how_long_its_answer_took() -> None:
    async with (
        Sandbox(clock=VirtualClock.frozen()) as sandbox,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {sandbox.api_key}"}) as session,
    ):
        sandbox.on("payouts.create").respond("slow:60", times=1)
        call = asyncio.create_task(session.post(f"{sandbox.base_url}/payouts", json=PAYOUT))
        await until(lambda: bool(sandbox.requests))
        asked = f"requests/{sandbox.requests[0].request_id}"
        assert "Duration under way" in text_of(page(sandbox, asked))
        assert '<span class="took">under way</span>' in page(sandbox)
        sandbox.advance(60)
        async with await call as answer:
            assert answer.status == 201
        await until(lambda: "under way" not in page(sandbox))
    for address in (f"_sandbox/api/{asked}", "_sandbox/api/requests", "_sandbox/api/journal"):
        said = json.loads(sandbox.handle("GET", f"/{address}").body)
        told = [said, *said.get("requests", []), *said.get("entries", [])]
        assert next(one["seconds"] for one in told if "seconds" in one) > 0


async def test_a_caller_who_leaves_ends_the_duration() -> None:
    async with (
        Sandbox() as sandbox,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {sandbox.api_key}"}) as session,
    ):
        sandbox.on("payouts.list").respond("hang", times=1)
        call = asyncio.create_task(session.get(f"{sandbox.base_url}/payouts"))
        await until(lambda: bool(sandbox.requests))
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await until(lambda: "under way" not in page(sandbox))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "under way"),
        (0.00034, "340 µs"),
        (0.0009996, "1 ms"),
        (0.9996, "1.00 s"),
        (0.012, "12 ms"),
        (1.25, "1.25 s"),
        (3600, "3,600.00 s"),
    ],
)
def test_durations_are_short_texts(seconds: float | None, text: str) -> None:
    assert lasted(seconds) == text


def test_each_limit_is_drawn_against_its_last_minutes() -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits(writes=4, reads=None))
    api = Api(sandbox, sandbox.api_key)
    for _ in range(3):
        api.payout()
    sandbox.advance(120)
    for _ in range(5):
        api.payout()
    shown = page(sandbox, "limits")
    assert "7 let through 1 answered 429 peak 5 at 00:02 = 125 % of 4" in text_of(shown)
    (writes, *others) = json.loads(sandbox.handle("GET", "/_sandbox/api/limits").body)["limits"]
    assert writes["minutes"] == [*[0] * 12, 3, 0, 4]
    assert writes["refused"] == [*[0] * 14, 1]
    assert shown.count("<figure") == 1, "a limit without requests has no chart"
    assert all(set(one["minutes"]) == {0} for one in others)
    api.sync(sandbox.books.payouts()[-1].id)
    (record, *_) = json.loads(sandbox.handle("GET", "/_sandbox/api/limits").body)["limits"][1:]
    assert (record["scope"].partition(" ")[0], record["used"], record["minutes"]) == ("record", 1, None)
    assert "record po_" in page(sandbox, "limits")
    sandbox.advance(20 * 60)
    api.payout()
    (writes, *_) = json.loads(sandbox.handle("GET", "/_sandbox/api/limits").body)["limits"]
    assert writes["minutes"] == [*[0] * 14, 1]


def test_a_chart_has_round_marks_at_both_axes() -> None:
    steps = [(30.0 * step, {"ok": step % 4, "refused": step // 29 * 4_300}) for step in range(30)]
    drawn = charts.chart(steps, 30.0)
    assert [mark.words for mark in drawn.marks] == ["0", "3,000", "6,000"]
    times = [(mark.words, round(mark.at)) for mark in drawn.times]
    assert times == [("00:00", 0), ("00:05", 33), ("00:10", 67), ("00:15", 100)]
    assert (drawn.peak, drawn.peak_at) == (4_301, "00:14:30")
    assert drawn.bars[-1].words == "00:14:30: 1 answered, 4,300 refused"
    assert [one.words for one in charts.chart([(0.0, {"ok": 1})], 60.0).marks] == ["0", "1"]


@pytest.mark.parametrize(
    ("peak", "limit", "top", "is_drawn"),
    [
        (30, 20, 40, True),
        (10, 20, 20, True),
        (1, 60_000, 1, False),
        (9_990, 60_000, 10_000, False),
        (0, 0, 1, True),
    ],
)
def test_a_limit_is_drawn_unless_it_would_flatten_the_bars(
    peak: int, limit: int, top: int, *, is_drawn: bool
) -> None:
    drawn = charts.chart([(0.0, {"ok": peak})], 60.0, limit)
    assert drawn.marks[-1].words == f"{top:,}"
    assert (drawn.limit_at is not None) is is_drawn


def test_the_chart_says_what_was_done_to_the_sandbox(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with Sandbox(clock=VirtualClock.frozen(), state=path) as first:
        Api(first, first.api_key).payout()
    with Sandbox(clock=VirtualClock.frozen(), state=path) as sandbox:
        Api(sandbox, sandbox.api_key).payout(reference="again")
        sandbox.advance(60)
        sandbox.on("payouts.create").respond("http:503", times=2)
        for wanted in (0, 10):
            body = json.dumps({"speed": wanted}).encode()
            sandbox.handle("POST", "/_sandbox/api/clock/speed", {"Content-Type": "application/json"}, body)
        shown = re.findall(r'aria-label="([^"]*)"><line', page(sandbox))
    assert shown == [
        "00:00:00 restarted from its state file",
        "00:01:00 clock moved ahead by 1 min; rule_1 set: http:503*2 on payouts.create; "
        "clock stopped; clock runs at ×10",
    ]
    sandbox.advance(86_400)
    assert "moved ahead by 24 h" in page(sandbox)
    assert "rule_1 set" not in page(sandbox), "it was more than fifteen minutes ago"


def test_webhooks_accepted_are_deliveries_and_no_tries(sandbox: Sandbox, api: Api) -> None:
    begun = sandbox.clock.now()

    def tried(name: str, status: int | None, number: int = 1, first_at: float = begun) -> None:
        event = WebhookTried(
            begun, name, "po_1", "payout.created", status, None, number=number, first_at=first_at
        )
        sandbox.journal.add_try(event)

    api.payout()
    for number, status in enumerate((500, None, 500, 204), 1):
        tried("wh_1", status, number)
    tried("wh_2", 500)
    assert "Webhooks accepted, last 15 minutes 50% of 2 deliveries" in text_of(page(sandbox))
    sandbox.advance(20 * 60)
    tried("wh_3", 204, first_at=sandbox.clock.now())
    tried("wh_2", 204, 2)
    assert "100% of 1 delivery" in text_of(page(sandbox)), "of those that began in this time"


def test_a_search_comes_without_the_figures(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="r-1")
    assert 'class="figures"' in page(sandbox)
    for search in ("?find=r-1", "?find=nothing", "?before=1", "?from=2026-01-01T00:00:00Z"):
        assert 'class="figures"' not in page(sandbox, search)


def test_a_bar_leads_to_a_list_that_says_how_many_of_its_requests_are_gone() -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen())
    sandbox._journal = Journal(entries=5)
    api = Api(sandbox, sandbox.api_key)
    for number in range(9):
        api.payout(reference=f"r-{number}", amount=0 if number < 2 else 5)
    sandbox.advance(30)
    api.payout(reference="r-9")
    early, late = bars(sandbox).items()
    assert early[0] == "00:00:00: 7 answered, 2 refused"
    shown = text_of(page(sandbox, early[1]))
    assert "9 requests were made in this time; 3 of them are gone." in shown
    assert len(log(sandbox, early[1])) == 9 - 3
    assert "1 request was made in this time." in text_of(page(sandbox, late[1]))
    for span in (
        "from=2026-01-01T00:00:00Z",
        "from=2026-01-01T00:00:05Z&to=2026-01-01T00:01:00Z",
        "to=2026-01-01T00:01:00Z",
    ):
        assert "made in this time" not in page(sandbox, f"?{span}"), "it is of no whole steps"
    sandbox.advance(16 * 60)
    api.payout(reference="r-10")
    assert "made in this time" not in page(sandbox, early[1]), "it is counted no more"
