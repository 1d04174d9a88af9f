"""Rows and their outcomes as CSV, JSON Lines or Parquet."""
