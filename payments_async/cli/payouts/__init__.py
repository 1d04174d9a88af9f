"""`payments payouts`: pay a file of payouts, each row at most once, and see where it stands.

commands    the commands and their help
options     the options of `run` and `retry-failed`; how amounts and durations are read
run         `run`, from the file to the certificate
inspect     `status`, `check` and `export`: the ledger alone, no key
reconcile   `reconcile` and `retry-failed`: the ledger and the service's list
confirm     the confirmation of a live key's total
session     the event loop, the client, errors as messages, SIGTERM and Ctrl-C
progress    the bar, or a JSON line a second
amounts     sums of money       messages    what to do next       summary     the table of rows and sums
"""

from __future__ import annotations

from .commands import payouts

__all__ = ["payouts"]
