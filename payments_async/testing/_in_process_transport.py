"""A transport without a network: it passes the client's requests to a sandbox in this process."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from multidict import CIMultiDict, CIMultiDictProxy

from .._http.types import HTTPRequest, HTTPResponse, TransportError, withheld
from .._runtime import SYSTEM, Runtime
from ..sandbox import Answer as SandboxAnswer
from ..sandbox import Hang, Sandbox, Slow
from ._tenant import SandboxTenant, service_of

IN_PROCESS: Final = "http://localhost/v1"
"""A base URL for clients of this transport; nothing listens there."""


class InProcessTransport:
    """Passes requests to a sandbox in this process; its network faults take time on the client's clock."""

    def __init__(self, sandbox: Sandbox | SandboxTenant, *, runtime: Runtime = SYSTEM) -> None:
        """Args:
        sandbox: the service; it need not be serving.
        runtime: the client's own; slow answers and timeouts take its time.
        """
        self._sandbox = service_of(sandbox)
        self._runtime = runtime

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        """Pass a request to the sandbox. Raises TransportError when a fault prevents the answer."""
        if request.is_withheld:
            raise withheld()
        request.sent = True
        url = urlsplit(request.url)
        path = f"{url.path}?{url.query}" if url.query else url.path
        answer = self._sandbox.handle(request.method, path, request.headers, request.body)
        if answer.fault is not None:
            await self._simulate(request, answer)
        return HTTPResponse(answer.status, CIMultiDictProxy(CIMultiDict(answer.headers)), answer.body)

    async def _simulate(self, request: HTTPRequest, answer: SandboxAnswer) -> None:
        """Simulate a fault. Returns if the answer arrives nevertheless."""
        fault = answer.fault
        if isinstance(fault, Slow) and fault.seconds < request.timeout:
            await self._runtime.sleep(fault.seconds)
        elif isinstance(fault, Slow | Hang):
            await self._runtime.sleep(request.timeout)
            raise TransportError("timeout", f"no answer within {request.timeout:g} s")
        else:  # Drop, Reset, Cut
            raise TransportError("reset", f"the connection broke ({type(fault).__name__.lower()})")

    def share(self) -> InProcessTransport:
        """The transport of a client of another secret key: this one."""
        return self

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""
