"""`payments payouts`: pay a file of payouts, each row at most once, and see where it stands.

commands, machine_commands  the commands and their help; the second for a ledger in a database
options         their options, how they are read, and the ledger that they are about
page            the page of `run`, and `watch`
run             `run`, from the file to the certificate
worker_processes  `worker`, and the worker processes of `run`
inspect         `status`, `check`, `export`, `batches` and `workers`: the ledger alone, no key
row             `show`, one row
machines        a database's batches and workers, and the commands that steer them
ledger_tables   `ledger init`, `upgrade` and `check`
reconcile       `reconcile`, `retry-failed` and `recover`: the ledger and the service's list
confirm         the confirmation of a live key's total
command_context the event loop, the client, errors as messages, SIGTERM and Ctrl-C
progress        the bar, or a JSON line a second
messages        errors for operators       summary     the table of rows and sums
"""

from __future__ import annotations

from . import machine_commands
from .commands import payouts

__all__ = ["machine_commands", "payouts"]
