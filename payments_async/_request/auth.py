"""Reads the secret key: its format, its environment and its header (Authentication).

The key lives in a closure and in `Secret` text only, so that no repr, `vars` or traceback shows it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import attrs

from .._http.addresses import LOOPBACK, decoded, is_address, is_host
from .._http.types import CommonHeaders, Secret
from ..errors import ConfigurationError
from ..models._masking import mask_key

Environment = Literal["live", "sandbox"]

NO_KEY = (
    "no API key: pass api_key= or set PAYMENTS_API_KEY to the project's secret key "
    "(sk_live_… or sk_sandbox_…)"
)
SAME_KEY: Final[Any] = attrs.NOTHING
"""Keeps a client's key. None does not: a missing key must not make the client's own account pay."""
NO_BASE_URL = "no base URL: pass base_url= or set PAYMENTS_BASE_URL to the address that ends in /v1"

_KEY = re.compile(r"sk_(live|sandbox)_[A-Za-z0-9_-]{1,200}")


class SecretKey:
    __slots__ = ("__weakref__", "authorization", "common", "environment", "fingerprint")

    def __init__(self, environment: Environment, fingerprint: str, authorization: Secret) -> None:
        self.environment: Environment = environment
        self.fingerprint: str = fingerprint
        """Distinguishes keys without revealing them."""
        self.authorization: Secret = authorization
        """Value of the `Authorization` header."""
        self.common: dict[str, tuple[CommonHeaders, CommonHeaders]] = {}
        """The headers of its reads and of its writes, by user agent."""


def read_key(text: object, environment: str | None = None, *, missing: str = NO_KEY) -> SecretKey:
    """Read a key. Raises ConfigurationError; no message holds any part of the key."""
    text = hidden(text)
    if not text:
        raise ConfigurationError(missing)
    found = _environment_of(text)
    if found is None:
        raise ConfigurationError(
            "the API key is malformed: it is sk_live_ or sk_sandbox_ followed by letters, digits, - or _, "
            f"with nothing around it; got {_described(text)}"
        )
    if environment is not None and environment != found:
        raise ConfigurationError(
            f"the client is for environment={environment!r} and the key is a {found} key: "
            f"pass a {environment} key, or make a client for the {found} environment"
        )
    fingerprint = hashlib.sha256(str(text).encode()).hexdigest()[:16]
    mask_key(fingerprint, Secret(str(text)))
    return SecretKey(found, fingerprint, Secret(f"Bearer {text}"))


class NotText:
    """Replaces bytes given in place of text: keeps their type's name, and none of the content."""

    def __init__(self, value: object) -> None:
        self.name: str = type(value).__name__

    def __repr__(self) -> str:
        return f"<{self.name}>"


def hidden(value: Any) -> Any:
    """Wrap text as `Secret` and bytes as `NotText`, since tracebacks print local variables."""
    if isinstance(value, bytes | bytearray | memoryview):
        return NotText(value)
    return Secret(value) if isinstance(value, str) else value


def _environment_of(text: object) -> Environment | None:
    """The environment of a well-formed key. A function of its own: the repr of a regex match is the key."""
    match = _KEY.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else "live" if match[1] == "live" else "sandbox"


def _described(text: object) -> str:
    if not isinstance(text, str):
        return text.name if isinstance(text, NotText) else type(text).__name__
    return f"text of {len(text)} characters" + (" with white space in it" if re.search(r"\s", text) else "")


def named_hosts(text: str | None) -> frozenset[str]:
    """The hosts that the text of `PAYMENTS_SANDBOX_HOSTS` names."""
    return frozenset(name.strip().lower() for name in (text or "").split(","))


def check_base_url(text: object, sandbox_hosts: str | None = None) -> str:
    """Check a base URL; returns it with its scheme in lower case and without a slash at the end.

    `sandbox_hosts` is the text of `PAYMENTS_SANDBOX_HOSTS`. Raises ConfigurationError unless it is a valid
    address, and https, or of this machine, or of a host named there. `paired` keeps live keys off plain http.
    """
    text = hidden(text)
    if not text:
        raise ConfigurationError(NO_BASE_URL)
    if problem := _base_url_problem(text, named_hosts(sandbox_hosts)):
        raise ConfigurationError(f"the base URL {problem}")
    scheme, colon, rest = str(text).partition(":")
    return scheme.lower() + colon + rest.rstrip("/")


def _base_url_problem(text: object, plain_hosts: frozenset[str]) -> str | None:
    """The fault of a base URL. A function of its own: the parts of an address may hold a password."""
    if not isinstance(text, str) or not text.isascii() or re.search(r"[\s\x00-\x1f\\]", text):
        return "must be plain ASCII text without white space"
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        parts = urlsplit("")
    scheme, host, path = parts.scheme, parts.hostname, parts.path
    if not host:
        return "has no host: write it as https://…/v1"
    if not is_host(host):
        return "has a host that is no name: it has an empty part, or one of over 63 characters"
    if "@" in text:
        return "must not hold credentials"
    if "?" in text or "#" in text:
        return "must not have a query or a fragment"
    if scheme != "https" and not (scheme == "http" and (LOOPBACK.fullmatch(host) or host in plain_hosts)):
        return (
            "must be https (plain http is for a sandbox: on this machine, or on a host that "
            "PAYMENTS_SANDBOX_HOSTS names, without scheme or port)"
        )
    if not {"", ".", ".."}.isdisjoint(decoded(path).rstrip("/").split("/")[1:]):
        return "has an empty or dotted segment in its path, which servers read differently"
    if not path.rstrip("/").endswith("/v1"):
        return "must end in the version, /v1 (Versioning)"
    if not is_address(scheme + text[len(scheme) :]):
        return "has characters that no address has: they go percent-encoded, and not into the host"
    return None


def paired(key: SecretKey, base_url: str, *, verified: bool = True) -> SecretKey:
    """Refuse to send a live key over plain http, or without verifying the certificate.

    Raises ConfigurationError.
    """
    if key.environment != "live":
        return key
    if not base_url.startswith("https:"):
        raise ConfigurationError(
            "a live key goes over https only; plain http takes a sandbox key: give the client the sandbox's "
            "own (sk_sandbox_…), or the https address of the service as base URL"
        )
    if not verified:
        raise ConfigurationError(
            "the ssl_context verifies no certificate, so a live key could go to any server: give it your "
            "authority, ssl.create_default_context(cafile=...), or the client insecure=True"
        )
    return key
