"""Every field of every record: the values it takes, refuses and keeps beside the record."""

from __future__ import annotations

import typing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs
import cattrs
import pytest

from payments_async import register_hooks
from payments_async.models import (
    CheckoutSession,
    Country,
    ExchangeRate,
    Method,
    PaymentIntent,
    Payout,
    Record,
)
from tests.codec.conftest import decode, hooks
from tests.support import bodies
from tests.support.bodies import RECORDS

FIELDS = [(cls, name, hint) for cls in RECORDS for name, hint in hooks.fields_of(cls).items()]
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def samples(hint: Any) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """For a type: (JSON value, what it is read as) pairs, and JSON values that it refuses."""
    if hint is str:
        return [("x", "x"), ("", "")], [7, True, {}, [], Decimal("1.5")]
    if hint is bool:
        return [(True, True), (False, False)], [0, 1, "true", {}, []]
    if hint is int:
        return [(3, 3), (Decimal("3.0"), 3)], [True, "3", Decimal("3.5"), Decimal("1E+400"), {}]
    if hint is Decimal:
        good = [(3, Decimal(3)), (Decimal("1.50"), Decimal("1.50")), ("1.50", Decimal("1.50"))]
        return good, [True, "x", "NaN", "Infinity", "1_0", "٣", {}, []]
    if hint is datetime:
        return [("2026-01-02T03:04:05Z", MOMENT)], []
    if hint is Any:
        return [(7, 7), ({"a": []}, {"a": []})], []
    if hint == typing.Union[ExchangeRate, Decimal]:  # noqa: UP007 - as it is made at run time
        rate = ({"value": "1.00000000"}, ExchangeRate(Decimal("1.00000000")))
        return [rate, (Decimal("1.5"), Decimal("1.5")), (2, Decimal(2))], [True, "x", []]
    if typing.get_origin(hint) is dict:
        return [({"a": 1}, {"a": 1}), ([], {})], [7, "x", ["a"], True]
    if typing.get_origin(hint) is tuple:
        item: Any = "x" if typing.get_args(hint)[0] is str else {"a": 1}
        return [([item, item], (item, item)), ([], ())], ["x", {}, 7, [7], [None], [[item]]]
    name = {Method: "value", Country: "code"}.get(hint)
    bare = [("XX", hint(**{name: "XX"}))] if name else []
    refused = [7, True, ["x"], [{}]] + ([] if bare else ["x"])
    return [({}, hint()), ([], None), *bare], refused


@pytest.mark.parametrize(("cls", "name", "hint"), FIELDS)
def test_a_field_takes_its_type_and_nothing_else(cls: type[Any], name: str, hint: Any) -> None:
    taken, refused = samples(hint)
    absent = attrs.fields_dict(cls)[name].default
    for raw, value in [*taken, (None, absent)]:
        found = getattr(decode.structure({name: raw}, cls), name)
        assert (found, type(found)) == (value, type(value)), raw
    for raw in refused:
        with pytest.raises(decode.UnreadableJSON, match=f"{cls.__name__}.{name} should be") as caught:
            decode.structure({name: raw}, cls)
        assert caught.value.__context__ is None
    assert getattr(decode.structure({}, cls), name) == absent


def test_numbers_told_as_text_are_read_alike_however_many_came_before() -> None:
    for number in (*range(600), 0):
        found = decode.structure({"value": f"{number}.50"}, ExchangeRate)
        assert str(found.value) == f"{number}.50"
    assert len(hooks.NUMBERS) <= 256


@pytest.mark.parametrize("cls", RECORDS)
@pytest.mark.parametrize("value", [None, [], "x", 7])
def test_only_an_object_is_a_record(cls: type[Any], value: Any) -> None:
    with pytest.raises(decode.UnreadableJSON, match=f"{cls.__name__} should be an object"):
        decode.structure(value, cls)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05Z", MOMENT),
        ("2026-01-02T03:04:05+00:00", MOMENT),
        ("2026-01-02T03:04:05", MOMENT),
        ("2026-01-02 03:04:05Z", MOMENT),
        ("20260102T030405Z", MOMENT),
        ("2026-01-02T04:04:05+01:00", MOMENT),
        ("2026-01-02T03:04:05.123456Z", MOMENT + timedelta(microseconds=123456)),
        ("2026-01-02T03:04:05.1234567Z", MOMENT + timedelta(microseconds=123456)),
        ("2026-01-02", MOMENT.replace(hour=0, minute=0, second=0)),
    ],
)
def test_moments_in_iso_8601_are_aware(text: str, moment: datetime) -> None:
    body = bodies.encoded({"data": {"id": "po_1", "created_at": text}})
    for found in (
        decode.structure({"created_at": text}, Payout),
        decode.usual_answer(body, Payout, page=False).data,
    ):
        assert found.created_at == moment
        assert found.created_at is not None
        assert found.created_at.utcoffset() is not None
        assert found.extra == {}


@pytest.mark.usefixtures("nothing_learned")
@pytest.mark.parametrize(
    "written",
    ["1E+999999999", "1e-40", "9" * 40, "0E-20000", "1" + "0" * 200, '"1E+999999999"', f'"{"9" * 40}"'],
)
def test_a_number_beyond_any_amount_is_kept_as_text(written: str) -> None:
    body = f'{{"data": {{"id": "po_1", "amount": {{"value": {written}}}}}}}'.encode()
    assert decode.usual_answer(body, Payout, page=False) is None
    payout = decode.structure(decode.parse_answer(body)["data"], Payout)
    assert payout.amount is not None
    assert payout.amount.value is None
    assert Decimal(payout.amount.extra["value"]) == Decimal(written.strip('"'))
    assert len(payout.to_json()) < 1_000


@pytest.mark.parametrize("cls", RECORDS)
def test_no_repr_shows_a_key_that_stands_in_a_text(cls: type[Any]) -> None:
    key = "sk_live_" + "a1B2" * 10
    texts = {name: key for name, hint in hooks.fields_of(cls).items() if hint is str}
    for name in texts:
        assert key[8:] not in repr(decode.structure({name: key}, cls))


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
