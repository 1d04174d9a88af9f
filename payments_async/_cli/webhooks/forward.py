"""One request to another address, without redirects or proxies; one to a running sandbox's control API."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import quote, urlsplit

import attrs

from ...errors import ConfigurationError
from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit
from .._output import show_for

TIMEOUT: Final = 10.0
"""Seconds, as long as the sandbox itself waits (gap Y)."""
MAX_ANSWER: Final = 1024 * 1024
"""Bytes of an answer that are read, and one more where there are more."""


@attrs.frozen
class ForwardAddress:
    """A checked address."""

    scheme: str
    host: str
    port: int | None
    path: str = attrs.field(repr=False)

    @property
    def place(self) -> str:
        """Host and port: `127.0.0.1:8000`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port or (443 if self.scheme == 'https' else 80)}"


def read_address(url: str, what: str, example: str = "http://127.0.0.1:8000/webhooks") -> ForwardAddress:
    """Parse an address; ConfigurationError, with an example, when it is not http://host/path."""
    wrong = f"{what} must be an address such as {example}"
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigurationError(wrong)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigurationError(wrong) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ConfigurationError(wrong)
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return ForwardAddress(parts.scheme, parts.hostname, port, quote(path, safe="%!$&'()*+,/:;=?@[]~"))


def send(
    method: str,
    address: ForwardAddress,
    body: bytes | None,
    headers: Mapping[str, str],
    *,
    timeout: float = TIMEOUT,
) -> tuple[int, bytes]:
    """Send a request; returns the answer's status and body. Raises OSError when there is none.

    A body of more than `MAX_ANSWER` bytes is cut after the next one.
    """
    kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = kind(address.host, address.port, timeout=timeout)
    try:
        connection.request(method, address.path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read(MAX_ANSWER + 1)
    except HTTPException as broken:
        raise OSError(f"no readable answer ({type(broken).__name__})") from None
    finally:
        connection.close()


# The control API of a running sandbox

DEFAULT_SANDBOX: Final = "http://127.0.0.1:7788"
_START: Final = "start one with `payments sandbox`, and pass the address that it prints as --sandbox"
_KEY: Final = re.compile(r"sk_sandbox_[A-Za-z0-9_-]+", re.ASCII)
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def resend(webhook_id: str, sandbox: str | None, *, as_json: bool) -> Exit:
    """Resend a delivery. ConfigurationError for an unusable sandbox address or delivery name."""
    if _ID.fullmatch(webhook_id) is None:
        raise ConfigurationError("a delivery's name is as the sandbox shows it, such as wh_00000001")
    status, text = ask_sandbox(find_sandbox(sandbox), "POST", f"webhooks/{webhook_id}/resend", b"{}")
    answer = json.loads(text)
    if not 200 <= status < 300:
        raise CommandEnded(f"the sandbox refused: {clean(str(answer.get('message')))}", Exit.REFUSED)
    again = clean(str(answer.get("id")))
    show_for(as_json=as_json).step("Resent", f"{webhook_id} again, as {again}", id=again, repeats=webhook_id)
    return Exit.DONE


def find_sandbox(given: str | None) -> ForwardAddress:
    """The address of the sandbox to ask, that of PAYMENTS_BASE_URL or the usual one unless given.

    Raises ConfigurationError for another machine's.
    """
    named = "--sandbox" if given else "PAYMENTS_BASE_URL"
    url = given or os.environ.get("PAYMENTS_BASE_URL") or DEFAULT_SANDBOX
    address = read_address(url, named, DEFAULT_SANDBOX)
    if address.scheme != "http" or address.host not in ("127.0.0.1", "localhost", "::1"):
        raise ConfigurationError(f"{named} names {address.host}, and a sandbox is on this machine: {_START}")
    return address


def ask_sandbox(
    address: ForwardAddress, method: str, path: str, body: bytes | None, timeout: float = TIMEOUT
) -> tuple[int, str]:
    """Status and text, a JSON object, of the control API's answer. Raises CommandEnded without one."""
    target = attrs.evolve(address, path=f"/_sandbox/api/{path}")
    headers = {"Content-Type": "application/json", **_key_for(address)}
    look = "look before you repeat it: it may have been carried out" if method != "GET" else "ask for less"
    try:
        status, answer = send(method, target, body, headers, timeout=timeout)
    except TimeoutError as late:
        problem = f"no answer from {address.place} in {timeout:g} s: {look}"
        raise CommandEnded(problem, Exit.REFUSED) from late
    except OSError as failure:
        problem = f"no sandbox answers at {address.place} ({failure.strerror or failure}): {_START}"
        raise CommandEnded(problem, Exit.REFUSED) from failure
    if len(answer) > MAX_ANSWER:
        raise CommandEnded(f"the answer is longer than 1 MiB: {look}", Exit.REFUSED)
    if not _is_object(answer):
        problem = f"what answers at {address.place} is not a payments sandbox: {_START}"
        raise CommandEnded(problem, Exit.REFUSED)
    return status, answer.decode()


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False


def _key_for(address: ForwardAddress) -> Mapping[str, str]:
    """The header with the environment's sandbox key, if PAYMENTS_BASE_URL names this address.

    A sandbox asks for it where the machine does not say which user a connection is from.
    """
    base, key = os.environ.get("PAYMENTS_BASE_URL", ""), os.environ.get("PAYMENTS_API_KEY", "")
    is_its = f"//{address.place}/" in f"{base}/" and _KEY.fullmatch(key)
    return {"Authorization": f"Bearer {key}"} if is_its else {}
