"""The ledger in a SQLite file, for one process on one machine."""
