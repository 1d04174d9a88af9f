"""The payout protocol as pure functions: states, decisions, identifiers, totals."""
