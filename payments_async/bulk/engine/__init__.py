"""The engine: sends rows, records outcomes, resolves rows in doubt."""
