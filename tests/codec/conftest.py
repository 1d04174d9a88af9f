"""What the fast path has learned is of the process: a test may begin without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_async._codec import decode, fast_path


def forget() -> None:
    """Have the fast path learn its unknown fields anew."""
    fast_path._LEARNED.clear()
    fast_path._VARYING.clear()
    fast_path.wire_struct_of.cache_clear()
    decode._usual_reader.cache_clear()


@pytest.fixture
def nothing_learned() -> Iterator[None]:
    forget()
    yield
    forget()
