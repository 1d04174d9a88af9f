"""One surface here; `tests/bulk/*.py` and `tests/sync/` show that the blocking batch does the same."""

from tests.support.one_surface import surface as surface
