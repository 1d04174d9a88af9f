"""The connection to PostgreSQL: addresses, transactions, error codes, arrays as parameters."""
