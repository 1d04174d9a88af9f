"""The connection to PostgreSQL: transactions and error codes."""
