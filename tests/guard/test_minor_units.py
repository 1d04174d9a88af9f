"""Decimals of currencies: ISO 4217's, whatever the sandbox displays."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_async._guard.minor_units import MINOR_UNITS, decimals_of
from payments_async.sandbox._common.iso_codes import currency
from tools import minor_units as tool


def test_the_module_in_the_tree_is_fresh() -> None:
    assert tool.main(["--check"]) == 0, "run: python -m tools.minor_units"


def test_a_stale_module_is_named_until_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "minor_units.py"
    assert tool.main(["--check"], file) == 1
    assert capsys.readouterr().out == "payments_async/_guard/minor_units.py is stale\n"
    assert (tool.main([], file), tool.main(["--check"], file)) == (0, 0)
    assert file.read_bytes() == tool.FILE.read_bytes()


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
