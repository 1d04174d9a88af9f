"""Limits in any history: what is admitted is what the windows of the interface say: counted once more."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from tests.sandbox.raw_requests import PAYOUT, Api, Got


class Limited(RuleBasedStateMachine):
    """Requests at any moment under tight limits: no window exceeds its limit, and a 429 does nothing."""

    @initialize(window=st.sampled_from(["aligned", "sliding"]), start=st.sampled_from([0, 17, 59.5]))
    def open(self, window: Any, start: float) -> None:
        limits = SandboxLimits(writes=3, reads=4, diagnostics=5, diagnostics_per_record=2, window=window)
        self.window = window
        self.sandbox = Sandbox(clock=VirtualClock.frozen(1_767_225_600.0 + start), limits=limits)
        self.api = Api(self.sandbox, self.sandbox.api_key)
        self.admitted: dict[str, list[float]] = {}
        self.records: list[str] = []

    def note(self, scopes: dict[str, int], got: Got) -> None:
        """Whether it was admitted must be what the windows say, counted by us."""
        now = self.sandbox.clock.now()
        full = [scope for scope, limit in scopes.items() if self.count(scope, now) >= limit]
        assert (got.status == 429) is bool(full), (full, got.status)
        if not full:
            for scope in scopes:
                self.admitted.setdefault(scope, []).append(now)
            return
        assert 0 < int(got.headers["Retry-After"]) <= 60
        assert int(got.headers["X-RateLimit-Limit"]) in [scopes[scope] for scope in full]
        assert got.headers["X-RateLimit-Remaining"] == "0"

    def count(self, scope: str, now: float) -> int:
        if self.window == "aligned":
            return sum(moment // 60 == now // 60 for moment in self.admitted.get(scope, ()))
        return sum(now - 60 < moment for moment in self.admitted.get(scope, ()))

    @rule(keyed=st.booleans())
    def write(self, keyed: bool) -> None:
        before = len(self.sandbox.books.payouts())
        got = self.api.payout(**{**PAYOUT, "idempotency_key": "key-00001" if keyed else None})
        self.note({"writes": 3}, got)
        if got.status == 429:
            assert len(self.sandbox.books.payouts()) == before
        else:
            self.records.append(got.data["id"])

    @rule()
    def read(self) -> None:
        self.note({"reads": 4}, self.api.get("/payouts"))

    @precondition(lambda self: self.records)
    @rule(at=st.integers(0, 9), what=st.sampled_from(["sync", "inspect"]))
    def ask_live(self, at: int, what: str) -> None:
        record = self.records[at % len(self.records)]
        self.note({"diagnostics": 5, record: 2}, self.api.get(f"/payouts/{record}/{what}"))

    @rule(seconds=st.sampled_from([0.5, 1, 10, 29, 59.5, 60, 61]))
    def let_time_pass(self, seconds: float) -> None:
        self.sandbox.advance(seconds)

    @rule()
    def wait_as_long_as_it_says(self) -> None:
        got = self.api.get("/payouts")
        self.note({"reads": 4}, got)
        if got.status == 429:
            self.sandbox.advance(int(got.headers["Retry-After"]))
            again = self.api.get("/payouts")
            assert again.status == 200
            self.note({"reads": 4}, again)


Limited.TestCase.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
TestLimited = Limited.TestCase
