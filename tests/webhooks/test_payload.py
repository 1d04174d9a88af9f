"""What a body claims: an id that could be one, a word, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_async.webhooks._delivery import Kind, PayloadHint, read_hint

PAYMENT = {"event": "payment.failed", "payment": {"id": "pi_1"}, "attempt": None, "customer": {}}
HEADERS = {"X-Payment-Event": "payment.completed", "x-payment-id": "pi_2"}
NO_IDS = ("", "..", "x" * 256, "pi_1\n", "pi\ud800", 7, None, ["pi_1"], {})
NO_BODIES = (b"", b"\xff\xfe", b"{", b"[1]", b"null", b"[" * 100_000, b"9" * 5_000, b'{"payout": 1}')
FOREIGN = PayloadHint(is_foreign=True)


@pytest.mark.parametrize(
    ("kind", "body", "headers", "hint"),
    [
        ("payout", {"event": "e", "payout": {"id": "po_1"}}, {}, PayloadHint("po_1", "e")),
        *((kind, PAYMENT, {}, PayloadHint("pi_1", "payment.failed")) for kind in ("payment", "checkout")),
        # headers help where the body says nothing; they speak of payments
        ("payment", b"", HEADERS, PayloadHint("pi_2", "payment.completed")),
        ("checkout", PAYMENT, HEADERS, PayloadHint("pi_1", "payment.failed")),
        ("payout", b"", HEADERS, PayloadHint(None, "payment.completed")),
        *(("payment", {"payment": {"id": odd}}, {}, PayloadHint()) for odd in NO_IDS),
        *(("payment", {"payment": odd}, {}, PayloadHint()) for odd in NO_IDS),
        *(
            ("payout", {"event": odd, "payout": {"id": "po_1"}}, {}, PayloadHint("po_1"))
            for odd in ("", "a\nb", "x" * 129, 7, {"id": 1})
        ),
        ("payment", {"payout": {"id": "po_1"}}, {}, FOREIGN),
        ("payout", {"payment": {"id": "pi_1"}}, {}, FOREIGN),
        ("payout", {"payment": {"id": "pi_1"}, "payout": {"id": "po_1"}}, {}, PayloadHint("po_1")),
        *(("payout", body, {}, PayloadHint()) for body in NO_BODIES),
    ],
)
def test_a_hint_is_an_id_that_could_be_one_and_a_word(
    kind: Kind, body: Any, headers: dict[str, str], hint: PayloadHint
) -> None:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    assert read_hint(kind, headers, raw) == hint
