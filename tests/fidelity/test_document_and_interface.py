"""docs/openapi.json against the tables of docs/interface.md: fields, kinds, limits, statuses and headers."""

from __future__ import annotations

import re

import pytest

from tests.fidelity.document import DOCUMENT, SCHEMAS, operations, properties, resolved, target_of, types
from tests.fidelity.tables import fields, names, numbers, rows, sections
from tests.fidelity.tables import operations as known_operations

KINDS = {
    "text": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "time": "string",
    "object": "object",
    "array of text": "array",
    "array of objects": "array",
}
RECORDS = {
    "Amount": "Amount",
    "Method (payment or payout method)": "Method",
    "Exchange rate": "ExchangeRate",
    "Country": "Country",
    "Customer (in responses)": "Customer",
    "Gateway transaction": "GatewayTransaction",
    "Failover": "Failover",
    "Instrument (in payout responses)": "Instrument",
    "Payout": "Payout",
    "Refund availability": "RefundAvailability",
    "Pagination object": "Pagination",
}
"""Tables whose every field stands in one record of the document."""


def assert_form(told: dict[str, list[str]], name: str) -> None:
    """A table and a record have the same fields of the same kinds."""
    assert set(told) == set(properties(name))
    for field, (kind, *_) in told.items():
        schema = properties(name)[field]
        if field in ("gateway", "metadata", "decision"):
            assert kind.split(",")[0] == "object"
            continue
        plain = kind.split(";")[0].split(",")[0]
        if plain.removesuffix(" or null") in KINDS:
            wanted = KINDS[plain.removesuffix(" or null")]
            assert types(schema) == {wanted}, (field, kind, schema)
            assert (resolved(schema).get("format") == "date-time") is (plain == "time"), field
        else:
            assert (target_of(schema) or "").lower().endswith(plain.replace(" ", "").lower()), (field, plain)
        assert ("x-gap" in schema) is (not plain.endswith(" or null")), (name, field)


@pytest.mark.parametrize("heading", [name for name in RECORDS if name != "Refund availability"])
def test_a_record_has_the_fields_of_its_table(heading: str) -> None:
    assert_form(fields(heading), RECORDS[heading])


def test_refund_availability_is_null_only_where_the_interface_says_so() -> None:
    told = fields("Refund availability")
    assert set(told) == set(properties("RefundAvailability"))
    for field, (kind, meaning) in told.items():
        schema = properties("RefundAvailability")[field]
        if kind.endswith(" or null"):
            assert "x-gap" not in schema
            assert "null" in schema.get("type", []) or {"type": "null"} in schema["anyOf"], field
        for word in names(meaning) if field in ("available_types", "execution_method") else ():
            assert word in resolved(schema.get("items", schema))["enum"], (field, word)


def forms_of(heading: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The fields of a record's single form and of its list form."""
    single: dict[str, list[str]] = {}
    listed: dict[str, list[str]] = {}
    for field, row in fields(heading).items():
        if "list form;" not in f"{row[1]};" or "number in the single form" in row[1]:
            single[field] = row
        if "create and checkout forms" not in row[1]:
            listed[field] = row
    return single, listed


def test_an_attempt_has_a_single_and_a_list_form() -> None:
    single, listed = forms_of("Payment attempt")
    single["exchange_rate"], listed["exchange_rate"] = ["number", ""], ["ExchangeRate", ""]
    single["failure"] = ["AttemptFailure", ""]
    assert_form(single, "PaymentAttempt")
    assert_form(listed, "ListedPaymentAttempt")
    assert target_of(properties("PaymentAttempt")["next_action"]) == "NextAction"
    assert target_of(properties("ListedPaymentAttempt")["next_action"]) == "ListedNextAction"


def test_an_intent_has_a_create_and_a_list_form() -> None:
    single, listed = forms_of("Payment intent")
    summary = {name: single.pop(name) for name in list(single) if name.startswith("refunds_summary.")}
    for name in summary:
        listed.pop(name, None)
    restrictions = {name: listed.pop(name) for name in list(listed) if name.startswith("restriction.")}
    single["refunds_summary"], listed["restriction"] = ["RefundsSummary", ""], ["Restriction", ""]
    assert_form(single, "PaymentIntent")
    assert_form(listed, "ListedPaymentIntent")
    assert_form({name.split(".")[1]: row for name, row in summary.items()}, "RefundsSummary")
    assert {name.split(".")[1] for name in restrictions} == set(properties("Restriction"))
    for schema in properties("Restriction").values():
        assert set(resolved(schema)["properties"]) == {"allow", "deny"}


def test_next_actions_have_a_type_in_lists_only() -> None:
    told = fields("Next action (on an attempt)")
    assert "in list answers only" in told["type"][0]
    assert_form(told, "ListedNextAction")
    assert_form({name: row for name, row in told.items() if name != "type"}, "NextAction")


def test_failures_have_a_category_where_the_interface_says_so() -> None:
    told = fields("Failure")
    assert {name.split(".")[-1] for name in told if name.startswith("code.")} == set(
        properties("FailureCode")
    )
    assert told["code.category"][1] == "payouts; attempts inside the payment-intent list"
    assert set(properties("FailureCode")) - set(properties("AttemptFailureCode")) == {"category"}
    holders = {
        name
        for name in SCHEMAS
        if target_of(SCHEMAS[name].get("properties", {}).get("failure", {})) == "Failure"
    }
    assert holders == {"Payout", "ListedPaymentAttempt"}


def test_a_checkout_session_has_the_fields_of_its_table() -> None:
    told = fields("Checkout session")
    nested = {"restriction": "SessionRestriction", "appearance": "Appearance"}
    for parent, name in nested.items():
        inside = {
            field.split(".")[1]: told.pop(field) for field in list(told) if field.startswith(f"{parent}.")
        }
        inside |= {"color": ["object", ""]} if "color" in inside else {}
        assert set(inside) == set(properties(name))
        for field, (kind, *_) in inside.items():
            if kind in KINDS:
                assert types(properties(name)[field]) == {KINDS[kind]}, field
        told[parent] = [name, ""]
    assert_form(told, "CheckoutSession")


def test_a_method_status_has_two_parts() -> None:
    told = fields("Method status")
    for part, name in (("data", "MethodStatus"), ("meta", "MethodStatusMeta")):
        assert_form({field: row[1:] for field, row in told.items() if row[0] == part}, name)


def test_the_operations_are_those_of_the_interface() -> None:
    assert {(method, path) for method, path, _ in operations()} == set(known_operations())
    for _, path, operation in operations():
        given = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
        assert given == re.findall(r"\{(\w+)\}", path)


def request_tables() -> list[tuple[str, str, dict[str, list[str]]]]:
    shared = fields("Shared request objects")
    return [
        ("CheckoutRequest", "post", {**shared, **fields("POST /payment/checkouts")}),
        ("PaymentIntentRequest", "post", {**shared, "attempt": ["object", ""]}),
        ("PayoutRequest", "post", fields("POST /payouts")),
    ]


@pytest.mark.parametrize(
    ("name", "_", "told"), request_tables(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_request_has_the_fields_of_its_table(name: str, _: str, told: dict[str, list[str]]) -> None:
    assert set(properties(name)) == set(told)
    for field, (kind, rule) in told.items():
        schema = properties(name)[field]
        assert types(schema) == {KINDS[kind]}, field
        if most := re.search(r"(\d+) characters at most", rule):
            assert schema["maxLength"] == int(most[1]), field
        else:
            assert "maxLength" not in schema or field == "currency", field
    assert resolved(properties(name)["metadata"])["maxProperties"] == 10
    assert properties(name)["amount"]["minimum"] == 1
    assert {properties(name)["currency"][bound] for bound in ("minLength", "maxLength")} == {3}


def test_a_checkout_expires_within_the_minutes_of_its_table() -> None:
    minutes = properties("CheckoutRequest")["expires_in_minutes"]
    told = numbers(fields("POST /payment/checkouts")["expires_in_minutes"][1])
    assert [minutes["minimum"], minutes["maximum"]] == told


def test_customers_and_instruments_of_requests_have_the_fields_of_the_text() -> None:
    text = sections()["Shared request objects"].split("\n\n")[1]
    assert set(names(text)) == set(properties("CustomerInput"))
    instrument = fields("POST /payouts")["instrument"][1]
    assert set(names(instrument)) | {"type"} == set(properties("InstrumentInput"))
    appearance = fields("POST /payment/checkouts")["appearance"][1]
    assert set(names(appearance)) == set(properties("AppearanceInput"))


def test_every_operation_can_refuse_as_the_interface_says() -> None:
    told = {row[0]: row[2] for row in rows("Errors")}
    assert set(told) == {"401", "403", "404", "409", "422", "429"}
    for method, path, operation in operations():
        answers = operation["responses"]
        assert {"401", "403", "429", "5XX"} <= set(answers), path
        assert ("404" in answers) is ("{" in path), path
        takes_fields = "requestBody" in operation and not path.endswith("requery")
        is_list = method == "get" and "{" not in path
        assert ("422" in answers) is (takes_fields or is_list), path
        assert set(names(told["429"])) - {"message"} <= set(answers["429"]["headers"])
        for status, answer in answers.items():
            record = answer["content"]["application/json"]["schema"].get("$ref", "")
            if status in told:
                assert ("errors" in told[status]) is record.endswith("/Invalid"), (path, status)
            assert ("x-gap" in answer) is (status in ("201", "400", "428", "5XX")), (path, status)


def test_writes_take_an_idempotency_key_and_mark_replays() -> None:
    least, most = numbers(sections()["Idempotency"].split("*")[1])
    for method, path, operation in operations():
        keys = [one["schema"] for one in operation["parameters"] if one["name"] == "X-Idempotency-Key"]
        assert len(keys) == (method == "post"), path
        for schema in keys:
            assert (schema["minLength"], schema["maxLength"]) == (least, most)
        success = next(answer for status, answer in operation["responses"].items() if status[0] == "2")
        assert ("X-Idempotent-Replayed" in success["headers"]) is (method == "post"), path


def test_the_rate_limits_are_those_of_the_table() -> None:
    writes, reads, live, per_record = (numbers(row[1])[0] for row in rows("Rate limits"))
    assert DOCUMENT["x-limits"] == {
        "writes": {"per_key": writes},
        "reads": {"per_key": reads},
        "diagnostics": {"per_key": live, "per_record": per_record},
    }
    live_paths = {names(row[1])[0] for row in rows("Operations referred to elsewhere")}
    for method, path, operation in operations():
        wanted = "diagnostics" if path in live_paths else "writes" if method == "post" else "reads"
        assert operation["x-limit"] == wanted, path


def test_only_creations_answer_201_with_a_message() -> None:
    for method, path, operation in operations():
        creates = method == "post" and "requery" not in path
        assert ("201" in operation["responses"], "200" in operation["responses"]) == (creates, not creates)
        body = operation["responses"]["201" if creates else "200"]["content"]["application/json"]["schema"]
        wanted = {"data"} | ({"message"} if creates else set())
        assert wanted <= set(body["properties"])
        is_list = method == "get" and "{" not in path
        assert ("pagination" in body["properties"]) is is_list, path


def test_the_version_and_the_key_are_those_of_the_interface() -> None:
    assert DOCUMENT["info"]["version"] in sections()["Versioning"]
    assert all(server["url"].endswith("/v1") for server in DOCUMENT["servers"])
    (scheme,) = DOCUMENT["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
