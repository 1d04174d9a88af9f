"""Payment methods and their current health."""

from __future__ import annotations

from typing import Unpack

from .. import arguments, models
from ..params.operations import METHODS_STATUS
from ._base import Resource
from ._signatures import explains_absent, named_arguments


@explains_absent
@named_arguments
class AsyncMethods(Resource):
    """`client.methods`."""

    async def status(
        self, method_code: str, country_code: str, **options: Unpack[arguments.ReadOptions]
    ) -> models.MethodStatus:
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
        ids = {"method_code": method_code, "country_code": country_code}
        return await self._client.read(METHODS_STATUS, options, ids)
