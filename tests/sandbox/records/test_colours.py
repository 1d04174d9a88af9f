"""Any colour a merchant may choose can be read, and seen, on the hosted page."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_async.sandbox._records.payment_json import contrast, full, text_on, visible_on

COLOURS = st.integers(0, 0xFFFFFF).map(lambda number: f"#{number:06x}")


@pytest.mark.parametrize(
    ("given_", "meant"),
    [("FE0", "#ffee00"), ("#1F6febC0", "#1f6feb"), ("#1F6feb", "#1f6feb"), ("#abc", "#aabbcc")],
)
def test_a_colour_is_written_out(given_: str, meant: str) -> None:
    assert full(given_) == meant


@settings(deadline=None)
@given(COLOURS)
def test_text_can_be_read_on_every_colour(colour: str) -> None:
    assert contrast(text_on(colour), colour) >= 4.5


@settings(deadline=None)
@given(COLOURS, st.sampled_from(["#ffffff", "#161b22"]))
def test_every_colour_is_made_to_stand_out(colour: str, ground: str) -> None:
    shade = visible_on(ground, colour)
    assert contrast(shade, ground) >= 3
    assert shade == colour or contrast(colour, ground) < 3
