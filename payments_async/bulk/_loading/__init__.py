"""Reads and checks an input file or iterable, and imports it into the ledger."""
