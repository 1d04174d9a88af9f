"""Makes webhook URLs, and verifies the signed token in each. Pure: secrets and times are arguments.

A token is the base64url text, without padding, of

    version 1 · kind 1 · made at 4 · valid until 4 · reference 1 to 764 · HMAC-SHA256 32

bytes. Both times are whole days, so that the same reference has the same token all day. A token is parsed
only after its HMAC was verified, and has one spelling only: a token that differs from the original in one
bit is refused.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable, Sequence
from hmac import compare_digest, digest
from typing import Final, NoReturn, cast
from urllib.parse import urlsplit

import attrs

from .._http.addresses import LOOPBACK
from ._delivery import Kind

SMALLEST_SECRET: Final = 32  # bytes: as many as the HMAC has
LONGEST_REFERENCE: Final = 191
"""Characters of a payout's reference (Endpoints, POST /payouts), and of ours for payments."""
LONGEST_TOKEN: Final = 1075
"""Characters of a token whose reference has 191 characters of four bytes."""

LONGEST_URL: Final = 2048  # characters of a `webhook_url` (Endpoints)
DAY: Final = 86_400  # seconds
_YEARS: Final = 10 * 365 * DAY

_PURPOSE: Final = b"payments-sdk webhook url\0"
"""Part of the HMAC's input, so that no other use of the same secret can make a token."""
_HEAD: Final = struct.Struct(">BBII")
_VERSION: Final = 2
_MAC: Final = 32
_KINDS: Final[Sequence[Kind]] = ("payout", "payment", "checkout")
_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@attrs.frozen
class TokenClaims:
    """The content of a token; times are whole seconds since 1970, UTC."""

    kind: Kind
    reference: str
    made_at: int  # the first second of the day on which it was made
    expires_at: int  # the first second in which it is no longer valid

    @classmethod
    def made_on(cls, kind: Kind, reference: str, now: float, expires_in: float) -> TokenClaims:
        """The content of a token that is made now: the same all day."""
        day = int(now // DAY) * DAY
        return cls(kind, reference, day, day + DAY + math.ceil(expires_in / DAY) * DAY)


class Signer:
    """Makes and checks HMACs under one or two secrets, which live in closures: no repr or pickle has them."""

    __slots__ = ("_macs", "problem")

    def __init__(self, secrets: object) -> None:
        """Take the secrets. Raises nothing, as tracebacks with local variables would show them."""
        self.problem: str | None = _fault_of_secrets(secrets)
        """The fault of the secrets; None when they are valid."""
        given = () if self.problem else cast("Sequence[str | bytes]", secrets)
        self._macs: list[Callable[[bytes], bytes]] = [_keyed(secret) for secret in given]

    def sign(self, message: bytes) -> bytes:
        """The HMAC under the first secret."""
        return self._macs[0](message)

    def verifies(self, message: bytes, mac: bytes) -> bool:
        """Verify an HMAC under any of the secrets, in constant time."""
        right = False
        for made in self._macs:
            right |= compare_digest(made(message), mac)
        return right

    def __repr__(self) -> str:
        return "<webhook secrets>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a webhook receiver holds secrets and has no pickle: make one in each process")


def _fault_of_secrets(secrets: object) -> str | None:
    if not isinstance(secrets, list | tuple) or not 1 <= len(secrets) <= 2:
        return "secrets must be a list of one or two: the first makes URLs, both are accepted"
    if not all(isinstance(secret, str | bytes) for secret in secrets):
        return "each webhook secret must be bytes or text"
    try:
        short = [number for number, raw in enumerate(map(_raw, secrets), 1) if len(raw) < SMALLEST_SECRET]
    except UnicodeEncodeError:
        return "each webhook secret must be text that UTF-8 can write, or bytes"
    if short:
        return (
            f"webhook secret {short[0]} is shorter than {SMALLEST_SECRET} bytes: "
            "python -c 'import secrets; print(secrets.token_hex(32))' makes one"
        )
    return None


def _keyed(secret: str | bytes) -> Callable[[bytes], bytes]:
    raw = _raw(secret)
    return lambda message: digest(raw, _PURPOSE + message, "sha256")


def make(signer: Signer, claims: TokenClaims) -> str:
    """Make a token. The reference has 1 to 191 characters that UTF-8 can encode."""
    head = _HEAD.pack(_VERSION, _KINDS.index(claims.kind), claims.made_at, claims.expires_at)
    said = head + claims.reference.encode()
    return _text(said + signer.sign(said))


def read(signer: Signer, token: str, now: float) -> TokenClaims | None:
    """Read a token; None unless its HMAC is right and it is still valid."""
    if len(token) > LONGEST_TOKEN or not _ALPHABET.fullmatch(token) or len(token) % 4 == 1:
        return None
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    said, mac = raw[:-_MAC], raw[-_MAC:]
    if len(said) <= _HEAD.size or not signer.verifies(said, mac) or _text(raw) != token:
        return None
    version, kind, made_at, expires_at = _HEAD.unpack_from(said)
    if version != _VERSION or kind >= len(_KINDS) or now >= expires_at:
        return None
    return TokenClaims(_KINDS[kind], said[_HEAD.size :].decode(), made_at, expires_at)


def _raw(secret: str | bytes) -> bytes:
    return secret.encode() if isinstance(secret, str) else secret


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def fault_of_address(base_url: object, plain_hosts: frozenset[str]) -> str | None:
    """The fault of a base URL. A function of its own: the parts of an address may hold a password."""
    if not isinstance(base_url, str) or not re.fullmatch(r"[!-~]+", base_url):
        return "plain ASCII text without white space: https://…/hooks"
    try:
        parts = urlsplit(base_url)
        parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        parts = urlsplit("")
    if not parts.hostname or "@" in base_url or "?" in base_url or "#" in base_url or "\\" in base_url:
        return "an address such as https://shop.example/hooks, no more"
    is_near = LOOPBACK.fullmatch(parts.hostname) or parts.hostname in plain_hosts
    if parts.scheme != "https" and not (parts.scheme == "http" and is_near):
        return (
            "https (plain http is for this machine, and with a sandbox's plain http for a host that "
            "PAYMENTS_SANDBOX_HOSTS names): tokens are in it"
        )
    return None


def faults_of(reference: object, expires_in: object) -> dict[str, list[str]]:
    """The faults of the arguments that a URL is made from."""
    faults = {}
    if not isinstance(reference, str) or not 1 <= len(reference) <= LONGEST_REFERENCE:
        faults["reference"] = [f"must be text of 1 to {LONGEST_REFERENCE} characters"]
    elif not reference.isprintable():
        faults["reference"] = ["must be printable text"]
    is_number = isinstance(expires_in, int | float) and not isinstance(expires_in, bool)
    if not is_number or not 1 <= float(expires_in) <= _YEARS:  # type: ignore[arg-type] # it is a number
        faults["expires_in"] = ["must be a number of seconds, 1 to ten years"]
    return faults
