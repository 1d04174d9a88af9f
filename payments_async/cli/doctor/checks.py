"""Versions, extras and settings of this machine, its way to the service, and what one read of it shows."""

from __future__ import annotations

import platform
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from importlib import metadata
from typing import Any, Final

import attrs

from ..._extras import EXTRAS, missing_libraries
from ..._http.addresses import host_and_port
from ..._http.head import check_proxy
from ..._request.clocks import http_date
from ..._runtime import SYSTEM
from ..._version import __version__
from ...client import AsyncPayments
from ...errors import APIStatusError, ConfigurationError, PaymentsError
from ...models import RateLimit, ResponseInfo
from .._exit_codes import Exit, exit_of

CONNECT_TIMEOUT: Final = 10.0
"""Seconds for a connection."""
_LIBRARIES: Final = ("aiohttp", "attrs", "cattrs", "anyio", "msgspec")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_EXPIRES_SOON_DAYS: Final = 14
"""Days: a certificate that ends sooner is shown as such."""


@attrs.frozen
class Check:
    """A finding; `good` is None for what is neither right nor wrong."""

    name: str
    text: str
    good: bool | None = True
    code: Exit = Exit.REFUSED
    """The command's exit code if the check failed."""
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    """The same for programs."""


def error_check(name: str, error: PaymentsError) -> Check:
    """The finding of an error; its text holds no key and no account data."""
    kind = type(error).__name__
    return Check(name, f"{kind}: {error}", False, exit_of(error), {"error": kind, "message": str(error)})


def versions() -> Check:
    """The versions of this package, Python and the libraries that it always needs."""
    found = {name: metadata.version(name) for name in _LIBRARIES}
    system = f"{platform.system()} {platform.machine()}"
    libraries = ", ".join(f"{name} {version}" for name, version in found.items())
    text = f"payments-sdk {__version__}, Python {platform.python_version()}, {system}; {libraries}"
    python = {"payments-sdk": __version__, "python": platform.python_version(), "system": system}
    return Check("Versions", text, facts={"versions": {**python, **found}})


def extras() -> Check:
    """The extras whose libraries are installed, and those that lack one."""
    lacks = {extra: missing_libraries((extra,)) for extra in EXTRAS}
    complete = [extra for extra, lacking in lacks.items() if not lacking]
    missing = {extra: lacking for extra, lacking in lacks.items() if lacking}
    text = f"installed: {', '.join(complete) or 'none'}"
    if missing:
        text += f"; not installed: {', '.join(missing)}"
    return Check("Extras", text, None if missing else True, facts={"installed": complete, "missing": missing})


def settings(environ: Mapping[str, str]) -> Check:
    """The names of the environment variables that matter here, without their values."""
    ours = sorted(name for name in environ if name.startswith("PAYMENTS_") and environ[name])
    proxies = [name for name in _PROXIES if environ.get(name) or environ.get(name.lower())]
    text = f"set: {', '.join(ours) or 'none'}"
    if proxies:
        text += f"; {', '.join(proxies)} is not read by the client: pass proxy="
    return Check("Variables", text, None if proxies else True, facts={"set": ours, "proxies": proxies})


def network(base_url: str, proxy: str | None) -> Iterator[Check]:
    """The way to the service, or to the proxy: its name, a connection, TLS."""
    if proxy is not None:
        try:
            check_proxy(proxy)
        except ValueError as error:
            yield error_check("Proxy", ConfigurationError(str(error)))
            return
        yield Check(
            "Proxy", f"the client goes through {host_and_port(proxy)}", facts={"proxy": host_and_port(proxy)}
        )
    url = proxy or base_url
    host, _, port = host_and_port(url).rpartition(":")
    started = SYSTEM.monotonic()
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        yield Check("DNS", f"{host} was not resolved: {_os_error_text(error)}", False, facts={"host": host})
        return
    addresses = sorted({str(each[4][0]) for each in found})
    text = f"{host} is {', '.join(addresses)} ({_milliseconds_since(started)} ms)"
    yield Check("DNS", text, facts={"host": host, "addresses": addresses})
    yield from _connection(host.strip("[]"), int(port), url, is_tls=url.startswith("https:"))


def _connection(host: str, port: int, url: str, *, is_tls: bool) -> Iterator[Check]:
    started = SYSTEM.monotonic()
    try:
        line = socket.create_connection((host, port), CONNECT_TIMEOUT)
    except OSError as error:
        yield Check(
            "Connection",
            f"none to {host_and_port(url)}: {_os_error_text(error)}",
            False,
            facts={"to": host_and_port(url)},
        )
        return
    with line:
        text = f"to {host_and_port(url)} ({_milliseconds_since(started)} ms)"
        yield Check("Connection", text, facts={"to": host_and_port(url)})
        if not is_tls:
            yield Check("TLS", "none: plain HTTP", None, facts={"tls": None})
            return
        try:
            with ssl.create_default_context().wrap_socket(line, server_hostname=host) as secure:
                yield _certificate(secure)
        except OSError as error:
            hint = "check the clock, the base URL and the certificate authorities"
            yield Check(
                "TLS", f"no secure connection to {host_and_port(url)}: {_os_error_text(error)}; {hint}", False
            )


def _certificate(secure: ssl.SSLSocket) -> Check:
    certificate: Any = secure.getpeercert() or {}
    ends = ssl.cert_time_to_seconds(certificate["notAfter"])
    days = int((ends - SYSTEM.now().timestamp()) // 86_400)
    issuer = dict(pair for part in certificate.get("issuer", ()) for pair in part)
    named = issuer.get("organizationName") or issuer.get("commonName") or "an unnamed authority"
    text = f"{secure.version()}, certificate by {named} for {days} more days"
    facts = {"tls": secure.version(), "issuer": named, "days": days}
    return Check("TLS", text, None if days < _EXPIRES_SOON_DAYS else True, facts=facts)


def _milliseconds_since(started: float) -> int:
    """Milliseconds."""
    return round((SYSTEM.monotonic() - started) * 1000)


def _os_error_text(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return str(getattr(error, "verify_message", "") or error.reason or "TLS failed")
    return error.strerror or type(error).__name__


MAX_CLOCK_SKEW: Final = 30.0
"""Seconds by which this machine's clock may differ from the service's."""


async def read_service(client: AsyncPayments) -> AsyncIterator[Check]:
    """Read one payout, and look at the answer."""
    try:
        page = await client.payouts.list(page_size=1)
    except PaymentsError as error:
        yield error_check("Read", error)
        if isinstance(error, APIStatusError):
            yield _clock(error.headers)
        return
    answer = page.response
    assert answer is not None
    seconds = answer.attempts[-1].elapsed
    facts = {"status": answer.status, "seconds": round(seconds, 3), "request_id": answer.request_id}
    named = f", request {answer.request_id}" if answer.request_id else ""
    yield Check("Read", f"GET /payouts: {answer.status} in {seconds * 1000:.0f} ms{named}", facts=facts)
    yield _clock(answer.headers)
    yield _limits(client, answer)


def _clock(headers: Mapping[str, str]) -> Check:
    said = http_date(headers.get("date", ""))
    if said is None:
        return Check("Clock", "the service sent no Date to compare with", None, facts={"skew": None})
    skew = round((SYSTEM.now() - said).total_seconds())
    if abs(skew) <= MAX_CLOCK_SKEW:
        return Check("Clock", f"{abs(skew)} s from the service's", facts={"skew": skew})
    way = "ahead of" if skew > 0 else "behind"
    text = f"{abs(skew):,} s {way} the service's: set this machine's clock, by which the age of keys is told"
    return Check("Clock", text, False, facts={"skew": skew})


def _limits(client: AsyncPayments, answer: ResponseInfo) -> Check:
    own = {kind: state.limit for kind, state in client.limits_snapshot().items()}
    kept = ", ".join(f"{kind.replace('_', ' ')} {limit:,}" for kind, limit in own.items())
    facts = {"limit": answer.rate_limit.limit, "remaining": answer.rate_limit.remaining, "client": own}
    if answer.rate_limit == RateLimit():
        text = f"this answer had no limit headers (a 429 has); the client keeps to, a minute: {kept}"
        return Check("Limits", text, None, facts=facts)
    said = f"{answer.rate_limit.remaining} of {answer.rate_limit.limit} a minute left"
    return Check("Limits", f"the service says {said}; the client keeps to, a minute: {kept}", facts=facts)
