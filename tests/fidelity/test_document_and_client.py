"""docs/openapi.json against the client: its records, operations, query names and limits.

That each field of the document arrives is tested in tests/client.
"""

from __future__ import annotations

import attrs

from payments_async import RateLimits, _assumptions, models
from payments_async.params.operations import OPERATIONS
from tests.fidelity.document import DOCUMENT, SCHEMAS, operations, properties


def test_no_record_of_the_client_has_a_field_that_the_document_does_not_name() -> None:
    named = {field for schema in SCHEMAS for field in properties(schema)}
    public = [getattr(models, name) for name in models.__all__]
    records = [cls for cls in public if isinstance(cls, type) and issubclass(cls, models.Record)]
    assert len(records) == 32
    given = {field.name for cls in records for field in attrs.fields(cls)}
    assert {name for name in given if not name.startswith("_")} <= named


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
