"""Records by themselves: finality, reprs, equality, plain and JSON forms."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import cattrs
import pytest

from payments_async import models, register_hooks
from payments_async.models import (
    Checkout,
    CheckoutSession,
    MethodHealth,
    MethodStatus,
    Page,
    Pagination,
    PaymentAttempt,
    PaymentIntent,
    Payout,
)
from payments_async.models.common import amount_text
from tests.support import bodies
from tests.support.bodies import RECORDS

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CONVERTER = cattrs.Converter()
register_hooks(CONVERTER)
structure = CONVERTER.structure

OPEN, FAILED, DONE = (False, False), (True, False), (True, True)
INTENT = {"pending": OPEN, "failed": FAILED, "expired": FAILED, "refunded": FAILED}
INTENT |= {"completed": DONE, "partially_refunded": DONE}
ATTEMPT = {"processing": OPEN, "action_required": OPEN, "failed": FAILED, "cancelled": FAILED}
ATTEMPT |= {"expired": FAILED, "completed": DONE}
PAYOUT = {"pending": OPEN, "processing": OPEN, "failed": FAILED, "cancelled": FAILED}
PAYOUT |= {"reversed": FAILED, "completed": DONE}
STATUSES: dict[type[Any], dict[str, tuple[bool, bool]]] = {
    cls: {**statuses, "settled": OPEN}
    for cls, statuses in ((PaymentIntent, INTENT), (PaymentAttempt, ATTEMPT), (Payout, PAYOUT))
}
"""{record: {status: whether it is final, and successful}}; nobody has named `settled`."""
ENDS: list[tuple[type[Any], dict[str, Any], tuple[bool, bool]]] = [
    *((cls, {}, OPEN) for cls in STATUSES),
    *(
        (cls, {"status": status}, end)
        for cls, statuses in STATUSES.items()
        for status, end in statuses.items()
    ),
    *((cls, {"completed_at": NOW}, DONE) for cls in STATUSES),
    *((cls, {"completed_at": NOW, "status": "settled"}, DONE) for cls in STATUSES),
    (PaymentIntent, {"completed_at": NOW, "status": "pending"}, DONE),
    (PaymentIntent, {"completed_at": NOW, "status": "refunded"}, FAILED),
    (PaymentIntent, {"completed_at": NOW, "expired_at": NOW}, FAILED),
    (PaymentIntent, {"expired_at": NOW, "status": "completed"}, FAILED),
    (PaymentIntent, {"expires_at": NOW}, OPEN),
    (PaymentAttempt, {"failed_at": NOW}, FAILED),
    (PaymentAttempt, {"expired_at": NOW, "status": "processing"}, FAILED),
    (PaymentAttempt, {"failed_at": NOW, "completed_at": NOW}, FAILED),
    (PaymentAttempt, {"processing_at": NOW, "action_required_at": NOW}, OPEN),
    (Payout, {"failed_at": NOW, "status": "pending"}, FAILED),
    (Payout, {"completed_at": NOW, "status": "reversed"}, FAILED),
    (Payout, {"completed_at": NOW, "failed_at": NOW}, FAILED),
    (Payout, {"initiated_at": NOW}, OPEN),
]


@pytest.mark.parametrize(("cls", "facts", "end"), ENDS)
def test_a_record_says_how_it_ended(cls: type[Any], facts: dict[str, Any], end: tuple[bool, bool]) -> None:
    record = cls(**facts)
    assert (record.is_final, record.is_successful) == end


@pytest.mark.parametrize(
    ("status", "usable"),
    [
        (MethodHealth.AVAILABLE, True),
        (MethodHealth.OPERATIONAL, True),
        (MethodHealth.DEGRADED, True),
        (MethodHealth.DOWN, False),
        (MethodHealth.UNAVAILABLE, False),
        ("fluctuating", False),
        (None, False),
    ],
)
def test_a_method_is_offered_by_its_status(status: str | None, usable: bool) -> None:
    assert MethodStatus(status=status).is_usable is usable


@pytest.mark.parametrize("cls", RECORDS)
def test_a_record_is_made_from_nothing_and_shows_nothing(cls: type[Any]) -> None:
    record = cls()
    assert repr(record) == f"{cls.__name__}()"
    assert not hasattr(record, "__dict__")
    assert record.extra == {}
    assert record.response is None
    assert set(record.to_dict().values()) <= {None, ""}
    assert record == cls()
    assert hash(record) == hash(cls())
    for field in attrs.fields(cls):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(record, field.name, None)


SECRETS = (
    bodies.PHONE,
    bodies.EMAIL,
    bodies.ACCOUNT,
    "Ada",
    "Agbo",
    "receipts@example.com",
    "0xabc0000000001",
    "memo-9",
    "otp-token",
    "qr-content",
    *(bodies.FAILURE["message"], bodies.FAILURE["code"]["message"]),
    *(bodies.FAILURE_WITH_CATEGORY["message"], bodies.FAILURE_WITH_CATEGORY["code"]["message"]),
    *(bodies.NEXT_ACTION["message"], *bodies.NEXT_ACTION["instructions"], "rules", "actions.test/go"),
)
SHOWN: list[tuple[type[Any], dict[str, Any]]] = [
    (Payout, bodies.PAYOUT),
    (PaymentIntent, bodies.INTENT),
    (PaymentIntent, bodies.INTENT_LIST),
    (Checkout, {"checkout": bodies.CHECKOUT, "payment": bodies.INTENT}),
    (models.Inspection, {**bodies.INSPECTION, "payload": {"msisdn": bodies.PHONE}}),
    (Payout, {**bodies.PAYOUT, "payee": {"phone": bodies.PHONE, "name": "Ada"}}),
]


@pytest.mark.parametrize(("cls", "body"), SHOWN)
def test_the_repr_shows_ids_and_masks_people_on_two_lines(cls: type[Any], body: dict[str, Any]) -> None:
    shown = repr(structure(body, cls))
    assert not [secret for secret in SECRETS if secret in shown]
    assert len(shown) <= 160
    if "id" in body:
        assert f"(id={body['id']!r}" in shown


UNREAD = models.Unread(1, "", raw=7)
REPRS: list[tuple[Any, str]] = [
    (
        structure(bodies.PAYOUT, Payout),
        "Payout(id='po_1', status='pending', reference='inv-7', amount=XOF 10.10, "
        "settlement_amount=EUR 0.02, exchange_rate=655.95700000, method='mtn_bj', ...)",
    ),
    (models.Customer(id="c", email="a@b.test"), "Customer(id='c', email='***')"),
    (
        PaymentAttempt(completed_at=NOW, exchange_rate=Decimal("655.957"), failover=models.Failover()),
        "PaymentAttempt(exchange_rate=655.957, failover=..., completed_at=2026-01-02 00:00:00+00:00)",
    ),
    (
        Payout(id="p" * 400, reference="r" * 400, description="d" * 400),
        f"Payout(id='{'p' * 55}...', reference='{'r' * 55}...', ...)",
    ),
    (
        structure({"id": "po_1", "payee": bodies.PHONE, "b": 1}, Payout),
        "Payout(id='po_1', extra=['b', 'payee'])",
    ),
    (Payout(id="po_1", amount=models.Amount(currency="XOF")), "Payout(id='po_1', amount=XOF None)"),
    (
        Page((Payout(id="po_1"),), Pagination(next_cursor="c"), unread=(UNREAD,)),
        "Page(1 items, 1 unread, next_cursor='c', is_last=False)",
    ),
    (Page(), "Page(0 items, next_cursor=None, is_last=True)"),
]


@pytest.mark.parametrize(("record", "shown"), REPRS, ids=range(len(REPRS)))
def test_the_repr_shows_what_tells_a_record_from_others(record: Any, shown: str) -> None:
    assert repr(record) == shown


def test_unknown_fields_belong_to_a_records_equality_and_not_to_its_hash() -> None:
    one, two = (structure({"id": "po_1", "later": n}, Payout) for n in (1, 2))
    assert one != two
    assert hash(one) == hash(two)
    assert one != structure({"id": "po_1"}, Payout)


@pytest.mark.parametrize("cls", RECORDS)
def test_no_unknown_fields_are_none_however_they_were_given(cls: type[Any]) -> None:
    assert cls(extra={}) == cls() == structure({}, cls) == attrs.evolve(cls(extra={"a": 1}), extra={})
    assert cls(extra={"a": 1}).extra == {"a": 1}


def test_records_with_mappings_inside_can_be_hashed() -> None:
    intents = {structure(bodies.INTENT_LIST, PaymentIntent) for _ in range(2)}
    assert len(intents) == 1


def test_a_checkout_without_a_session_has_no_id_and_no_address() -> None:
    assert (Checkout().id, Checkout().url) == ("", "")
    made = Checkout(CheckoutSession(id="cs_1", url="https://pay.test/cs_1"))
    assert (made.id, made.url) == ("cs_1", "https://pay.test/cs_1")


def test_a_records_json_says_what_its_plain_form_says() -> None:
    action = models.NextAction(message='a"\n\u2028é', instructions=("one",), fields=({"n": Decimal("1.50")},))
    assert action.to_dict()["instructions"] == ["one"]
    assert json.loads(action.to_json(), parse_float=Decimal) == action.to_dict()


SECRET = "+9876504321098"


def test_a_plain_form_hides_what_the_repr_hides_unless_asked() -> None:
    url = "https://x.test/hooks/0123456789abcdef"
    action = models.NextAction(url="https://x.test/?t=7", post_data={"a": "b"}, extra={"new": SECRET})
    payment = models.PaymentIntent(
        "pi_1",
        customer=models.Customer("cus_1", email=SECRET, extra={"phone": SECRET}),
        metadata={"a": SECRET},
        webhook_url=url,
        active_attempt=models.PaymentAttempt(next_action=action),
        extra={"new": SECRET},
    )
    shown = payment.to_dict()
    assert SECRET not in str(shown)
    assert (shown["id"], shown["metadata"], shown["customer"]["email"]) == ("pi_1", None, "***")
    assert shown["webhook_url"] == "https://x.test/hooks/***"
    asked = shown["active_attempt"]["next_action"]
    assert (asked["url"], asked["post_data"]) == (action.url, {"a": "b"})  # the payer is sent on with it
    whole = payment.to_dict(unmasked=True)
    assert (whole["new"], whole["metadata"], whole["webhook_url"]) == (SECRET, {"a": SECRET}, url)
    assert (whole["customer"]["email"], whole["customer"]["phone"]) == (SECRET, SECRET)
    assert whole["active_attempt"]["next_action"] == {**asked, "new": SECRET}


@pytest.mark.parametrize(
    ("currency", "value", "text"),
    [
        ("GHS", "1250.5", "GHS 1,250.50"),
        ("GHS", "1E+3", "GHS 1,000.00"),
        ("GHS", "-0.125", "GHS -0.125"),
        ("GHS", "12345678901234567890.123456789", "GHS 12,345,678,901,234,567,890.123456789"),
        ("GHS", "1e999999999", "GHS 1E+999999999"),
        ("XOF", "330.000", "XOF 330"),
        ("XOF", "330.750", "XOF 330.75"),
        ("KWD", "1.5", "KWD 1.500"),
        ("XAU", "1.50", "XAU 1.50"),
        ("XAU", "1200", "XAU 1,200"),
    ],
)
def test_an_amount_has_decimals_and_all_digits(currency: str, value: str, text: str) -> None:
    assert amount_text(currency, Decimal(value)) == text
