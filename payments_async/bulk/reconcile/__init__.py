"""The service's list against the ledger: follow, reconcile, retry, certify."""
