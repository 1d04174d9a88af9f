"""`payments payouts`: pay a file of payouts, each row at most once, and see where it stands.

commands    the app, and every command as it is typed
run         `run`, from the file to the certificate
inspect     `status`, `check` and `export`: the ledger alone, no key
reconcile   `reconcile` and `retry-failed`: what the service says of it
confirm     a live key's total, typed back
session     the loop, the client, failures as messages, SIGTERM and Ctrl-C
progress    the bar, or a JSON line a second
files       files beside the ledger
amounts messages options summary    pure: what is confirmed, reported, accepted, shown
"""

from __future__ import annotations

from .commands import payouts

__all__ = ["payouts"]
