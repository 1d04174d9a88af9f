"""The pages of payments, payouts and webhooks over HTTP: what they are, and all that happened to them."""

from __future__ import annotations

import html as markup
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.sandbox._journal import LoggedExchange, WebhookTried
from payments_async.sandbox.inspector.filters import middle, passed
from tests.sandbox.raw_requests import ATTEMPT, INTENT, Api

DECLINED = "fail:CUSTOMER_DECLINED"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A serving sandbox on a clock that stands still until it is advanced."""
    with Sandbox(clock=VirtualClock.frozen()) as serving:
        yield serving


@pytest.fixture
def hook() -> Iterator[str]:
    """The address of a receiver that fails the first time."""
    answers = iter([500])

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(next(answers, 204))
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


def page(sandbox: Sandbox, path: str, status: int = 200) -> str:
    """The page at an address, redirects followed."""
    try:
        answer = urlopen(f"{sandbox.origin}/_sandbox/{path}")
    except HTTPError as refused:
        answer = refused
    with answer:
        assert answer.status == status
        found: str = answer.read().decode()
        return found


def words(part: str) -> str:
    return " ".join(markup.unescape(re.sub(r"<[^>]+>", " ", part)).split())


def nodes(shown: str) -> list[str]:
    """The nodes of a page's timeline, without the durations of requests and tries."""
    shown = re.sub(r'<span class="took">.*?</span>', "", shown)
    return [words(node) for node in re.findall(r'<li class="node [^"]*">(.*?)</li>', shown)]


def advance(sandbox: Sandbox, seconds: float) -> None:
    """Skip time, and let webhooks arrive before and after."""
    sandbox.wait_for_webhooks()
    sandbox.advance(seconds)
    sandbox.wait_for_webhooks()


# --- payouts ------------------------------------------------------------------------------------


def test_the_timeline_of_a_payout_has_each_thing_in_its_lane(sandbox: Sandbox, api: Api, hook: str) -> None:
    reference = "june-salaries-2026-emp-00042-a41f"
    named = {"reference": reference, "webhook_url": hook}
    api.payout(**named, idempotency_key="salaries-00042", scenario="lost_response")
    advance(sandbox, 1.5)
    api.payout(**named, idempotency_key="salaries-00042")
    payout = sandbox.books.payouts()[0].id
    for _ in range(3):
        api.get("/payouts")
        advance(sandbox, 0.1)
    api.payout(**named, idempotency_key="salaries-00043")
    api.payout(reference="another", idempotency_key="salaries-00044")
    advance(sandbox, 28.2)
    shown = page(sandbox, f"payouts/{payout}")
    assert nodes(shown) == [
        "Program 00:00:00.000 payouts.create 201 lost_response the connection was closed before the answer",
        "Service 00:00:00.000 payout pending",
        "Receiver 00:00:00.000 payout.created 500",
        "Program 00:00:01.500 +1.5 s payouts.create 201 replayed",
        "Program 00:00:01.500 payouts.list 200 3 times, the last at 00:00:01.700",
        "Program 00:00:01.800 +100 ms payouts.create 409 A payout with this reference already exists in the"
        " project.",
        "Service 00:00:02.000 +200 ms payout processing",
        "Service 00:00:05.000 +3 s payout completed",
        "Receiver 00:00:30.000 +25 s payout.completed 204",
        "Receiver 00:00:30.000 payout.created 204 try 2",
    ]
    first, last = sandbox.requests[0].request_id, sandbox.webhooks[0].id
    assert f'href="/_sandbox/requests/{first}"' in shown
    assert f'href="/_sandbox/webhooks/{last}"' in shown
    assert 'class="node program ok lost"' in shown
    assert "nothing of this" not in shown
    assert f'title="{reference}">june-salaries-2026…a41f<' in shown
    said = words(shown)
    for fact in ("XOF 50", "completed", "mtn_bj to •••00", "salaries-00042", "2026-01-01 00:00:00"):
        assert fact in said


def test_a_payout_is_found_by_its_reference_in_requests_and_addresses(sandbox: Sandbox, api: Api) -> None:
    reference = "Gehälter/June 2026"
    payout = api.payout(reference=reference).data["id"]
    api.payout(reference=reference, amount=7)
    api.get(f"/payouts?reference={quote(reference)}&status=failed")
    Api(sandbox, sandbox.new_key()).payout(reference=reference)
    api.payout()
    assert [node.split()[2:4] for node in nodes(page(sandbox, f"payouts/{quote(reference, safe='')}"))] == [
        ["payouts.create", "201"],
        ["payout", "pending"],
        ["payouts.create", "409"],
        ["payouts.list", "200"],
    ]
    assert page(sandbox, f"payouts/{quote(reference, safe='')}") == page(sandbox, f"payouts/{payout}")
    assert "no payout 'po_1'" in words(page(sandbox, "payouts/po_1", 404))


def test_an_open_payout_says_what_is_planned_and_can_be_ended(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(metadata={"sandbox_scenario": "fail:NO_FUNDS after=9s"}).data["id"]
    said = words(page(sandbox, f"payouts/{payout}"))
    assert "Will fail:NO_FUNDS after=9s" in said
    assert "Reference none" in said
    assert "Idempotency key none" in said
    assert "nowhere: it has no webhook_url" in said
    assert "Complete Fail Hang" in said
    sandbox.advance(9)
    said = words(page(sandbox, f"payouts/{payout}"))
    assert "NO_FUNDS" in said
    assert "Complete" not in said


def test_a_webhook_without_a_try_says_why(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(webhook_url=f"{sandbox.origin}/hook", scenario="drop").data["id"]
    late = api.payout(webhook_url="http://127.0.0.1:9/hook", scenario="delay:1h").data["id"]
    assert nodes(page(sandbox, f"payouts/{payout}"))[2:] == [
        "Receiver 00:00:00.000 payout.created dropped the scenario dropped it"
    ]
    assert nodes(page(sandbox, f"payouts/{late}"))[2:] == [
        "Receiver 01:00:00.000 +1 h payout.created waiting"
    ]
    sandbox.forge(payout)
    sandbox.wait_for_webhooks()
    assert "payout.completed refused forged" in nodes(page(sandbox, f"payouts/{payout}"))[-1]
    tries = ((204, None, True), (None, "nothing listens there", False))
    for status, error, forged in tries:  # of webhooks that are no longer kept
        event = ("payout.failed", status, error, forged)
        sandbox.journal.add_try(WebhookTried(sandbox.clock.now(), "wh_gone", payout, *event))
    assert [node.partition("payout.failed ")[2] for node in nodes(page(sandbox, f"payouts/{payout}"))] == [
        *[""] * 4,
        "204 forged",
        "no answer nothing listens there",
    ]


# --- payments -----------------------------------------------------------------------------------


def test_the_timeline_of_a_payment_has_what_its_payer_did(sandbox: Sandbox, api: Api) -> None:
    made = api.checkout().data
    session, payment = made["checkout"]["id"], made["payment"]["id"]
    api.get(f"/payment/checkouts/{session}")
    steps = ("action:approve_on_phone", DECLINED, "action:redirect_to_url", "fail:CUSTOMER_CANCELLED")
    for outcome in (*steps, "fail:INSUFFICIENT_FUNDS", "action:collect_otp", "complete"):
        sandbox.advance(1)
        sandbox.pay(session, method="mtn_bj", phone="+22990000077", outcome=outcome)
    sandbox.refund(session, 20)
    shown = page(sandbox, f"payments/{payment}")
    assert nodes(shown) == [
        "Program 00:00:00.000 checkouts.create 201",
        "Service 00:00:00.000 payment pending",
        "Program 00:00:00.000 checkouts.retrieve 200",
        "Payer 00:00:01.000 +1 s Pays with mtn_bj",
        "Service 00:00:01.000 attempt processing mtn_bj",
        "Service 00:00:01.000 attempt action_required",
        "Payer 00:00:02.000 +1 s Declines",
        "Service 00:00:02.000 attempt failed CUSTOMER_DECLINED",
        "Payer 00:00:03.000 +1 s Pays with mtn_bj",
        "Service 00:00:03.000 attempt processing mtn_bj",
        "Service 00:00:03.000 attempt action_required",
        "Payer 00:00:04.000 +1 s Cancels",
        "Service 00:00:04.000 attempt failed CUSTOMER_CANCELLED",
        "Payer 00:00:05.000 +1 s Pays with mtn_bj",
        "Service 00:00:05.000 attempt processing mtn_bj",
        "Service 00:00:05.000 attempt failed INSUFFICIENT_FUNDS",
        "Payer 00:00:06.000 +1 s Pays with mtn_bj",
        "Service 00:00:06.000 attempt processing mtn_bj",
        "Service 00:00:06.000 attempt action_required",
        "Payer 00:00:07.000 +1 s Enters the code",
        "Service 00:00:07.000 attempt completed",
        "Service 00:00:07.000 payment completed",
        "Service 00:00:07.000 payment partially_refunded",
    ]
    assert "22990000077" not in shown
    assert "Refund XOF 30 Payer's page" in words(shown)
    attempts = sandbox.books.payments()[0].attempts
    assert all(f'href="#{attempt}"' in shown and f'id="{attempt}"' in shown for attempt in attempts)


def test_a_programs_attempt_is_no_step_of_a_payer_but_its_approval_is(sandbox: Sandbox, api: Api) -> None:
    api.intent(metadata={"sandbox_scenario": "action:approve_on_phone"}, idempotency_key="order-0001")
    payment = sandbox.books.payments()[0]
    sandbox.settle(payment.id)
    api.post(f"/payment/intents/{payment.id}/requery")
    assert nodes(page(sandbox, f"payments/{payment.id}")) == [
        "Program 00:00:00.000 payment_intents.create 201",
        "Service 00:00:00.000 payment pending",
        "Service 00:00:00.000 attempt processing mtn_bj",
        "Service 00:00:00.000 attempt action_required",
        "Payer 00:00:00.000 Approves on the phone",
        "Service 00:00:00.000 attempt completed",
        "Service 00:00:00.000 payment completed",
        "Program 00:00:00.000 payment_intents.requery 200",
    ]
    api.intent(metadata={"sandbox_scenario": "failover:1 immediate"})
    second = nodes(page(sandbox, f"payments/{sandbox.books.payments()[1].id}"))
    assert second[2:6] == [
        "Service 00:00:00.000 attempt processing mtn_bj",
        "Service 00:00:00.000 attempt failed GATEWAY_UNAVAILABLE",
        "Service 00:00:00.000 attempt processing mtn_bj failed over",
        "Service 00:00:00.000 attempt completed",
    ]
    api.intent(metadata={"sandbox_scenario": "action:collect_otp"})
    third = sandbox.books.payments()[2]
    sandbox.hold(third.id)
    sandbox.settle(third.id)
    assert "Payer 00:00:00.000 Confirms" in nodes(page(sandbox, f"payments/{third.id}"))
    sandbox.settle(api.checkout().data["payment"]["id"], "expire")
    assert nodes(page(sandbox, f"payments/{sandbox.books.payments()[3].id}"))[-1].endswith("payment expired")


def test_every_name_of_a_payment_leads_to_its_page(sandbox: Sandbox, api: Api) -> None:
    api.post("/payment/intents", INTENT)
    session = api.checkout().data["checkout"]["id"]
    sandbox.pay(session)
    entry = sandbox.books.payments()[1]
    shown = page(sandbox, f"payments/{entry.id}")
    for name in (session, *entry.attempts, entry.reference):
        assert page(sandbox, f"payments/{name}") == shown
    assert f'href="/checkout/{session}"' in shown
    assert "no payment 'pi_1'" in words(page(sandbox, "payments/pi_1", 404))
    assert "Checkout" not in words(page(sandbox, f"payments/{sandbox.books.payments()[0].id}"))


# --- what is no longer there --------------------------------------------------------------------


def test_what_the_journal_no_longer_holds_is_said_and_the_records_own_times_stand(
    sandbox: Sandbox, api: Api
) -> None:
    payout = api.payout(metadata={"sandbox_scenario": DECLINED}).data["id"]
    session = api.checkout().data["checkout"]["id"]
    sandbox.pay(session, outcome="action:collect_otp")
    api.post("/payment/intents", {**INTENT, "attempt": ATTEMPT, "metadata": {"sandbox_scenario": "complete"}})
    sandbox.advance(6)
    sandbox.pay(session, outcome="complete")
    sandbox.journal.clear()
    shown = page(sandbox, f"payouts/{payout}")
    assert "The journal holds nothing of this payout" in words(shown)
    assert nodes(shown) == [
        "Service 00:00:00.000 payout pending kept by the record",
        "Service 00:00:02.000 +2 s payout processing kept by the record",
        "Service 00:00:05.000 +3 s payout failed kept by the record",
    ]
    sandbox.advance(4)
    api.sync(payout)
    shown = page(sandbox, f"payouts/{payout}")
    assert "The journal begins at 2026-01-01 00:00:10 , after this payout was made" in words(shown)
    assert nodes(shown)[3:] == ["Program 00:00:10.000 +5 s payouts.sync 200"]
    kept = [node.replace(" kept by the record", "") for node in nodes(page(sandbox, f"payments/{session}"))]
    assert kept == [
        "Service 00:00:00.000 payment pending",
        "Payer 00:00:00.000 Pays with sandbox_mobile",
        "Service 00:00:00.000 attempt processing sandbox_mobile",
        "Service 00:00:00.000 attempt action_required",
        "Payer 00:00:06.000 +6 s Enters the code",
        "Service 00:00:06.000 attempt completed",
        "Service 00:00:06.000 payment completed",
    ]
    asked = nodes(page(sandbox, f"payments/{sandbox.books.payments()[1].id}"))
    assert not any("Payer" in node for node in asked)


def test_requests_whose_bodies_were_deleted_are_said_to_be_missing(sandbox: Sandbox, api: Api) -> None:
    old = api.payout(reference="old", idempotency_key="key-00001").data["id"]
    sandbox.advance(1)
    api.get("/payouts")
    for entry in sandbox.entries():
        if isinstance(entry.item, LoggedExchange):
            entry.item.drop_bytes()
    sandbox.advance(1)
    new = api.payout(reference="new").data["id"]
    shown = page(sandbox, f"payouts/{old}")
    assert "Bodies of requests until 2026-01-01 00:00:01 are deleted" in words(shown)
    assert nodes(shown)[0] == "Program 00:00:00.000 payouts.create 201"
    assert not any("payouts.list" in node for node in nodes(shown))
    assert "are deleted" not in page(sandbox, f"payouts/{new}")


def test_a_long_timeline_ends_with_how_many_more_there_are(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(metadata={"sandbox_scenario": "manual"}).data["id"]
    for number in range(40):
        api.get(f"/payouts/{payout}/{('sync', 'inspect')[number % 2]}")
        sandbox.advance(20)
    first = page(sandbox, f"payouts/{payout}")
    assert "and 11 more: later" in words(first)
    assert 'href="?after=32"' in first
    rest = page(sandbox, f"payouts/{payout}?after=32")
    assert (len(nodes(first)), len(nodes(rest))) == (32, 11)
    assert "From the beginning" in words(rest)
    assert "more" not in words(rest).partition("Timeline")[2]
    for nonsense in ("x", "-1", "9" * 40):
        assert nodes(page(sandbox, f"payouts/{payout}?after={nonsense}")) == nodes(first)


# --- how it is written --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.34, "340 ms"),
        (5.0, "5 s"),
        (120, "2 min"),
        (5_400, "1 h 30 min"),
        (86_400, "24 h"),
        (1e7, "116 days"),
    ],
)
def test_the_time_between_two_events_is_short(seconds: float, text: str) -> None:
    assert passed(seconds) == text


def test_only_a_long_name_loses_its_middle() -> None:
    assert middle("salaries-2026-emp-00042-a41f") == "salaries-2026-emp-00042-a41f"
    assert middle("june-salaries-2026-emp-00042-a41f") == "june-salaries-2026…a41f"
