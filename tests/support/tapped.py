"""A real connection that keeps the last answer's bytes, to compare what was said with what was read."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from payments_async._http.transport import AiohttpTransport
from payments_async._http.types import HTTPRequest, HTTPResponse
from payments_async._runtime import SYSTEM


class Tapped:
    """A `Transport` over a real socket."""

    def __init__(self) -> None:
        self._transport = AiohttpTransport(runtime=SYSTEM)
        self.last: HTTPResponse | None = None

    async def send(self, request: HTTPRequest) -> HTTPResponse:
        self.last = await self._transport.send(request)
        return self.last

    async def aclose(self) -> None:
        await self._transport.aclose()

    @property
    def json(self) -> Any:
        """The last answer's body, as the standard library reads it, fractions exact."""
        assert self.last is not None
        return json.loads(self.last.body, parse_float=Decimal)
