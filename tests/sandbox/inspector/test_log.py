"""The inspector's log: one line for each thing that happened, with its parts, and why it was refused."""

from __future__ import annotations

import html
import re

import pytest
from msgspec.structs import replace

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._control_api.failure_reasons import reason
from payments_async.sandbox._journal import LoggedExchange, WebhookTried
from tests.sandbox.raw_requests import INTENT, TRIED, Api

LIVE = {"reference": "r-1", "metadata": {"sandbox_scenario": "manual"}}


def log(sandbox: Sandbox, query: str = "") -> list[str]:
    """The lines of the overview, newest first, without their times and durations."""
    page = sandbox.handle("GET", f"/_sandbox/{query}").body.decode()
    page = re.sub(r'<span class="took">.*?</span>', "", page)
    items = re.findall(r'<li class="(?:request|record|webhook)">(.*?)</li>', page)
    words = [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", item)).split()) for item in items]
    return [line.partition(" ")[2] for line in words]


def requested(sandbox: Sandbox) -> LoggedExchange:
    """The newest request."""
    found = [entry.item for entry in sandbox.entries() if isinstance(entry.item, LoggedExchange)]
    return found[-1]


def why(sandbox: Sandbox) -> str | None:
    return reason(requested(sandbox), sandbox._core.world.limits)


# --- one line for each happening ----------------------------------------------------------------


def test_a_request_stands_with_what_it_caused(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="r-1", webhook_url="http://127.0.0.1:9/hook")
    api.post("/payment/intents", TRIED)
    named = sandbox.books.payments()[0].reference
    assert log(sandbox) == [
        f"POST /v1/payment/intents {named} payment pending attempt processing 201",
        "POST /v1/payouts r-1 payout pending webhook payout.created due 201",
    ]


def test_a_path_is_shown_as_it_is_meant(sandbox: Sandbox, api: Api) -> None:
    api.get("/payouts?created_at%5Bgte%5D=2026-01-01T00%3A00%3A00Z&note=%3Cb%3E")
    assert log(sandbox) == ["GET /v1/payouts?created_at[gte]=2026-01-01T00:00:00Z&note=%3Cb%3E 200"]


def test_what_came_about_by_itself_stands_by_record_and_moment(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="r-1", webhook_url="http://127.0.0.1:9/hook")
    api.payout(reference="r-2")
    api.post("/payment/intents", TRIED)
    intent = api.listed_intent()["reference"]
    sandbox.advance(10)
    assert log(sandbox)[:-4] == [
        f"payment {intent} pending → completed attempt processing → completed completed",
        "payout r-2 processing → completed completed",
        "payout r-1 processing → completed webhook payout.completed due completed",
        "payout r-2 pending → processing processing",
        "payout r-1 pending → processing processing",
    ]


def test_what_had_fallen_due_is_not_the_requests_doing(api: Api, sandbox: Sandbox) -> None:
    clock = sandbox.clock
    assert isinstance(clock, VirtualClock)
    api.payout(reference="r-1")
    clock.advance(3)  # it changes with the next request, two seconds late
    api.get("/payouts")
    assert log(sandbox) == [
        "GET /v1/payouts 200",
        "payout r-1 pending → processing processing",
        *log(sandbox)[2:],
    ]
    sandbox.settle(api.payout(reference="r-2").data["id"])
    api.get("/payouts")  # at the same moment
    assert log(sandbox)[:2] == [
        "GET /v1/payouts 200",
        "payout r-2 pending → processing → completed completed",
    ]


def test_an_attempt_that_changes_alone_is_shown_under_its_payment(api: Api, sandbox: Sandbox) -> None:
    api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "action:collect_otp"}})
    sandbox.pay(api.checkout().data["checkout"]["id"], outcome="hang")
    assert log(sandbox)[0] == f"payment {api.listed_intent()['reference']} attempt processing processing"


def test_a_webhook_is_one_line_however_often_it_was_tried(api: Api, sandbox: Sandbox) -> None:
    payout = api.payout(reference="r-1").data["id"]
    for at, status, said in ((1.0, 500, None), (2.0, None, "nothing listens"), (3.0, 204, None)):
        sandbox.journal.add(WebhookTried(at, "wh_1", payout, "payout.created", status, said))
        line = log(sandbox)[0]
        if status is None:
            assert line == "webhook payout.created r-1 2 tries nothing listens not delivered"
    assert line == "webhook payout.created r-1 3 tries 204"
    sandbox.journal.add(WebhookTried(4.0, "wh_2", payout, "payout.completed", 204, None, forged=True))
    assert log(sandbox)[0] == "webhook payout.completed r-1 forged 204"


def test_each_day_of_the_log_is_named_once(api: Api, sandbox: Sandbox) -> None:
    api.get("/payouts")
    api.get("/payouts")
    sandbox.advance(86_400)
    api.get("/payouts")
    page = sandbox.handle("GET", "/_sandbox/").body.decode()
    assert re.findall(r'<li class="(day|request)">(?:<time>(\d+-[^<]+))?', page) == [
        ("day", "2026-01-02"),
        ("request", ""),
        ("day", "2026-01-01"),
        ("request", ""),
        ("request", ""),
    ]


def test_each_choice_shows_its_kind(api: Api, sandbox: Sandbox) -> None:
    payout = api.payout(reference="r-1", webhook_url="http://127.0.0.1:9/hook").data["id"]
    api.payout(reference="r-1")
    sandbox.forge(payout)
    assert log(sandbox, "?find=is:request")[0].startswith("POST /v1/payouts r-1 A payout with this reference")
    assert log(sandbox, "?find=is:failed") == log(sandbox, "?find=is:request")[:1]
    assert log(sandbox, "?find=is:record") == ["payout r-1 new → pending pending"]
    due = ["webhook payout.completed r-1 forged due"]
    assert log(sandbox, "?find=is:webhook") == [*due, "webhook payout.created r-1 due"]
    sandbox.journal.add(WebhookTried(1.0, "wh_1", payout, "payout.created", 204, None))
    assert log(sandbox, "?find=is:webhook") == ["webhook payout.created r-1 204", *due]


def test_what_went_wrong_are_failed_records_and_refused_webhooks_too(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1")
    failed = api.payout(reference="r-2", scenario="fail:INVALID_RECIPIENT after=5s").data["id"]
    api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "fail:NO_FUNDS after=5s"}})
    sandbox.advance(5)
    for webhook, tries in (("wh_1", (500, 500)), ("wh_2", (500, 204)), ("wh_3", (204,)), ("wh_4", (None,))):
        for status in tries:
            said = None if status else "is neither this machine nor a private network"
            sandbox.journal.add(WebhookTried(6.0, webhook, failed, "payout.failed", status, said))
    api.get("/payouts")
    intent = api.listed_intent()["reference"]
    assert log(sandbox, "?find=is:failed") == [
        "webhook payout.failed r-2 is neither this machine nor a private network not delivered",
        "webhook payout.failed r-2 2 tries 500",
        f"payment {intent} pending → failed attempt processing → failed failed",
        "payout r-2 processing → failed failed",
    ]


def test_a_choice_looks_past_whatever_else_happened(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1", webhook_url="http://127.0.0.1:9/hook")
    api.payout(reference="r-1")
    for number in range(1_000):
        api.get(f"/payouts?n={number}")
    assert log(sandbox, "?find=is:record") == ["payout r-1 new → pending pending"]
    assert log(sandbox, "?find=is:webhook") == ["webhook payout.created r-1 due"]
    assert len(log(sandbox, "?find=is:failed")) == 1
    assert len(log(sandbox, "?find=is:request")) == len(log(sandbox)) == 24
    assert log(sandbox, "?find=already+is:request") == log(sandbox, "?find=is:failed")


def test_a_record_that_is_gone_goes_by_its_id(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1")
    sandbox.journal.add(WebhookTried(1.0, "wh_1", "po_gone", "payout.created", 204, None))
    assert log(sandbox)[0] == "webhook payout.created po_gone 204"


# --- finding ------------------------------------------------------------------------------------


def test_the_log_is_searched_by_id_reference_path_status_and_body(api: Api, sandbox: Sandbox) -> None:
    first = api.payout(reference="r-1", idempotency_key="key-00001").data["id"]
    api.payout(reference="r-2", description="for Ada", amount=0)
    sandbox.advance(2)
    api.get("/payment/intents", scenario="http:503")
    sandbox.journal.add(WebhookTried(1.0, "wh_7", first, "payout.created", 204, None))
    sandbox.forge(first, url="http://127.0.0.1:9/hook")
    for wanted, count in (
        ("r-1", 4),
        (first, 4),
        ("key-00001", 1),
        ("%22for%20Ada%22", 1),
        ("422", 1),
        ("INTENTS", 1),
        ("wh_7", 1),
        ("%22http%3A503%22", 1),
        ("payout.completed", 1),
    ):
        assert len(log(sandbox, f"?find={wanted}")) == count, wanted
    assert len(log(sandbox, f"?find={first}+is:request")) == 1
    page = sandbox.handle("GET", "/_sandbox/?find=nowhere").body.decode()
    assert "Nothing matches." in page
    assert 'value="nowhere"' in page


def test_a_word_that_is_a_status_is_looked_for_among_statuses(api: Api, sandbox: Sandbox) -> None:
    """A search for a status matched amounts and cursors, and missed statuses."""
    payout = api.payout(reference="r-1", amount=422).data["id"]
    api.get("/payouts?note=a422b")
    api.payout(reference="r-2", amount=0)
    sandbox.journal.add(WebhookTried(1.0, "wh_1", payout, "payout.created", 503, None))
    (line,) = log(sandbox, "?find=422")
    assert line.startswith("POST /v1/payouts r-2 amount")
    assert log(sandbox, "?find=503") == ["webhook payout.created r-1 503"]
    sandbox.settle(payout, "fail:NO_FUNDS")
    assert log(sandbox, "?find=failed") == ["payout r-1 processing → failed failed"]
    assert log(sandbox, "?find=pending") == ["payout r-1 new → pending pending"]
    assert log(sandbox, "?find=PENDING") == ["payout r-1 new → pending pending"]
    assert log(sandbox, "?find=completed") == [], "a completed_at stands in every body"
    sandbox.journal.add(WebhookTried(2.0, "wh_2", payout, "payout.failed", 204, None))
    assert log(sandbox, "?find=failed")[0] == "webhook payout.failed r-1 204"
    assert log(sandbox, "?find=a422") == ["GET /v1/payouts?note=a422b 200"], "what is no status is text"
    assert log(sandbox, "?find=422+is:webhook") == []
    assert log(sandbox, "?find=%22a422%22") == log(sandbox, "?find=a422")
    assert log(sandbox, "?find=404") == []
    page = sandbox.handle("GET", "/_sandbox/?find=404").body.decode()
    assert "“404” was read as a status" in page


# --- why ----------------------------------------------------------------------------------------


def test_a_success_needs_no_reason(api: Api, sandbox: Sandbox) -> None:
    api.payout()
    assert why(sandbox) is None


@pytest.mark.parametrize("profile", ["observed", "strict", "alternate", "hostile"])  # lists, texts, objects
def test_a_422_names_its_field_and_the_others(profile: str) -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen(), profile=profile)
    api = Api(sandbox, sandbox.api_key)
    api.payout(amount=0)
    assert str(why(sandbox)).startswith("amount: The amount field must be at least")
    api.payout(amount=0, instrument={"type": "phone"}, reference="r-1")
    others = str(why(sandbox)).partition("Also wrong: ")[2]
    assert sorted(others.split(", ")) == ["instrument.country", "instrument.phone_number"]
    api.post("/payouts", {"amount": "x", "currency": 1, "method": 2, "instrument": 3, "reference": 4})
    assert str(why(sandbox)).endswith(", …")


def test_a_refusal_says_what_the_service_said(api: Api, sandbox: Sandbox) -> None:
    sandbox.handle("GET", "/v1/payouts", {"Authorization": "Bearer sk_sandbox_wrong"})
    assert why(sandbox) == "The API key is not valid."
    api.post("/payouts", b"{")
    assert why(sandbox) == "The request body is not readable JSON."
    api.get("/nowhere")
    assert "nothing at GET" in str(why(sandbox))


def test_a_429_names_its_limit() -> None:
    limits = SandboxLimits(writes=1, reads=2, diagnostics=9, diagnostics_per_record=1)
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=limits)
    api = Api(sandbox, sandbox.api_key)
    payout = api.payout().data["id"]
    api.post("/payment/intents", INTENT)
    assert why(sandbox) == "limit of writes: 1 a minute; Retry-After 60 s"
    api.get(f"/payouts/{payout}/sync")
    api.get(f"/payouts/{payout}/sync")
    assert why(sandbox) == f"limit of record {payout}: 1 a minute; Retry-After 60 s"
    assert "limit of writes: 1 a minute" in log(sandbox, "?find=is:failed")[-1]


def test_a_429_without_headers_names_all_that_it_may_be() -> None:
    limits = SandboxLimits(diagnostics=9, diagnostics_per_record=0)
    sandbox = Sandbox(clock=VirtualClock.frozen(), limits=limits)
    Api(sandbox, sandbox.api_key).get("/payouts/po_1/sync")
    exchange = requested(sandbox)
    assert exchange.answer is not None
    bare = replace(exchange, answer=replace(exchange.answer, headers={}), retry_after=None)
    assert reason(bare, limits) == "limit of diagnostics: 9 a minute or limit of record po_1: 0 a minute"
    unlike = replace(exchange.answer, headers={"X-RateLimit-Limit": "7"})
    named = replace(exchange, answer=unlike, retry_after="Thu, 01 Jan 2026 00:01:00 GMT")
    assert str(reason(named, limits)).endswith("; Retry-After Thu, 01 Jan 2026 00:01:00 GMT")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("429:3s", "simulated by a scenario; no limit was reached; Retry-After 3 s"),
        ("lost_request", "the connection was closed before the answer; it was not carried out"),
        ("lost_response", "the connection was closed before the answer"),
        ("cut_body", "only the first half of the answer arrived"),
        ("slow:2s", "the answer came late"),
        ("http:503", "Sandbox fault: HTTP 503."),
    ],
)
def test_a_fault_says_what_it_did(api: Api, sandbox: Sandbox, words: str, said: str) -> None:
    api.payout(scenario=words)
    assert why(sandbox) == said
    assert requested(sandbox).log.fault == words


def test_a_refusal_that_comes_late_says_both(api: Api, sandbox: Sandbox) -> None:
    api.payout(reference="r-1")
    api.payout(reference="r-1", scenario="slow:2s")
    assert str(why(sandbox)).startswith("the answer came late; A payout with this reference already exists")


def test_what_was_let_go_or_cannot_be_read_is_said_so(api: Api, sandbox: Sandbox) -> None:
    api.payout(amount=0)
    exchange = requested(sandbox)
    limits = SandboxLimits()
    assert exchange.answer is not None
    assert reason(replace(exchange, answer=None), limits) is None
    for body, said in ((b"<html>", "the answer is no JSON"), (b"[]", None), (b'{"message": 1}', None)):
        assert reason(replace(exchange, answer=replace(exchange.answer, body=body)), limits) == said
    silent = replace(exchange, log=replace(exchange.log, status=0), answer=None)
    assert reason(silent, limits) == "no answer came; it was not carried out"


def test_account_data_in_a_reason_is_masked(api: Api, sandbox: Sandbox) -> None:
    api.payout(amount=0)
    exchange = requested(sandbox)
    assert exchange.answer is not None
    said = replace(exchange.answer, body=b'{"message": "no account for ada@example.test"}')
    assert "ada@" not in str(reason(replace(exchange, answer=said), SandboxLimits()))
