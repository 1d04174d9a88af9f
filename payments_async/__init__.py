"""Collect payments and send payouts, awaited."""
