"""Decimals of currencies: ISO 4217's, whatever the sandbox displays."""

from __future__ import annotations

import pytest

from payments_async.models._minor_units import MINOR_UNITS, decimals_of
from payments_async.sandbox._common.iso_codes import currency
from tools import tables as tool


def test_the_module_in_the_tree_is_fresh() -> None:
    assert tool.MINOR_UNITS.read_text(encoding="utf-8") == tool.minor_units(), "run: python -m tools.tables"


@pytest.mark.parametrize(
    ("code", "decimals"),
    [("XOF", 0), ("UGX", 0), ("GHS", 2), ("KWD", 3), ("CLF", 4), ("XAU", None), ("ghs", None), ("", None)],
)
def test_decimals_are_those_of_the_list(code: str, decimals: int | None) -> None:
    assert decimals_of(code) == decimals


def test_the_sandbox_displays_these_otherwise() -> None:
    """CLDR's digits are those in daily use. A change here is one of either list."""
    displayed = {code: currency(code).digits for code in MINOR_UNITS}
    fewer = {"AFN", "ALL", "IQD", "IRR", "KPW", "LAK", "LBP", "MGA", "MMK", "RSD", "SOS", "SYP", "YER"}
    assert {code for code in MINOR_UNITS if displayed[code] != MINOR_UNITS[code]} == fewer
    assert {displayed[code] for code in fewer} == {0}
    assert {MINOR_UNITS[code] for code in fewer - {"IQD"}} == {2}
    assert MINOR_UNITS["IQD"] == 3
