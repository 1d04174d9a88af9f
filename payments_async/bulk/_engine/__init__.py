"""The engine: sends rows, records outcomes and resolves rows in doubt."""
