"""The app that the commands of `payments payouts` belong to."""

from __future__ import annotations

from typing import Final

from cyclopts import App

payouts: Final = App(
    name="payouts", help="Pay a file of payouts, each row at most once, and see where it stands."
)
