"""docs/openapi.json by itself: well formed, and every guess marked with the letter of its gap."""

from __future__ import annotations

import pytest

from tests.fidelity.document import DOCUMENT, SCHEMAS, WRITTEN, everything, properties
from tests.fidelity.tables import names, rows

LETTERS = {row[0] for row in rows("What the interface does not show, and what we assume")}


def test_every_schema_has_a_title_and_every_field_a_description() -> None:
    titles = [schema["title"] for schema in SCHEMAS.values()]
    assert len(set(titles)) == len(titles)
    for name, schema in SCHEMAS.items():
        assert schema["description"], name
        for field, shape in properties(name).items():
            assert "description" in shape or "$ref" in shape, (name, field)


def test_every_object_that_can_be_null_has_a_name() -> None:
    """A generator would have to make one up, such as `PayoutMetadataType0`."""
    for one in everything(WRITTEN):
        assert "object" not in one.get("type", ()) or one["type"] == "object", one
        for part in (*one.get("anyOf", ()), *one.get("oneOf", ())):
            assert not {"properties", "enum", "items"} & set(part), one


def test_every_gap_has_a_letter_of_the_interface() -> None:
    marked = {one["x-gap"] for one in everything(DOCUMENT) if "x-gap" in one}
    assert marked - LETTERS == {"not shown"}, "the schemas of gateway_options are neither known nor guessed"
    assert {*"ABDEFGHJKLMNOPQSTUV", "AA", "AB", "AC", "AD", "AE"} <= marked


@pytest.mark.parametrize(("gap", "path"), [("A", "/payment/intents"), ("B", "/payouts")])
def test_the_query_names_are_those_of_the_gap(gap: str, path: str) -> None:
    (assumed,) = [
        row[2] for row in rows("What the interface does not show, and what we assume") if row[0] == gap
    ]
    given = DOCUMENT["paths"][path]["get"]["parameters"]
    assert [one["name"] for one in given] == names(assumed)
    assert {(one["in"], one["x-gap"]) for one in given} == {("query", gap)}
