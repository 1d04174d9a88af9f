"""What is shown of foreign text: on one line, without what a terminal obeys, keys or tokens."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_async._request.auth import NotText, hidden, read_key
from payments_async.models._masking import (
    HiddenPairs,
    address,
    body_without_keys,
    clean,
    clean_lines,
    hidden_pairs,
    is_visible,
    shown_address,
    without_keys,
)
from payments_async.sandbox._common import masking as sandbox
from tests.support.canary import CANARY_KEY

PLAIN = "XOF\u202f1\u00a0000 à Kpalimé, 東京 ✓"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (PLAIN, PLAIN),
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x9b2J\x85\x7f", r"\x9b2J\x85\x7f"),
        ("\u202egro\u2066\u200f\u2028", r"\u202egro\u2066\u200f\u2028"),
        ("\ud800\U000e0001", r"\ud800\U000e0001"),
        pytest.param(f"Invalid key {CANARY_KEY}.", "Invalid key sk_sandbox_***.", id="key"),
        ("SK_LIVE_Ab-9 sk_live_… sk_sandbox_", "sk_LIVE_*** sk_live_… sk_sandbox_"),
    ],
)
def test_a_text_is_shown_on_one_line_without_what_a_terminal_obeys(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text())
def test_whatever_the_text_what_is_shown_is_harmless_and_clean_already(text: str) -> None:
    shown = clean(text)
    assert all(is_visible(sign) for sign in shown)
    assert clean(shown) == shown
    assert clean_lines(text).split("\n") == [clean(line) for line in text.split("\n")]


def test_a_key_is_masked_in_text_and_bytes_but_for_its_kind() -> None:
    text = f'{{"a": "{CANARY_KEY}", "b": "sk_live_x"}}'
    masked = '{"a": "sk_sandbox_***", "b": "sk_live_***"}'
    assert (without_keys(text), body_without_keys(text.encode())) == (masked, masked.encode())
    assert body_without_keys(b"\xff sk_live_x \xe9") == b"\xff sk_live_*** \xe9"


def test_the_keys_of_a_process_that_rotates_them_are_remembered_up_to_a_number() -> None:
    keys = [f"sk_sandbox_rotated-{number:02}-of-many" for number in range(18)]
    for key in keys:
        read_key(key)
        read_key(key)
    shown = [without_keys(key.removeprefix("sk_sandbox_")) for key in keys]
    assert shown == [key.removeprefix("sk_sandbox_") for key in keys[:2]] + ["***"] * 16


@given(st.from_regex(r"[a-z]{0,5}(://)?[A-Za-z0-9.:@-]{0,12}(/[A-Za-z0-9._-]{0,24}){0,4}([?#].{0,9})?"))
def test_the_sandbox_masks_addresses_by_the_same_rule(url: str) -> None:
    assert address(url).replace("***", sandbox.HIDDEN) == sandbox.address(url)


@pytest.mark.parametrize(("url", "shown"), [(None, "None"), ("", "''"), (b"x", "'***'"), ("token", "'***'")])
def test_the_repr_of_what_is_no_address_shows_nothing(url: Any, shown: str) -> None:
    assert shown_address(url) == shown


def test_hidden_pairs_are_a_mapping_that_does_not_show_itself() -> None:
    pairs = hidden_pairs({"a": 1, "b": [2]})
    assert dict(pairs) == {"a": 1, "b": [2]}
    assert repr(pairs) == "<2 pairs>"
    assert hidden_pairs(pairs) is pairs
    assert isinstance(pairs, HiddenPairs)
    assert hidden_pairs([1]) == [1]


SENTRY = """
from sentry_sdk.serializer import serialize
from payments_async.models._masking import hidden_pairs
shown = serialize({"json": hidden_pairs({"email": "ada@shop.test"})}, is_vars=True)
assert shown == {"json": "<1 pairs>"}, shown
"""


def test_sentry_shows_as_little_of_hidden_pairs_as_their_repr() -> None:
    """It walks the mappings among the locals of a traceback, whatever their repr."""
    subprocess.run([sys.executable, "-c", SENTRY], check=True, timeout=300)


def test_bytes_given_for_text_are_only_named() -> None:
    for value in (b"secret", bytearray(b"secret"), memoryview(b"secret")):
        found = hidden(value)
        assert isinstance(found, NotText)
        assert repr(found) == f"<{type(value).__name__}>"
        assert "secret" not in repr(vars(found))
