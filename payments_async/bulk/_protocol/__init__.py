"""The payout protocol as pure functions: states, decisions, identifiers, totals.

What stands in parentheses, such as (States; gaps H, I), is in `docs/interface.md`.
"""
