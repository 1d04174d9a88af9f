"""Tokens: what we said comes back; whatever differs in one bit, is old, or is somebody else's does not."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async.webhooks._tokens import LONGEST_TOKEN, Signer, TokenClaims, make, read

NEW, OLD, OTHER = "n" * 32, b"o" * 32, "x" * 40
LAST = 2**32 - 1
REFERENCES = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=191)
CLAIMS = st.builds(
    TokenClaims,
    st.sampled_from(["payout", "payment", "checkout"]),
    REFERENCES,
    st.integers(0, LAST),
    st.integers(1, LAST),
)
USUAL = TokenClaims("payout", "invoice-17", 1_000, 2_000)


def signer(*secrets: str | bytes) -> Signer:
    return Signer(list(secrets))


@settings(deadline=None)
@given(CLAIMS)
def test_what_was_said_comes_back_until_it_expires(claims: TokenClaims) -> None:
    token = make(signer(NEW), claims)
    assert read(signer(NEW), token, claims.expires_at - 0.001) == claims
    assert read(signer(NEW), token, claims.expires_at) is None
    assert len(token) <= LONGEST_TOKEN


def test_a_token_has_one_spelling_only() -> None:
    token = make(signer(NEW), USUAL)
    assert len(token) % 4 != 0, "so that its last character has bits to spare"
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    accepted = [each for each in alphabet if read(signer(NEW), token[:-1] + each, 0)]
    assert accepted == [token[-1]]
    assert read(signer(NEW), token + "=" * (-len(token) % 4), 0) is None


@pytest.mark.parametrize(("position", "number"), [(0, 0), (0, 1), (0, 255), (1, 3), (1, 255)])
def test_a_version_or_kind_of_another_time_is_refused_though_signed(position: int, number: int) -> None:
    token = make(signer(NEW), USUAL)
    said = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[:-32])
    said[position] = number
    signed = bytes(said) + signer(NEW).sign(bytes(said))
    assert read(signer(NEW), base64.urlsafe_b64encode(signed).rstrip(b"=").decode(), 0) is None


def test_a_signed_text_without_a_reference_is_refused() -> None:
    said = b"\x02\x00" + bytes(3) + b"\x01" + b"\xff" * 4
    token = base64.urlsafe_b64encode(said + signer(NEW).sign(said)).rstrip(b"=").decode()
    assert read(signer(NEW), token, 0) is None


def test_every_secret_is_tried_so_that_time_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("payments_async.webhooks._tokens.compare_digest", compare)
    for made_with in (NEW, OLD, OTHER):
        compared.clear()
        read(signer(NEW, OLD), make(signer(made_with), USUAL), 0)
        assert len(compared) == 2
        assert all(len(one) == len(other) == 32 for one, other in compared)
