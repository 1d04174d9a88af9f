"""One request to another address, without redirects or proxies; `payments webhooks resend`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
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


def sandbox_key(address: ForwardAddress) -> Mapping[str, str]:
    """The header with the environment's sandbox key, if PAYMENTS_BASE_URL names this address.

    A sandbox asks for it where the machine does not say which user a connection is from.
    """
    base, key = os.environ.get("PAYMENTS_BASE_URL", ""), os.environ.get("PAYMENTS_API_KEY", "")
    is_its = f"//{address.place}/" in f"{base}/" and _KEY.fullmatch(key)
    return {"Authorization": f"Bearer {key}"} if is_its else {}


_KEY: Final = re.compile(r"sk_sandbox_[A-Za-z0-9_-]+", re.ASCII)
DEFAULT_SANDBOX: Final = "http://127.0.0.1:7788"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def resend(webhook_id: str, sandbox: str | None, *, as_json: bool) -> Exit:
    """Resend a delivery. ConfigurationError for an unusable sandbox address or delivery name."""
    if _ID.fullmatch(webhook_id) is None:
        raise ConfigurationError("a delivery's name is as the sandbox shows it, such as wh_00000001")
    answer = ask_sandbox(f"webhooks/{webhook_id}/resend", sandbox, {})
    again = clean(str(answer.get("id", "")))
    show_for(as_json=as_json).step("Resent", f"{webhook_id} again, as {again}", id=again, repeats=webhook_id)
    return Exit.DONE


def ask_sandbox(path: str, sandbox: str | None, body: Mapping[str, object] | None = None) -> dict[str, Any]:
    """The answer of a sandbox's control API to a GET, or a POST with a body, `path` being relative to it.

    `sandbox`: its address; PAYMENTS_BASE_URL, or the default one, when None. Raises ConfigurationError for an
    unusable address, CommandEnded where no sandbox answers or the sandbox refuses.
    """
    base = sandbox or os.environ.get("PAYMENTS_BASE_URL") or DEFAULT_SANDBOX
    parts = urlsplit(base)
    named = "--sandbox" if sandbox else "PAYMENTS_BASE_URL"
    url = f"{parts.scheme}://{parts.netloc}/_sandbox/api/{path}"
    address = read_address(url, named, DEFAULT_SANDBOX)
    data = None if body is None else json.dumps(body).encode()
    try:
        headers = {"Content-Type": "application/json", **sandbox_key(address)}
        status, text = send("GET" if body is None else "POST", address, data, headers)
    except OSError as failure:
        problem = (
            f"no sandbox answers at {parts.netloc}: {failure.strerror or failure}; start one with "
            "`payments sandbox`, or pass the address of the one that is meant as --sandbox"
        )
        raise CommandEnded(problem, Exit.REFUSED) from failure
    answer = _read(text)
    if not 200 <= status < 300:
        reason = clean(str(answer.get("message", f"HTTP {status}")))
        raise CommandEnded(f"the sandbox refused: {reason}", Exit.REFUSED)
    return answer


def _read(body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
