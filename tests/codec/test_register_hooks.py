"""A program's own cattrs converter reads records, also within the program's own classes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import attrs
import cattrs
import pytest

from payments_async import register_hooks
from payments_async._codec import decode
from payments_async.models import CheckoutSession, PaymentIntent, Payout, Record
from tests.support import bodies


@attrs.frozen
class Job:
    """What a program keeps of a payout."""

    attempts: int
    payout: Payout


@pytest.mark.parametrize("make", [cattrs.Converter, cattrs.BaseConverter, cattrs.GenConverter])
@pytest.mark.parametrize(
    ("body", "cls"),
    [(bodies.PAYOUT, Payout), (bodies.INTENT, PaymentIntent), (bodies.CHECKOUT, CheckoutSession)],
)
def test_a_record_comes_back_from_what_it_is_written_to(make: Any, body: Any, cls: type[Record]) -> None:
    converter = make()
    register_hooks(converter)
    record = decode.structure(decode.parse(bodies.encoded({**body, "later": {"a": [1]}})), cls)
    assert record.extra
    assert converter.structure(record.to_dict(unmasked=True), cls) == record
    assert converter.structure(decode.parse(record.to_json().encode()), cls) == record


def test_a_record_stands_in_a_class_of_the_program() -> None:
    converter = cattrs.Converter(detailed_validation=False)
    register_hooks(converter)
    job = converter.structure({"attempts": 2, "payout": {"id": "po_1", "amount": {"value": "10.10"}}}, Job)
    assert job.payout.amount is not None
    assert (job.payout.id, job.payout.amount.value) == ("po_1", Decimal("10.10"))
    with pytest.raises(ValueError, match=r"Payout\.id should be str and is int"):
        converter.structure({"attempts": 2, "payout": {"id": 7}}, Job)
