"""The server of these tests leaves nothing behind: a later test would be blamed for it."""

from __future__ import annotations

import gc
import socket

from tests.support.rawserver import RawServer


def test_a_connection_accepted_as_the_server_ends_is_closed() -> None:
    for _ in range(25):  # the moment is not ours to choose
        with RawServer() as server, socket.create_connection(("127.0.0.1", server.port)):
            pass
    del server
    gc.collect()  # an unclosed socket would warn, and a warning fails this test
