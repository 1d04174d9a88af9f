"""A batch in a Parquet file, which is checked alone, by the rules of a ledger."""
