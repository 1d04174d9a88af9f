"""Payment methods and their current health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from .. import arguments, models
from ..params.operations import METHODS_STATUS
from ._base import Resource
from ._signatures import explains_absent, implemented_by


@explains_absent
class AsyncMethods(Resource):
    """`client.methods`."""

    async def _status(
        self, method_code: str, country_code: str, **options: Unpack[arguments.ReadOptions]
    ) -> models.MethodStatus:
        ids = {"method_code": method_code, "country_code": country_code}
        return await self._client.read(METHODS_STATUS, options, ids)

    @implemented_by(_status)
    async def status(
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
