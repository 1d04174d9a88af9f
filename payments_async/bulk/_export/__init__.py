"""Exports rows and their outcomes as CSV, JSON, JSON Lines or Parquet."""
