"""What nobody has named is kept: words, codes, inner objects, fields, shapes of `errors` (Gaps)."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async.errors import UnprocessableError
from tests.support import bodies
from tests.support.calls import CREATES, OPERATIONS, call
from tests.support.forms import ATTEMPTS, FORMS, INTENTS, PAYOUTS, at, exactly, read
from tests.support.surfaces import Connect, error_of

NEW = "word_of_2031"


def changed(body: Any, path: str, value: Any) -> Any:
    """A copy of a JSON value with another value at a dotted path."""
    name, _, rest = path.partition(".")
    if isinstance(body, list):
        return [changed(item, rest, value) if str(n) == name else item for n, item in enumerate(body)]
    if not rest:
        return {**body, name: value}
    return {**body, name: changed(body[name], rest, value)}


WORDS = [
    ("payment_intents.list", "data.0.status", "open.statuses"),
    ("payment_intents.list", "data.0.active_attempt.status", "open.statuses"),
    ("payouts.list", "data.0.status", "open.statuses"),
    ("payouts.create", "data.status", "open.statuses"),
    ("methods.status", "data.status", "open.method-statuses"),
    ("payouts.sync", "data.instrument.type", "open.instrument-types"),
    ("payment_intents.list", "data.0.active_attempt.next_action.type", "open.next-action-types"),
    ("payouts.sync", "data.failure.code.value", "open.failure-values"),
    ("payouts.sync", "data.failure.code.category", "open.failure-values"),
    ("payment_intents.retrieve_attempt", "data.failure.code.value", "open.failure-values"),
    ("payouts.sync", "data.method.value", "service.codes-are-configuration"),
    ("payouts.sync", "data.amount.currency", "service.codes-are-configuration"),
]


@pytest.mark.parametrize(
    ("operation", "path"), [pytest.param(*row, marks=pytest.mark.fact(fact)) for *row, fact in WORDS]
)
async def test_an_unknown_word_is_kept(connect: Connect, operation: str, path: str) -> None:
    value = await call(connect, operation, changed(OPERATIONS[operation].body, path, NEW))
    assert at(value, path.replace("data.0.", "items.0.").removeprefix("data.")) == NEW


INNER: list[Any] = [None, {}, {"x": [1, {"y": "z"}], "n": None}]


ITEMS = [{"name": "otp", "rules": {"length": 6, "alphabet": ["0", "1"]}}, {}]


@pytest.mark.fact("open.inner-objects")
@pytest.mark.parametrize(
    ("form", "path", "inner"),
    [
        *(
            ("attempt", f"next_action.{name}", inner)
            for name in ("post_data", "client_params")
            for inner in INNER
        ),
        *(("checkout", "appearance.font", inner) for inner in INNER),
        ("attempt", "next_action.fields", ITEMS),
    ],
)
async def test_an_unknown_object_is_kept_whole(connect: Connect, form: str, path: str, inner: Any) -> None:
    said = f"data.checkout.{path}" if form == "checkout" else f"data.{path}"
    record = await read(connect, form, changed(OPERATIONS[FORMS[form].operation].body, said, inner))
    assert exactly(at(record, path), tuple(inner) if inner is ITEMS else inner)


@pytest.mark.fact("open.unknown-fields")
@pytest.mark.parametrize("form", [*ATTEMPTS, *INTENTS, *PAYOUTS])
async def test_an_unknown_field_is_kept_in_extra(connect: Connect, form: str) -> None:
    operation, attribute = FORMS[form].operation, FORMS[form].path
    path = ".".join(filter(None, ["data", attribute.removeprefix("items.")]))
    body = OPERATIONS[operation].body
    for name, value in (("later", {"a": 1}), ("extra", "x"), ("response", None)):
        body = changed(body, f"{path}.{name}", value)
    record = await read(connect, form, changed(body, f"{path}.amount.precision", 2))
    assert record.extra == {"later": {"a": 1}, "extra": "x", "response": None}
    assert record.amount.extra == {"precision": 2}


@pytest.mark.fact("open.unknown-fields")
@pytest.mark.parametrize(
    "unreadable", ["soon", "2026-13-01T00:00:00Z", 1767225600, True, {"at": "noon"}, [], "", "٢٠٢٦-01-02"]
)
async def test_an_unreadable_timestamp_is_kept_in_extra(connect: Connect, unreadable: object) -> None:
    payout = await read(connect, "synced payout", {"data": {**bodies.PAYOUT, "completed_at": unreadable}})
    assert payout.completed_at is None
    assert payout.extra == {"completed_at": unreadable}
    assert payout.to_dict(unmasked=True)["completed_at"] == unreadable


@pytest.mark.fact("open.success-codes")
@pytest.mark.parametrize("status", [200, 201, 202, 203, 206, 226, 299])
@pytest.mark.parametrize("operation", CREATES)
async def test_any_2xx_with_its_record_is_a_success(connect: Connect, operation: str, status: int) -> None:
    record = await call(connect, operation, OPERATIONS[operation].body, status)
    assert record.id
    assert record.response.status == status


ERRORS: list[tuple[Any, dict[str, list[str]]]] = [
    ({"amount": ["too small", "odd"]}, {"amount": ["too small", "odd"]}),
    ({"customer.email": ["bad"]}, {"customer.email": ["bad"]}),
    (
        {"customer": {"email": ["bad"], "zip": "short"}},
        {"customer.email": ["bad"], "customer.zip": ["short"]},
    ),
    ({"amount": "too small"}, {"amount": ["too small"]}),
    ({"amount": [1, {"min": "1"}, None]}, {"amount": ["1"], "amount.min": ["1"]}),
    ({"amount": []}, {"amount": []}),
    ({"": ["nameless"], "new_key": 7}, {"": ["nameless"], "new_key": ["7"]}),
    (["all wrong"], {"": ["all wrong"]}),
    ("wrong", {"": ["wrong"]}),
    ({}, {}),
    (None, {}),
]


@pytest.mark.fact("open.422-errors", "error.422")
@pytest.mark.parametrize(("errors", "told"), ERRORS)
async def test_errors_may_have_any_shape(connect: Connect, errors: Any, told: dict[str, list[str]]) -> None:
    caught = await error_of(
        UnprocessableError, call(connect, "payouts.create", {"message": "Invalid.", "errors": errors}, 422)
    )
    assert caught.errors == told
    assert caught.message == "Invalid."
    assert caught.effect == "none"
    assert caught.body is not None
    assert caught.body.json()["errors"] == errors
