"""docs/openapi.json against the tables of docs/interface.md: fields of records, their kinds, limits.

Requests, statuses and headers: the sandbox is held to the interface, and to the document (`test_asking.py`).
"""

from __future__ import annotations

import pytest

from tests.fidelity.document import DOCUMENT, SCHEMAS, properties, resolved, target_of, types
from tests.fidelity.tables import fields, names, numbers, rows, sections

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


def test_the_rate_limits_are_those_of_the_table() -> None:
    writes, reads, live, per_record = (numbers(row[1])[0] for row in rows("Rate limits"))
    assert DOCUMENT["x-limits"] == {
        "writes": {"per_key": writes},
        "reads": {"per_key": reads},
        "diagnostics": {"per_key": live, "per_record": per_record},
    }


def test_the_version_and_the_key_are_those_of_the_interface() -> None:
    assert DOCUMENT["info"]["version"] in sections()["Versioning"]
    assert all(server["url"].endswith("/v1") for server in DOCUMENT["servers"])
    (scheme,) = DOCUMENT["components"]["securitySchemes"].values()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
