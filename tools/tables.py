"""Writes the tables that the package has from lists of others; a test says when one is stale.

`python -m tools.tables` writes decimals of currencies (from iso4217: the list of current currencies, not that
of historic ones) and lengths of phone numbers (from phonenumbers) into their modules.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Final

import iso4217
import phonenumbers

PACKAGE: Final = Path(__file__).resolve().parents[1] / "payments_async"
MINOR_UNITS: Final = PACKAGE / "models" / "_minor_units.py"
PHONE_PLANS: Final = PACKAGE / "_validation" / "_phone_plans.py"


def minor_units() -> str:
    """The module with currencies by their decimals."""
    codes: dict[int, list[str]] = {}
    for code in sorted(filter(None, iso4217.raw_table)):
        decimals = str(iso4217.raw_table[code]["CcyMnrUnts"])
        if decimals.isdecimal():
            codes.setdefault(int(decimals), []).append(code)
    rows = [f'    {decimals}: """\n{_wrapped(codes[decimals], 8)}\n    """,' for decimals in sorted(codes)]
    text = _replaced(MINOR_UNITS.read_text(encoding="utf-8"), "_CODES: Final = {\n", "\n}", "\n".join(rows))
    return _replaced(text, 'PUBLISHED: Final = "', '"', str(iso4217.__published__))


def phone_plans() -> str:
    """The module with calling codes and lengths by country."""
    plans = []
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        plan = phonenumbers.PhoneMetadata.metadata_for_region(region)
        assert plan is not None
        assert plan.general_desc is not None
        lengths = ",".join(map(str, plan.general_desc.possible_length))
        plans.append(f"{region}-{plan.country_code}-{lengths}")
    return _replaced(
        PHONE_PLANS.read_text(encoding="utf-8"), '_PLANS: Final = """\n', '\n"""', _wrapped(plans)
    )


def _wrapped(words: list[str], margin: int = 0) -> str:
    return textwrap.fill(
        " ".join(words),
        110,
        initial_indent=" " * margin,
        subsequent_indent=" " * margin,
        break_on_hyphens=False,
    )


def _replaced(text: str, begin: str, end: str, by: str) -> str:
    """A text with other words between the first `begin` and the `end` after it."""
    pattern = f"({re.escape(begin)}).*?({re.escape(end)})"
    return re.sub(pattern, lambda found: found[1] + by + found[2], text, count=1, flags=re.DOTALL)


if __name__ == "__main__":
    MINOR_UNITS.write_text(minor_units(), encoding="utf-8")
    PHONE_PLANS.write_text(phone_plans(), encoding="utf-8")
