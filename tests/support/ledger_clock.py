"""The database's clock in tests: the one SQL expression of it, compiled to another time.

In one process it is the time of its runtimes, which jump; in programs of a campaign, the real time and a
shift that is read from a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

from payments_async.bulk._ledger import tables

_clock: Callable[[], float] | None = None


def _compiled(real: Callable[..., str]) -> Callable[..., str]:
    def compiled(element: Any, compiler: Any, **options: Any) -> str:
        if _clock is None:
            return real(element, compiler, **options)
        return str(compiler.process(sa.bindparam(None, callable_=_clock, type_=sa.Double()), **options))

    return compiled


compiles(tables.now)(_compiled(tables._now))
compiles(tables.now, "sqlite")(_compiled(tables._now_in_sqlite))


@contextmanager
def ledger_time(clock: Callable[[], float]) -> Iterator[None]:
    """Context in which ledgers that are opened have this time, in seconds since 1970."""
    global _clock
    before, _clock = _clock, clock
    try:
        yield
    finally:
        _clock = before


def shift_by(path: Path) -> None:
    global _clock
    _clock = lambda: time.time() + float(path.read_text() or 0)  # noqa: E731
