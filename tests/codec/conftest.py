"""The parts of the codec. What the fast path has learned is of the process: a test may begin without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_async._codec import decode as decode
from payments_async._codec import encode as encode
from payments_async._codec import fast_path as fast_path
from payments_async._codec import hooks as hooks


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
