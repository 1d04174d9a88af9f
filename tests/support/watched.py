"""A sandbox that keeps every request as it arrived over the socket, bodies included."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from payments_async.sandbox import Answer, Sandbox, VirtualClock
from payments_async.sandbox._common.values import Request


class WatchedSandbox(Sandbox):
    """`arrived` lists the requests, oldest first; the clock stands still until it is advanced."""

    def __init__(self, **options: Any) -> None:
        self.arrived: list[Request] = []
        super().__init__(clock=VirtualClock.frozen(), **options)

    def _answer(self, request: Request) -> Answer:
        self.arrived.append(request)
        return super()._answer(request)

    def admit(self, key: str) -> None:
        """Serve a key of the test's choice as another one of the first tenant."""
        self._core.world.tenants[key] = self._core.world.tenants[self.api_key]

    @property
    def line(self) -> str:
        newest = self.arrived[-1]
        return f"{newest.method} {newest.path}"

    @property
    def body(self) -> Any:
        return json.loads(self.arrived[-1].body, parse_float=Decimal)

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(self.arrived[-1].query, keep_blank_values=True))

    @property
    def headers(self) -> dict[str, str]:
        return dict(self.arrived[-1].headers)
