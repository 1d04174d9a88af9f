"""One surface here; `tests/bulk/*.py` and `tests/sync/` show that the blocking batch does the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.one_surface import surface as surface


@pytest.fixture
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where the ledger of a test lies: a file, or with `postgresql` a database of the test's own."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return tmp_path / "ledger"
    return str(request.getfixturevalue("database"))
