"""The pages of payments, payouts and webhooks over HTTP: what they are, and all that happened to them."""

from __future__ import annotations

import html as markup
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import attrs
import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.sandbox._inspector.filters import ago, linked, middle, passed
from payments_async.sandbox._journal import LoggedExchange, WebhookTried
from payments_async.sandbox._record_actions import find_payment
from payments_async.sandbox._records.payments import message_payer
from payments_async.sandbox._webhooks.receiver_answers import ReceiverAnswers, receiver_answer
from tests.sandbox.inspector.test_log import log
from tests.sandbox.raw_requests import ATTEMPT, INTENT, Api
from tests.support.snapshots import Snapshots

DECLINED = "fail:CUSTOMER_DECLINED"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A serving sandbox on a clock that stands still until it is advanced."""
    with Sandbox(clock=VirtualClock.frozen()) as serving:
        yield serving


Answer = tuple[int, dict[str, str], bytes]


@attrs.define
class Receiver:
    """A receiver at `url`. It gives its `answers` one after the other, and 204 when none is left."""

    url: str
    answers: list[Answer] = attrs.field(factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, body = found.answers.pop(0) if found.answers else (204, {}, b"")
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Receiver(f"http://127.0.0.1:{server.server_port}/hook")
        threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True).start()
        yield found
        server.shutdown()


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


def test_the_timeline_of_a_payout_has_each_thing_in_its_lane(
    sandbox: Sandbox, api: Api, receiver: Receiver, assert_snapshot: Snapshots
) -> None:
    receiver.answers = [(500, {}, b"")]
    reference = "june-salaries-2026-emp-00042-a41f"
    named = {"reference": reference, "webhook_url": receiver.url}
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
    assert_snapshot(nodes(shown))
    first, last = sandbox.requests[0].request_id, sandbox.webhooks[0].id
    assert f'href="/_sandbox/requests/{first}"' in shown
    assert f'href="/_sandbox/webhooks/{last}"' in shown
    assert 'class="node program wait lost"' in shown
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
    assert page(sandbox, f"payouts/{quote(reference, safe='')}") == page(sandbox, f"payouts/{payout}")
    api.payout()
    assert [node.split()[2:4] for node in nodes(page(sandbox, f"payouts/{payout}"))] == [
        ["payouts.create", "201"],
        ["payout", "pending"],
        ["payouts.create", "409"],
        ["payouts.list", "200"],
    ]
    assert "no payout 'po_1'" in words(page(sandbox, "payouts/po_1", 404))
    other = Api(sandbox, sandbox.new_key()).payout(reference=reference).data["id"]
    both = page(sandbox, f"payouts/{quote(reference, safe='')}")
    assert "2 of 3 payouts" in words(both)
    assert f'href="/_sandbox/payouts/{payout}"' in both
    assert f'href="/_sandbox/payouts/{other}"' in both


def test_a_list_of_a_longer_reference_is_about_another_payout(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(reference="june-1").data["id"]
    api.get("/payouts?status=failed&reference=june-10")
    api.get("/payouts?status=failed&my_reference=june-1")
    before = len(nodes(page(sandbox, f"payouts/{payout}")))
    api.get("/payouts?status=failed&reference=june-1&n=1")
    assert (before, len(nodes(page(sandbox, f"payouts/{payout}")))) == (2, 3)


def test_an_open_payout_says_what_is_planned_and_can_be_ended(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(metadata={"sandbox_scenario": "fail:NO_FUNDS after=9s"}).data["id"]
    said = words(page(sandbox, f"payouts/{payout}"))
    assert "Plan fail:NO_FUNDS after=9s" in said
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


def test_the_timeline_of_a_payment_has_what_its_payer_did(
    sandbox: Sandbox, api: Api, assert_snapshot: Snapshots
) -> None:
    made = api.checkout().data
    session, payment = made["checkout"]["id"], made["payment"]["id"]
    api.get(f"/payment/checkouts/{session}")
    steps = ("action:approve_on_phone", DECLINED, "action:redirect_to_url", "fail:CUSTOMER_CANCELLED")
    for outcome in (*steps, "fail:INSUFFICIENT_FUNDS", "action:collect_otp", "complete"):
        sandbox.advance(1)
        sandbox.pay(session, method="mtn_bj", phone="+22990000077", outcome=outcome)
    sandbox.refund(session, 20)
    shown = page(sandbox, f"payments/{payment}")
    assert_snapshot(nodes(shown))
    assert "22990000077" not in shown
    assert "Refund XOF 30 Payer's page" in words(shown)
    attempts = sandbox.books.payments()[0].attempts
    assert all(f'href="#{attempt}"' in shown and f'id="{attempt}"' in shown for attempt in attempts)


def test_a_programs_attempt_is_no_step_of_a_payer_but_its_approval_is(
    sandbox: Sandbox, api: Api, assert_snapshot: Snapshots
) -> None:
    api.intent(metadata={"sandbox_scenario": "action:approve_on_phone"}, idempotency_key="order-0001")
    payment = sandbox.books.payments()[0]
    sandbox.settle(payment.id)
    api.post(f"/payment/intents/{payment.id}/requery")
    assert_snapshot(nodes(page(sandbox, f"payments/{payment.id}")), "1")
    api.intent(metadata={"sandbox_scenario": "failover:1 immediate"})
    second = nodes(page(sandbox, f"payments/{sandbox.books.payments()[1].id}"))
    assert_snapshot(second[2:6], "2")
    api.intent(metadata={"sandbox_scenario": "action:collect_otp"})
    third = sandbox.books.payments()[2]
    sandbox.hold(third.id)
    sandbox.settle(third.id)
    assert "Payer 00:00:00.000 Confirms" in nodes(page(sandbox, f"payments/{third.id}"))
    sandbox.settle(api.checkout().data["payment"]["id"], "expire")
    assert nodes(page(sandbox, f"payments/{sandbox.books.payments()[3].id}"))[-1].endswith("payment expired")


def test_a_second_refund_of_a_part_is_seen_as_one(sandbox: Sandbox, api: Api) -> None:
    payment = sandbox.pay(api.checkout().data["checkout"]["id"])
    for seconds in (10, 20):
        sandbox.advance(10)
        sandbox.refund(payment.id, "10")
        last = nodes(page(sandbox, f"payments/{payment.id}"))[-1]
        assert last == f"Service 00:00:{seconds}.000 +10 s payment partially_refunded"
        (line, *_) = log(sandbox, "?find=is:record")
        assert "payer asks" not in line
        assert "partially_refunded" in line


def test_a_payer_who_asks_for_another_message_is_seen(sandbox: Sandbox, api: Api) -> None:
    payment = sandbox.pay(api.checkout().data["checkout"]["id"], outcome="action:collect_otp")
    sandbox.advance(20)
    with sandbox.changing() as world:
        message_payer(world, find_payment(world, payment.id)[1].attempts[0])
    assert nodes(page(sandbox, f"payments/{payment.id}"))[-2:] == [
        "Service 00:00:00.000 attempt action_required",
        "Payer 00:00:20.000 +20 s Asks for another message",
    ]
    (line, *_) = log(sandbox, "?find=is:record")
    assert line == f"payment {payment.reference} attempt: payer asks for another message action_required"


def test_a_strangers_request_with_the_same_idempotency_key_is_another(sandbox: Sandbox, api: Api) -> None:
    stranger = Api(sandbox, sandbox.new_key())
    payout = api.payout(idempotency_key="key-00001").data["id"]
    stranger.payout(idempotency_key="key-00001")
    stranger.get(f"/payouts/{payout}/sync")
    assert [node.split()[2:4] for node in nodes(page(sandbox, f"payouts/{payout}"))] == [
        ["payouts.create", "201"],
        ["payout", "pending"],
        ["payouts.sync", "404"],
    ]


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


# --- webhooks -----------------------------------------------------------------------------------


def tries(shown: str) -> list[str]:
    """The tries of a webhook's page, the latest first, without durations and the server's own headers."""
    shown = re.sub(r'<span class="soft">[^<]* [mµ]s</span>|<div><dt>(Server|Date)</dt>.*?</div>', "", shown)
    return [words(one) for one in re.findall(r'(?s)<li class="card".*?>(.*?)</li>', shown)]


def test_a_webhooks_page_has_the_receivers_answer_to_each_try(
    sandbox: Sandbox, api: Api, receiver: Receiver
) -> None:
    echo = b'{"event": "payout.created", "phone_number": "+22990000000", "note": "for ada@example.test"}'
    receiver.answers = [
        (
            500,
            {"Content-Type": "application/json", "Set-Cookie": "session=s3cret", "X-Api-Key": "s3cret"},
            echo,
        ),
        (502, {}, b"<h1>\x00 Bad gateway of ada@example.test</h1>"),
        (503, {f"X-{number}": "v" * 300 for number in range(60)}, b'{"city":"Cotonou"},' + b"b" * 80_000),
        (504, {}, b""),
    ]
    payout = api.payout(webhook_url=f"{receiver.url}?token=s3cret", scenario="manual").data["id"]
    for seconds in (30, 120, 600, 3_600):
        advance(sandbox, seconds)
    address = "webhooks/wh_00000001"
    shown = page(sandbox, address)
    assert "s3cret" not in shown
    assert f'href="/_sandbox/payouts/{payout}"' in shown
    assert '"event": "payout.created"' in words(shown)
    fifth, fourth, third, second, first = tries(shown)
    assert fifth == "Try 5 2026-01-01 01:12:30 204 No body."
    assert fourth == "Try 4 2026-01-01 00:12:30 504 No body."
    assert third.startswith("Try 3 2026-01-01 00:02:30 503 X-0 vvv")
    assert "All that is kept, as JSON" in third
    assert (second, first) == (
        "Try 2 2026-01-01 00:00:30 502 Its answer, as JSON",
        "Try 1 2026-01-01 00:00:00 500 Its answer, as JSON",
    )
    kept = json.loads(page(sandbox, f"api/{address}"))["tries"]
    answers = [one["answer"] for one in kept]
    assert answers[0]["headers"] | {"Server": "", "Date": ""} == {
        "Server": "",
        "Date": "",
        "Content-Type": "application/json",
        "Set-Cookie": "•••",
        "X-Api-Key": "•••",
    }
    assert answers[0]["body"] == {"event": "payout.created", "phone_number": "•••00", "note": "for •••st"}
    assert answers[1]["body"] == "<h1>· Bad gateway of •••1>"
    assert answers[2]["body"].startswith('{"city":"•••ou"},bbb')
    assert (len(answers[2]["headers"]), len(answers[2]["body"])) == (40, 4_096 - 2)
    assert (answers[2]["length"], answers[2]["is_whole"]) == (65_536, False)
    assert (answers[3]["body"], answers[3]["is_whole"]) == ("", True)


def test_an_answer_on_the_page_is_text_and_says_when_it_is_no_longer_kept(
    sandbox: Sandbox, api: Api, receiver: Receiver
) -> None:
    receiver.answers = [(400, {"X-Why": "<b>"}, b"<script>alert(1)</script>"), (200, {}, b'{"ok":true}')]
    api.payout(webhook_url=receiver.url)
    sandbox.wait_for_webhooks()
    (first,) = tries(shown := page(sandbox, "webhooks/wh_00000001"))
    assert first == "Try 1 2026-01-01 00:00:00 400 X-Why <b> <script>alert(1)</script>"
    assert "<script>alert" not in shown
    assert "Next try 2026-01-01 00:00:30" in words(shown)
    again = sandbox.resend("wh_00000001")
    sandbox.wait_for_webhooks()
    shown = page(sandbox, f"webhooks/{again.id}")
    assert tries(shown)[0].endswith('{ "ok": true }')
    sandbox._outbox.answers.clear()
    assert tries(page(sandbox, f"webhooks/{again.id}"))[0].endswith("200 The answer is no longer kept.")
    api.payout(webhook_url=receiver.url, scenario="delay:1h")
    assert "Not sent yet." in words(page(sandbox, f"webhooks/{sandbox.webhooks[-1].id}"))
    sandbox.forge(sandbox.books.payouts()[0].id, url="http://127.0.0.1:9/x")
    sandbox.wait_for_webhooks()
    (untaken,) = tries(page(sandbox, f"webhooks/{sandbox.webhooks[-1].id}"))
    assert untaken.endswith("no answer nothing listens there: connection refused")
    assert "no webhook 'wh_9'" in words(page(sandbox, "webhooks/wh_9", 404))


def test_a_delivery_sent_again_is_the_next_try_on_one_page_and_linked_both_ways(
    sandbox: Sandbox, api: Api, receiver: Receiver
) -> None:
    receiver.answers = [(404, {}, b""), (200, {}, b"")]
    api.payout(webhook_url=receiver.url, scenario="manual")
    sandbox.wait_for_webhooks()
    sandbox.advance(3)
    again = sandbox.resend("wh_00000001").id
    sandbox.wait_for_webhooks()
    for address, other in (("wh_00000001", again), (again, "wh_00000001")):
        shown = page(sandbox, f"webhooks/{address}")
        late, early = ("", f"{other} ") if address == again else (f"{other} ", "")
        assert tries(shown) == [
            f"Try 2 {late}2026-01-01 00:00:03 200 No body.",
            f"Try 1 {early}2026-01-01 00:00:00 404 No body.",
        ]
        assert ("Sent again as" if address == "wh_00000001" else "Repeats") + f" {other}" in words(shown)
        assert f'href="/_sandbox/webhooks/{other}"' in shown
    sandbox._outbox.queue._all.pop("wh_00000001")  # the first is no longer kept
    assert tries(page(sandbox, f"webhooks/{again}")) == ["Try 1 2026-01-01 00:00:03 200 No body."]


def test_a_forged_webhook_shows_whether_its_receiver_read_the_record_back(
    sandbox: Sandbox, api: Api, receiver: Receiver
) -> None:
    receiver.answers = [(500, {}, b""), (204, {}, b"")]
    payout = api.payout(scenario="manual").data["id"]
    api.get(f"/payouts/{payout}")
    sandbox.advance(1)
    forged = sandbox.forge(payout, url=receiver.url).id
    sandbox.wait_for_webhooks()
    address = f"webhooks/{forged}"
    assert "false delivery" not in words(page(sandbox, address)), "it was not accepted"
    advance(sandbox, 30)
    assert "It has until 2026-01-01 00:01:31 to read the record back" in words(page(sandbox, address))
    sandbox.advance(2)
    api.get("/payouts?status=failed")
    for _ in range(2):
        api.sync(payout)
    first = sandbox.requests[-2].request_id
    assert f"The receiver read the record back after 2 s: {first}" in words(page(sandbox, address))
    sandbox.advance(1)
    trusting = sandbox.forge(payout, url=receiver.url).id
    sandbox.wait_for_webhooks()
    sandbox.advance(61)
    api.sync(payout)  # too late
    assert "it trusts what anyone can send" in words(page(sandbox, f"webhooks/{trusting}"))


def test_answers_are_kept_within_a_budget_the_latest_first() -> None:
    answers = ReceiverAnswers(room=10_000)
    for number in range(1, 5):
        answers.add("wh_1", number, receiver_answer([("X", "y")], b"b" * 3_000))
    assert [answers.find("wh_1", number) is None for number in range(1, 5)] == [True, True, False, False]
    assert repr(answers.find("wh_1", 4)) == "ReceiverAnswer(length=3000)"
    answers.clear()
    assert answers.find("wh_1", 4) is None


# --- what is no longer there --------------------------------------------------------------------


def test_what_the_journal_no_longer_holds_is_said_and_the_records_own_times_stand(
    sandbox: Sandbox, api: Api, assert_snapshot: Snapshots
) -> None:
    payout = api.payout(metadata={"sandbox_scenario": DECLINED}).data["id"]
    session = api.checkout().data["checkout"]["id"]
    sandbox.pay(session, outcome="action:collect_otp")
    api.post("/payment/intents", {**INTENT, "attempt": ATTEMPT, "metadata": {"sandbox_scenario": "complete"}})
    sandbox.advance(6)
    sandbox.pay(session, outcome="complete")
    sandbox.journal.clear()
    shown = page(sandbox, f"payouts/{payout}")
    assert "The journal has no entry about this payout" in words(shown)
    assert_snapshot(nodes(shown), "1")
    sandbox.advance(4)
    api.sync(payout)
    shown = page(sandbox, f"payouts/{payout}")
    assert "The journal begins at 2026-01-01 00:00:10 , after this payout was created" in words(shown)
    assert nodes(shown)[3:] == ["Program 00:00:10.000 +5 s payouts.sync 200"]
    kept = [node.replace(" kept by the record", "") for node in nodes(page(sandbox, f"payments/{session}"))]
    assert_snapshot(kept, "2")
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
    assert "Request bodies up to 2026-01-01 00:00:01 have been deleted" in words(shown)
    assert nodes(shown)[0] == "Program 00:00:00.000 payouts.create 201"
    assert not any("payouts.list" in node for node in nodes(shown))
    assert "been deleted" not in page(sandbox, f"payouts/{new}")


def test_a_long_timeline_ends_with_how_many_more_there_are(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(metadata={"sandbox_scenario": "manual"}).data["id"]
    for number in range(40):
        api.get(f"/payouts/{payout}/{('sync', 'inspect')[number % 2]}")
        sandbox.advance(20)
    first = page(sandbox, f"payouts/{payout}")
    assert "11 more events: show later ones" in words(first)
    assert 'href="?after=32"' in first
    rest = page(sandbox, f"payouts/{payout}?after=32")
    assert (len(nodes(first)), len(nodes(rest))) == (32, 11)
    assert "From the beginning" in words(rest)
    assert "more" not in words(rest).partition("Timeline")[2]
    for nonsense in ("x", "-1", "9" * 40):
        assert nodes(page(sandbox, f"payouts/{payout}?after={nonsense}")) == nodes(first)


# --- what leads there ---------------------------------------------------------------------------


def test_every_id_and_reference_leads_to_its_page(sandbox: Sandbox, api: Api, receiver: Receiver) -> None:
    reference = "june-salaries-2026-emp-00042-a41f"
    named = {"reference": reference, "webhook_url": receiver.url}
    payout = api.payout(**named, idempotency_key="salaries-00042").data["id"]
    api.payout(**named, idempotency_key="salaries-00042")
    api.payout(**named)
    api.sync(payout)
    made = api.checkout(entity_type="order", entity_id="order-7", webhook_url=receiver.url).data
    session, payment = made["checkout"]["id"], made["payment"]["id"]
    sandbox.pay(session, outcome="action:approve_on_phone")
    api.get(f"/payment/checkouts/{session}")
    sandbox.on("payouts.sync", payout_id=payout).respond("http:503")
    sandbox.wait_for_webhooks()

    def leads(path: str, text: str, target: str) -> None:
        found = re.findall(r'<a [^>]*href="/_sandbox/([^"#]+)[^>]*>([^<]+)<', page(sandbox, path))
        assert (target, text) in found, (path, text, found)

    short, to_payout, to_payment = "june-salaries-2026…a41f", f"payouts/{payout}", f"payments/{payment}"
    log = page(sandbox, "")
    # a creation, its repetition, its refusal, a reading and a webhook
    assert log.count(f'<a class="named" href="/_sandbox/{to_payout}" title="{reference}">{short}</a>') == 5
    # a creation, a reading, a webhook
    assert log.count(f'<a class="named" href="/_sandbox/{to_payment}">') == 3
    requests = [one.request_id for one in sandbox.requests]
    leads(f"requests/{requests[0]}", short, to_payout)
    leads(f"requests/{requests[3]}", payout, to_payout)
    leads(f"requests/{requests[4]}", session, f"payments/{session}")
    leads(f"requests/{requests[0]}", "salaries-00042", "?find=key%3A%22salaries-00042%22")
    leads("payouts", short, to_payout)
    leads("payments", "order-7", to_payment)
    assert sandbox.books.payments()[0].reference in page(sandbox, "payments")
    leads(to_payment, sandbox.books.payments()[0].attempts[0], to_payment)
    leads("webhooks", short, "webhooks/wh_00000001")
    leads("webhooks/wh_00000001", payout, to_payout)
    leads("webhooks/wh_00000001", payout, to_payout)
    leads("phone", "Payment order-7", to_payment)
    leads("faults", payout, to_payout)
    leads("limits", payout, to_payout)
    assert payout in page(sandbox, "limits")
    refused = api.payout(reference="refused", amount=0)
    assert refused.status == 422
    leads(f"requests/{sandbox.requests[-1].request_id}", "refused", "?find=ref%3A%22refused%22")


def test_the_control_api_names_the_pages(sandbox: Sandbox, api: Api) -> None:
    api.payout(webhook_url="http://127.0.0.1:9/hook")
    api.checkout()
    for kind in ("requests", "payouts", "payments", "webhooks"):
        for one in json.loads(page(sandbox, f"api/{kind}"))[kind]:
            assert one["page"] == f"/_sandbox/{kind}/{one['id']}"
            assert one["id"] in page(sandbox, f"{kind}/{one['id']}")


def test_an_id_in_a_text_is_a_link_and_nothing_else_is() -> None:
    payout, near = "po_" + "a1b2c" * 4, "po_short xpo_" + "a" * 20 + " po_" + "a" * 21
    text = f'<b> "{payout}" & {near} wh_00000001'
    assert linked(text) == (
        f'&lt;b&gt; &#34;<a href="/_sandbox/payouts/{payout}">{payout}</a>&#34; &amp; {near} '
        '<a href="/_sandbox/webhooks/wh_00000001">wh_00000001</a>'
    )


# --- how it is written --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.34, "340 ms"),
        (0.9996, "1 s"),
        (5.0, "5 s"),
        (59.99, "1 min"),
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


def test_a_card_number_is_hidden_in_a_request(sandbox: Sandbox, api: Api) -> None:
    api.checkout(
        description="for 5105-1051-0510-5100, please",
        metadata={"note": "5105 1051 0510 5100 11/29", "pan": "4242", "cvv": 987, "order": 5105105105105100},
    )
    name = sandbox.requests[-1].request_id
    with urlopen(f"{sandbox.origin}/_sandbox/requests/{name}", timeout=300) as answer:
        shown = answer.read().decode()
    assert "please" in shown
    assert not re.search("5105[- ]?1051|4242|987", re.sub("<[^>]*>", "", shown))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "now"),
        (40, "40 s ago"),
        (59.7, "1 min ago"),
        (720, "12 min ago"),
        (3_599, "1 h ago"),
        (172_799, "2 days ago"),
    ],
)
def test_how_long_ago_it_was_is_rounded_before_the_unit_is_chosen(seconds: float, text: str) -> None:
    assert ago(seconds) == text
