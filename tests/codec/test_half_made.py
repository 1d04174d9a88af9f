"""What a traceback with locals meets while an answer is being read: it names its class and nothing else."""

from __future__ import annotations

import inspect
import traceback
from datetime import datetime
from typing import Any

import pytest

from payments_async import models
from payments_async._attrs import maker
from payments_async._codec import decode
from payments_async.models import Payout
from payments_async.params import PayoutRequest, PreparedRequest

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


@pytest.mark.parametrize(
    "cls",
    [PayoutRequest, PreparedRequest, models.Attempt, models.ResponseInfo],
    ids=lambda cls: cls.__name__,
)
def test_a_half_made_value_can_be_shown(cls: Any) -> None:
    half: Any = maker(cls).__globals__["T"]
    assert repr(object.__new__(half)) == f"<_{cls.__name__}>"
