"""A row's next generation: other names, the same payout."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async import Instrument, PayoutRequest
from payments_async.bulk._loading.new_rows import RowIdentifiers
from payments_async.bulk._protocol.identifiers import (
    PROOF_KEY,
    Identity,
    Proof,
    body_hash,
    later_references,
    next_generation,
    parted,
)
from payments_async.bulk._protocol.records import Binding, LedgerRow
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState
from payments_async.bulk._protocol.transitions import retried
from payments_async.bulk.sources import Row
from payments_async.models.statuses import PayoutEnd
from tests.support.ledgers import fresh

BINDING = Binding("june", "sandbox", "http://localhost/v1", "key", "input", "{}")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
PAIRS = st.none() | st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=8), max_size=9)


def row(*, reference: str | None = None, proofs: bool = True, **changes: Any) -> LedgerRow:
    """A row whose payout has finally failed."""
    fields: dict[str, Any] = {
        "amount": Decimal("10.10"),
        "currency": "XOF",
        "method": "mtn_bj",
        "instrument": Instrument.phone("+22990112233", "BJ"),
    }
    request = PayoutRequest(**{**fields, **changes})
    read = Row(number=7, line=8, row_key="seven", reference=reference, request=request)
    return failed(fresh(RowIdentifiers("sandbox", "june", proofs=proofs).new_row(read), 1))


def failed(given_row: LedgerRow) -> LedgerRow:
    """The row, as it is once its payout has failed."""
    known = attrs.evolve(given_row.known, state=RowState.CREATED, intents=1, payout_id="po_1")
    return attrs.evolve(given_row, known=known, service_status="failed", payout_end=PayoutEnd.FAILED)


@given(PAIRS, st.none() | st.dictionaries(st.text(max_size=5), VALUES, max_size=3), st.booleans())
def test_only_the_reference_and_the_proof_are_new(pairs: Any, options: Any, proofs: bool) -> None:
    old = row(metadata=pairs, gateway_options=options, proofs=proofs)
    new = next_generation(old, BINDING)
    was, now = json.loads(old.body), json.loads(new.body)
    assert now.pop("reference") == new.reference == was.pop("reference") + "~g1"
    first = (was.get("metadata") or {}).pop(PROOF_KEY, None)
    second = (now.get("metadata") or {}).pop(PROOF_KEY, None)
    assert was == now
    assert (second is None) == (first is None) == (not proofs)
    assert new.body_hash == body_hash(new.body)
    assert retried(old, new, 2).known == RowKnowledge(generation=1)


def test_each_generation_has_names_of_its_own() -> None:
    first = row()
    second = failed(retried(first, next_generation(first, BINDING), 2))
    third = next_generation(second, BINDING)
    assert third.reference == f"{first.reference}~g2"
    assert len({first.idempotency_key, second.idempotency_key, third.idempotency_key}) == 3
    proof = Proof.read(json.loads(third.body)["metadata"][PROOF_KEY])
    assert proof is not None
    assert proof.generation == 2


def test_the_proof_is_what_it_would_be_for_the_row_itself() -> None:
    new = next_generation(row(metadata={"a": "b"}), BINDING)
    asked = json.loads(new.body, parse_float=Decimal)
    proof = Proof.read(asked["metadata"].pop(PROOF_KEY))
    bare = new.body.replace(f',"{PROOF_KEY}":"{proof.text if proof else ""}"'.encode(), b"")
    assert json.loads(bare, parse_float=Decimal) == asked
    assert proof == Identity("sandbox", "june", "seven", 1).proof(body_hash(bare))


def test_a_reference_of_the_operators_that_is_too_long_has_no_next_generation() -> None:
    assert next_generation(row(reference="r" * 188), BINDING).reference == "r" * 188 + "~g1"
    with pytest.raises(ValueError, match="192 characters"):
        next_generation(row(reference="r" * 189), BINDING)


@given(st.text(max_size=20), st.integers(0, 3))
def test_later_references_are_those_that_the_row_came_to_have(stem: str, generation: int) -> None:
    stem, _ = parted(stem)
    reference = f"{stem}~g{generation}" if generation else stem
    assert parted(reference) == (stem, generation)
    assert later_references(reference, 3) == [f"{stem}~g{number}" for number in range(generation + 1, 4)]
