"""Where the simulated service listens, and what a program needs to reach it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ...errors import ConfigurationError
from ...sandbox import Sandbox

USUAL_PORT: Final = 7788


@contextmanager
def open_sandbox(port: int | None, profile: str, *, usual: int | None = None) -> Iterator[Sandbox]:
    """A serving sandbox on `port`; without one on the `usual` port, or a free one when that is taken.

    Raises ConfigurationError when `port` cannot be had.
    """
    sandbox = _started(port, usual, profile)
    try:
        yield sandbox
    finally:
        sandbox.stop()


def environment(sandbox: Sandbox) -> dict[str, str]:
    """The variables by which clients find it (Authentication)."""
    return {"PAYMENTS_BASE_URL": sandbox.base_url, "PAYMENTS_API_KEY": sandbox.api_key}


def _started(port: int | None, usual: int | None, profile: str) -> Sandbox:
    wanted = usual if port is None else port
    sandbox = Sandbox(profile=profile, port=wanted)
    try:
        sandbox.start()
    except OSError as refused:
        if port is not None:
            raise ConfigurationError(f"port {port} cannot be had: {refused.strerror}") from refused
        sandbox = Sandbox(profile=profile)
        sandbox.start()
    return sandbox
