"""What failed, grouped by its cause: on the list of webhooks and in the log."""

from __future__ import annotations

import re

from payments_async.sandbox import Sandbox
from payments_async.sandbox._journal import Journal, tried
from payments_async.sandbox._webhooks import WebhookTry
from tests.sandbox.inspector.test_pages import page, text_of
from tests.sandbox.raw_requests import Api


def causes(shown: str) -> list[str]:
    """What each cause says, folded."""
    return [text_of(one) for one in re.findall(r"(?s)<summary>(<span class=\"pill.*?)</summary>", shown)]


def test_deliveries_that_do_not_arrive_are_grouped_by_address_and_answer(sandbox: Sandbox, api: Api) -> None:
    queue, began = sandbox._outbox.queue, sandbox.clock.now()
    for number, (path, status) in enumerate(
        (("gone/s3cret", 404), ("gone/0ther?token=s3cret", 404), ("ok", 204))
    ):
        api.payout(reference=f"r-{number}", webhook_url=f"http://127.0.0.1:9/{path}")
        hook = sandbox.webhooks[-1].id
        queue.take(began + number, 1)
        queue.report(hook, WebhookTry(began + number, 0.01, status, None))
    api.payout(webhook_url="http://127.0.0.1:9/later", scenario="delay:1h")
    api.payout(webhook_url="http://127.0.0.1:9/never", scenario="drop")
    shown = page(sandbox, "webhooks")
    assert causes(shown) == [
        "failing http://127.0.0.1:9/gone/…: answered 404 2 × 2026-01-01 00:00:00 to 00:00:01",
        "dropped http://127.0.0.1:9/never: the scenario dropped it 1 × 2026-01-01 00:00:00",
    ]
    assert "s3cret" not in "".join(re.findall(r"(?s)<details.*?</details>", shown))
    assert "What to do: Serve this path for POST, or correct the webhook_url." in text_of(shown)
    assert "What to do: Nothing was sent." in text_of(shown)
    assert causes(page(sandbox, "webhooks?state=delivered")) == []


def test_of_many_failures_the_newest_are_named_and_a_link_leads_to_all(sandbox: Sandbox, api: Api) -> None:
    for number in range(30):
        api.payout(reference=f"r-{number}", webhook_url="http://127.0.0.1:9/never", scenario="drop")
    shown = page(sandbox, "webhooks")
    assert 'href="/_sandbox/webhooks?state=dropped">and 22 more in the list</a>' in shown
    assert len(re.findall(r">wh_\d+</a>", shown)) == 8


def test_what_failed_in_the_log_is_grouped_with_its_money_and_what_to_do(sandbox: Sandbox, api: Api) -> None:
    for number in range(3):
        api.payout(reference=f"r-{number}", amount=-5 if number == 2 else 10, currency="GHS")
    api.payout(reference="r-0", amount=20, currency="GHS")
    api.payout(reference="r-1", amount=2.5, currency="USD")
    for amount in (7, 8):
        words = {"sandbox_scenario": "fail:NO_FUNDS immediate"}
        api.payout(reference=f"f-{amount}", amount=amount, currency="GHS", metadata=words)
    api.payout(reference="y", currency="GHS", scenario="lost_response")
    api.payout(reference="z", amount="much")
    sandbox.handle("GET", "/v1/nowhere", {"Authorization": f"Bearer {api.key}"})
    session = api.checkout(currency="GHS").data["checkout"]["id"]
    sandbox.pay(session, outcome="fail:CUSTOMER_DECLINED")
    api.payout(reference="hooked", webhook_url="http://127.0.0.1:9/x", scenario="drop")
    api.payout(reference="tried", webhook_url="http://127.0.0.1:9/x")
    hook, now = sandbox.webhooks[-1], sandbox.clock.now()
    sandbox._outbox.queue.take(now, 1)
    sandbox._outbox.queue.report(hook.id, WebhookTry(now, 0.01, 500, None))
    sandbox.journal.add(tried(sandbox.webhooks[-1], sandbox.webhooks[-1].tries[-1], now))
    shown = page(sandbox, "?find=is:failed")
    found = {one.partition(" 2026")[0] for one in causes(shown)}
    assert {re.sub(r": .* (\d ×)", r": … \1", one) for one in found} == {
        "409 payouts.create: … 2 × GHS 20.00 · USD 2.50",
        "422 payouts.create: … 1 ×",
        "no answer payouts.create: … 1 × GHS 50.00",
        "404 GET without an operation: … 1 ×",
        "failed payout NO_FUNDS: … 2 × GHS 15.00",
        "failed attempt CUSTOMER_DECLINED: … 1 × GHS 50.00",
        "failing http://127.0.0.1:9/x: … 1 ×",
    }
    text = text_of(shown)
    assert "An earlier payout has this reference: look it up." in text
    assert "The sandbox was told to simulate this. Nobody knows if it was carried out." in text
    assert "It moved no money. Send a new payout with a new reference once the cause is gone." in text
    assert causes(page(sandbox, "?find=is:failed+status:422")) != []
    assert causes(page(sandbox)) == []


def test_a_failure_whose_answer_is_no_longer_kept_says_so(sandbox: Sandbox, api: Api) -> None:
    sandbox._journal = Journal(body_bytes=0)
    api.payout(amount=-5)
    assert causes(page(sandbox, "?find=is:failed")) == [
        "422 payouts.create: its answer is no longer kept 1 × 2026-01-01 00:00:00"
    ]


def test_what_was_refused_is_never_called_in_doubt_and_an_absurd_amount_is_no_money(
    sandbox: Sandbox, api: Api
) -> None:
    for amount in (b'"1e900000000"', b"1e-20000000", b"1e40", b"true"):
        api.post("/payouts", b'{"currency":"GHS","amount":' + amount + b"}")
    api.post("/payouts", b"{")
    api.payout(idempotency_key="short")
    api.payout(reference="r", scenario="lost_request")
    api.payout(reference="s", scenario="bad_json")
    shown = page(sandbox, "?find=is:failed")
    details = [text_of(one) for one in re.findall(r"(?s)<details class=.card.*?</details>", shown)]
    doubt = [one.partition(":")[0] for one in details if "Nobody knows" in one]
    assert doubt == ["201 payouts.create"], "an answer that cannot be read"
    assert any("the fault bad_json" in one for one in details)
    assert any("lost_request" not in one and "It was not carried out. Send" in one for one in details)
    assert not any("GHS" in one for one in details if one.startswith("422"))


def test_a_page_shows_the_most_frequent_causes_and_says_how_many_more_there_are(
    sandbox: Sandbox, api: Api
) -> None:
    for number in range(7):
        for _ in range(2 if number == 6 else 1):
            api.payout(webhook_url=f"http://127.0.0.1:9/path{number}", scenario="drop")
    shown = page(sandbox, "webhooks")
    assert len(causes(shown)) == 4
    assert "/path6: the scenario dropped it 2 ×" in causes(shown)[0]
    assert "3 more causes, none of them more frequent." in text_of(shown)
    api.payout(webhook_url=f"http://127.0.0.1:9/{'s3cret' * 8}", scenario="drop")
    assert "s3cret" not in "".join(causes(page(sandbox, "webhooks?event=payout.created")))
