"""One surface here; `tests/bulk/*.py` and `tests/sync/` show that the blocking batch does the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.one_surface import surface as surface


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger of a test lies."""
    return tmp_path / "ledger"
