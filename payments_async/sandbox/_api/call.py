"""One request on its way through the core."""

from __future__ import annotations

import attrs

from .._common.json import JsonObject
from .._common.operations import ServiceOperation
from .._common.values import Request
from .._records.idempotency import fingerprint
from .._records.tenants import Tenant


@attrs.define(eq=False)
class ServiceCall:
    """An authenticated request to a known operation, read as far as its JSON."""

    request: Request
    now: float
    tenant: Tenant
    operation: ServiceOperation
    path_values: dict[str, str]
    parameters: dict[str, str] = attrs.field(factory=dict)
    """The parameters of the query string."""
    body: JsonObject = attrs.field(factory=dict)
    idempotency_key: str | None = None

    @property
    def fingerprint(self) -> bytes:
        """The request's fingerprint, compared under one idempotency key."""
        address = f"{self.request.path}?{self.request.query}"
        return fingerprint(self.request.method, address, self.request.body)

    @property
    def identity(self) -> bytes:
        """The identity that a request shares with its retries: the idempotency key, or else all of it."""
        return self.idempotency_key.encode() if self.idempotency_key else self.fingerprint

    def value(self, name: str) -> object:
        """A path, query or body value or None; dots (or `__`) in the name reach nested ones."""
        for values in (self.path_values, self.parameters):
            if name in values:
                return values[name]
        value: object = self.body
        for part in name.replace("__", ".").split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value
