"""The connection to PostgreSQL: transactions, error codes, arrays as parameters."""
