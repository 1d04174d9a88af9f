"""An input file or iterable, read, checked and imported into the ledger."""
