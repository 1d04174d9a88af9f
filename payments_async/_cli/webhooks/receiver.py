"""A server of this machine that takes webhook deliveries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Final, Self

from ..._loopback import HOST, Reply, Request
from ..._loopback import listen as listening_socket
from ..._loopback.access import Access
from ..._loopback.server import ServerThread, answered_by
from ..._runtime import SYSTEM

LISTENER: Final = "X-Sandbox-Listener"
"""In an answer: the delivery was only printed. The sandbox's Advisor then expects no action on it."""

_HINT: Final = b"Webhooks arrive here, by POST.\n"
_SECRET_BYTES: Final = 32

Handle = Callable[[bytes, Mapping[str, str]], int]
"""Takes body and headers (names in lower case) of a delivery; returns the status to answer."""


class Receiver:
    """Gives each POST to `handle`, on a thread of its own, inside `with`. 1 MiB of a body at most.

    OSError when `port` is taken; None means a free one. With `only_listens` each answer says that the
    delivery was only printed. With `shared` every user of this machine may send. Deliveries prove nothing
    and nothing is shown to their senders: so they need no secret where their user is not known.
    """

    def __init__(
        self, port: int | None, handle: Handle, *, only_listens: bool = False, shared: bool = False
    ) -> None:
        self._handle = handle
        self._marks: Mapping[str, str] = {LISTENER: "1"} if only_listens else {}
        listener = listening_socket(port)
        self.port: int = listener.getsockname()[1]
        secret = SYSTEM.token(_SECRET_BYTES).hex()
        access = Access(secret, is_shared=shared, shared_by="payments webhooks listen --shared")
        self._thread = ServerThread(listener, access, answered_by(self._answer), f"receiver-{self.port}")

    @property
    def url(self) -> str:
        """The address to pass as webhook_url."""
        return f"http://{HOST}:{self.port}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.stop()

    async def _answer(self, request: Request) -> Reply:
        if request.method != "POST":
            headers = {"Allow": "POST", "Content-Type": "text/plain; charset=utf-8"}
            return Reply(405, headers, _HINT)
        status: Future[int] = Future()
        status.set_running_or_notify_cancel()  # from here on it has a result, also when nobody waits for it

        def take() -> None:
            try:
                status.set_result(self._handle(request.body, request.headers))
            except BaseException as failure:
                status.set_exception(failure)

        threading.Thread(target=take, daemon=True).start()  # Ctrl-C does not wait for what it forwards
        return Reply(await asyncio.wrap_future(status), self._marks)
