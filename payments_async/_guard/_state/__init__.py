"""Stores of the sums of guards: an SQLite file, PostgreSQL, Redis or Valkey."""
