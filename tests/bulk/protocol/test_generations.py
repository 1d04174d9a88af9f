"""A row's next generation: other names, the same payout."""

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
    identity_of,
    parted,
)
from tests.support.rows import BINDING, ledger_row

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


@given(PAIRS, st.none() | st.dictionaries(st.text(max_size=5), VALUES, max_size=3))
def test_only_the_reference_and_the_proof_are_new(pairs: Any, options: Any) -> None:
    row = ledger_row(metadata=pairs, gateway_options=options)
    was, now = json.loads(body_at(row, BINDING)), json.loads(body_at(row, BINDING, 1))
    assert now.pop("reference") == was.pop("reference") + "~g1" == row.stem + "~g1"
    assert Proof.read(was["metadata"].pop(PROOF_KEY)) != Proof.read(now["metadata"].pop(PROOF_KEY))
    assert was == now


def test_each_generation_has_names_of_its_own() -> None:
    rows = [attrs.evolve(ledger_row(), generation=number) for number in range(3)]
    bodies = [body_at(row, BINDING) for row in rows]
    keys = {
        identity_of(row, BINDING).idempotency_key(body_hash(body))
        for row, body in zip(rows, bodies, strict=True)
    }
    assert [json.loads(body)["reference"] for body in bodies] == [row.reference for row in rows]
    assert len(keys) == 3
    proof = Proof.of(json.loads(bodies[2])["metadata"])
    assert proof is not None
    assert proof.generation == 2


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


@given(st.text(max_size=20), st.integers(0, 3))
def test_a_reference_is_parted_as_it_was_made(stem: str, generation: int) -> None:
    stem, _ = parted(stem)
    reference = f"{stem}~g{generation}" if generation else stem
    assert parted(reference) == (stem, generation)
