"""What people see of the addresses of receivers: where they are, never what makes them believe a delivery."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async import AsyncPayments
from payments_async.sandbox import Sandbox
from payments_async.sandbox._common.masking import address, mask, mask_path, mask_text
from payments_async.webhooks import WebhookReceiver
from tests.sandbox.raw_requests import Api

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8000/hook", "http://127.0.0.1:8000/hook"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://shop.test/", "http://shop.test/"),
        ("http://shop.test/v1/payment-hooks/", "http://shop.test/v1/payment-hooks/"),
        ("https://shop.test/hooks?token=x", "https://shop.test/hooks?•••"),
        ("https://shop.test/hooks#token", "https://shop.test/hooks#•••"),
        ("https://shop.test/hooks/s3cr3t", "https://shop.test/hooks/•••"),
        ("https://shop.test/s3cr3t/hooks", "https://shop.test/•••/hooks"),
        ("https://shop.test/hooks/Xk%2Fqz", "https://shop.test/hooks/•••"),
        ("https://shop.test/hooks/AbCdEfGhIjKlMnOpQrStUv", "https://shop.test/hooks/•••"),
        ("http://user:pass@shop.test/hook", "http://•••@shop.test/hook"),
        ("s3cr3t", "•••"),
        ("", ""),
    ],
)
def test_of_an_address_only_plain_words_are_shown(url: str, shown: str) -> None:
    assert address(url) == shown
    assert mask({"webhook_url": url}) == {"webhook_url": shown}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("write to ada@shop.example, or call", "write to •••e, or call"),
        ("ada@shop.example", "•••le"),
        ("a@b@c.example", "a@•••le"),
        ("call +229 90 11 22 33 now", "call •••33 now"),
        ("+229 90112233ada@shop.example", "+229 •••le"),
        ("5105105105105100", "•••00"),
        ("5105 1051 0510 5100 11/29", "•••11/29"),
        ("order 5105105105105101", "order 5105105105105101"),  # its check digit is wrong
        ("po_5105105105105100, a-5105105105105100", "po_5105105105105100, a-5105105105105100"),
        ("the key sk_live_5ecret-KEY_7.", "the key •••_7."),
        ("ask_sandbox, sk_live", "ask_sandbox, sk_live"),
        ("ada@shop, @ada, 1+1", "ada@shop, @ada, 1+1"),
    ],
)
def test_an_address_or_a_phone_number_is_hidden_anywhere_in_a_text(text: str, shown: str) -> None:
    assert mask({"description": text}) == {"description": shown}
    assert mask_text(text) == shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/v1/payouts?q=ada%40shop.example&n=%5B1%5D", "/v1/payouts?q=•••le&n=%5B1%5D"),
        ("/v1/payers/%2B22990112233?phone=0611223344", "/v1/payers/•••33?phone=•••44"),
        ("/v1/x?a=+22990112233&b=+22990112233", "/v1/x?a=•••33&b=•••33"),
        ("/v1/x?q=+233200000001%20a%40b.co", "/v1/x?q=•••01%20•••co"),
        (
            "/v1/x?metadata%5Bphone%5D=0244123456&phone[]=0244123456",
            "/v1/x?metadata%5Bphone%5D=•••56&phone[]=•••56",
        ),
        ("/v1/x?api_key=sk_live_5ecretKEY&empty=&flag", "/v1/x?api_key=•••EY&empty=&flag"),
        ("/v1/x?%73k_live_5ecretKEY=1&a%40b.co&%2B22990112233=", "/v1/x?•••EY=1&•••co&•••33="),
        ("/v1/payouts?created_at%5Bgte%5D=2026-01-01T00%3A00%3A00Z&a=b=c",) * 2,
    ],
)
def test_account_data_in_an_address_of_the_api_is_hidden_as_escaped_as_it_may_be(
    path: str, shown: str
) -> None:
    assert mask_path(path) == shown


@settings(deadline=None)
@given(st.text(alphabet="ABCDEFabcdef0123456789_-", min_size=21, max_size=80))
def test_no_long_segment_is_shown(token: str) -> None:
    assert token not in address(f"https://shop.test/hooks/{token}/more")


def test_the_token_of_a_receiver_is_on_no_page_and_in_no_answer() -> None:
    sandbox = Sandbox()
    client = AsyncPayments(sandbox.api_key, base_url="http://127.0.0.1:9/v1")
    receiver = WebhookReceiver(
        client, base_url="http://127.0.0.1:9/webhooks", secrets=[SECRET], on_payout=lambda payout: None
    )
    url = receiver.url_for_payout("invoice-1")
    token = url.rpartition("/")[2]
    payout = Api(sandbox, sandbox.api_key).payout(reference="invoice-1", webhook_url=url).data["id"]
    request = sandbox.requests[-1].request_id
    seen = [f"api/{path}" for path in ("webhooks", "payouts", f"payouts/{payout}", f"requests/{request}")] + [
        "",
        "webhooks",
        "payouts",
        f"requests/{request}",
        f"api/requests/{request}/code",
    ]
    for path in seen:
        assert token not in sandbox.handle("GET", f"/_sandbox/{path}").body.decode(), path
    assert sandbox.deliveries
    assert token not in repr(sandbox.deliveries)
    revealed = json.loads(sandbox.handle("GET", f"/_sandbox/api/payouts/{payout}?reveal=1").body)
    assert revealed["webhook_url"] == url
