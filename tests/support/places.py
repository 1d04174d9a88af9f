"""Ledgers of both kinds from one test body: a file and a database.

A test takes the `place` or `batch` fixture of `tests/bulk/` under `EITHER`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

Place = Path | str
EITHER: Final = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
