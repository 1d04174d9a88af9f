"""`payments payouts`: pay a file of payouts, each row at most once, and see where it stands.

commands    the app and its commands
run         `run`, from the file to the certificate
inspect     `status`, `check` and `export`: the ledger alone, no key
reconcile   `reconcile` and `retry-failed`, and the certificate
confirm     a live key's total, typed back
session     the loop, the client, signals, failures as messages
progress    the bar, or a JSON line a second
amounts summary messages options   pure: what is confirmed, counted, said and taken
files       the files beside the ledger
"""

from __future__ import annotations

from .commands import payouts

__all__ = ["payouts"]
