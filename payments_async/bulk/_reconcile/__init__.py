"""Compares the service's list with the ledger: follow, reconcile, retry, certify."""
