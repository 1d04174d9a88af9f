"""Serves HTTP in a thread of its own while a block runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from typing import TypeVar

S = TypeVar("S", bound=HTTPServer)


@contextmanager
def serving(server: S) -> Iterator[S]:
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
