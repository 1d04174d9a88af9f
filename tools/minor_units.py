"""Writes payments_async/models/_minor_units.py from the package iso4217.

`python -m tools.minor_units` writes it; a test says when it is stale.

The package has ISO 4217's list of current currencies, and not the one of historic currencies.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import iso4217

FILE: Final = Path(__file__).resolve().parents[1] / "payments_async" / "models" / "_minor_units.py"
MODULE: Final = '''\
"""Decimals of each currency, by ISO 4217. Written by `python -m tools.minor_units`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PUBLISHED: Final = "{published}"
"""Date of the list."""

_CODES: Final = {{
{rows}
}}

MINOR_UNITS: Final[Mapping[str, int]] = {{
    code: decimals for decimals, codes in _CODES.items() for code in codes.split()
}}
"""Decimals by currency; without those that have no minor units, such as XAU."""


def decimals_of(currency: str) -> int | None:
    """A currency's number of decimals; None if the list has no such currency, or gives it no minor units."""
    return MINOR_UNITS.get(currency)
'''


def listed() -> Mapping[str, int]:
    """Decimals by currency, as the package has them."""
    units = {code: str(entry["CcyMnrUnts"]) for code, entry in iso4217.raw_table.items() if code}
    return {code: int(decimals) for code, decimals in sorted(units.items()) if decimals.isdecimal()}


def text() -> str:
    """The whole module."""
    codes: dict[int, list[str]] = {}
    for code, decimals in listed().items():
        codes.setdefault(decimals, []).append(code)
    rows = [f'    {decimals}: """\n{_wrapped(codes[decimals])}\n    """,' for decimals in sorted(codes)]
    return MODULE.format(published=iso4217.__published__, rows="\n".join(rows))


def _wrapped(codes: Sequence[str]) -> str:
    return textwrap.fill(" ".join(codes), 110, initial_indent=" " * 8, subsequent_indent=" " * 8)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
