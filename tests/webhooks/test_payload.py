"""What a body claims: an id that could be one, a word, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_async.webhooks._delivery import Kind, PayloadHint, read_hint


def hint(kind: Kind, body: Any, **headers: str) -> PayloadHint:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_hint(kind, {name.replace("_", "-"): value for name, value in headers.items()}, raw)


def test_each_kind_has_its_record_where_the_service_puts_it() -> None:
    assert hint("payout", {"event": "payout.completed", "payout": {"id": "po_1"}}) == PayloadHint(
        "po_1", "payout.completed"
    )
    body = {"event": "payment.failed", "payment": {"id": "pi_1"}, "attempt": None, "customer": {}}
    assert hint("payment", body) == hint("checkout", body) == PayloadHint("pi_1", "payment.failed")


def test_headers_help_where_the_body_says_nothing() -> None:
    headers = {"X_Payment_Event": "payment.completed", "x_payment_id": "pi_2"}
    assert hint("payment", b"", **headers) == PayloadHint("pi_2", "payment.completed")
    assert hint("checkout", {"event": "e", "payment": {"id": "pi_1"}}, **headers) == PayloadHint("pi_1", "e")
    assert hint("payout", b"", **headers) == PayloadHint(None, "payment.completed"), "they speak of payments"


@pytest.mark.parametrize("odd", ["", "..", "x" * 256, "pi_1\n", "pi\ud800", 7, None, ["pi_1"], {}])
def test_an_id_that_could_be_none_is_not_looked_at(odd: object) -> None:
    assert hint("payment", {"payment": {"id": odd}}) == PayloadHint()
    assert hint("payment", {"payment": odd}) == PayloadHint()


@pytest.mark.parametrize("odd", ["", "a\nb", "x" * 129, 7, {"id": 1}])
def test_an_event_that_is_no_word_is_left_out(odd: object) -> None:
    assert hint("payout", {"event": odd, "payout": {"id": "po_1"}}) == PayloadHint("po_1")


def test_a_record_of_another_kind_is_foreign() -> None:
    assert hint("payment", {"payout": {"id": "po_1"}}).is_foreign
    assert hint("payout", {"payment": {"id": "pi_1"}}).is_foreign
    assert not hint("payout", {"payment": {"id": "pi_1"}, "payout": {"id": "po_1"}}).is_foreign


@pytest.mark.parametrize(
    "body", [b"", b"\xff\xfe", b"{", b"[1]", b"null", b"[" * 100_000, b"9" * 5_000, b'{"payout": 1}']
)
def test_a_body_that_says_nothing_is_no_error(body: bytes) -> None:
    assert hint("payout", body) == PayloadHint()
