"""All findings of `payments doctor`, in the order in which a request meets what they are about."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from urllib.parse import urlsplit

from ..._http.addresses import normal
from ..._http.types import Secret
from ..._rate_limit.store import row_name
from ..._request.auth import check_base_url, hidden, read_key
from ..._request.settings import variables
from ...client import AsyncPayments
from ...errors import ConfigurationError
from .._exit_codes import Exit
from .._output import Show
from .checks import Check, error_check, guard, limit_store, network, read_service, settings, versions
from .probes import ProbePayout, run_probes

CALL_TIME = 30.0  # seconds for each call, waiting for the rate limit included


def run_doctor(show: Show, proxy: str | None, payout: ProbePayout | None) -> Exit:
    """Show every finding; the exit code is that of the first that failed.

    Raises ConfigurationError for a probe with a live key.
    """
    return asyncio.run(_run(show, hidden(proxy), payout))


async def _run(show: Show, proxy: Secret | None, payout: ProbePayout | None) -> Exit:
    given, code = variables(os.environ), Exit.DONE
    if payout is not None and given.get("PAYMENTS_API_KEY", "").startswith("sk_live_"):
        raise ConfigurationError("--probe makes payouts: it takes a sandbox key, and this is a live key")
    show.heading("payments doctor", "nothing in this report is secret")
    async for check in _findings(given, proxy, payout):
        show.step(check.name, check.text, good=check.good, **check.facts)
        if check.good is False and code == Exit.DONE:
            code = check.code
    return code


async def _findings(
    given: Mapping[str, str], proxy: Secret | None, payout: ProbePayout | None
) -> AsyncIterator[Check]:
    yield versions(is_proxied=proxy is not None)
    yield settings(os.environ)
    key = base_url = None
    try:
        key = read_key(given.get("PAYMENTS_API_KEY"))
        text = f"a {key.environment} key of the right form"
        yield Check("Key", text, facts={"environment": key.environment})
    except ConfigurationError as error:
        yield error_check("Key", error)
    try:
        base_url = check_base_url(given.get("PAYMENTS_BASE_URL"), given.get("PAYMENTS_SANDBOX_HOSTS"))
        yield Check("Address", _without_path(base_url), facts={"base_url": _without_path(base_url)})
    except ConfigurationError as error:
        yield error_check("Address", error)
    if base_url is not None and proxy is None:
        for check in network(base_url):
            yield check
    if base_url is not None and key is not None:
        row = row_name(normal(base_url), key.fingerprint, "read")
        yield guard(given, is_live=key.environment == "live")
        async for check in _service_findings(given.get("PAYMENTS_LIMIT_STORE"), row, proxy, payout):
            yield check


def _without_path(base_url: str) -> str:
    """An address for a ticket: a path other than `/v1` may name a customer, or hold a token."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}{'/v1' if parts.path == '/v1' else '/…/v1'}"


async def _service_findings(
    store: str | None, row: str, proxy: Secret | None, payout: ProbePayout | None
) -> AsyncIterator[Check]:
    """What the limit store and the service itself say."""
    try:
        client = AsyncPayments(proxy=proxy, max_retries=0, timeout=CALL_TIME, deadline=CALL_TIME)
    except ConfigurationError as error:
        yield error_check("Client", error)
        return
    async with client:
        if store is not None:
            check = await limit_store(store, row)
            yield check
            if not check.good:
                yield Check("Read", "not tried: calls wait for the limit store", None)
                return
        is_answered = True
        async for check in read_service(client):
            is_answered &= check.good is not False
            yield check
        if payout is not None and is_answered:
            async for check in run_probes(client, payout):
                yield check
