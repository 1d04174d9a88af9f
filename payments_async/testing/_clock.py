"""The sandbox's clock, as a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from payments_async.sandbox import Change, Sandbox


class SandboxClock:
    """The clock of a sandbox. It runs with the machine's, and skips ahead when told."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def now(self) -> datetime:
        """The sandbox's time, UTC."""
        return datetime.fromtimestamp(self._sandbox.clock.now(), UTC)

    def advance(self, by: float | timedelta) -> list[Change]:
        """Skip ahead, in seconds or as a timedelta; gives what fell due on the way, in order.

        `ValueError` when negative.
        """
        return self._sandbox.advance(by.total_seconds() if isinstance(by, timedelta) else by)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.now():%Y-%m-%d %H:%M:%S} UTC>"
