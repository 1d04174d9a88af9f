"""Each button and form of the inspector's pages: what it asks of the control API does what it says."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from payments_async.sandbox import Sandbox
from tests.sandbox.inspector.test_pages import page, text_of
from tests.sandbox.raw_requests import Api, Got

JSON = {"Content-Type": "application/json"}


def press(sandbox: Sandbox, path: str, label: str) -> Any:
    """What the control API answers to the first button of a page with this label."""
    found = re.search(
        rf'<button [^>]*data-call="(\w+) ([^"]+)"(?: data-body="([^"]*)")?[^>]*>{re.escape(label)}<',
        page(sandbox, path),
    )
    assert found is not None, label
    body = html.unescape(found[3] or "{}").encode()
    answer = Got(sandbox.handle(found[1], f"/_sandbox/api/{found[2]}", JSON, body))
    assert answer.status in (200, 201), answer.json
    return answer.json


def submit(sandbox: Sandbox, path: str, status: int, **fields: str) -> Any:
    """What the control API answers to a page's form with these fields, all of which it has."""
    found = re.search(r'<form [^>]*data-call="(\w+) ([^"]+)".*?</form>', page(sandbox, path), re.DOTALL)
    assert found is not None
    assert fields.keys() <= {*re.findall(r' name="([^"]+)"', found[0])}
    body = json.dumps(fields).encode()
    answer = Got(sandbox.handle(found[1], f"/_sandbox/api/{found[2]}", JSON, body))
    assert answer.status == status
    return answer.json


@pytest.mark.parametrize(("label", "status"), [("Complete", "completed"), ("Fail", "failed")])
def test_payouts_are_held_and_ended(sandbox: Sandbox, api: Api, label: str, status: str) -> None:
    payout = api.payout().data["id"]
    press(sandbox, "payouts", "Hang")
    assert ">Hang<" not in page(sandbox, "payouts")
    sandbox.advance(100)
    assert sandbox.books.payouts()[0].status == "processing"
    press(sandbox, f"payouts/{payout}", label)
    assert sandbox.books.payouts()[0].status == status


def test_a_payment_is_declined_paid_and_refunded_and_another_expires(sandbox: Sandbox, api: Api) -> None:
    api.checkout()
    press(sandbox, "payments", "Decline")
    assert "CUSTOMER_DECLINED" in page(sandbox, "payments")
    for label, status in (("Pay", "completed"), ("Refund XOF 50", "refunded")):
        press(sandbox, "payments", label)
        assert sandbox.books.payments()[0].status == status
    api.checkout()
    press(sandbox, f"payments/{sandbox.books.payments()[1].id}", "Expire")
    assert sandbox.books.payments()[1].status == "expired"


def test_the_clock_is_moved_and_paced(sandbox: Sandbox, api: Api) -> None:
    api.payout()
    assert press(sandbox, "clock", "+30s")["changed"] == 2
    submit(sandbox, "clock", 200, by="1h")
    assert "2026-01-01 01:00:30" in page(sandbox, "clock")
    assert "not a duration" in submit(sandbox, "clock", 400, by="soon")["message"]
    for label, said in (("×60", "60 sandbox seconds per real second"), ("Freeze", "The clock is frozen")):
        press(sandbox, "clock", label)
        assert said in text_of(page(sandbox, "clock"))


def test_webhooks_are_sent_again_and_forged(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(webhook_url="http://127.0.0.1:9/hook").data["id"]
    press(sandbox, "webhooks", "Resend")
    wrong = submit(sandbox, "webhooks", 400, record=payout, event="payout.complete")
    assert (wrong["field"], "payout.completed" in wrong["near"]) == ("event", True)
    submit(sandbox, "webhooks", 201, record=payout, event="payout.completed", url="http://127.0.0.1:9/")
    assert [one.origin for one in sandbox.webhooks] == ["due", "resent", "forged"]
