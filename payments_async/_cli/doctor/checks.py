"""Versions, extras and settings of this machine, its way to the service, and what one read of it shows."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
import ssl
import stat
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any, Final

import attrs

from ..._extras import EXTRAS, missing_libraries
from ..._guard.sums import GuardSums
from ..._http.addresses import host_and_port
from ..._http.head import check_proxy
from ..._rate_limit.store import BlockRequest, LimitRow, StoreUnavailable
from ..._rate_limit.store_client import open_store
from ..._request.key_age import http_date
from ..._runtime import SYSTEM
from ..._version import __version__
from ...client import AsyncPayments
from ...errors import APIStatusError, ConfigurationError, PaymentsError
from ...guard import Guard
from ...models import RateLimit, ResponseInfo
from .._exit_codes import CommandEnded, Exit, exit_of
from ..guard import state as guard_state

CONNECT_TIMEOUT: Final = 10.0
"""Seconds for a connection."""
_LIBRARIES: Final = ("aiohttp", "attrs", "cattrs", "anyio", "msgspec")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_EXPIRES_SOON_DAYS: Final = 14
"""A certificate that ends sooner is shown as such."""


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


_PLAIN: Final = Check("TLS", "none: plain HTTP", None, facts={"tls": None})


def error_check(name: str, error: PaymentsError) -> Check:
    """The finding of an error; its text holds no key and no account data."""
    kind = type(error).__name__
    return Check(name, f"{kind}: {error}", False, exit_of(error), {"error": kind, "message": str(error)})


def _problem(name: str, text: str, **facts: Any) -> Check:
    return Check(name, text, False, facts={**facts, "problem": text})


def versions() -> Check:
    """The versions of this package, Python and the libraries that it always needs."""
    found = {name: metadata.version(name) for name in _LIBRARIES}
    system = f"{platform.system()} {platform.machine()}"
    text = f"payments-sdk {__version__}, Python {platform.python_version()}, {system}; {_listing(found)}"
    python = {"payments-sdk": __version__, "python": platform.python_version(), "system": system}
    return Check("Versions", text, facts={"versions": {**python, **found}})


def extras() -> Check:
    """The extras that are installed, with the versions of their libraries, and those that lack one."""
    lacks = {extra: missing_libraries((extra,)) for extra in EXTRAS}
    complete = [extra for extra, lacking in lacks.items() if not lacking]
    missing = {extra: lacking for extra, lacking in lacks.items() if lacking}
    found = {name: _version(name) for extra in complete for name in EXTRAS[extra]}
    text = f"{', '.join(complete)} ({_listing(found)})"  # the command itself needs one
    if missing:
        text += f"; not installed: {', '.join(missing)}"
    facts = {"installed": complete, "missing": missing, "versions": found}
    return Check("Extras", text, facts=facts)


def _listing(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.items())


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


async def network(base_url: str, proxy: str | None) -> AsyncIterator[Check]:
    """The way to the service, or to the proxy: its name, a connection, TLS."""
    if proxy is None:
        async for check in _way("", base_url):
            yield check
        return
    try:
        check_proxy(proxy)
    except ValueError as error:
        yield error_check("Proxy", ConfigurationError(str(error)))
        return
    yield Check(
        "Proxy", f"the client goes through {host_and_port(proxy)}", facts={"proxy": host_and_port(proxy)}
    )
    async for check in _way("Proxy ", proxy):
        yield check
    if _is_tls(base_url):
        yield Check("TLS", "through the proxy: Read tries it", None, facts={"tls": None})
    else:
        yield _PLAIN


async def _way(to: str, url: str) -> AsyncIterator[Check]:
    """The way to an address. `to` begins the names of the findings."""
    host, _, port = host_and_port(url).rpartition(":")
    host = host.strip("[]")
    started = SYSTEM.monotonic()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        yield _problem(f"{to}DNS", f"{host} was not resolved: {_reason(error)}", host=host)
        return
    addresses = sorted({str(each[4][0]) for each in found})
    text = f"{host} is {', '.join(addresses)} ({_milliseconds_since(started)} ms)"
    if addresses == [host]:
        text = f"{host} needs none"
    yield Check(f"{to}DNS", text, facts={"host": host, "addresses": addresses})
    for check in _connection(to, [each[4] for each in found], url):
        yield check


def _connection(to: str, addresses: Iterable[tuple[Any, ...]], url: str) -> Iterator[Check]:
    """A connection to the first address that takes one, and TLS on it."""
    place, started, name = host_and_port(url), SYSTEM.monotonic(), f"{to}TCP" if to else "Connection"
    reasons: dict[str, None] = {}
    line = None
    for host, port, *_ in addresses:
        try:
            line = socket.create_connection((host, port), CONNECT_TIMEOUT)
            break
        except OSError as error:
            reasons[_reason(error)] = None
    if line is None:
        yield _problem(name, f"none to {place}: {', '.join(reasons)}", to=place)
        return
    with line:
        yield Check(name, f"to {place} ({_milliseconds_since(started)} ms)", facts={"to": place})
        if _is_tls(url):
            yield _handshake(f"{to}TLS", line, url)
        elif not to:
            yield _PLAIN


def _handshake(name: str, line: socket.socket, url: str) -> Check:
    place = host_and_port(url)
    try:
        server = place.rpartition(":")[0].strip("[]")
        with ssl.create_default_context().wrap_socket(line, server_hostname=server) as secure:
            return _certificate(name, secure)
    except (OSError, ValueError) as error:  # ValueError: the name cannot be in a certificate
        hint = "check the clock, the address and the certificate authorities"
        return _problem(name, f"no secure connection to {place}: {_reason(error)}; {hint}")


def _certificate(name: str, secure: ssl.SSLSocket) -> Check:
    certificate: Any = secure.getpeercert() or {}
    ends = ssl.cert_time_to_seconds(certificate["notAfter"])
    days = int((ends - SYSTEM.now().timestamp()) // 86_400)
    issuer = dict(pair for part in certificate.get("issuer", ()) for pair in part)
    named = issuer.get("organizationName") or issuer.get("commonName") or "an unnamed authority"
    text = f"{secure.version()}, certificate by {named} for {days} more days"
    facts = {"tls": secure.version(), "issuer": named, "days": days}
    return Check(name, text, None if days < _EXPIRES_SOON_DAYS else True, facts=facts)


def _is_tls(url: str) -> bool:
    return url.lower().startswith("https:")


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


async def limit_store(url: str, row: LimitRow) -> Check:
    """Whether the limit store answers. It is asked for no permit."""
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
        return _no_guard(is_live=is_live)
    sums = None
    try:
        found = Guard.from_file(path)
        sums = guard_state.sums_of(found, given)
        problem = None if sums is None else _state_problem(sums)
    except ConfigurationError as error:
        return error_check("Guard", error)
    except CommandEnded as away:
        problem = str(away)
    place = None if sums is None else sums.state.place
    return _guard_check(path, found, place, problem)


def _guard_check(path: str, found: Guard, place: str | None, problem: str | None) -> Check:
    texts = [f"{name.lower()}: {text}" for name, text in guard_state.rule_texts(found)]
    texts += [f"sum: {guard_state.sum_text(each)}" for each in found.sums]
    mode = f"{stat.S_IMODE(os.stat(path).st_mode):03o}"
    trusted = ", trusted" if problem is None else ""
    kept = "no state" if place is None else f"kept in {place}{trusted}"
    text = "; ".join(filter(None, (f"{path} (mode {mode}): {texts[0]}", *texts[1:], kept, problem)))
    facts = {"file": path, "mode": mode, "rules": found.rules(), "state": place}
    return Check("Guard", text, problem is None, facts={**facts, "problem": problem})


def _no_guard(*, is_live: bool) -> Check:
    text = f"none in {guard_state.VARIABLE}; one that a program gives its client is not seen here"
    if is_live:
        text = (
            f"none in {guard_state.VARIABLE}: nothing bounds what this live key pays out, unless its "
            "programs give their clients one; docs/guard.md has a first one of four lines"
        )
    return Check("Guard", text, None, facts={"file": None, "recommended": is_live})


def _state_problem(sums: GuardSums) -> str | None:
    wait = guard_state.wait_of(sums)
    if wait is None:
        return f"it does not exist yet; {guard_state.BEGIN} makes it"
    return guard_state.wait_text(wait) if wait else None


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
    text = f"{abs(skew):,} s {way} the service's: set this machine's clock; the age of keys depends on it"
    return Check("Clock", text, False, facts={"skew": skew})


def _limits(client: AsyncPayments, answer: ResponseInfo) -> Check:
    own = {kind: state.limit for kind, state in client.limits_snapshot().items()}
    kept = ", ".join(f"{kind.replace('_', ' ')} {limit:,}" for kind, limit in own.items())
    facts = {"limit": answer.rate_limit.limit, "remaining": answer.rate_limit.remaining, "client": own}
    if answer.rate_limit == RateLimit():
        text = f"the answer had no limit headers (a 429 has them); the client's limits a minute: {kept}"
        return Check("Limits", text, None, facts=facts)
    said = f"{answer.rate_limit.remaining} of {answer.rate_limit.limit} a minute left"
    return Check("Limits", f"the service says {said}; the client's limits a minute: {kept}", facts=facts)
