"""Writes payments_async/_validation/_phone_plans.py from the package phonenumbers.

`python -m tools.phone_plans` writes it; a test says when it is stale.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Final

import phonenumbers

FILE: Final = Path(__file__).resolve().parents[1] / "payments_async" / "_validation" / "_phone_plans.py"
MODULE: Final = '''\
"""Calling code and lengths of phone numbers by country. Written by `python -m tools.phone_plans`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

_PLANS: Final = """
{plans}
"""
"""Country, calling code, and how many digits may follow it."""


@cache
def phone_plans() -> Mapping[str, tuple[str, frozenset[int]]]:
    """{{country: (calling code, how many digits may follow it)}}."""
    plans = (plan.split("-") for plan in _PLANS.split())
    return {{country: (code, frozenset(map(int, lengths.split(",")))) for country, code, lengths in plans}}
'''


def text() -> str:
    """The whole module."""
    plans = []
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        plan = phonenumbers.PhoneMetadata.metadata_for_region(region)
        assert plan is not None
        assert plan.general_desc is not None
        lengths = ",".join(map(str, plan.general_desc.possible_length))
        plans.append(f"{region}-{plan.country_code}-{lengths}")
    wrapped = textwrap.fill(" ".join(plans), 110, break_on_hyphens=False, break_long_words=False)
    return MODULE.format(plans=wrapped)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
