"""`payments payouts`: pay a file of payouts, each row at most once, and see where it stands.

commands         the commands and their help
options          their options, how they are read, and the ledger that they are about
run              `run`, from the file to the certificate
reconcile        `reconcile` and `retry-failed`: the ledger and the service's list; the certificate
inspect          `status`, `watch`, `show`, `export`, `template`, `batches`: the ledger alone, no key
decisions        `pause`, `resume`, `cancel-rest`, `confirm`, `forget`: what a person decides
page             the page of `run` and `watch`
confirm          the confirmation of a live key's total, and of what cannot be undone
command_context  the event loop, the client, errors as messages, SIGTERM and Ctrl-C
progress         the bar, or a JSON line a second
messages         errors for operators
summary          the table of rows and sums
"""

from __future__ import annotations

from .commands import payouts

__all__ = ["payouts"]
