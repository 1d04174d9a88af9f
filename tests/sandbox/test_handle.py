"""The handle itself: its log, its books, its seed."""

from __future__ import annotations

import sys
from decimal import Decimal
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import payments_async.sandbox
from payments_async.sandbox import Sandbox, VirtualClock
from tests.sandbox.raw_requests import Api


def test_the_package_has_the_names_that_it_lists_and_no_other() -> None:
    assert set(payments_async.sandbox.__all__) <= set(dir(payments_async.sandbox))
    with pytest.raises(AttributeError, match="no attribute 'Sandbocks'"):
        payments_async.sandbox.Sandbocks  # noqa: B018  # reading it is the test


def test_the_log_has_requests_and_their_outcomes(api: Api) -> None:
    api.payout(idempotency_key="key-00001")
    api.payout(idempotency_key="key-00001", scenario="lost_response")
    api.get("/payouts?per_page=5")
    api.get("/nothing")
    Api(api.sandbox, "sk_live_secret").get("/payouts")
    created, replayed, listed, unknown, barred = api.sandbox.requests
    assert (created.method, created.path, created.status) == ("POST", "/v1/payouts", 201)
    assert (created.operation, created.idempotency_key) == ("payouts.create", "key-00001")
    assert (created.replayed, created.fault, replayed.replayed, replayed.fault) == (
        False,
        None,
        True,
        "lost_response",
    )
    assert (listed.path, listed.operation) == ("/v1/payouts?per_page=5", "payouts.list")
    assert (unknown.operation, unknown.status, unknown.key) == (None, 404, created.key)
    assert (barred.key, barred.status) == (None, 401)
    assert all("authorization" not in entry.headers for entry in api.sandbox.requests)
    assert "sk_" not in repr(api.sandbox.requests)


def test_a_payout_s_repr_shows_neither_its_account_nor_its_receiver(api: Api) -> None:
    payout_id = api.payout(reference="r-1", webhook_url="https://shop.test/hooks/secret").data["id"]
    shown = repr(api.sandbox._core.world.tenants[api.key].payouts)
    assert shown == f"[PayoutRecord(id={payout_id!r}, reference='r-1', status='pending')]"


def test_the_books_list_payouts_as_the_service_has_them(api: Api, stranger: Api) -> None:
    api.payout(reference="r-1", amount=10.25, currency="USD", idempotency_key="key-00001")
    stranger.payout(reference="r-1", amount=5, currency="USD", scenario="fail:NO immediate")
    stranger.payout(amount=7, currency="USD")
    books = api.sandbox.books
    first, second = books.payouts(reference="r-1")
    assert (first.amount, first.currency, first.status) == (Decimal("10.25"), "USD", "pending")
    assert (first.method, first.idempotency_key) == ("mtn_bj", "key-00001")
    assert first.key != second.key
    assert first.key not in api.key
    assert [entry.status for entry in books.payouts(status="failed")] == ["failed"]
    assert [books.total("USD"), books.total("XOF")] == [Decimal("17.25"), Decimal(0)]
    api.sandbox.advance(5)
    assert {entry.status for entry in books.payouts()} == {"completed", "failed"}


def test_the_books_list_payments_and_what_was_collected(api: Api) -> None:
    intent_id = api.intent(scenario="immediate", amount=20).data["id"]
    session = api.checkout(amount=30).data
    books = api.sandbox.books
    (paid,) = books.payments(status="completed")
    assert (paid.id, paid.channel, len(paid.attempts)) == (intent_id, "api", 1)
    (unpaid,) = books.payments(status="pending")
    assert (unpaid.id, unpaid.channel, unpaid.attempts) == (session["payment"]["id"], "checkout", ())
    assert books.collected("XOF") == 20
    api.sandbox.pay(session["checkout"]["id"])
    assert books.collected("XOF") == 50


def test_two_runs_with_one_seed_and_one_history_are_byte_for_byte_the_same() -> None:
    def run() -> list[bytes]:
        sandbox = Sandbox(seed=7, clock=VirtualClock.frozen())
        api = Api(sandbox, sandbox.api_key)
        answers = [api.payout(customer={"email": "a@b.test"}), api.intent(), api.checkout()]
        sandbox.advance(5)
        return [got.answer.body for got in (*answers, api.get("/payouts"), api.get("/payment/intents"))]

    assert run() == run()
    assert Sandbox(seed=7).api_key != Sandbox(seed=8).api_key


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "babel", None)
    path = Path(payments_async.sandbox.__file__).with_name("_common") / "iso_codes.py"
    spec = spec_from_file_location("payments_async.sandbox._common.iso_codes_again", path)
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ImportError, match=r'the sandbox needs babel: pip install "payments-sdk\[sandbox\]"$'):
        spec.loader.exec_module(module_from_spec(spec))
