"""docs/openapi.json against the client: its records, requests, checks, operations, query names and limits."""

from __future__ import annotations

import types as python_types
import typing
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest
from jsonschema import Draft202012Validator

from payments_async import RateLimits, _assumptions, models, params
from payments_async._validation.tables import REQUIRED, RULES, check
from payments_async.params.operations import OPERATIONS
from tests.fidelity.document import DOCUMENT, SCHEMAS, operations, properties, resolved, target_of, types

RECORDS: Mapping[type[models.Record], tuple[str, ...]] = {
    models.Amount: ("Amount",),
    models.Method: ("Method",),
    models.ExchangeRate: ("ExchangeRate",),
    models.Country: ("Country",),
    models.Customer: ("Customer",),
    models.Gateway: ("Gateway",),
    models.GatewayTransaction: ("GatewayTransaction",),
    models.FailureCode: ("FailureCode", "AttemptFailureCode"),
    models.Failure: ("Failure", "AttemptFailure"),
    models.NextAction: ("NextAction", "ListedNextAction"),
    models.Failover: ("Failover",),
    models.PaymentAttempt: ("PaymentAttempt", "ListedPaymentAttempt"),
    models.RefundsSummary: ("RefundsSummary",),
    models.MethodFilter: ("MethodFilter",),
    models.Restriction: ("Restriction",),
    models.PaymentIntent: ("PaymentIntent", "ListedPaymentIntent"),
    models.Color: ("Color",),
    models.AppearanceColors: ("AppearanceColors",),
    models.Appearance: ("Appearance",),
    models.SessionRestriction: ("SessionRestriction",),
    models.CheckoutSession: ("CheckoutSession",),
    models.Checkout: ("Checkout",),
    models.PayoutInstrument: ("Instrument",),
    models.Payout: ("Payout",),
    models.RefundAvailability: ("RefundAvailability",),
    models.Pagination: ("Pagination",),
    models.MethodStatus: ("MethodStatus", "MethodStatusMeta"),
    models.RequeryState: ("RequeryStatuses",),
    models.RequeryAttempts: ("RequeryAttempts",),
    models.Requery: ("Requery",),
    models.Inspection: ("Inspection",),
}
REQUESTS: Mapping[type[params.Params], str] = {
    params.CustomerInput: "CustomerInput",
    params.PhoneInput: "PhoneInput",
    params.AttemptInput: "AttemptInput",
    params.CheckoutRestriction: "CheckoutRestriction",
    params.AppearanceInput: "AppearanceInput",
    params.Instrument: "InstrumentInput",
    params.CheckoutRequest: "CheckoutRequest",
    params.PaymentIntentRequest: "PaymentIntentRequest",
    params.PayoutRequest: "PayoutRequest",
}
MAPPINGS = {"Metadata", "GatewayOptions", "JSONObject"}
"""Objects that the client keeps as they come."""
CODES = {"RefundType", "RefundExecution"}
FORMS = {"PhoneInstrument", "BankAccountInstrument", "CryptoAddressInstrument"}
REFUSALS = {"Message", "Invalid"}

SENT = datetime(2026, 1, 1, tzinfo=UTC)


def typed_fields(cls: type) -> dict[str, Any]:
    """The type of each public field, the ones that are None left out of unions."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in attrs.fields(cls) if not field.name.startswith("_")}


def parts(annotation: Any) -> Iterator[Any]:
    """The members of a union but None."""
    if typing.get_origin(annotation) in (typing.Union, python_types.UnionType):
        for member in typing.get_args(annotation):
            yield from parts(member)
    elif annotation is not type(None):
        yield annotation


def reads(annotation: Any, schema: dict[str, Any]) -> bool:
    """Whether one of the types a field has in the client takes what the document says comes."""
    return any(_reads(one, schema) for one in parts(annotation))


def _reads(one: Any, schema: dict[str, Any]) -> bool:
    if one is Any:
        return True
    if isinstance(one, type) and issubclass(one, models.Record):
        target = target_of(schema)
        return target in RECORDS.get(one, ()) if target else types(schema) == {"object"}
    origin = typing.get_origin(one) or one
    is_time = resolved(schema).get("format") == "date-time"
    word = {str: "string", int: "integer", bool: "boolean", dict: "object", tuple: "array"}
    if origin in word:
        return types(schema) == {word[origin]} and not is_time
    if origin is datetime:
        return is_time
    return origin is Decimal and (types(schema) == {"number"} or "pattern" in schema)


@pytest.mark.parametrize("cls", list(RECORDS), ids=lambda cls: cls.__name__)
def test_a_record_of_the_client_has_the_fields_of_all_its_forms(cls: type[models.Record]) -> None:
    documented = [properties(name) for name in RECORDS[cls]]
    assert set(typed_fields(cls)) == {field for form in documented for field in form}
    for form in documented:
        for field, schema in form.items():
            assert reads(typed_fields(cls)[field], schema), (cls.__name__, field)


def test_no_record_and_no_request_is_left_out() -> None:
    covered = {name for names in RECORDS.values() for name in names} | set(REQUESTS.values())
    assert set(SCHEMAS) - covered == MAPPINGS | CODES | FORMS | REFUSALS
    public = {value for value in (getattr(models, name) for name in models.__all__) if attrs.has(value)}
    records = {value for value in public if issubclass(value, models.Record) and value is not models.Record}
    assert records == set(RECORDS)


@pytest.mark.parametrize("cls", list(REQUESTS), ids=lambda cls: cls.__name__)
def test_a_request_of_the_client_has_the_fields_of_the_document(cls: type[params.Params]) -> None:
    schema = SCHEMAS[REQUESTS[cls]]
    assert set(typed_fields(cls)) == set(properties(REQUESTS[cls]))
    assert cls in RULES
    assert REQUIRED.get(cls, frozenset()) == set(schema.get("required", ()))


def a_request(cls: type[params.Params], **fields: Any) -> params.Params:
    """A good request, changed."""
    good: dict[type, dict[str, Any]] = {
        params.PayoutRequest: {
            "amount": 1,
            "currency": "EUR",
            "method": "m",
            "instrument": params.Instrument.phone("+2290", "BJ"),
        }
    }
    return cls(**{"amount": 1, "currency": "EUR", **good.get(cls, {}), **fields})


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("amount", properties("CheckoutRequest")["amount"]["minimum"], Decimal("0.99")),
        ("currency", "EUR", "eur"),
        ("expires_in_minutes", properties("CheckoutRequest")["expires_in_minutes"]["minimum"], 29),
        ("expires_in_minutes", properties("CheckoutRequest")["expires_in_minutes"]["maximum"], 1441),
        ("metadata", {str(n): n for n in range(10)}, {str(n): n for n in range(11)}),
        ("statement_descriptor", "Shop 1, A.-", "Shop*"),
        ("restriction", {"country_code": "BJ"}, {"country_code": "BJ", "phone": {"number": "1"}}),
    ],
)
def test_the_client_and_the_document_refuse_the_same(field: str, good: Any, bad: Any) -> None:
    validator = Draft202012Validator(
        {"$ref": "#/components/schemas/CheckoutRequest", "components": DOCUMENT["components"]}
    )
    for value, is_good in ((good, True), (bad, False)):
        plain = float(value) if isinstance(value, Decimal) else value
        assert validator.is_valid({"amount": 1, "currency": "EUR", field: plain}) is is_good, value
        told = params.CheckoutRestriction(**value) if field == "restriction" else value
        assert (check(a_request(params.CheckoutRequest, **{field: told}), now=SENT) == {}) is is_good, value


def test_the_client_has_the_operations_of_the_document() -> None:
    def plain(path: str) -> str:
        return path.replace("_", "").lower()

    limits = {"write": "writes", "read": "reads", "diagnostic": "diagnostics", "refund_availability": "reads"}
    mine = {(one.method.lower(), plain(one.path)): limits[one.limit] for one in OPERATIONS.values()}
    assert mine == {(method, plain(path)): one["x-limit"] for method, path, one in operations()}


def test_the_client_sends_the_query_names_of_the_document() -> None:
    for path, filters in (
        ("/payment/intents", _assumptions.INTENT_FILTERS),
        ("/payouts", _assumptions.PAYOUT_FILTERS),
    ):
        given = DOCUMENT["paths"][path]["get"]["parameters"]
        assert [one["name"] for one in given] == list(filters.values())
        (size,) = (one["schema"] for one in given if one["name"] == "per_page")
        assert (size["minimum"], size["maximum"] + 1) == (
            _assumptions.PAGE_SIZE.start,
            _assumptions.PAGE_SIZE.stop,
        )


def test_the_client_paces_by_the_limits_of_the_document() -> None:
    limits = RateLimits()
    assert DOCUMENT["x-limits"] == {
        "writes": {"per_key": limits.writes},
        "reads": {"per_key": limits.reads},
        "diagnostics": {"per_key": limits.diagnostics, "per_record": limits.diagnostics_per_record},
    }
