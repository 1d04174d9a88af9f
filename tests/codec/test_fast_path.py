"""The fast path from an answer's bytes to its records says what the slow path says, or says nothing."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from payments_async.models import Amount, Payout
from payments_async.params.operations import OPERATIONS
from tests.campaigns.spoiling import spoil
from tests.codec.conftest import decode, fast_path, forget
from tests.support import bodies, calls
from tests.support.pure_calls import NOW, Call, read_answer, write
from tests.support.scripted import answer

DATA: dict[str, Any] = {
    "checkouts.create": {"checkout": bodies.CHECKOUT, "payment": bodies.INTENT},
    "checkouts.retrieve": {"checkout": bodies.CHECKOUT, "payment": bodies.INTENT},
    "payment_intents.create": bodies.INTENT,
    "payment_intents.list": [bodies.INTENT_LIST, bodies.INTENT],
    "payment_intents.retrieve_attempt": bodies.ATTEMPT,
    "payment_intents.refund_availability": bodies.REFUND_AVAILABILITY,
    "payment_intents.requery": bodies.REQUERY,
    "payment_intents.inspect_attempt": bodies.INSPECTION,
    "payouts.create": bodies.PAYOUT,
    "payouts.list": [bodies.PAYOUT, {**bodies.PAYOUT, "id": "po_2"}],
    "payouts.sync": bodies.PAYOUT,
    "payouts.inspect": bodies.INSPECTION,
}
"""What the operations with a form answer; a method's status, put together of two parts, has none."""


def call_of(name: str) -> Call:
    operation = OPERATIONS[name]
    if operation.writes:
        return write(operation, body=b'{"amount":10.1,"currency":"XOF"}', reference=None)
    return Call(operation, operation.path, {})


def tree_of(name: str) -> bodies.Json:
    body: bodies.Json = {"data": copy.deepcopy(DATA[name]), "message": "Done."}
    return {**body, "pagination": dict(bodies.PAGINATION)} if OPERATIONS[name].shape == "page" else body


def exact(value: Any) -> Any:
    """A value with every class in it spelt out: 1, True and Decimal(1) are three things, 1.0 and 1.00 two."""
    kind = type(value).__name__
    if attrs.has(type(value)):
        names = attrs.fields(type(value))
        return kind, [(field.name, exact(getattr(value, field.name))) for field in names]
    if isinstance(value, dict):
        return kind, sorted((name, exact(item)) for name, item in value.items())
    if isinstance(value, list | tuple):
        return kind, [exact(item) for item in value]
    return kind, str(value)


def outcome(name: str, body: bytes) -> Any:
    """All that a caller may come to see of an answer."""
    found = read_answer(call_of(name), answer(201, body), lambda: NOW)
    error = (type(found.error).__name__, str(found.error)) if found.error else None
    return found.verdict, found.reason, found.message, found.again, error, exact(found.value)


def assert_both_paths_agree(name: str, body: bytes) -> None:
    here = outcome(name, body)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "usual_answer", lambda *_, **__: None)
        assert outcome(name, body) == here


def takes(name: str, body: bytes) -> bool:
    operation = OPERATIONS[name]
    assert operation.result is not None
    return decode.usual_answer(body, operation.result, page=operation.shape == "page") is not None


def objects(tree: Any) -> list[bodies.Json]:
    inside = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [tree] * isinstance(tree, dict) + [found for item in inside for found in objects(item)]


@pytest.mark.parametrize("name", DATA)
def test_odd_answers_are_read_alike(name: str) -> None:
    rng = random.Random(2026)
    for _ in range(100):
        assert_both_paths_agree(name, spoil(calls.OPERATIONS[name], rng).answer.body)


@pytest.mark.parametrize(
    "data",
    [
        b'{"id": "po_1", "id": "po_2"}',
        b'{"id": 7, "id": "po_2"}',
        b'{"id": "po_1", "amount": {"value": 1}, "amount": {"currency": "XOF"}}',
        b'{"id": "po_1", "status": "\\ud800"}',
        b'{"id": "po_1", "status": "\xff"}',
        b'{"id": "po_1", "later": "\xff"}',
        b'{"id": "po_1", "amount": {"value": 1e99999999999999999999}}',
        b'{"id": "po_1", "amount": {"value": 0.10000000000000000000000000000000000001}}',
        b'{"id": "po_1", "amount": {"value": NaN}}',
        b'{"id": "po_1", "metadata": {"n": 1.10, "deep": [[{"x": 1e2}]]}}',
        b'{"id": "po_1", "metadata": ' + b'{"a":' * 100_000,
        b'{"id": "po_1", "gateway": ' + b'{"transaction":' * 100_000,
    ],
)
def test_traps_of_json_are_read_alike(data: bytes) -> None:
    for body in (b'{"data": %s}' % data, b'{"data": %s, "later": 1}' % data):
        assert_both_paths_agree("payouts.create", body)
        assert_both_paths_agree("payouts.list", body.replace(data, b"[%s]" % data))


@pytest.mark.parametrize("name", DATA)
def test_an_answer_as_the_interface_shows_it_goes_the_fast_path(name: str) -> None:
    tree = tree_of(name)
    assert takes(name, bodies.encoded(tree))
    del tree["message"]
    tree.pop("pagination", None)
    assert takes(name, bodies.encoded(tree))


def assert_learned(name: str, body: bytes) -> None:
    """Assert that an answer goes the fast path at the second time, and is read like before."""
    first = outcome(name, body)
    assert takes(name, body)
    assert_both_paths_agree(name, body)
    assert outcome(name, body) == first


@pytest.mark.usefixtures("nothing_learned")
@pytest.mark.parametrize("name", DATA)
def test_an_unknown_field_is_kept_and_goes_the_fast_path_from_its_second_answer_on(name: str) -> None:
    for holder in objects(tree := tree_of(name)):
        for value in (Decimal("1.50"), None, {"deep": [Decimal("1E+2")]}):
            holder["later"] = value
            assert_learned(name, bodies.encoded(tree))
        del holder["later"]
        assert takes(name, bodies.encoded(tree))


@pytest.mark.usefixtures("nothing_learned")
@pytest.mark.parametrize(
    "data",
    [
        {"method": "mtn_bj"},
        {"method": {"value": "mtn_bj"}, "instrument": {"country": "BJ"}},
        {"metadata": []},
        {"customer": []},
        {"exchange_rate": 1.5},
        {"exchange_rate": "0.25"},
    ],
)
def test_a_field_of_another_shape_goes_the_fast_path_from_its_second_answer_on(data: bodies.Json) -> None:
    assert_learned("payouts.sync", bodies.encoded({"data": {"id": "po_1", **data}}))
    assert_learned("payouts.sync", bodies.encoded(tree_of("payouts.sync")))


@pytest.mark.usefixtures("nothing_learned")
def test_a_number_in_a_field_of_another_shape_is_read_alike() -> None:
    for value in (1.5, " 1 ", "1E+400", {"value": "1E+400"}, "0.25"):
        body = bodies.encoded({"data": {"id": "at_1", "exchange_rate": value}})
        for name in ("payouts.sync", "payment_intents.retrieve_attempt"):
            for _ in range(2):
                assert_both_paths_agree(name, body)


@settings(deadline=None, max_examples=60)
@given(names=st.lists(st.text(max_size=9), max_size=4, unique=True))
@example(names=['"', "\\", "\x00", "\n", "n" * 101, "a`b"])
@example(names=["id", "data", "value", "message", "pagination"])
def test_unknown_fields_of_odd_names_are_read_alike(names: list[str]) -> None:
    forget()
    unknown = dict.fromkeys(names, 1)
    tree = {**unknown, "data": {"id": "po_1", **unknown, "amount": {"value": 1, **unknown}}}
    for _ in range(2):
        assert_both_paths_agree("payouts.sync", bodies.encoded(tree))
    forget()


@pytest.mark.usefixtures("nothing_learned")
def test_names_beyond_the_first_sixteen_are_read_as_well_and_not_kept() -> None:
    def read(number: int) -> Payout:
        data = {"id": "po_1", f"later{number}": number, "amount": {f"minor{number}": number}}
        body = bodies.encoded({f"beside{number}": number, "data": data})
        if (found := decode.usual_answer(body, Payout, page=False)) is not None:
            return found.data  # type: ignore[no-any-return] # a payout
        return decode.structure(decode.parse_answer(body)["data"], Payout)

    for number in range(1_000):
        payout = read(number)
        assert payout.extra == {f"later{number}": number}
        assert payout.amount is not None
        assert payout.amount.extra == {f"minor{number}": number}
    assert {len(names) for names in fast_path._LEARNED.values()} == {fast_path.MOST_LEARNED}
    again = bodies.encoded({"data": {"id": "po_1", "later0": 0, "later7": 7}, "beside0": None})
    assert decode.usual_answer(again, Payout, page=False).data.extra == {"later0": 0, "later7": 7}


def record_of(name: str, *, fast: bool, later: bool = False) -> Any:
    """The record, or the first of a page, that an operation's answer has, read on one of the two paths.

    With `later` every object in it has an unknown field.
    """
    tree, operation = tree_of(name), OPERATIONS[name]
    assert operation.result is not None
    for holder in objects(tree) if later else ():
        holder["later"] = None
    data = tree["data"][0] if operation.shape == "page" else tree["data"]
    body = bodies.encoded({"data": data})
    if fast:
        return decode.usual_answer(body, operation.result, page=False).data
    return decode.structure(decode.parse_answer(body)["data"], operation.result)


USES: dict[str, Callable[[Any], Any]] = {
    "hash": hash,
    "repr": repr,
    "to_dict": lambda record: (record.to_dict(), record.to_dict(unmasked=True)),
    "to_json": lambda record: record.to_json(),
    "evolve": lambda record: exact(attrs.evolve(record, extra={"later": 1})),
    "copy": lambda record: exact(copy.copy(record)),
    "deepcopy": lambda record: exact(copy.deepcopy(record)),
    "pickle": lambda record: exact(pickle.loads(pickle.dumps(record))),
    "equality": lambda record: [record == record_of(name, fast=False) for name in DATA],
    "reversed equality": lambda record: [record_of(name, fast=False) == record for name in DATA],
}


@pytest.mark.usefixtures("nothing_learned")
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("later", [False, True])
def test_nested_records_and_unknown_fields_are_there_whatever_is_asked_first(name: str, later: bool) -> None:
    for use in USES:
        slow, fast = (record_of(name, fast=fast, later=later) for fast in (False, True))
        assert USES[use](fast) == USES[use](slow)
        assert exact(fast) == exact(slow)


def test_a_nested_record_is_made_once() -> None:
    payout = record_of("payouts.create", fast=True)
    assert payout.instrument is payout.instrument
    assert payout.instrument.country is payout.instrument.country
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        payout.amount = None


@attrs.frozen(weakref_slot=False, eq=False, repr=False)
class WeighedPayout(Payout):
    """A record class of a user's own."""

    weight: Amount | None = None


def test_nested_records_of_a_users_own_class_are_made_too() -> None:
    amount, body = Amount(value=Decimal("1.50")), b'{"value": 1.50}'
    for _ in range(2):
        given = b'{"data": {"id": "po_1", "amount": %s, "weight": %s}}' % (body, body)
        found = decode.usual_answer(given, WeighedPayout, page=False).data
        assert (type(found), found.amount, found.weight) == (WeighedPayout, amount, amount)
        assert found == WeighedPayout(id="po_1", amount=amount, weight=amount)
