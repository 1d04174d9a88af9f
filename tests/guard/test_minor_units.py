"""Decimals of currencies: ISO 4217's, whatever the sandbox displays."""

from __future__ import annotations

import pytest

from payments_async.models._minor_units import decimals_of
from tools import tables as tool


def test_the_module_in_the_tree_is_fresh() -> None:
    assert tool.MINOR_UNITS.read_text(encoding="utf-8") == tool.minor_units(), "run: python -m tools.tables"


@pytest.mark.parametrize(
    ("code", "decimals"),
    [("XOF", 0), ("UGX", 0), ("GHS", 2), ("KWD", 3), ("CLF", 4), ("XAU", None), ("ghs", None), ("", None)],
)
def test_decimals_are_those_of_the_list(code: str, decimals: int | None) -> None:
    assert decimals_of(code) == decimals
