"""The endpoint table against the interface's, and the paths of `client.request`."""

from __future__ import annotations

from payments_async._request.prepare import unlisted
from payments_async.models import Payout
from payments_async.params.operations import (
    OPERATIONS,
    by_name,
)


def test_the_table_holds_the_nine_endpoints_and_the_four_live_operations() -> None:
    limits = [operation.limit for operation in OPERATIONS.values()]
    assert {limit: limits.count(limit) for limit in set(limits)} == {
        "write": 3,
        "read": 5,
        "refund_availability": 1,
        "diagnostic": 4,
    }
    assert {name for name, each in OPERATIONS.items() if each.creates} == {
        "checkouts.create",
        "payment_intents.create",
        "payouts.create",
    }
    for operation in OPERATIONS.values():
        assert operation.record is not None or operation.limit != "diagnostic"
        assert operation.echo is None or operation.record is not None
        assert operation.writes == (operation.method == "POST")


def test_a_listed_path_has_its_listed_limit_and_record() -> None:
    operation, record = unlisted("GET", "/payouts/po_1/sync", Payout, None)
    assert (operation.limit, record, operation.result) == ("diagnostic", "po_1", Payout)
    operation, record = unlisted("GET", "/payment/intents/pi_1/attempts/pa_1/inspect", None, None)
    assert (operation.limit, record) == ("diagnostic", "pa_1")
    operation, record = unlisted("GET", "/payment/intents/pi_1/refunds/availability", None, None)
    assert (operation.limit, record) == ("refund_availability", None)
    operation, record = unlisted("GET", "/payouts/po_1%3A2/sync", None, None)
    assert record == "po_1:2"  # the id that `payouts.sync` is given: both pass one gate
    operation, record = unlisted("POST", "/payouts/po_1/sync", None, "read")
    assert (operation.limit, record) == ("read", None)


def test_a_name_leads_back_to_its_operation() -> None:
    for name, operation in OPERATIONS.items():
        assert by_name(name) is operation
    found = by_name("POST /refunds")
    assert (found.name, found.path, found.writes, found.creates) == ("POST /refunds", "/refunds", True, True)
