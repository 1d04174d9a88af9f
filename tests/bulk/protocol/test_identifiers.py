"""Names of batches, rows, requests and payouts: the same from the same input, different from any other."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async.bulk._protocol.identifiers import (
    PROOF_KEY,
    Identity,
    Proof,
    body_at,
    body_hash,
    digest,
    identity_of,
    reference_problem,
    shown_key,
)
from payments_async.bulk.sources._requests import RowMaker
from tests.support.rows import BINDING, ledger_row

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
PARTS = st.lists(st.one_of(TEXT, st.none(), st.binary(max_size=10)), max_size=4)
IDENTITIES = st.builds(
    Identity,
    environment=st.sampled_from(["live", "sandbox"]),
    batch_id=TEXT,
    row_key=TEXT,
    generation=st.integers(0, 3),
    epoch=st.integers(0, 3),
)
BODY = body_hash(b"{}")
IDENTITY = Identity("live", "march", "7")


def raw(part: str | bytes | None) -> bytes | None:
    return part.encode() if isinstance(part, str) else part


@given(PARTS, PARTS)
def test_no_two_lists_of_parts_are_written_alike(
    one: list[str | bytes | None], other: list[str | bytes | None]
) -> None:
    same = list(map(raw, one)) == list(map(raw, other))
    assert (digest(*one) == digest(*other)) is same


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        digest("\ud800")


def test_a_value_nested_too_deep_for_a_line_is_counted_as_null() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert RowMaker().count(deep) == "null"


@given(IDENTITIES, IDENTITIES)
def test_two_rows_share_a_reference_only_when_they_are_one(one: Identity, other: Identity) -> None:
    same = attrs.evolve(one, epoch=0) == attrs.evolve(other, epoch=0)
    assert (one.reference() == other.reference()) is same


@given(IDENTITIES, IDENTITIES, st.sampled_from([BODY, body_hash(b"[]")]))
def test_a_key_names_one_request(one: Identity, other: Identity, body: str) -> None:
    same = one == other and body == BODY
    assert (one.idempotency_key(BODY) == other.idempotency_key(body)) is same


def test_identifiers_are_the_same_in_every_release() -> None:
    identity = Identity("live", "march", "7", generation=2, epoch=1)
    assert identity.reference() == FROZEN_REFERENCE
    assert identity.idempotency_key(BODY) == FROZEN_KEY
    assert identity.proof(BODY).text == FROZEN_PROOF


FROZEN_REFERENCE = "aol3fgdqnwn6kmapmjying5bj4jrhu3bygv5jgugztsjuwixw6ha~g2"
FROZEN_KEY = "pb1-3wvjonvowy6oobeymlqy7zak6qlxlelfnrhmk7l7f2yhhanl3loa"
FROZEN_PROOF = "1.x2nvtnvqwzxcr5obu7xu.khndx3vkwxgfzewrp7de.ck3a5yn6we4liiuod64g.2"


def test_an_operators_reference_is_taken_as_it_is() -> None:
    given_one = attrs.evolve(IDENTITY, given="Inv/7")
    assert given_one.reference() == "Inv/7"
    assert attrs.evolve(given_one, generation=3).reference() == "Inv/7~g3"


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("inv-7", None),
        ("inv~g", None),
        ("~g1-inv", None),
        ("x" * 191, None),
        ("", "is empty"),
        (" ", "is empty"),
        ("x" * 192, "has 192 characters, 191 are allowed"),
        (" inv", "begins or ends with a blank: take it away, as nothing is trimmed"),
        ("in\u200bv", "holds U+200B, which is invisible or unassigned"),
        ("inv~g1", "ends like the reference of a retried payout (~g and a number): change its end"),
    ],
)
def test_an_operators_reference_is_looked_at_before_anything_is_sent(
    reference: str, problem: str | None
) -> None:
    assert reference_problem(reference) == problem


@given(IDENTITIES)
def test_a_proof_is_read_as_it_was_written(identity: Identity) -> None:
    proof = identity.proof(BODY)
    assert Proof.read(proof.text) == proof
    assert len(proof.text) < 80


PROOF = IDENTITY.proof(BODY).text


@pytest.mark.parametrize(
    "text",
    [
        *(None, 7, "", "1.a.b.c.0", "2." + "a" * 66, [], {}),
        *(f"{PROOF}\n", f"{PROOF[:-1]}01", f"{PROOF[:-1]}٣"),
    ],
)
def test_anything_else_is_no_proof(text: object) -> None:
    assert Proof.read(text) is None


def test_a_proof_differs_by_row_generation_and_batch_and_its_body_is_a_hash() -> None:
    proof = IDENTITY.proof(BODY)
    assert proof.is_of_same_payout(IDENTITY.proof(body_hash(b"[]")))
    assert proof != IDENTITY.proof(body_hash(b"[]"))
    for change in ({"row_key": "8"}, {"generation": 1}, {"batch_id": "april"}, {"environment": "sandbox"}):
        assert not proof.is_of_same_payout(attrs.evolve(IDENTITY, **change).proof(BODY))
    assert proof == attrs.evolve(IDENTITY, epoch=5, given="inv").proof(BODY)


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("INV-2024-17", "INV-2024-17"),
        ("7", "7"),
        ("+2290190000000", "***"),
        ("Awa", "***"),
        ("a@b.c1", "***"),
        ("12345678", "***"),
        ("123456789", "***"),
    ],
)
def test_keys_that_may_be_personal_are_masked(key: str, shown: str) -> None:
    assert shown_key(key, 7) == shown
    assert shown_key(key, 12345678) == ("12345678" if key == "12345678" else shown)


# The next generation of a row: other names, the same payout


@pytest.mark.parametrize(
    ("pairs", "options"),
    [(None, None), ({}, {}), ({"a": "é"}, {"acme": {"rate": 1.5, "tags": ["", None, True, 2**53]}})],
)
def test_only_the_reference_and_the_proof_are_new(pairs: Any, options: Any) -> None:
    row = ledger_row(metadata=pairs, gateway_options=options)
    was, now = json.loads(body_at(row, BINDING)), json.loads(body_at(row, BINDING, 1))
    assert now.pop("reference") == was.pop("reference") + "~g1" == row.stem + "~g1"
    assert Proof.read(was["metadata"].pop(PROOF_KEY)) != Proof.read(now["metadata"].pop(PROOF_KEY))
    assert was == now


def test_a_key_that_is_used_up_is_of_its_generation_alone() -> None:
    row = attrs.evolve(ledger_row(), generation=1, epoch=2, revision=3)
    assert identity_of(row, BINDING) == Identity("sandbox", "june", "seven", 1, 2, 3, row.stem)
    assert identity_of(row, BINDING, 2) == Identity("sandbox", "june", "seven", 2, given=row.stem)
    assert identity_of(attrs.evolve(row, environment="live"), BINDING).environment == "live"


def test_the_proof_is_what_it_would_be_for_the_row_itself() -> None:
    body = body_at(ledger_row(metadata={"a": "b"}), BINDING, 1)
    asked = json.loads(body, parse_float=Decimal)
    proof = Proof.read(asked["metadata"].pop(PROOF_KEY))
    bare = body.replace(f',"{PROOF_KEY}":"{proof.text if proof else ""}"'.encode(), b"")
    assert json.loads(bare, parse_float=Decimal) == asked
    assert proof == Identity("sandbox", "june", "seven", 1).proof(body_hash(bare))


def test_a_reference_of_the_operators_that_is_too_long_has_no_next_generation() -> None:
    assert json.loads(body_at(ledger_row(reference="r" * 188), BINDING, 1))["reference"] == "r" * 188 + "~g1"
    with pytest.raises(ValueError, match="192 characters"):
        body_at(ledger_row(reference="r" * 189), BINDING, 1)
