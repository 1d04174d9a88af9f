"""One checkout, one payout, one request: `payments checkouts`, `payments payouts create`, `find`, `api`.

commands       the commands and their help
options        their options
payouts        one payout: create it, find it by its reference, wait for its end
requests       a checkout; `payments api`
sending        one write until its outcome is known; Ctrl-C; errors as messages
json_values    JSON of files and of records, account data masked
"""

from __future__ import annotations

from .commands import api, checkouts

__all__ = ["api", "checkouts"]
