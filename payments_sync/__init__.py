"""Collect payments and send payouts, blocking."""
