"""Numbers and records through JSON and back: nothing is lost, rounded or made up."""

from __future__ import annotations

import inspect
import traceback
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async._codec import decode, encode
from payments_async._codec.encode import Unwritable
from payments_async.models import Amount, Checkout, PaymentIntent, Payout, Record
from payments_async.params import CheckoutRequest, Instrument, PayoutRequest
from tests.support import bodies
from tests.support.faithful import differences


def payout(amount: Any, **more: Any) -> PayoutRequest:
    fields = {"currency": "XOF", "method": "mtn_bj", "instrument": Instrument.phone("+229", "BJ"), **more}
    return PayoutRequest(amount=amount, **fields)


@pytest.mark.parametrize("written", ["10.1", "12345678901234567.89", "1E+2", "1e-7", "0", "-0.0", "9" * 30])
def test_a_json_number_is_read_with_every_digit(written: str) -> None:
    value = decode.structure(decode.parse(b'{"value": %s}' % written.encode()), Amount).value
    assert type(value) is Decimal
    assert str(value) == str(Decimal(written))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.decimals(-(10**20), 10**20, allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = {field.name for cls in (Payout, PaymentIntent) for field in attrs.fields(cls)}
UNKNOWN = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(lambda name: name not in FIELDS),
    JSON,
    max_size=4,
)


def sparse(body: bodies.Json) -> st.SearchStrategy[bodies.Json]:
    """The body with any of its fields left out or null, at every level."""

    def member(value: Any) -> st.SearchStrategy[Any]:
        return st.none() | (sparse(value) if isinstance(value, dict) else st.just(value))

    return st.fixed_dictionaries({}, optional={name: member(value) for name, value in body.items()})


@pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it
@given(
    case=st.sampled_from(
        [
            (Payout, bodies.PAYOUT),
            (PaymentIntent, bodies.INTENT),
            (PaymentIntent, bodies.INTENT_LIST),
            (Checkout, {"checkout": bodies.CHECKOUT, "payment": bodies.INTENT}),
        ]
    ),
    data=st.data(),
)
@settings(deadline=None, max_examples=60)
def test_any_record_survives_its_json(case: tuple[type[Record], bodies.Json], data: st.DataObject) -> None:
    cls, full = case
    body = {**data.draw(sparse(full)), **data.draw(UNKNOWN)}
    record = decode.structure(decode.parse(bodies.encoded(body)), cls)
    again = decode.structure(decode.parse(record.to_json().encode()), cls)

    assert again == record
    assert list(differences(body, record)) == []


def test_a_body_on_its_way_does_not_show_what_it_holds() -> None:
    request = payout(5, reference="r-1")
    assert encode.checked_body(request) is not None
    assert repr(encode._FILLED[PayoutRequest](request, True, None)) == "<PayoutRequestBody>"


LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("\ud800", "lone surrogate"),
        ({"\ud800": 1}, "lone surrogate"),
        (object(), "TypeError"),
        ({"a": [object()]}, "TypeError"),
        ([10**5000], "ValueError"),
        (LOOP, "RecursionError"),
    ],
)
def test_what_json_cannot_say_is_refused_without_quoting_it(value: Any, why: str) -> None:
    with pytest.raises(Unwritable, match=why) as caught:
        encode.encode_json({"field": value})
    assert caught.value.__context__ is None
    assert "ud800" not in repr(caught.value)


NOW = datetime(2026, 11, 29, tzinfo=UTC)
WALLET = {"type": "phone", "phone_number": "+2290190000000", "country": "BJ"}
CHECKOUT = {"amount": Decimal(5), "currency": "XOF"}


@pytest.mark.parametrize(
    ("request_", "is_usual"),
    [
        (payout(5, instrument=WALLET), True),
        (payout(5, customer={"last_name": "A"}), True),
        (payout(5, gateway_options={"a": {"b": {"c": [1]}}}), False),
        (payout(5, gateway_options={"a": {"b": {"c": 1}}}), True),
        (payout(5, instrument={**WALLET, "memo_tag": None}), False),
        (payout(5, instrument={**WALLET, "carrier": "x"}), False),
        (payout(5, instrument={**WALLET, "country": "bj"}), False),
        (CheckoutRequest(**CHECKOUT, restriction={"country_code": "GH"}), True),
        (CheckoutRequest(**CHECKOUT, restriction={"country_code": "GH", "phone": WALLET}), False),
        (CheckoutRequest(**CHECKOUT, restriction={}), False),
        (CheckoutRequest(**CHECKOUT, entity_created_at=NOW), True),
        (CheckoutRequest(**CHECKOUT, entity_created_at=NOW.astimezone(timezone(timedelta(hours=1)))), True),
        (CheckoutRequest(**CHECKOUT, entity_created_at=NOW + timedelta(seconds=1)), False),
        (CheckoutRequest(**CHECKOUT, entity_created_at=NOW.replace(tzinfo=None)), False),
    ],
)
def test_mappings_and_moments_are_checked_and_written_in_one_pass(request_: Any, is_usual: bool) -> None:
    assert encode.checked_body(request_, NOW) == (encode.encode(request_) if is_usual else None)


BODY = (
    b'{"data": {"id": "p1", "instrument": {"account_number": "NEEDLE"},'
    b' "created_at": "2026-01-01T00:00:00Z"}, "message": "NEEDLE"}'
)


class Stop(BaseException):
    """An interrupt in the middle."""


class Stopping(datetime):
    """A datetime class that interrupts the reading of a moment."""

    @classmethod
    def fromisoformat(cls, _: str) -> Stopping:
        raise Stop


def shown(error: BaseException) -> str:
    """The lines of a traceback that show locals, but for the bytes themselves, which the caller holds."""
    found = traceback.TracebackException.from_exception(error, capture_locals=True)
    values = [(frame.locals or {}).items() for frame in found.stack if "payments_async" in frame.filename]
    generated = [(frame.locals or {}).items() for frame in found.stack if frame.filename == "<string>"]
    return "\n".join(
        f"{name}={value}" for items in values + generated for name, value in items if name != "body"
    )


def test_an_interrupted_reading_shows_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    hook: Any = inspect.getclosurevars(decode._usual_reader(Payout, False)).nonlocals["fill"]
    monkeypatch.setitem(hook.__globals__, "iso", Stopping.fromisoformat)
    with pytest.raises(Stop) as caught:
        decode.usual_answer(BODY, Payout, page=False)
    assert "PayoutWire" in shown(caught.value)
    assert "NEEDLE" not in shown(caught.value)
