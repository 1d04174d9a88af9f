"""Shows a ledger's rows to people and programs: single rows, causes, and exports to files."""
