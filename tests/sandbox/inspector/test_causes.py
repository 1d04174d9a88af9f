"""What failed, grouped by its cause: on the list of webhooks and in the log."""

from __future__ import annotations

import re

from payments_async.sandbox import Sandbox
from payments_async.sandbox._webhooks import WebhookTry
from tests.sandbox.inspector.test_pages import page, text_of
from tests.sandbox.raw_requests import Api


def causes(shown: str) -> list[str]:
    """What each cause says, folded."""
    return [text_of(one) for one in re.findall(r"(?s)<summary>(<span class=\"pill.*?)</summary>", shown)]


def test_deliveries_that_do_not_arrive_are_grouped_by_address_and_answer(sandbox: Sandbox, api: Api) -> None:
    queue, began = sandbox._outbox.queue, sandbox.clock.now()
    for number, (path, status) in enumerate((("gone?token=s3cret", 404), ("gone", 404), ("ok", 204))):
        api.payout(reference=f"r-{number}", webhook_url=f"http://127.0.0.1:9/{path}")
        hook = sandbox.webhooks[-1].id
        queue.take(began + number, 1)
        queue.report(hook, WebhookTry(began + number, 0.01, status, None))
    api.payout(webhook_url="http://127.0.0.1:9/later", scenario="delay:1h")
    api.payout(webhook_url="http://127.0.0.1:9/never", scenario="drop")
    shown = page(sandbox, "webhooks")
    assert causes(shown) == [
        "failing http://127.0.0.1:9/gone: answered 404 2 × 2026-01-01 00:00:00 to 00:00:01",
        "dropped http://127.0.0.1:9/never: the scenario dropped it 1 × 2026-01-01 00:00:00",
    ]
    assert "s3cret" not in shown
    assert "What to do: Answer each delivery with a 2xx at once, and work on it afterwards." in text_of(shown)
    assert "What to do: Nothing was sent." in text_of(shown)
    assert causes(page(sandbox, "webhooks?state=delivered")) == []


def test_of_many_failures_the_newest_are_named_and_a_link_leads_to_all(sandbox: Sandbox, api: Api) -> None:
    for number in range(30):
        api.payout(reference=f"r-{number}", webhook_url="http://127.0.0.1:9/never", scenario="drop")
    shown = page(sandbox, "webhooks")
    assert 'href="/_sandbox/webhooks?state=dropped">and 6 more</a>' in shown
    assert len(re.findall(r">wh_\d+</a>", shown)) == 24
