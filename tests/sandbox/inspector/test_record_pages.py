"""The pages of payments, payouts and webhooks over HTTP: what they are, and all that happened to them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from tests.sandbox.inspector.test_log_and_lists import rows
from tests.sandbox.inspector.test_pages import page as plain_page
from tests.sandbox.inspector.test_pages import text_of
from tests.sandbox.raw_requests import ACTION_TYPES, INTENT, TRIED, Api


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A serving sandbox on a clock that stands still until it is advanced."""
    with Sandbox(clock=VirtualClock.frozen()) as serving:
        yield serving


@pytest.fixture
def receiver() -> Iterator[SimpleNamespace]:
    """A receiver at `url`. It gives its `answers` one after the other, and 204 when none is left."""

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
        found = SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}/hook", answers=[])
        threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True).start()
        yield found
        server.shutdown()


def page(sandbox: Sandbox, path: str) -> str:
    """The page at an address, redirects followed."""
    answer = sandbox.handle("GET", f"/_sandbox/{path}")
    if answer.status == 303:
        return plain_page(sandbox, answer.headers["Location"].removeprefix("/_sandbox/"))
    assert answer.status == 200
    return answer.body.decode()


def timeline(sandbox: Sandbox, path: str) -> list[str]:
    """The lines of a record's timeline, without the record's name."""
    shown = page(sandbox, path).partition("<h2>Timeline</h2>")[2]
    return rows(re.sub(r'<(span|a) class="named".*?</\1>', "", shown))


def advance(sandbox: Sandbox, seconds: float) -> None:
    """Skip time, and let webhooks arrive before and after."""
    sandbox.wait_for_webhooks()
    sandbox.advance(seconds)
    sandbox.wait_for_webhooks()


def test_the_timeline_of_a_payout_has_requests_states_and_webhooks_in_order(
    sandbox: Sandbox, api: Api, receiver: SimpleNamespace
) -> None:
    receiver.answers = [(500, {}, b"")]
    named = {"reference": "salary-42", "webhook_url": receiver.url, "idempotency_key": "salaries-42"}
    api.payout(**named, scenario="lost_response")
    advance(sandbox, 1.5)
    api.payout(**named)
    payout = sandbox.books.payouts()[0].id
    for _ in range(3):
        api.sync(payout)
    api.payout(**{**named, "idempotency_key": "salaries-43"})
    api.payout(reference="another", idempotency_key="salaries-44")
    advance(sandbox, 28.5)
    lines = timeline(sandbox, f"payouts/{payout}")
    refused = next(line for line in lines if line.endswith("409"))
    assert lines == [
        "payout new → pending pending",
        "POST /v1/payouts lost_response the connection was closed before the answer no answer",
        "webhook payout.created 500",
        "POST /v1/payouts replayed answer 201",
        f"GET /v1/payouts/{payout}/sync 3 times, the last at 2026-01-01 00:00:01 200",
        refused,
        "payout pending → processing processing",
        "payout processing → completed completed",
        "webhook payout.created try 2 204",
        "webhook payout.completed 204",
    ] or sorted(lines[-2:]) == ["webhook payout.completed 204", "webhook payout.created try 2 204"]
    shown = page(sandbox, f"payouts/{payout}")
    assert f'href="/_sandbox/requests/{sandbox.requests[0].request_id}"' in shown
    assert 'href="/_sandbox/webhooks/wh_00000001"' in shown
    assert re.search(r'00:00:01.500 <span class="soft">\+1.5 s', shown)
    for fact in ("XOF 50", "completed", "salaries-42", "salary-42", "2026-01-01 00:00:00", payout):
        assert fact in text_of(shown)


def test_a_payout_is_found_by_its_reference_in_requests_and_addresses(
    sandbox: Sandbox, api: Api, stranger: Api
) -> None:
    reference = "Gehälter/June 2026"
    payout = api.payout(reference=reference, idempotency_key="key-00001").data["id"]
    api.payout(reference=reference, amount=7)
    for query in (f"reference={quote(reference)}&status=failed", f"reference={quote(reference)}0", "n=1"):
        api.get(f"/payouts?{query}")
    stranger.payout(idempotency_key="key-00001")
    stranger.get(f"/payouts/{payout}/sync")
    assert page(sandbox, f"payouts/{quote(reference, safe='')}") == page(sandbox, f"payouts/{payout}")
    assert [line.split()[0] + line[-4:] for line in timeline(sandbox, f"payouts/{payout}")] == [
        "payoutding",
        "POST 201",
        "POST 409",
        "GET 200",
        "GET 404",
    ]
    other = stranger.payout(reference=reference).data["id"]
    both = page(sandbox, f"payouts/{quote(reference, safe='')}")
    assert all(f'href="/_sandbox/payouts/{one}"' in both for one in (payout, other))


def test_an_open_payout_says_what_is_planned_and_can_be_ended(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(metadata={"sandbox_scenario": "fail:NO_FUNDS after=9s"}).data["id"]
    said = text_of(page(sandbox, f"payouts/{payout}"))
    for fact in (
        "planned: fail:NO_FUNDS after=9s",
        "Reference none",
        "Idempotency key none",
        "nowhere: it has no webhook_url",
        "Complete Fail",
        '"status":',
    ):
        assert fact in said
    sandbox.advance(9)
    said = text_of(page(sandbox, f"payouts/{payout}"))
    assert "NO_FUNDS" in said
    assert "Complete" not in said


def test_the_timeline_of_a_payment_has_its_attempts_and_refunds(sandbox: Sandbox, api: Api) -> None:
    session = api.checkout().data["checkout"]["id"]
    api.get(f"/payment/checkouts/{session}")
    for outcome in ("action:approve_on_phone", "fail:CUSTOMER_DECLINED", "complete"):
        sandbox.advance(1)
        sandbox.pay(session, method="mtn_bj", phone="+22990000077", outcome=outcome)
    payment = sandbox.books.payments()[0]
    sandbox.refund(session, 20)
    assert timeline(sandbox, f"payments/{payment.id}") == [
        "payment new → pending pending",
        "POST /v1/payment/checkouts 201",
        f"GET /v1/payment/checkouts/{session} 200",
        "attempt new → processing processing",
        "attempt processing → action_required action_required",
        "attempt action_required → failed CUSTOMER_DECLINED failed",
        "attempt new → processing processing",
        "attempt processing → completed completed",
        "payment pending → completed completed",
        "payment completed → partially_refunded partially_refunded",
    ]
    api.checkout()
    shown = page(sandbox, f"payments/{payment.id}")
    assert "22990000077" not in shown
    assert "XOF 20 refunded Refund XOF 30 Payer's page" in text_of(shown)
    assert f'href="/checkout/{session}"' in shown
    for name in (session, *payment.attempts, payment.reference):
        assert page(sandbox, f"payments/{name}") == shown


@pytest.mark.parametrize("kind", ACTION_TYPES)
def test_a_payment_leads_to_where_its_payer_acts(sandbox: Sandbox, api: Api, kind: str) -> None:
    api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": f"action:{kind}"}})
    for path in ("payments", f"payments/{sandbox.books.payments()[0].id}"):
        shown = page(sandbox, path)
        assert "Payer's page" not in shown, "it has no session"
        found = re.search(r'href="(/actions/[^"]+)">([^<]+)<', shown)
        assert (found is None) == (kind == "none")
        if found is not None:
            assert found[2] == kind
            assert sandbox.handle("GET", found[1]).status == 200


def test_a_long_timeline_ends_with_how_many_more_there_are(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(reference="r-1", metadata={"sandbox_scenario": "manual"}).data["id"]
    for turn in range(120):  # not the same, since requests that repeat are one line
        api.get(f"/payouts?reference=r-1&status={('pending', 'failed')[turn % 2]}")
    shown = page(sandbox, f"payouts/{payout}")
    left = re.search(r'href="\?after=(\d+)">(\d+) later<', shown)
    assert left is not None
    assert int(left[1]) + int(left[2]) == 122
    rest = page(sandbox, f"payouts/{payout}?after={left[1]}")
    assert "From the beginning" in rest
    assert page(sandbox, f"payouts/{payout}?after=x") == shown


def test_the_control_api_names_the_pages(sandbox: Sandbox, api: Api) -> None:
    api.payout(webhook_url="http://127.0.0.1:9/hook")
    api.checkout()
    for kind in ("requests", "payouts", "payments", "webhooks"):
        for one in json.loads(page(sandbox, f"api/{kind}"))[kind]:
            assert one["page"] == f"/_sandbox/{kind}/{one['id']}"
            assert one["id"] in page(sandbox, f"{kind}/{one['id']}")


# --- webhooks -----------------------------------------------------------------------------------


def test_a_webhooks_page_has_what_the_receiver_said_of_each_refusal(
    sandbox: Sandbox, api: Api, receiver: SimpleNamespace
) -> None:
    echo = b'{"event": "payout.created", "phone_number": "+22990000000", "note": "for ada@example.test"}'
    receiver.answers = [(500, {}, echo), (302, {}, b"<h1>Moved</h1>"), (503, {}, b"b" * 80_000)]
    payout = api.payout(webhook_url=f"{receiver.url}?token=s3cret", scenario="manual").data["id"]
    for seconds in (30, 120, 600):
        advance(sandbox, seconds)
    shown = page(sandbox, "webhooks/wh_00000001")
    for secret in ("s3cret", "22990000000", "ada@example", "<h1>Moved"):
        assert secret not in shown
    assert f'href="/_sandbox/payouts/{payout}"' in shown
    assert '"event": "payout.created"' in text_of(shown)
    untimed = re.sub(r'<span class="soft">[^<]* m?s</span>', "", shown)
    sections = re.findall(r'(?s)<section class="card".*?>(.*?)</section>', untimed)
    assert [" ".join(text_of(one).split()[:5]) for one in sections] == [
        "Try 4 2026-01-01 00:12:30 204",
        "Try 3 2026-01-01 00:02:30 503",
        "Try 2 2026-01-01 00:00:30 302",
        "Try 1 2026-01-01 00:00:00 500",
    ]
    tries = json.loads(page(sandbox, "api/webhooks/wh_00000001"))["tries"]
    assert [one["answer"] for one in tries] == [
        '{"event": "payout.created", "phone_number": "•••00", "note": "for •••"}',
        "<h1>Moved</h1>",
        "b" * 500,
        "",
    ]


def test_webhooks_that_did_not_arrive_say_why(sandbox: Sandbox, api: Api, receiver: SimpleNamespace) -> None:
    made = api.payout(webhook_url=f"{sandbox.origin}/hook", scenario="drop").data["id"]
    api.payout(webhook_url=receiver.url, scenario="delay:1h")
    sandbox.forge(made)  # to the sandbox itself
    sandbox.forge(made, url="http://127.0.0.1:9/x")
    sandbox.wait_for_webhooks()
    for name, *facts in (
        ("wh_00000001", "dropped", "the scenario dropped it", "Not sent yet."),
        ("wh_00000002", "waiting", "Next try 2026-01-01 01:00:00", "Not sent yet."),
        ("wh_00000003", "refused", "forged"),
        ("wh_00000004", "failing", "no answer nothing listens there", "Next try 2026-01-01 00:00:30"),
    ):
        said = text_of(page(sandbox, f"webhooks/{name}"))
        for fact in facts:
            assert fact in said, (name, fact)
        assert ("Resend" in said) == ("refused" not in facts), name
    assert "nothing listens there" in rows(page(sandbox, "webhooks"))[0]
    (tried,) = rows(page(sandbox, "?find=wh_00000004"))
    assert tried.startswith("webhook payout.completed")
    again = sandbox.resend("wh_00000002")
    assert "Repeats wh_00000002" in text_of(page(sandbox, f"webhooks/{again.id}"))
    assert "resent" in text_of(page(sandbox, f"webhooks/{again.id}"))


def test_faults_show_what_remains(sandbox: Sandbox, api: Api) -> None:
    sandbox.on("payouts.create", reference="r-1").respond("http:503", times=2)
    sandbox.on("payouts.list").respond("http:503", times=None)
    api.payout(reference="r-1")
    api.get("/payouts")
    shown = text_of(page(sandbox, "faults"))
    assert "payouts.create http:503*2 reference=r-1 matched 1, 1 to come Remove" in shown
    assert "payouts.list http:503 (every time) matched 1, every time Remove" in shown
    assert "2 active rules" in text_of(page(sandbox, ""))
    api.payout(reference="r-1")
    assert "matched 2, used up" in text_of(page(sandbox, "faults"))
    assert "1 active rule" in text_of(page(sandbox, ""))


def test_an_intent_without_an_attempt_has_its_page(sandbox: Sandbox, api: Api) -> None:
    api.post("/payment/intents", INTENT)
    assert "Pay Decline Expire" in text_of(page(sandbox, f"payments/{sandbox.books.payments()[0].id}"))
