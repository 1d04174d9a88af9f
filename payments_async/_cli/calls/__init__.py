"""One checkout, one payout, one request: `payments checkouts`, `payments payouts create`, `api`, `trigger`.

commands       the commands and their help
sending        one write until its outcome is known; Ctrl-C; errors as messages
payouts        one payout: create, find, list, wait
requests       a checkout; `payments api`
trigger        an event of a record of the simulated service
json_values    JSON of files and of records, account data masked
"""

from __future__ import annotations

from .commands import api, checkouts, trigger

__all__ = ["api", "checkouts", "trigger"]
