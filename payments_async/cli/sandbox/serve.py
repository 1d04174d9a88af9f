"""`payments sandbox`: starts the service with the options given, and serves until it is stopped."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from ..._runtime import SYSTEM
from ...errors import ConfigurationError
from ...sandbox import Sandbox, StateError, UnknownWord, VirtualClock
from ...sandbox.webhooks.address_guard import read_allowed
from .._exit_codes import Exit

USUAL_PORT: Final = 7788
INSPECTOR: Final = "/_sandbox/"
_SEED_BYTES: Final = 32


@attrs.frozen
class ServeOptions:
    """The options that the commands share."""

    port: int | None = None
    profile: str = "observed"
    scenario: str | None = None
    speed: float = 1.0
    state: Path | None = None
    allow_webhooks_to: tuple[str, ...] = ()
    seed: int | None = None
    """None for chance: a key that anybody can work out would protect nothing."""


@contextmanager
def open_sandbox(wishes: ServeOptions, *, usual: int | None = None) -> Iterator[Sandbox]:
    """A serving sandbox on the wished port; without one on the `usual`, or a free one when that is taken.

    Raises ConfigurationError when the port or the state cannot be had, or the scenario or a host is none.
    """
    try:
        sandbox = _started(wishes, usual)
        try:
            yield sandbox
        finally:
            sandbox.stop()
    except StateError as unfit:
        raise ConfigurationError(f"--state: {unfit}") from unfit
    except UnknownWord as unfit:
        raise ConfigurationError(f"--scenario: {unfit}") from unfit


def environment(sandbox: Sandbox) -> dict[str, str]:
    """The variables by which clients find it (Authentication)."""
    return {"PAYMENTS_BASE_URL": sandbox.base_url, "PAYMENTS_API_KEY": sandbox.api_key}


def inspector_of(sandbox: Sandbox) -> str:
    """The address of its inspector, for a browser."""
    return sandbox.origin + INSPECTOR


def _started(wishes: ServeOptions, usual: int | None) -> Sandbox:
    sandbox = _made(wishes, usual if wishes.port is None else wishes.port)
    try:
        sandbox.start()
    except OSError as refused:
        sandbox.stop()  # leaves the state
        if wishes.port is not None:
            told = str(refused.strerror).partition(" (while")[0]  # Python adds the address
            wrong = f"port {wishes.port} cannot be had: {told}; choose another with --port"
            raise ConfigurationError(wrong) from refused
        sandbox = _made(wishes, None)
        sandbox.start()
    return sandbox


def _made(wishes: ServeOptions, port: int | None) -> Sandbox:
    try:
        read_allowed(wishes.allow_webhooks_to)
    except ValueError as no_host:
        raise ConfigurationError(str(no_host)) from no_host
    return Sandbox(
        profile=wishes.profile,
        seed=int.from_bytes(SYSTEM.token(_SEED_BYTES)) if wishes.seed is None else wishes.seed,
        port=port,
        clock=VirtualClock(speed=wishes.speed),
        scenario=wishes.scenario,
        state=wishes.state,
        allow_webhooks_to=wishes.allow_webhooks_to,
    )


def serve(wishes: ServeOptions, *, as_json: bool) -> Exit:
    """Serve until Ctrl-C or SIGTERM; ConfigurationError for wishes that cannot be fulfilled."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    try:
        with suppress(KeyboardInterrupt), open_sandbox(wishes, usual=USUAL_PORT) as sandbox:
            tell(environment(sandbox), inspector_of(sandbox), wishes, as_json=as_json)
            wait()
    finally:
        signal.signal(signal.SIGTERM, before)
    return Exit.DONE


def tell(variables: Mapping[str, str], inspector: str, wishes: ServeOptions, *, as_json: bool) -> None:
    """Print where the service is, at once, for whoever waits for it on a pipe."""
    base_url, api_key = variables["PAYMENTS_BASE_URL"], variables["PAYMENTS_API_KEY"]
    if as_json:
        told = {"base_url": base_url, "api_key": api_key, "inspector": inspector, "profile": wishes.profile}
        text = json.dumps(told)
    else:
        exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
        kept = f"  State      {wishes.state}\n" if wishes.state is not None else ""
        text = (
            "payments sandbox  a simulated service on this machine; nothing leaves it\n\n"
            f"  Base URL   {base_url}\n"
            f"  API key    {api_key}\n"
            f"  Inspector  {inspector}\n"
            f"{kept}\n"
            f"For the programs of another terminal:\n\n{exports}\n\n"
            "Ctrl-C stops it."
        )
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def wait() -> None:
    """Sleep until a signal raises KeyboardInterrupt."""
    threading.Event().wait()
