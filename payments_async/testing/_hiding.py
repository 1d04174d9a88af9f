"""While a failure is told: pytest passes over the frames of this package, so that a test's own lines remain.

`pytest --full-trace` shows them all the same.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OURS: Final = frozenset({"payments_async", "payments_sync"})
_MARK: Final = "__tracebackhide__"
"""What pytest looks for among the locals and the globals of a frame."""


@contextmanager
def own_frames_hidden() -> Iterator[None]:
    """Mark the modules of this package that are loaded, for as long as it is open."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in _OURS]
    marked = [vars(module) for module in modules if _MARK not in vars(module)]
    for names in marked:
        names[_MARK] = True
    try:
        yield
    finally:
        for names in marked:
            del names[_MARK]
