# From payments_async/resources/methods.py; change that, then run: python -m tools.mirror
"""Payment methods and their current health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payments_async import models
from payments_async.resources._signatures import explains_absent
from payments_async.resources.methods import AsyncMethods

from .._blocking_call import forwarded
from .._event_loop import Bridge


@explains_absent
class Methods:
    """`client.methods`."""

    def __init__(self, twin: AsyncMethods, bridge: Bridge) -> None:
        self._async, self._bridge = twin, bridge

    @forwarded(Bridge.call)
    def status(
        self, method_code: str, country_code: str, *, timeout: float | None = None,
        deadline: float | None = None, max_retries: int | None = None,
        extra_headers: Mapping[str, str] | None = None, extra_query: Mapping[str, Any] | None = None,
    ) -> models.MethodStatus:  # fmt: skip
        """Recent health of a payment method in a country, to hide or demote it (Resources, Method status).

        Args:
            method_code: the method's code, as the methods endpoint returns it.
            country_code: ISO 3166-1 alpha-2.
            timeout: seconds for each attempt.
            deadline: seconds for the whole call: pacing, attempts and back-off.
            max_retries: attempts after the first.
            extra_headers: headers beside the client's own.
            extra_query: pairs added to the query.

        Raises:
            InvalidRequest: a code cannot be part of a path; nothing was sent.
            PaymentsError: see `errors`; effect "none".
        """
