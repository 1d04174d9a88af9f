"""Settings: a client's options, checked once. Defaults that no environment variable replaces: `client.py`."""

from __future__ import annotations

import math
import re
import ssl
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs

from .._attrs import ValueMixin
from .._emitter import Emitter
from .._http.types import Secret
from .._rate_limit.limits import RateLimits
from .._rate_limit.registry import NO_SHARE
from .._version import __version__
from ..errors import ConfigurationError
from ..guard import Guard
from . import auth

OnLimit = Literal["wait", "raise"]

PARTS: Mapping[str, tuple[str, ...]] = {
    "transport": ("send", "aclose"),
    "runtime": ("monotonic", "now", "sleep", "call_later", "random", "token"),
}
"""Methods that the objects given to a client must have (`_http.types.Transport`, `_runtime.Runtime`)."""

KeySource = Callable[[], auth.SecretKey]


class RotatingKey:
    """A source that asks the caller's function, and knows the key that it gave last."""

    def __init__(self, read: KeySource) -> None:
        self._read = read
        self.last: auth.SecretKey | None = None

    def __call__(self) -> auth.SecretKey:
        key, last = self._read(), self.last
        if last is not None and last.authorization == key.authorization:
            return last  # with the headers that were made for it
        self.last = key  # another thread may put its own there at once
        return key


def last_key(source: KeySource) -> auth.SecretKey | None:
    """The key that a source gave last. The caller's function is not asked; None before its first key."""
    return source.last if isinstance(source, RotatingKey) else source()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Settings(ValueMixin):
    base_url: str
    key: KeySource = attrs.field(repr=False)
    environment: auth.Environment | None  # that of all its keys, if it was given
    plain_hosts: frozenset[str]  # besides this machine, where a sandbox may post to over plain http
    verified: bool  # True if the service's certificate is verified, or need not be
    emitter: Emitter = attrs.field(repr=False)
    user_agent: str
    limits: RateLimits | None
    limit_store: Secret | None = attrs.field(repr=False)
    insecure_database: bool
    expected_workers: int | None
    timeout: float
    deadline: float | None
    max_retries: int
    max_retry_after: float
    on_limit: OnLimit
    guards: tuple[Guard, ...] = ()  # all of them hold
    fails_closed: bool = False
    """True for a bulk run: calls end when the limit store cannot be reached for long."""


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Select this package's environment variables, as `Secret`, so that tracebacks print none of them."""
    names = (
        *("PAYMENTS_API_KEY", "PAYMENTS_BASE_URL", "PAYMENTS_RATE_SHARE"),
        *("PAYMENTS_LIMIT_STORE", "PAYMENTS_EXPECTED_WORKERS", "PAYMENTS_GUARD", "PAYMENTS_SANDBOX_HOSTS"),
    )
    given: dict[str, str] = {name: Secret(environ[name]) for name in names if environ.get(name)}
    if environ.get("PAYMENTS_GUARD") == "":  # a variable that was not filled in is not "no guard"
        raise ConfigurationError("PAYMENTS_GUARD is empty: name the guard's file, or unset it")
    return given


def settle(
    environ: Mapping[str, str],
    *,
    api_key: str | Callable[[], str] | None,
    base_url: str | None,
    environment: auth.Environment | None,
    limits: RateLimits | None,
    limit_store: str | None,
    insecure_database: bool,
    expected_workers: int | None,
    app_info: str | None,
    on_event: Callable[[Any], object] | None,
    guard: Guard | None,
    verified: bool = True,
    **numbers: Any,
) -> Settings:
    """Make settings from a client's options. `verified`: whether the service's certificate is verified.

    Raises ConfigurationError for the first option that cannot be used.
    """
    given = environ.get("PAYMENTS_BASE_URL") if base_url is None else base_url
    key = environ.get("PAYMENTS_API_KEY") if api_key is None else api_key
    if not given and not key:
        raise ConfigurationError(f"{auth.NO_KEY}; {auth.NO_BASE_URL}")
    hosts = environ.get("PAYMENTS_SANDBOX_HOSTS")
    address = auth.check_base_url(given, hosts)
    source = key_source(key, environment, address, verified=verified)
    shared = _limits(limits, environ.get("PAYMENTS_RATE_SHARE"))
    store = environ.get("PAYMENTS_LIMIT_STORE") if limit_store is None else limit_store
    if store is not None:
        store = check_store(store, shared, insecure_database=insecure_database)
    return Settings(
        base_url=address,
        key=source,
        environment=environment,
        # whoever asks over plain http has no live key
        plain_hosts=auth.named_hosts(hosts if address.startswith("http:") else None),
        verified=verified,
        emitter=emitter(on_event),
        user_agent=user_agent(app_info),
        limits=shared,
        limit_store=store,
        insecure_database=insecure_database,
        guards=_guards(guard, environ.get("PAYMENTS_GUARD")),
        expected_workers=_expected_workers(expected_workers, environ.get("PAYMENTS_EXPECTED_WORKERS")),
        **check_numbers(numbers),
    )


def check_numbers(numbers: dict[str, Any]) -> dict[str, Any]:
    """Check the options that are numbers, and `on_limit`. Raises ConfigurationError."""
    for name in ("timeout", "max_retry_after", "deadline", "connect_timeout"):
        boundless = name == "deadline" and numbers.get(name) is None
        if name in numbers and not boundless and not positive(numbers[name]):
            raise ConfigurationError(f"{name} must be a positive number of seconds")
    connections = numbers.get("max_connections", 1)
    if not count(connections) or not connections:
        raise ConfigurationError("max_connections must be a whole number, 1 or more")
    if not count(numbers.get("max_retries", 0)):
        raise ConfigurationError("max_retries must be a whole number, 0 or more")
    if numbers.get("on_limit", "wait") not in ("wait", "raise"):
        raise ConfigurationError("on_limit must be 'wait' or 'raise'")
    return numbers


def check_parts(*, ssl_context: object, insecure: object, insecure_database: object, **parts: object) -> None:
    """Check the objects given to a client. Raises ConfigurationError."""
    for name, choice in (("insecure", insecure), ("insecure_database", insecure_database)):
        if not isinstance(choice, bool):
            raise ConfigurationError(f"{name} must be True or False, not {type(choice).__name__}")
    if ssl_context is not None and not isinstance(ssl_context, ssl.SSLContext):
        raise ConfigurationError(f"ssl_context must be an ssl.SSLContext, not {type(ssl_context).__name__}")
    for name, part in parts.items():
        lacks = [method for method in PARTS[name] if not callable(getattr(part, method, None))]
        if part is not None and (lacks or isinstance(part, type)):
            raise ConfigurationError(f"{name} must be an object with the methods {', '.join(PARTS[name])}")
    if parts["transport"] is None and hasattr(parts["runtime"], "transport"):  # a SkippingRuntime
        problem = "this runtime skips time, and without its transport skips to the time-outs of requests"
        raise ConfigurationError(f"{problem}: give transport=runtime.transport(), too")


def verifies(ssl_context: ssl.SSLContext | None) -> bool:
    """Return whether a TLS context verifies certificates; aiohttp's default does."""
    return ssl_context is None or ssl_context.verify_mode is not ssl.CERT_NONE


def altered(
    settings: Settings, api_key: Any, on_event: Callable[[Any], object] | None, numbers: Mapping[str, Any]
) -> Settings:
    """Make the settings of `with_options`: None keeps an option, but `api_key`. Raises ConfigurationError."""
    changed = check_numbers({name: value for name, value in numbers.items() if value is not None})
    if api_key is not auth.SAME_KEY:
        changed.update(_another_key(settings, api_key))
    if on_event is not None:
        changed["emitter"] = emitter(on_event)
    return attrs.evolve(settings, **changed)


def key_source(
    api_key: str | Callable[[], str] | None, environment: str | None, base_url: str, *, verified: bool
) -> KeySource:
    """The source of each request's key: a fixed key, or a callable (rotation)."""
    if environment not in (None, "live", "sandbox"):
        raise ConfigurationError("environment must be 'live' or 'sandbox'")
    if not callable(api_key):
        fixed = auth.paired(auth.read_key(api_key, environment), base_url, verified=verified)
        return lambda: fixed
    missing = "no API key: the function given as api_key returned none"
    return RotatingKey(  # a lambda has no local variable, which a traceback would print
        lambda: auth.paired(
            auth.read_key(api_key(), environment, missing=missing), base_url, verified=verified
        )
    )


def _another_key(settings: Settings, api_key: str | Callable[[], str] | None) -> dict[str, Any]:
    """The key source of another project, in the client's environment. Raises ConfigurationError."""
    if api_key is None or api_key == "":
        raise ConfigurationError(
            "with_options(api_key=...) got no key: pass the other project's secret key, or leave api_key out "
            "to keep the client's own"
        )
    environment = settings.environment or (last_key(settings.key) or settings.key()).environment
    source = key_source(api_key, environment, settings.base_url, verified=settings.verified)
    return {"key": source, "environment": environment}


def emitter(on_event: Callable[[Any], object] | None) -> Emitter:
    """Make the emitter of a client's events. Raises ConfigurationError."""
    if on_event is not None and not callable(on_event):
        raise ConfigurationError(f"on_event must be callable, not {type(on_event).__name__}")
    return Emitter(on_event)


def user_agent(app_info: str | None) -> str:
    """The `User-Agent`: this package, Python and `app_info`."""
    ours = f"payments-sdk/{__version__} python/{sys.version_info.major}.{sys.version_info.minor}"
    if app_info is None:
        return ours
    if not isinstance(app_info, str) or not app_info.isascii() or not app_info.isprintable():
        raise ConfigurationError("app_info must be printable ASCII text such as 'shop/1.2'")
    return f"{ours} {app_info}"


def check_store(address: object, limits: RateLimits | None, *, insecure_database: bool) -> Secret:
    """Check a limit store's address. Raises ConfigurationError, which does not show it."""
    if not isinstance(address, str):
        raise ConfigurationError(f"limit_store must be an address, not {type(address).__name__}")
    if limits is not None and limits.is_share:
        raise ConfigurationError(NO_SHARE)
    secret = Secret(address)
    from .._rate_limit.store_client import open_store  # most programs use no store

    open_store(secret, insecure_database=insecure_database)  # its address is right, its library there
    return secret


def _guards(guard: Guard | None, path: str | None) -> tuple[Guard, ...]:
    """The guard that a client was given, and that of `PAYMENTS_GUARD`. Raises ConfigurationError."""
    if guard is None and not path:
        return ()
    if guard is not None and not isinstance(guard, Guard):
        raise ConfigurationError(f"guard must be a Guard, not {type(guard).__name__}")
    given = () if guard is None else (guard,)
    return (*given, Guard.from_file(path)) if path else given


def _expected_workers(given: int | None, variable: str | None) -> int | None:
    """The number of processes that share a limit store. Raises ConfigurationError."""
    name = "expected_workers"
    if given is None and variable:
        name = "PAYMENTS_EXPECTED_WORKERS"
        given = int(variable) if re.fullmatch("[0-9]{1,9}", variable) else 0
    if given is not None and not (count(given) and given):
        raise ConfigurationError(f"{name} must be a whole number, 1 or more")
    return given


def _limits(limits: RateLimits | None, share: str | None) -> RateLimits | None:
    """The limits with `PAYMENTS_RATE_SHARE` applied (a fraction such as 1/8 or 0.125)."""
    if limits is not None and not isinstance(limits, RateLimits):
        raise ConfigurationError(f"limits must be a RateLimits, not {type(limits).__name__}")
    if not share:
        return limits
    from fractions import Fraction  # most programs have no share

    try:
        part = Fraction(share)
    except (ValueError, ZeroDivisionError):
        part = Fraction(0)
    if not 0 < part <= 1:
        raise ConfigurationError("PAYMENTS_RATE_SHARE must be a fraction above 0 and up to 1, such as 1/8")
    return (limits or RateLimits()).share(part)


def positive(value: object) -> bool:
    """Return whether a value is a finite number of seconds above zero."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def count(value: object) -> bool:
    """Return whether a value is a whole number, 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
