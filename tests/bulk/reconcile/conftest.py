"""One surface here; `tests/bulk/*.py` and `tests/sync/` show that the blocking batch does the same."""

import pytest

from tests.support.fleet import UNHURRIED, shorten
from tests.support.one_surface import surface as surface


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten(monkeypatch.setattr, UNHURRIED)
