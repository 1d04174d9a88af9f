"""Decimals of currencies: ISO 4217's, whatever the sandbox displays."""

from __future__ import annotations

from decimal import Decimal

import pytest

from payments_async import Amount, Payout
from tools import tables as tool


def test_the_module_in_the_tree_is_fresh() -> None:
    assert tool.MINOR_UNITS.read_text(encoding="utf-8") == tool.minor_units(), "run: python -m tools.tables"


@pytest.mark.parametrize(
    ("code", "shown"),
    [("XOF", "1"), ("UGX", "1"), ("GHS", "1.00"), ("KWD", "1.000"), ("CLF", "1.0000")]
    + [(unlisted, "1.00000") for unlisted in ("XAU", "ghs", "")],
)
def test_decimals_are_those_of_the_list(code: str, shown: str) -> None:
    assert repr(Payout(amount=Amount(Decimal("1.00000"), currency=code))) == f"Payout(amount={code} {shown})"
