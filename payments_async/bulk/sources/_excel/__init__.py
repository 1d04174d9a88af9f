"""Excel workbooks (.xlsx): what may be read of them, their rows, and an empty one to fill in."""

from __future__ import annotations

from ...._extras import needs

try:
    import openpyxl as openpyxl  # before the modules of this room, which use it
except ImportError as _missing:
    raise ImportError(needs("Excel workbooks need", "excel")) from _missing
