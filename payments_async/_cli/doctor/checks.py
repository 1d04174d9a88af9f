"""Versions, extras and settings of this machine, its way to the service, and what one read of it shows."""

from __future__ import annotations

import os
import platform
import socket
import ssl
import stat
from collections.abc import AsyncIterator, Iterator, Mapping
from importlib import metadata
from typing import Any, Final

import attrs

from ..._extras import EXTRAS, missing_libraries
from ..._http.addresses import host_and_port
from ..._http.direct import is_patched, is_supported
from ..._rate_limit.store import BlockRequest, StoreUnavailable
from ..._rate_limit.store_client import open_store
from ..._request.key_age import http_date
from ..._runtime import SYSTEM
from ..._version import __version__
from ..._waits.schedule import PER_PAGE
from ...client import AsyncPayments
from ...errors import APIStatusError, ConfigurationError, PaymentsError
from ...guard import Guard
from ...models import RateLimit, ResponseInfo
from .._exit_codes import CommandEnded, Exit, exit_of
from ..guard import state as guard_state

CONNECT_TIMEOUT: Final = 10.0
_LIBRARIES: Final = ("aiohttp", "attrs", "cattrs", "anyio", "msgspec")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_EXPIRES_SOON_DAYS: Final = 14  # a certificate that ends sooner is shown as such


@attrs.frozen
class Check:
    """A finding; `good` is None for what is neither right nor wrong."""

    name: str
    text: str
    good: bool | None = True
    code: Exit = Exit.REFUSED  # the command's exit code if the check failed
    facts: Mapping[str, Any] = attrs.field(factory=dict)  # the same for programs


def error_check(name: str, error: PaymentsError) -> Check:
    """The finding of an error; its text holds no key and no account data."""
    kind = type(error).__name__
    return Check(name, f"{kind}: {error}", False, exit_of(error), {"error": kind, "message": str(error)})


def _problem(name: str, text: str, **facts: Any) -> Check:
    return Check(name, text, False, facts={**facts, "problem": text})


def versions(*, is_proxied: bool) -> Check:
    """The versions of this package, Python and the libraries that are there, the extras that lack one, and
    how requests are sent by them."""
    missing = {extra: lacking for extra in EXTRAS if (lacking := missing_libraries((extra,)))}
    complete = [extra for extra in EXTRAS if extra not in missing]
    named = (*_LIBRARIES, *(name for extra in complete for name in EXTRAS[extra]))
    libraries = {name: _version(name) for name in named}
    system = f"{platform.system()} {platform.machine()}"
    found = {"payments-sdk": __version__, "Python": platform.python_version(), **libraries}
    text = f"{', '.join(f'{name} {version}' for name, version in found.items())}; {system}"
    text += f"; extras not installed: {', '.join(missing)}" if missing else ""
    slow = _why_slow(libraries["aiohttp"], is_proxied=is_proxied)
    text += f"; a call takes about twice as long as it could: {slow}" if slow else ""
    facts = {"system": system, "versions": found, "extras": complete, "missing": missing, "slow": slow}
    return Check("Versions", text, None if slow else True, facts=facts)


def _why_slow(aiohttp: str, *, is_proxied: bool) -> str | None:
    """Why requests are not sent straight over aiohttp's connections; None if they are."""
    if is_proxied:
        return "it goes through a proxy"
    if not is_supported():
        return f"aiohttp {aiohttp} is another than this package was written for"
    if is_patched():
        return "something in this process replaces parts of aiohttp, as a tracing agent does"
    return None


def _version(library: str) -> str:
    """The version of a library by the name that one imports."""
    try:
        return metadata.version("opentelemetry-api" if library == "opentelemetry" else library)
    except metadata.PackageNotFoundError:
        return "of an unknown version"


def settings(environ: Mapping[str, str]) -> Check:
    """The names of the environment variables that matter here, without their values."""
    ours = sorted(name for name in environ if name.startswith("PAYMENTS_") and environ[name])
    proxies = [name for name in _PROXIES if environ.get(name) or environ.get(name.lower())]
    text = f"set: {', '.join(ours) or 'none'}"
    if proxies:
        text += f"; {', '.join(proxies)} is not read by the client: pass proxy="
    return Check("Variables", text, None if proxies else True, facts={"set": ours, "proxies": proxies})


def network(base_url: str) -> Iterator[Check]:
    """The way to the service: a connection to the first of its addresses that takes one, and TLS on it."""
    place, started = host_and_port(base_url), SYSTEM.monotonic()
    host, _, port = place.rpartition(":")
    try:
        line = socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT)
    except (OSError, UnicodeError) as error:  # UnicodeError: it is no host name
        yield _problem("Connection", f"none to {place}: {_reason(error)}", to=place)
        return
    with line:
        text = f"to {place}, which is {line.getpeername()[0]} ({_milliseconds_since(started)} ms)"
        yield Check("Connection", text, facts={"to": place})
        if base_url.lower().startswith("https:"):
            yield _handshake(line, place)


def _handshake(line: socket.socket, place: str) -> Check:
    try:
        server = place.rpartition(":")[0].strip("[]")
        with ssl.create_default_context().wrap_socket(line, server_hostname=server) as secure:
            return _certificate(secure)
    except (OSError, ValueError) as error:  # ValueError: the name cannot be in a certificate
        hint = "check the clock, the address and the certificate authorities"
        return _problem("TLS", f"no secure connection to {place}: {_reason(error)}; {hint}")


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
    return round((SYSTEM.monotonic() - started) * 1000)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return str(getattr(error, "verify_message", "") or error.reason or "TLS failed")
    if isinstance(error, TimeoutError):
        return f"no answer in {CONNECT_TIMEOUT:g} s"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "it is no host name"


async def limit_store(url: str, row: str) -> Check:
    nothing = BlockRequest(wanted=0, pause=0.0, step=1.0, saved=0.0, ahead=0.0)
    started = SYSTEM.monotonic()
    try:
        store = open_store(url)
        try:
            await store.reserve(row, nothing)
        finally:
            await store.aclose()
    except ConfigurationError as error:
        return error_check("Store", error)
    except StoreUnavailable as error:
        return _problem("Store", str(error))
    return Check("Store", f"the limit store answers ({_milliseconds_since(started)} ms)")


def guard(given: Mapping[str, str], *, is_live: bool) -> Check:
    """The guard of the environment, and whether its sums can be read and are trusted."""
    path = given.get(guard_state.VARIABLE)
    if path is None:
        text = f"none in {guard_state.VARIABLE}; one that a program gives its client is not seen here"
        if is_live:
            text += "; without one nothing bounds what this live key pays out: docs/guard.md has a first one"
        return Check("Guard", text, None, facts={"file": None, "recommended": is_live})
    place = problem = None
    try:
        found = Guard.from_file(path)
        if sums := guard_state.sums_of(found, given):
            place, _, problem = guard_state.read_state(sums)
    except ConfigurationError as error:
        return error_check("Guard", error)
    except CommandEnded as away:
        problem = str(away)
    rules = [f"{name.lower()}: {text}" for name, text in guard_state.rule_texts(found)]
    rules += [f"sum: {guard_state.sum_text(each)}" for each in found.sums]
    mode = f"{stat.S_IMODE(os.stat(path).st_mode):03o}"
    kept = f"kept in {place}" if place else "no state"
    text = "; ".join(filter(None, (f"{path} (mode {mode})", *rules, kept, problem)))
    facts = {"file": path, "mode": mode, "rules": found.rules(), "state": place, "problem": problem}
    return Check("Guard", text, problem is None, facts=facts)


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
    yield _webhooks(client)


def _clock(headers: Mapping[str, str]) -> Check:
    said = http_date(headers.get("date", ""))
    if said is None:
        return Check("Clock", "the service sent no Date to compare with", None, facts={"skew": None})
    skew = round((SYSTEM.now() - said).total_seconds())
    if abs(skew) <= MAX_CLOCK_SKEW:
        return Check("Clock", f"{abs(skew)} s from the service's", facts={"skew": skew})
    way = "ahead of" if skew > 0 else "behind"
    text = f"{abs(skew):,} s {way} the service's: set this machine's clock; the age of keys depends on it"
    return Check("Clock", text, False, facts={"skew": skew})


def _limits(client: AsyncPayments, answer: ResponseInfo) -> Check:
    own = {kind: state.limit for kind, state in client.limits_snapshot().items()}
    kept = ", ".join(f"{kind.replace('_', ' ')} {limit:,}" for kind, limit in own.items())
    limit, remaining = answer.rate_limit.limit, answer.rate_limit.remaining
    said = "the answer had no limit headers (a 429 has them)"
    if answer.rate_limit != RateLimit():
        said = f"the service says {remaining} of {limit} a minute left"
    facts = {"limit": limit, "remaining": remaining, "client": own}
    return Check("Limits", f"{said}; the client's limits a minute: {kept}", None, facts=facts)


def _webhooks(client: AsyncPayments) -> Check:
    """How many deliveries a minute a receiver can look up (docs/webhooks.md)."""
    own = client.limits_snapshot()
    pages, by_id = min(round(60 / PER_PAGE), own["read"].limit), own["diagnostic"].limit
    text = f"a receiver looks up {by_id:,} payouts a minute that deliveries name by id; for all others it "
    text += f"reads {pages:,} pages of the list a minute, of 100 records each"
    return Check("Webhooks", text, None, facts={"by_id": by_id, "pages": pages})
