"""`payments payouts`: pay a file of payouts, each row at most once, and see where it stands.

family      the app; its commands: `paying`, and `afterwards` all that look at a ledger or work on it later
running     `run`, from the file to the certificate
loading     the file into the ledger, or for a dry run looked at only
looking     `status`, `check` and `export`: the ledger alone, no key
settling    `reconcile` and `retry-failed`: what the service says of it
confirming  a live key's total, typed back
working     the loop, the client, failures as messages
signals     SIGTERM and Ctrl-C: in order first, then at once
board       the bar, or a JSON line a second
figures totals advice failures options table    pure: what is counted, confirmed, told, taken, shown
reading beside certifying              the watched input, files beside the ledger, the certificate
"""

from __future__ import annotations

from . import commands
from . import commands as paying
from .commands import payouts

__all__ = ["afterwards", "paying", "payouts"]
