"""Rules that hold for every history: one effect per key, pages partition, limits hold, decimals are exact."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from payments_async.sandbox import Sandbox, SandboxLimits, VirtualClock
from payments_async.sandbox._limits import Meter
from payments_async.sandbox._records import ATTEMPT_STATES, PAYMENT_STATES, PAYOUT_STATES
from tests.sandbox.api import Api

STEPS = st.integers(0, 400).map(lambda tenths: tenths / 4)
FAULTS = st.sampled_from(
    [None, "lost_response", "lost_request", "http:503", "cut_body", "429", "empty", "hang"]
)
OUTCOMES = st.sampled_from(
    ["complete", "fail:NO", "manual", "reads=2", "immediate", "after=90s", "fail:NO immediate"]
)


@given(st.lists(STEPS, max_size=60), st.integers(1, 5), st.sampled_from(["aligned", "sliding"]))
def test_no_window_ever_admits_more_than_its_limit(gaps: list[float], limit: int, window: Any) -> None:
    meter = Meter(SandboxLimits(writes=limit, window=window))
    now, admitted = 1_767_225_600.0, []
    for gap in gaps:
        now += gap
        excess = meter.admit("writes", None, now)
        if excess is None:
            admitted.append(now)
        else:
            assert 0 < excess.wait <= 60
            assert excess.limit == limit
    if window == "aligned":
        assert all(count <= limit for count in Counter(moment // 60 for moment in admitted).values())
    else:
        assert all(sum(start <= moment < start + 60 for moment in admitted) <= limit for start in admitted)


@given(st.lists(STEPS, max_size=30), st.sampled_from(["aligned", "sliding"]))
def test_waiting_as_long_as_it_says_is_always_enough(gaps: list[float], window: Any) -> None:
    meter = Meter(SandboxLimits(writes=2, window=window))
    now = 1_767_225_600.0
    for gap in gaps:
        now += gap
        excess = meter.admit("writes", None, now)
        if excess is not None:
            now += excess.wait
            assert meter.admit("writes", None, now) is None


@given(
    st.decimals("1", "1e20", allow_nan=False, allow_infinity=False, places=None),
    st.sampled_from(["XOF", "USD", "KWD"]),
)
@settings(max_examples=50)
def test_an_amount_comes_back_equal(amount: Decimal, currency: str) -> None:
    sandbox = Sandbox()
    api = Api(sandbox, sandbox.api_key)
    body = f'{{"amount": {amount}, "currency": "{currency}"}}'.encode()
    assert Decimal(str(api.post("/payment/intents", body).data["amount"]["value"])) == amount


class History(RuleBasedStateMachine):
    """Any interleaving of creations, retries, faults, time and reading."""

    def __init__(self) -> None:
        super().__init__()
        self.sandbox = Sandbox(clock=VirtualClock.frozen(), limits=SandboxLimits.off())
        self.api = Api(self.sandbox, self.sandbox.api_key)
        self.sent: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, bytes] = {}
        self.statuses: dict[str, str] = {}

    @rule(number=st.integers(0, 5), fault=FAULTS, outcome=OUTCOMES)
    def create_or_repeat(self, number: int, fault: str | None, outcome: str) -> None:
        key = f"key-{number:05}"
        fields = self.sent.setdefault(key, {"reference": key, "metadata": {"sandbox_scenario": outcome}})
        if fault:
            self.sandbox.on("payouts.create").respond(fault)
        got = self.api.payout(idempotency_key=key, **fields)
        if got.status == 201 and got.answer.fault is None and got.answer.body and fault != "empty":
            assert self.answers.setdefault(key, got.answer.body) == got.answer.body

    @precondition(lambda self: self.sent)
    @rule()
    def reuse_a_key_for_another_body(self) -> None:
        key = next(iter(self.sent))
        if self.sandbox.books.payouts(reference=key):
            assert self.api.payout(idempotency_key=key, amount=51).status == 409

    @rule(outcome=st.sampled_from(["failover:1", "fail:NO", "action:collect_otp", "hang", "complete"]))
    def start_a_payment(self, outcome: str) -> None:
        self.api.intent(metadata={"sandbox_scenario": outcome})

    @rule(seconds=st.sampled_from([0.5, 2, 5, 60, 3600]))
    def let_time_pass(self, seconds: float) -> None:
        changes = self.sandbox.advance(seconds)
        assert [change.at for change in changes] == sorted(change.at for change in changes)

    @rule(per_page=st.integers(1, 4))
    def walk_the_list(self, per_page: int) -> None:
        found: list[str] = []
        path = f"/payouts?per_page={per_page}"
        cursor = ""
        while True:
            page = self.api.get(path + cursor)
            assert len(page.data) <= per_page
            found += [payout["id"] for payout in page.data]
            if not page.json["pagination"]["has_more_pages"]:
                break
            cursor = f"&cursor={page.json['pagination']['next_cursor']}"
        assert found == [entry.id for entry in self.sandbox.books.payouts()][::-1]

    @invariant()
    def one_effect_per_key(self) -> None:
        used = Counter(entry.idempotency_key for entry in self.sandbox.books.payouts())
        assert all(count == 1 for count in used.values())

    @invariant()
    def final_stays_final(self) -> None:
        tables = {**PAYOUT_STATES, **PAYMENT_STATES}
        books = self.sandbox.books
        present = {entry.id: entry.status for entry in books.payouts()}
        present |= {entry.id: entry.status for entry in books.payments()}
        for record_id, status in present.items():
            before = self.statuses.get(record_id, status)
            assert tables[before] or status == before
        self.statuses = present

    @invariant()
    def at_most_one_attempt_succeeds(self) -> None:
        for payment in self.sandbox._core.world.tenants[self.api.key].payments:
            completed = [attempt for attempt in payment.attempts if attempt.status == "completed"]
            assert len(completed) == (payment.status == "completed")
            assert all(not ATTEMPT_STATES[attempt.status] for attempt in payment.attempts[:-1])


History.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase
