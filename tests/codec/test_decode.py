"""Numbers and records through JSON and back: nothing is lost, rounded or made up."""

from __future__ import annotations

import inspect
import traceback
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from payments_async.models import Amount, Payout
from payments_async.params import Instrument, PayoutRequest
from tests.codec.conftest import decode, encode


def payout(amount: Any, **more: Any) -> PayoutRequest:
    fields = {"currency": "XOF", "method": "mtn_bj", "instrument": Instrument.phone("+229", "BJ"), **more}
    return PayoutRequest(amount=amount, **fields)


@pytest.mark.parametrize("written", ["10.1", "12345678901234567.89", "1E+2", "1e-7", "0", "-0.0", "9" * 30])
def test_a_json_number_is_read_with_every_digit(written: str) -> None:
    value = decode.structure(decode.parse(b'{"value": %s}' % written.encode()), Amount).value
    assert type(value) is Decimal
    assert str(value) == str(Decimal(written))


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
    with pytest.raises(encode.Unwritable, match=why) as caught:
        encode.encode_json({"field": value})
    assert caught.value.__context__ is None
    assert "ud800" not in repr(caught.value)


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
