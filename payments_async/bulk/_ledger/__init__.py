"""The ledger: what is known of each row of a batch, in SQLite or PostgreSQL; no lock on money."""
