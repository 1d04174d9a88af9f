"""A batch in a Parquet file, which is checked alone, by the rules of a ledger."""

from __future__ import annotations

from ...._extras import needs

try:
    import pyarrow.parquet  # noqa: F401 - the modules here need it
except ImportError as _missing:
    raise ImportError(needs("an archive needs", "parquet")) from _missing
